#include "graph/passes/fold_native.h"

namespace tensmith::graph {

std::optional<Constant> fold_natively(const Node& node, const std::vector<const Constant*>& inputs) {
  if (node.types.size() != 1 || inputs.empty() || !inputs[0] || inputs[0]->num_elements() == 0) return std::nullopt;
  if (node.op->renames) return inputs[0]->with_shape(node.types[0].static_shape());
  return node.op->fold ? node.op->fold(node, inputs) : std::nullopt;
}

}  // namespace tensmith::graph
