#include "apps/driver/cost.h"

#include "graph/op_def.h"

namespace tensmith {

namespace {

double elements_of(const std::vector<Expr>& shape) {
  double count = 1;
  for (const Expr& extent : shape) {
    int64_t value;
    if (as_const_int(extent, &value)) count *= static_cast<double>(value);
  }
  return count;
}

}  // namespace

double flops_of(const graph::Graph& graph, const graph::Node& node) {
  if (!node.op->flops)
    return node.op->fusion == graph::FusionKind::kInjective || node.types.empty() ? 0
                                                                                  : elements_of(node.types[0].shape);
  graph::InferContext context{node, {}, {}, static_cast<int>(node.types.size())};
  for (const graph::Value& input : node.inputs) {
    context.inputs.push_back(input.given() ? &graph.type(input) : nullptr);
    context.constants.push_back(input.given() ? graph.constant(input) : nullptr);
  }
  return node.op->flops(context);
}

double flops_of(const graph::Graph& graph, const graph::Group& group) {
  double flops = 0;
  for (graph::NodeId id : group.nodes) flops += flops_of(graph, graph.node(id));
  return flops;
}

double traffic_of(const Workload& workload) {
  double bytes = 0;
  for (const auto* list : {&workload.inputs, &workload.outputs})
    for (const Tensor& tensor : *list)
      bytes += static_cast<double>(tensor.dtype().bytes()) * elements_of(tensor.shape());
  return bytes;
}

}  // namespace tensmith
