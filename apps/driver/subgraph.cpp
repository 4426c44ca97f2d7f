#include "apps/driver/subgraph.h"

#include <map>

namespace tensmith {

Result<graph::Graph> cut_subgraph(const graph::Graph& graph, const std::vector<graph::NodeId>& nodes,
                                  const std::vector<graph::Value>& inputs, const std::vector<graph::Value>& outputs) {
  graph::Graph part;
  part.name = graph.name;
  graph::GraphEditor edit(part);
  std::map<graph::Value, graph::Value> known;
  for (const graph::Value& input : inputs) known[input] = edit.add_input(graph.value_name(input), graph.type(input));
  const auto find = [&](const graph::Value& value) {
    if (!value.given()) return graph::Value{};
    if (const auto it = known.find(value); it != known.end()) return it->second;
    const graph::Constant* constant = graph.constant(value);
    if (!constant) return graph::Value{};
    return known[value] = edit.add_constant(*constant, graph.value_name(value));
  };
  for (graph::NodeId id : nodes) {
    const graph::Node& node = graph.node(id);
    std::vector<graph::Value> values;
    for (const graph::Value& input : node.inputs) {
      values.push_back(find(input));
      if (input.given() && !values.back().given())
        return Failure{"incomplete-subgraph",
                       "node " + node.name + ": expected all of its inputs, got no '" + graph.value_name(input) + "'"};
    }
    const Result<graph::NodeId> added =
        edit.try_add(*node.op, std::move(values), node.attrs, node.name, static_cast<int>(node.types.size()));
    if (!added) return added.failure();
    for (int k = 0; k < static_cast<int>(node.types.size()); ++k) {
      const graph::Value value{*added, k};
      if (k >= static_cast<int>(part.node(*added).types.size())) break;
      if (!node.output_names[k].empty()) edit.set_output_name(value, node.output_names[k]);
      known[{id, k}] = value;
    }
  }
  std::vector<graph::Value> ends;
  std::vector<std::string> names;
  for (const graph::Value& output : outputs) {
    const graph::Value value = find(output);
    if (!value.given() || !graph::same_type(part.type(value), graph.type(output)))
      return Failure{"incomplete-subgraph", "value " + graph.value_name(output) + ": its type depends on the rest"};
    ends.push_back(value);
    names.push_back(graph.value_name(output));
  }
  edit.set_outputs(std::move(ends), std::move(names));
  return part;
}

}  // namespace tensmith
