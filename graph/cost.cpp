#include "graph/cost.h"

namespace tensmith::graph {

namespace {

InferContext context_of(const Graph& graph, const Node& node) {
  InferContext context{node, {}, {}, static_cast<int>(node.types.size())};
  for (const Value& input : node.inputs) {
    context.inputs.push_back(input.given() ? &graph.type(input) : nullptr);
    context.constants.push_back(input.given() ? graph.constant(input) : nullptr);
  }
  return context;
}

}  // namespace

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
  return node.op->flops(context_of(graph, node));
}

OpWork work_of(const Graph& graph, const Node& node, double symbolic) {
  OpWork work{flops_of(graph, node, symbolic), {}};
  for (const Value& input : node.inputs)
    work.input_bytes.push_back(
        input.given() ? count_elements(graph.type(input), symbolic) * graph.type(input).dtype.bytes() : 0.0);
  if (node.op->work) node.op->work(context_of(graph, node), work);
  return work;
}

}  // namespace tensmith::graph
