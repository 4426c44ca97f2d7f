#include "graph/inline.h"

#include "graph/op_def.h"

namespace tensmith::graph {

std::vector<Value> inline_graph(GraphEditor& edit, const Graph& subgraph, const std::vector<Value>& inputs,
                                const std::string& prefix) {
  TS_CHECK(inputs.size() == subgraph.inputs.size())
      << subgraph.name << " has " << subgraph.inputs.size() << " inputs, given " << inputs.size();
  std::map<Value, Value> mapped;
  for (size_t k = 0; k < inputs.size(); ++k) mapped[{subgraph.inputs[k], 0}] = inputs[k];
  static const OpDef* const input_op = find_op("Input", "tensmith");
  for (NodeId id : subgraph.topological_order()) {
    const Node& node = subgraph.node(id);
    if (node.op == input_op) continue;
    std::vector<Value> arguments;
    for (const Value& input : node.inputs) arguments.push_back(input.given() ? mapped.at(input) : Value{});
    AttrMap attrs = node.attrs;
    for (const auto& [name, value] : node.attrs.all())
      if (const auto* inner = std::get_if<std::shared_ptr<Graph>>(&value))
        attrs.set(name, std::make_shared<Graph>((*inner)->clone()));
    const NodeId copy =
        edit.add(*node.op, arguments, attrs, prefix + "/" + node.name, static_cast<int>(node.types.size()));
    for (size_t k = 0; k < node.types.size(); ++k) mapped[{id, static_cast<int>(k)}] = {copy, static_cast<int>(k)};
  }
  std::vector<Value> outputs;
  for (const Value& output : subgraph.outputs) outputs.push_back(mapped.at(output));
  return outputs;
}

}  // namespace tensmith::graph
