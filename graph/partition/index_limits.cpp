#include "graph/partition/index_limits.h"

#include <algorithm>

#include "graph/op_def.h"

namespace tensmith::graph {

bool is_checked_index(const Graph& graph, NodeId id, int input) { return graph.node(id).op->index_input == input; }

std::optional<IndexLimits> index_limits(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op->index_input < 0) return {};
  const Value indices = node.inputs.at(static_cast<size_t>(node.op->index_input));
  if (!indices.given()) return {};
  InferContext context{node, {}, {}, static_cast<int>(node.types.size())};
  for (const Value& input : node.inputs) {
    context.inputs.push_back(input.given() ? &graph.type(input) : nullptr);
    context.constants.push_back(input.given() ? graph.constant(input) : nullptr);
  }
  IndexLimits limits{id, node.op->index_input, indices, {}};
  for (const Expr& extent : node.op->index_extents(context)) {
    int64_t number = 0;
    TS_CHECK(as_const_int(extent, &number)) << node.name << " has an open dim";
    limits.extents.push_back(number);
  }
  TS_CHECK(!limits.extents.empty()) << node.name;
  // A node without results reads nothing.
  bool empty = true;
  for (const TensorType& type : node.types) {
    const std::vector<int64_t> shape = type.static_shape();
    empty = empty && std::count(shape.begin(), shape.end(), 0) != 0;
  }
  if (empty) return {};
  const Constant* constant = graph.constant(indices);
  if (!constant) return limits;
  for (int64_t k = 0; k < constant->num_elements(); ++k) {
    const int64_t number = constant->int_at(k), extent = limits.extents[static_cast<size_t>(k) % limits.extents.size()];
    TS_USER_CHECK(number >= -extent && number < extent, "index-out-of-range")
        << "node " << node.name << ": input " << node.op->inputs[static_cast<size_t>(limits.input)].name
        << ": expected an index from " << -extent << " to " << extent - 1 << ", got " << number
        << "; the model is at fault: correct the constant";
  }
  return {};
}

}  // namespace tensmith::graph
