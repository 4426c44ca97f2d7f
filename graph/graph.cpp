#include "graph/graph.h"

#include "graph/op_def.h"

namespace tensmith::graph {

const Constant* Graph::constant(Value v) const {
  if (!v.given()) return nullptr;
  static const OpDef* const constant_op = find_op("Constant", "tensmith");
  const Node& producer = node(v.node);
  return producer.op == constant_op ? producer.attrs.get_tensor("value") : nullptr;
}

const std::vector<Graph::Use>& Graph::uses(Value v) const { return uses_.at(v.node).at(v.output); }

std::vector<NodeId> Graph::topological_order() const {
  // Depth first from the lowest id on, without recursion: in a graph whose producers come first this keeps the order of
  // ids.
  std::vector<NodeId> order;
  order.reserve(static_cast<size_t>(alive_));
  std::vector<uint8_t> state(nodes_.size(), 0);  // 1: on the stack, 2: done
  std::vector<std::pair<NodeId, size_t>> stack;
  for (NodeId root = 0; root < static_cast<NodeId>(nodes_.size()); ++root) {
    if (!nodes_[root] || state[root]) continue;
    stack.emplace_back(root, 0);
    state[root] = 1;
    while (!stack.empty()) {
      const NodeId id = stack.back().first;
      const Node& current = *nodes_[id];
      if (stack.back().second == current.inputs.size()) {
        state[id] = 2;
        order.push_back(id);
        stack.pop_back();
        continue;
      }
      const Value input = current.inputs[stack.back().second++];
      if (!input.given() || state[input.node] == 2) continue;
      TS_CHECK(state[input.node] == 0) << "graph " << name << " has a cycle through node '" << current.name << "'";
      state[input.node] = 1;
      stack.emplace_back(input.node, 0);
    }
  }
  return order;
}

Graph Graph::clone() const {
  Graph copy;
  copy.name = name;
  copy.inputs = inputs;
  copy.outputs = outputs;
  copy.output_names = output_names;
  copy.dims = dims;
  copy.nodes_.reserve(nodes_.size());
  for (const auto& original : nodes_) {
    if (!original) {
      copy.nodes_.push_back(nullptr);
      continue;
    }
    auto node = std::make_unique<Node>(*original);
    for (const auto& [attr, value] : original->attrs.all())
      if (const auto* subgraph = std::get_if<std::shared_ptr<Graph>>(&value); subgraph && *subgraph)
        node->attrs.set(attr, std::make_shared<Graph>((*subgraph)->clone()));
    copy.nodes_.push_back(std::move(node));
  }
  copy.uses_ = uses_;
  copy.value_names_ = value_names_;
  copy.next_suffix_ = next_suffix_;
  copy.alive_ = alive_;
  return copy;
}

}  // namespace tensmith::graph
