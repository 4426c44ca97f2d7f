#include "graph/cost.h"

#include "graph/op_def.h"

namespace tensmith::graph {

double count_elements(const TensorType& type, double symbolic) {
  double count = 1;
  for (const Expr& dim : type.shape) {
    int64_t extent;
    count *= as_const_int(dim, &extent) ? static_cast<double>(extent) : symbolic;
  }
  return count;
}

double flops_of(const Graph& graph, const Node& node, double symbolic) {
  if (!node.op->flops)
    return node.op->fusion == FusionKind::kInjective || node.types.empty() ? 0
                                                                           : count_elements(node.types[0], symbolic);
  InferContext context{node, {}, {}, static_cast<int>(node.types.size())};
  for (const Value& input : node.inputs) {
    context.inputs.push_back(input.given() ? &graph.type(input) : nullptr);
    context.constants.push_back(input.given() ? graph.constant(input) : nullptr);
  }
  return node.op->flops(context);
}

}  // namespace tensmith::graph
