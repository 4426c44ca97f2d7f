#include <algorithm>

#include "graph/dim_facts.h"
#include "graph/op_def.h"

namespace tensmith::graph {

namespace {

constexpr const char* kKindNames[] = {"an int",         "a float",          "a string",
                                      "a list of ints", "a list of floats", "a list of strings",
                                      "a tensor",       "an element type",  "a graph"};

const char* set_name(TypeSet set) {
  switch (set) {
    case TypeSet::kAny: return "any type";
    case TypeSet::kFloat: return "a float type";
    case TypeSet::kNumeric: return "a numeric type";
    case TypeSet::kInteger: return "an integer type";
    case TypeSet::kSigned: return "a signed type";
    case TypeSet::kBool: return "bool";
    case TypeSet::kIndex: return "i32 or i64";
    case TypeSet::kInt64: return "i64";
    case TypeSet::kFloatOrInt32: return "a float type or i32";
  }
  return "?";
}

std::string where(const Node& node) { return "node '" + node.name + "' (" + node.op->name + "): "; }

/// The specification of the i-th input; the last one repeats when it is variadic.
const InputSpec& input_spec(const OpDef& op, size_t i) { return op.inputs[std::min(i, op.inputs.size() - 1)]; }

std::string input_name(const OpDef& op, size_t i) {
  return "input " + std::to_string(i) + " (" + input_spec(op, i).name + ")";
}

Result<void> check_inputs(const InferContext& ctx) {
  const OpDef& op = *ctx.node.op;
  const bool variadic = !op.inputs.empty() && op.inputs.back().variadic;
  const int fewest = min_inputs(op), given = static_cast<int>(ctx.inputs.size());
  if (given < fewest || (!variadic && given > static_cast<int>(op.inputs.size()))) {
    const std::string most = variadic                                       ? " or more"
                             : fewest == static_cast<int>(op.inputs.size()) ? ""
                                                                            : " to " + std::to_string(op.inputs.size());
    return Failure{"bad-arity", where(ctx.node) + "inputs: expected " + std::to_string(fewest) + most + ", got " +
                                    std::to_string(given)};
  }
  for (size_t i = 0; i < ctx.inputs.size(); ++i) {
    const InputSpec& spec = input_spec(op, i);
    if (!ctx.inputs[i]) {
      if (!spec.optional)
        return Failure{"bad-arity", where(ctx.node) + input_name(op, i) + ": expected a value, got none"};
      continue;
    }
    const DType type = ctx.inputs[i]->dtype;
    if (!accepts(spec.types, type))
      return Failure{"unsupported-dtype", where(ctx.node) + input_name(op, i) + ": expected " + set_name(spec.types) +
                                              ", got " + to_string(type) + "; insert a Cast"};
    const bool repeats = spec.variadic && i >= op.inputs.size();
    const char* leader = spec.same_type_as;
    for (size_t k = 0; leader && k < std::min(op.inputs.size(), ctx.inputs.size()); ++k) {
      if (std::string_view(leader) != op.inputs[k].name || !ctx.inputs[k] || (k == i && !repeats)) continue;
      if (ctx.inputs[k]->dtype != type)
        return Failure{"dtype-mismatch", where(ctx.node) + input_name(op, i) + ": expected " +
                                             to_string(ctx.inputs[k]->dtype) + " as of " + input_name(op, k) +
                                             ", got " + to_string(type) + "; insert a Cast"};
    }
  }
  return {};
}

Result<void> check_attr(const Node& node, const std::string& name, const AttrValue& value) {
  const OpDef& op = *node.op;
  const AttrSpec* spec = nullptr;
  for (const AttrSpec& candidate : op.attrs)
    if (candidate.name == name && (!spec || candidate.until > spec->until)) spec = &candidate;
  if (!spec) {
    std::string known;
    for (const AttrSpec& candidate : op.attrs) known += (known.empty() ? "" : ", ") + std::string(candidate.name);
    return Failure{"bad-attribute", where(node) + "attribute " + name + ": expected one of " +
                                        (known.empty() ? "none" : known) + ", got this name"};
  }
  if (value.index() != static_cast<size_t>(spec->kind))
    return Failure{"bad-attribute", where(node) + "attribute " + name + ": expected " +
                                        kKindNames[static_cast<int>(spec->kind)] + ", got " +
                                        kKindNames[value.index()]};
  const auto* text = std::get_if<std::string>(&value);
  if (text && !spec->allowed.empty() &&
      std::find(spec->allowed.begin(), spec->allowed.end(), *text) == spec->allowed.end()) {
    std::string allowed;
    for (const std::string& choice : spec->allowed) allowed += (allowed.empty() ? "" : ", ") + choice;
    return Failure{"bad-attribute",
                   where(node) + "attribute " + name + ": expected one of " + allowed + ", got '" + *text + "'"};
  }
  return {};
}

Result<void> check_attrs(const Node& node) {
  for (const auto& [name, value] : node.attrs.all())
    if (auto ok = check_attr(node, name, value); !ok) return ok;
  for (const AttrSpec& spec : node.op->attrs)
    if (spec.required && spec.until >= 1000 && !node.attrs.has(spec.name))
      return Failure{"missing-attribute", where(node) + "attribute " + spec.name + ": expected " +
                                              kKindNames[static_cast<int>(spec.kind)] + ", got none"};
  return {};
}

/// Canonical dims; refuses sizes that cannot be.
Result<void> settle(const Node& node, std::vector<TensorType>& types) {
  for (size_t k = 0; k < types.size(); ++k) {
    int64_t elements = 1;
    for (Expr& dim : types[k].shape) {
      dim = simplify_dim(dim);
      const auto* imm = dim.as<IntImm>();
      if (!imm) continue;
      if (imm->value < 0)
        return Failure{"shape-mismatch", where(node) + "output " + std::to_string(k) +
                                             ": expected a dim of 0 or more, got " + std::to_string(imm->value) +
                                             " in " + to_string(types[k])};
      if (imm->value > 0 && __builtin_mul_overflow(elements, imm->value, &elements)) elements = INT64_MAX;
      if (elements > INT64_MAX / 16)
        return Failure{"too-large", where(node) + "output " + std::to_string(k) +
                                        ": expected fewer than 2^59 elements, got " + to_string(types[k])};
    }
    for (Expr& element : types[k].value) element = simplify_dim(element);
  }
  return {};
}

}  // namespace

bool accepts(TypeSet set, DType type) {
  const bool small_float = type.is_float(), integer = type.is_integral();
  switch (set) {
    case TypeSet::kAny: return true;
    case TypeSet::kFloat: return small_float;
    case TypeSet::kNumeric: return small_float || integer;
    case TypeSet::kInteger: return integer;
    case TypeSet::kSigned: return small_float || type.is_int();
    case TypeSet::kBool: return type.is_bool();
    case TypeSet::kIndex: return type == kInt32 || type == kInt64;
    case TypeSet::kInt64: return type == kInt64;
    case TypeSet::kFloatOrInt32: return small_float || type == kInt32;
  }
  return false;
}

LayoutRole layout_role(const OpDef& op) {
  return op.layout.value_or(op.fusion == FusionKind::kElementwise ? LayoutRole::kFollows : LayoutRole::kRowMajor);
}

int min_inputs(const OpDef& op) {
  int fewest = 0;
  for (size_t k = 0; k < op.inputs.size(); ++k)
    if (!op.inputs[k].optional) fewest = static_cast<int>(k) + 1;
  return fewest;
}

std::optional<std::vector<Expr>> InferContext::int_values(int i) const {
  if (!has(i)) return std::nullopt;
  const TensorType& type = input(i);
  if (!type.dtype.is_integral() && !type.dtype.is_bool()) return std::nullopt;
  const Constant* constant = i < static_cast<int>(constants.size()) ? constants[i] : nullptr;
  if (constant && constant->shape().size() <= 1) {
    std::vector<Expr> elements;
    for (int64_t value : constant->ints()) elements.push_back(value);
    return elements;
  }
  if (!type.value.empty()) return type.value;
  if (type.rank() == 1 && is_const_int(type.shape[0], 0)) return std::vector<Expr>{};
  return std::nullopt;
}

Expr InferContext::data_dim(int output, int axis) const {
  if (output < static_cast<int>(node.types.size()) && axis < node.types[output].rank() &&
      node.types[output].shape[axis].as<VarNode>())
    return node.types[output].shape[axis];
  return Var((node.name.empty() ? node.op->name : node.name) + ".d" + std::to_string(axis));
}

Result<std::vector<TensorType>> infer_types(const InferContext& context) {
  const Node& node = context.node;
  const OpDef& op = *node.op;
  if (auto ok = check_attrs(node); !ok) return ok.failure();
  if (auto ok = check_inputs(context); !ok) return ok.failure();
  if (context.num_outputs < op.min_outputs || (op.max_outputs >= 0 && context.num_outputs > op.max_outputs))
    return Failure{"bad-arity", where(node) + "outputs: expected " + std::to_string(op.min_outputs) +
                                    (op.max_outputs < 0                 ? " or more"
                                     : op.max_outputs == op.min_outputs ? ""
                                                                        : " to " + std::to_string(op.max_outputs)) +
                                    ", got " + std::to_string(context.num_outputs)};
  try {
    auto result = op.infer(context);
    if (!result) return Failure{result.failure().id, where(node) + result.failure().message};
    std::vector<TensorType> types = std::move(result).value();
    TS_CHECK(static_cast<int>(types.size()) >= context.num_outputs)
        << where(node) << "type rule gives " << types.size() << " types";
    types.resize(static_cast<size_t>(context.num_outputs));
    if (auto ok = settle(node, types); !ok) return ok.failure();
    return types;
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    return Failure{error.id(), where(node) + error.message()};
  }
}

}  // namespace tensmith::graph
