#include "apps/driver/cost.h"

#include <algorithm>

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

double traffic_of(const Workload& workload) {
  double bytes = 0;
  for (const auto* list : {&workload.inputs, &workload.outputs})
    for (const Tensor& tensor : *list)
      bytes += static_cast<double>(tensor.dtype().bytes()) * elements_of(tensor.shape());
  return bytes;
}

GroupCost cost_of(const graph::Graph& graph, const graph::Group& group, const graph::GroupWorkload& work) {
  GroupCost cost;
  std::vector<graph::OpWork> of_nodes;
  for (graph::NodeId id : group.nodes) {
    of_nodes.push_back(graph::work_of(graph, graph.node(id)));
    cost.flops += graph::flops_of(graph, graph.node(id));
    cost.executed_flops += of_nodes.back().flops;
  }
  cost.bytes = traffic_of(work.workload);
  for (const graph::Value& input : work.inputs) {
    const graph::Constant* constant = graph.constant(input);
    // All nodes that read a tensor may take other parts of it.
    double taken = 0;
    for (size_t n = 0; n < group.nodes.size(); ++n) {
      const graph::Node& node = graph.node(group.nodes[n]);
      for (size_t k = 0; k < node.inputs.size(); ++k)
        if (node.inputs[k] == input) taken += of_nodes[n].input_bytes[k];
    }
    const graph::TensorType& type = graph.type(input);
    const double whole = elements_of(type.shape) * static_cast<double>(type.dtype.bytes());
    const double untouched = std::max(whole - taken, 0.0);
    cost.bytes -= untouched;
    if (constant) cost.constant_bytes += static_cast<double>(constant->num_bytes()) - untouched;
  }
  return cost;
}

}  // namespace tensmith
