#include "apps/driver/cost.h"

#include "graph/cost.h"

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

double flops_of(const graph::Graph& graph, const graph::Group& group) {
  double flops = 0;
  for (graph::NodeId id : group.nodes) flops += graph::flops_of(graph, graph.node(id));
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
