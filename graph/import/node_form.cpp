#include "graph/import/node_form.h"

#include <algorithm>

#include "graph/import/tensor_proto.h"

namespace tensmith::graph {

const TensorType& Adapting::type(Value v) const {
  TS_USER_CHECK(v.given(), "bad-arity") << "inputs: expected more than " << form.inputs.size() << " values";
  return editor.graph().type(v);
}

void Adapting::set_input(int i, Value value) {
  if (i >= static_cast<int>(form.inputs.size())) form.inputs.resize(static_cast<size_t>(i) + 1);
  form.inputs[i] = value;
}

bool Adapting::input_is_empty_constant(int i) const {
  const Constant* value = constant(i);
  return value && value->num_elements() == 0;
}

Value Adapting::ints(const std::vector<int64_t>& values) {
  return editor.add_constant(Constant::from_ints(kInt64, {static_cast<int64_t>(values.size())}, values),
                             form.name + "." + std::to_string(made_++));
}

Value Adapting::floats(const std::vector<double>& values, DType dtype) {
  return editor.add_constant(Constant::from_floats(dtype, {static_cast<int64_t>(values.size())}, values),
                             form.name + "." + std::to_string(made_++));
}

Value Adapting::scalar(double value, DType dtype) {
  return editor.add_constant(Constant::from_floats(dtype, {}, std::vector<double>{value}),
                             form.name + "." + std::to_string(made_++));
}

Value Adapting::node(const std::string& op, std::vector<Value> inputs, AttrMap attrs) {
  const OpDef* def = find_op(op);
  if (!def)
    throw Refused{"unsupported-op", "it needs the operator " + op + ", which is not implemented",
                  "rewrite the model without " + form.op};
  auto added = editor.try_add(*def, std::move(inputs), std::move(attrs), form.name + "." + std::to_string(made_++));
  if (!added) throw Refused{added.failure().id, added.failure().message, "rewrite the model without " + form.op};
  return {*added, 0};
}

Value Adapting::reshape_like(Value v, Value shape_of) {
  const TensorType& target = type(shape_of);
  if (target.is_static()) return node("Reshape", {v, ints(target.static_shape())});
  return node("Reshape", {v, node("Shape", {shape_of})});
}

namespace {

const std::vector<Adapter>& all_adapters() {
  static const std::vector<Adapter> adapters = [] {
    std::vector<Adapter> all = onnx_adapters();
    for (const Adapter& adapter : microsoft_adapters()) all.push_back(adapter);
    for (const Adapter& adapter : ml_adapters()) all.push_back(adapter);
    for (const Adapter& adapter : training_adapters()) all.push_back(adapter);
    return all;
  }();
  return adapters;
}

}  // namespace

bool has_adapter(const std::string& op, const std::string& domain) {
  const auto& all = all_adapters();
  return std::any_of(all.begin(), all.end(),
                     [&](const Adapter& adapter) { return op == adapter.op && domain == adapter.domain; });
}

void adapt(Adapting& context) {
  const std::string op = context.form.op, domain = context.form.domain;
  for (const Adapter& adapter : all_adapters())
    if (op == adapter.op && domain == adapter.domain && context.form.opset >= adapter.first_opset &&
        context.form.opset <= adapter.last_opset && context.outputs.empty())
      adapter.apply(context);
}

namespace {

/// The element type that an attribute takes on when it becomes an input.
DType moved_dtype(const OpDef& op, const Adapting& context, int input) {
  const size_t place = std::min(static_cast<size_t>(input), op.inputs.size() - 1);
  const char* leader = op.inputs[place].same_type_as;
  for (size_t k = 0; leader && k < op.inputs.size(); ++k)
    if (std::string_view(leader) == op.inputs[k].name && context.has(static_cast<int>(k)))
      return context.type(context.input(static_cast<int>(k))).dtype;
  return kFloat32;
}

Result<Value> as_constant(const OpDef& op, const AttrSpec& spec, const AttrValue& value, Adapting& context) {
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) return context.ints(*list);
  if (const auto* one = std::get_if<int64_t>(&value))
    return context.editor.add_constant(Constant::from_ints(kInt64, {}, std::span(one, 1)));
  if (const auto* list = std::get_if<std::vector<double>>(&value)) return context.floats(*list);
  if (const auto* one = std::get_if<double>(&value))
    return context.scalar(*one, moved_dtype(op, context, spec.becomes_input));
  if (const auto* tensor = std::get_if<Constant>(&value)) return context.editor.add_constant(*tensor);
  return Failure{"bad-attribute", std::string("attribute ") + spec.name + " cannot be turned into an input"};
}

/// The names of element types in the form of the file: numbers, in very old models text.
Result<AttrValue> as_dtype(const AttrSpec& spec, const AttrValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) {
    auto dtype = onnx_dtype(*number);
    if (!dtype) return dtype.failure();
    return AttrValue(*dtype);
  }
  static const std::map<std::string, int64_t> names = {{"FLOAT", 1},    {"UINT8", 2},   {"INT8", 3},    {"UINT16", 4},
                                                       {"INT16", 5},    {"INT32", 6},   {"INT64", 7},   {"BOOL", 9},
                                                       {"FLOAT16", 10}, {"DOUBLE", 11}, {"UINT32", 12}, {"UINT64", 13}};
  if (const auto* text = std::get_if<std::string>(&value))
    if (const auto found = names.find(*text); found != names.end()) return AttrValue(*onnx_dtype(found->second));
  return Failure{"bad-attribute", std::string("attribute ") + spec.name + ": expected the number of an element type"};
}

}  // namespace

