#include <algorithm>

#include "graph/op_def.h"

namespace tensmith::graph {

namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  Result<void> run() {
    for (auto check :
         {&Verifier::check_nodes, &Verifier::check_interface, &Verifier::check_uses, &Verifier::check_types})
      if (auto ok = (this->*check)(); !ok) return ok;
    return {};
  }

 private:
  static Failure failure(const char* id, const Node& node, const std::string& text) {
    return {id, "node '" + node.name + "' (" + (node.op ? node.op->name : "?") + "): " + text};
  }

  bool exists(Value v) const {
    return graph_.alive(v.node) && v.output >= 0 && v.output < static_cast<int>(graph_.node(v.node).types.size());
  }

  Result<void> check_nodes() {
    int64_t count = 0;
    std::unordered_set<std::string> names;
    for (NodeId id = 0; count < graph_.num_nodes(); ++id) {
      if (!graph_.alive(id)) continue;
      ++count;
      const Node& node = graph_.node(id);
      if (node.id != id || !node.op) return failure("graph-node", node, "wrong id or no operator");
      if (node.output_names.size() != node.types.size())
        return failure("graph-name", node, "not one name for each output");
      for (const Value& input : node.inputs)
        if (input.given() && !exists(input))
          return failure("graph-use", node, "reads output " + std::to_string(input.output) + " of a node that is gone");
      if (!node.inputs.empty() && !node.inputs.back().given())
        return failure("graph-node", node, "the last input is not given");
      for (const std::string& name : node.output_names)
        if (!names.insert(name).second) return failure("graph-name", node, "a second value of the name '" + name + "'");
    }
    try {
      order_ = graph_.topological_order();
    } catch (const InternalError& error) {
      return Failure{"graph-cycle", error.message()};
    }
    return {};
  }

  Result<void> check_interface() {
    static const OpDef* const input_op = find_op("Input", "tensmith");
    for (NodeId id : order_) {
      const auto listed = std::count(graph_.inputs.begin(), graph_.inputs.end(), id);
      if (listed != (graph_.node(id).op == input_op))
        return failure("graph-input", graph_.node(id), "listed " + std::to_string(listed) + " times among the inputs");
    }
    for (NodeId id : graph_.inputs)
      if (!graph_.alive(id)) return Failure{"graph-input", "input node " + std::to_string(id) + " is gone"};
    if (graph_.outputs.size() != graph_.output_names.size())
      return Failure{"graph-output", "not one name for each output of the graph"};
    for (size_t k = 0; k < graph_.outputs.size(); ++k)
      if (!exists(graph_.outputs[k]))
        return Failure{"graph-output", "output '" + graph_.output_names[k] + "' is a value that is gone"};
    return {};
  }

  Result<void> check_uses() {
    using Key = std::pair<NodeId, int>;
    std::map<Value, std::vector<Key>> expected;
    for (NodeId id : order_) {
      const Node& node = graph_.node(id);
      for (size_t i = 0; i < node.inputs.size(); ++i)
        if (node.inputs[i].given()) expected[node.inputs[i]].emplace_back(id, static_cast<int>(i));
    }
    for (size_t k = 0; k < graph_.outputs.size(); ++k)
      expected[graph_.outputs[k]].emplace_back(-1, static_cast<int>(k));
    for (NodeId id : order_)
      for (size_t k = 0; k < graph_.node(id).types.size(); ++k) {
        const Value value{id, static_cast<int>(k)};
        std::vector<Key> recorded;
        for (const Graph::Use& use : graph_.uses(value)) recorded.emplace_back(use.node, use.input);
        std::sort(recorded.begin(), recorded.end());
        auto& wanted = expected[value];
        std::sort(wanted.begin(), wanted.end());
        if (recorded != wanted)
          return failure("graph-use", graph_.node(id),
                         "output " + std::to_string(k) + ": expected " + std::to_string(wanted.size()) +
                             " uses as its readers state, got " + std::to_string(recorded.size()));
      }
    return {};
  }

  Result<void> check_types() {
    for (NodeId id : order_) {
      const Node& node = graph_.node(id);
      for (const auto& [name, value] : node.attrs.all())
        if (const auto* subgraph = std::get_if<std::shared_ptr<Graph>>(&value)) {
          if (!*subgraph) return failure("graph-node", node, "attribute " + name + " is no graph");
          if (auto ok = verify(**subgraph); !ok)
            return failure(ok.failure().id.c_str(), node, "attribute " + name + ": " + ok.failure().message);
        }
      InferContext context{node, {}, {}, static_cast<int>(node.types.size())};
      for (const Value& input : node.inputs) {
        context.inputs.push_back(input.given() ? &graph_.type(input) : nullptr);
        context.constants.push_back(graph_.constant(input));
      }
      const auto types = infer_types(context);
      if (!types) return Failure{"graph-type", types.failure().message};
      for (size_t k = 0; k < node.types.size(); ++k)
        if (!same_type((*types)[k], node.types[k]))
          return failure("graph-type", node,
                         "output " + std::to_string(k) + ": expected " + to_string((*types)[k]) +
                             " by the operator's rule, got " + to_string(node.types[k]));
    }
    return {};
  }

  const Graph& graph_;
  std::vector<NodeId> order_;
};

}  // namespace

Result<void> verify(const Graph& graph) { return Verifier(graph).run(); }

}  // namespace tensmith::graph
