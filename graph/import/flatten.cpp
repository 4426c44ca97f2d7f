#include "graph/import/flatten.h"

#include <algorithm>
#include <set>

#include "graph/import/unknown_fields.h"

namespace tensmith::graph {

namespace {

// Field numbers that onnx.proto of 1.12 does not know yet.
constexpr int kFunctionAttributeDefaults = 11, kFunctionOverload = 13, kNodeOverload = 8;

std::string first(const std::vector<std::string>& list) { return list.empty() ? std::string() : list[0]; }

std::string normal_domain(const std::string& domain) { return domain == "ai.onnx" ? std::string() : domain; }

struct FunctionId {
  std::string domain, name, overload;
  friend auto operator<=>(const FunctionId&, const FunctionId&) = default;
};

struct Function {
  const onnx::FunctionProto* proto = nullptr;
  const Opsets* opsets = nullptr;
  std::map<std::string, onnx::AttributeProto> defaults;
};

/// New names for the values inside one call.
using Names = std::map<std::string, std::string>;

class Flattener {
 public:
  Flattener(onnx::ModelProto& model, const ImportLimits& limits) : limits_(limits) {
    for (const onnx::FunctionProto& proto : model.functions()) {
      Function function{&proto, nullptr, {}};
      result_.opsets.push_back(read_opsets(proto.opset_import()));
      function.opsets = &result_.opsets.back();
      for (const std::string& bytes : unknown_bytes(proto.unknown_fields(), kFunctionAttributeDefaults)) {
        onnx::AttributeProto attribute;
        TS_USER_CHECK(attribute.ParseFromString(bytes), "truncated-model")
            << "function " << proto.name() << ": an attribute's default cannot be read";
        function.defaults[attribute.name()] = attribute;
      }
      const FunctionId id{normal_domain(proto.domain()), proto.name(),
                          first(unknown_bytes(proto.unknown_fields(), kFunctionOverload))};
      TS_USER_CHECK(functions_.emplace(id, std::move(function)).second, "duplicate-name")
          << "function " << proto.name() << " of domain '" << proto.domain() << "': expected one definition, got two";
    }
    result_.opsets.push_back(read_opsets(model.opset_import()));
    result_.graph = graph(*model.mutable_graph(), &result_.opsets.back(), 0);
  }

  FlatModel take() { return std::move(result_); }

 private:
  FlatGraph graph(onnx::GraphProto& proto, const Opsets* opsets, int depth) {
    TS_USER_CHECK(depth <= limits_.nesting, "too-deep")
        << "graph " << proto.name() << ": expected subgraphs nested at most " << limits_.nesting << " deep";
    FlatGraph flat{&proto, {}};
    for (onnx::NodeProto& node : *proto.mutable_node()) add(flat.nodes, node, opsets, depth);
    return flat;
  }

  void add(std::vector<FlatNode>& out, onnx::NodeProto& node, const Opsets* opsets, int depth) {
    const FunctionId id{normal_domain(node.domain()), node.op_type(),
                        first(unknown_bytes(node.unknown_fields(), kNodeOverload))};
    if (const auto function = functions_.find(id); function != functions_.end())
      return call(out, node, id, function->second, depth);
    TS_USER_CHECK(++nodes_ <= limits_.nodes, "too-many-nodes")
        << "model: expected at most " << limits_.nodes << " nodes after inlining functions";
    FlatNode flat{&node, opsets, {}};
    for (onnx::AttributeProto& attribute : *node.mutable_attribute())
      if (attribute.has_g())
        flat.subgraphs.emplace_back(attribute.name(),
                                    std::make_unique<FlatGraph>(graph(*attribute.mutable_g(), opsets, depth + 1)));
    out.push_back(std::move(flat));
  }