Result<void> update_attributes(const OpDef& op, Adapting& context) {
  NodeForm& form = context.form;
  const auto spec_for = [&](const std::string& name) -> const AttrSpec* {
    for (const AttrSpec& spec : op.attrs)
      if (spec.name == name && spec.since <= form.opset && form.opset <= spec.until) return &spec;
    return nullptr;
  };
  const AttrMap given = form.attrs;
  for (const auto& [name, value] : given.all()) {
    const AttrSpec* spec = spec_for(name);
    if (!spec) {
      const auto same_name = [&, &name = name](const AttrSpec& other) { return name == other.name; };
      const bool other_version = std::any_of(op.attrs.begin(), op.attrs.end(), same_name);
      return Failure{"unsupported-attribute",
                     "attribute " + name +
                         (other_version ? " does not exist in opset " + std::to_string(form.opset) : " is not known")};
    }
    if (spec->kind == AttrKind::kType) {
      // An element type of 0 (undefined) means that an optional attribute is not given.
      if (const auto* number = std::get_if<int64_t>(&value); number && *number == 0 && spec->no_default) {
        form.attrs.erase(name);
        continue;
      }
      auto dtype = as_dtype(*spec, value);
      if (!dtype) return dtype.failure();
      form.attrs.set(name, std::move(dtype).value());
    }
  }
  for (const AttrSpec& spec : op.attrs) {
    if (spec.since > form.opset || form.opset > spec.until || spec.until >= 1000) continue;
    const bool has = form.attrs.has(spec.name);
    if (!has && (spec.no_default || spec.required)) continue;
    const AttrValue value = has ? form.attrs.all().at(spec.name) : spec.default_value;
    if (spec.becomes_input >= 0) {
      form.attrs.erase(spec.name);
      if (context.has(spec.becomes_input))
        return Failure{"bad-attribute", std::string("attribute ") + spec.name + " is also given as an input"};
      auto moved = as_constant(op, spec, value, context);
      if (!moved) return moved.failure();
      context.set_input(spec.becomes_input, *moved);
    } else {
      // A form that ends: the newest one of that name may have another default, so it is written out; one without
      // successor goes.
      const auto newer = std::find_if(op.attrs.begin(), op.attrs.end(), [&](const AttrSpec& other) {
        return std::string_view(other.name) == spec.name && other.until >= 1000;
      });
      if (newer == op.attrs.end()) form.attrs.erase(spec.name);
      else form.attrs.set(spec.name, value);
    }
  }
  return {};
}

}  // namespace tensmith::graph
