/// What a kernel costs by its figures: operations and bytes.
#pragma once

#include "graph/graph.h"
#include "graph/partition/group_workload.h"
#include "tensor/workload.h"

namespace tensmith {

/// Figures of one call of a group's kernel. Units: floating-point operations, bytes.
struct GroupCost {
  double flops = 0;           ///< of all nodes (graph/cost.h), as convolutions and products are counted everywhere
  double executed_flops = 0;  ///< that the kernel executes: fewer where an operator has a shorter way
  double bytes = 0;           ///< read and written, each tensor once and of tables only what is taken out of them
  double constant_bytes = 0;  ///< of them those of constants
};
/// Symbolic extents count as 1.
GroupCost cost_of(const graph::Graph& graph, const graph::Group& group, const graph::GroupWorkload& work);

/// Units: bytes of all inputs and outputs of a workload, each once; symbolic extents count as 1.
double traffic_of(const Workload& workload);

}  // namespace tensmith