  void call(std::vector<FlatNode>& out, const onnx::NodeProto& node, const FunctionId& id, const Function& function,
            int depth) {
    const onnx::FunctionProto& proto = *function.proto;
    TS_USER_CHECK(std::find(stack_.begin(), stack_.end(), id) == stack_.end(), "recursive-function")
        << "function " << id.name << ": expected functions that do not call themselves, got a call of " << id.name
        << " inside " << stack_.back().name;
    TS_USER_CHECK(static_cast<int>(stack_.size()) < limits_.nesting, "too-deep")
        << "function " << id.name << ": calls are nested deeper than " << limits_.nesting;
    TS_USER_CHECK(node.input_size() <= proto.input_size() && node.output_size() <= proto.output_size(), "bad-function")
        << "node '" << node.name() << "' calls " << id.name << ": expected at most " << proto.input_size()
        << " inputs and " << proto.output_size() << " outputs, got " << node.input_size() << " and "
        << node.output_size();
    // The empty call still counts, so that calls of functions without nodes end as well.
    TS_USER_CHECK(++nodes_ <= limits_.nodes, "too-many-nodes")
        << "model: expected at most " << limits_.nodes << " nodes after inlining functions";

    const std::string prefix = (node.name().empty() ? id.name : node.name()) + "/" + std::to_string(calls_++) + "/";
    Names names;
    for (int k = 0; k < proto.input_size(); ++k)
      names[proto.input(k)] = k < node.input_size() ? node.input(k) : std::string();
    std::vector<std::pair<std::string, std::string>> passed;  // outputs of the function that are its inputs
    for (int k = 0; k < node.output_size(); ++k) {
      if (node.output(k).empty()) continue;
      const auto [it, fresh] = names.try_emplace(proto.output(k), node.output(k));
      if (!fresh) passed.emplace_back(it->second, node.output(k));
    }
    std::map<std::string, const onnx::AttributeProto*> attributes;
    for (const auto& [name, attribute] : function.defaults) attributes[name] = &attribute;
    for (const onnx::AttributeProto& attribute : node.attribute()) attributes[attribute.name()] = &attribute;

    stack_.push_back(id);
    for (const onnx::NodeProto& inner : proto.node()) {
      result_.copies.push_back(inner);
      onnx::NodeProto& copy = result_.copies.back();
      instantiate(copy, prefix, names, attributes, 0);
      add(out, copy, function.opsets, depth);
    }
    stack_.pop_back();
    for (const auto& [from, to] : passed) {
      onnx::NodeProto& copy = result_.copies.emplace_back();
      copy.set_op_type("Identity");
      copy.set_name(prefix + to);
      copy.add_input(from);
      copy.add_output(to);
      add(out, copy, function.opsets, depth);
    }
  }

  static std::string renamed(const std::string& name, const std::string& prefix, const Names& names) {
    if (name.empty()) return name;
    const auto found = names.find(name);
    return found != names.end() ? found->second : prefix + name;
  }

  /// Gives the values of a copied node the names of this call and fills in the attributes that refer to the call's.
  void instantiate(onnx::NodeProto& node, const std::string& prefix, const Names& names,
                   const std::map<std::string, const onnx::AttributeProto*>& attributes, int depth) {
    TS_USER_CHECK(depth <= limits_.nesting, "too-deep")
        << "node '" << node.name() << "': subgraphs are nested deeper than " << limits_.nesting;
    TS_USER_CHECK(++copied_ <= limits_.nodes, "too-many-nodes")
        << "model: expected at most " << limits_.nodes << " nodes after inlining functions";
    for (std::string& name : *node.mutable_input()) name = renamed(name, prefix, names);
    for (std::string& name : *node.mutable_output()) name = renamed(name, prefix, names);
    node.set_name(prefix + node.name());
    for (int k = 0; k < node.attribute_size();) {
      onnx::AttributeProto& attribute = *node.mutable_attribute(k);
      if (!attribute.ref_attr_name().empty()) {
        const auto found = attributes.find(attribute.ref_attr_name());
        if (found == attributes.end()) {  // not given by the call: the node falls back to its own default
          node.mutable_attribute()->DeleteSubrange(k, 1);
          continue;
        }
        const std::string name = attribute.name();
        attribute = *found->second;
        attribute.set_name(name);
      } else if (attribute.has_g()) {
        instantiate(*attribute.mutable_g(), prefix, names, attributes, depth + 1);
      }
      ++k;
    }
  }

  void instantiate(onnx::GraphProto& graph, const std::string& prefix, const Names& names,
                   const std::map<std::string, const onnx::AttributeProto*>& attributes, int depth) {
    // Names defined inside are distinct from those outside, so one rule serves both.
    for (onnx::ValueInfoProto& value : *graph.mutable_input()) value.set_name(renamed(value.name(), prefix, names));
    for (onnx::ValueInfoProto& value : *graph.mutable_output()) value.set_name(renamed(value.name(), prefix, names));
    for (onnx::ValueInfoProto& value : *graph.mutable_value_info())
      value.set_name(renamed(value.name(), prefix, names));
    for (onnx::TensorProto& tensor : *graph.mutable_initializer())
      tensor.set_name(renamed(tensor.name(), prefix, names));
    for (onnx::SparseTensorProto& tensor : *graph.mutable_sparse_initializer())
      tensor.mutable_values()->set_name(renamed(tensor.values().name(), prefix, names));
    for (onnx::NodeProto& node : *graph.mutable_node()) instantiate(node, prefix, names, attributes, depth);
  }

  const ImportLimits& limits_;
  std::map<FunctionId, Function> functions_;
  std::vector<FunctionId> stack_;
  FlatModel result_;
  int64_t nodes_ = 0, calls_ = 0, copied_ = 0;
};

}  // namespace

Opsets read_opsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports) {
  Opsets opsets;
  for (const onnx::OperatorSetIdProto& import : imports) {
    int64_t& version = opsets[normal_domain(import.domain())];
    version = std::max(version, import.version());
  }
  return opsets;
}

FlatModel flatten(onnx::ModelProto& model, const ImportLimits& limits) { return Flattener(model, limits).take(); }

}  // namespace tensmith::graph
