#include "apps/driver/cost.h"

#include <algorithm>

#include "graph/cost.h"
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

double untouched_of(const graph::Graph& graph, const graph::Group& group) {
  double bytes = 0;
  for (graph::NodeId id : group.nodes) {
    const graph::Node& node = graph.node(id);
    if (node.op->name != "Gather" && node.op->name != "GatherElements" && node.op->name != "GatherND") continue;
    const graph::Constant* table = graph.constant(node.inputs[0]);
    if (!table) continue;
    const double taken = elements_of(node.types[0].shape) * static_cast<double>(table->dtype().bytes());
    bytes += std::max(static_cast<double>(table->num_bytes()) - taken, 0.0);
  }
  return bytes;
}

}  // namespace tensmith
