/// What a kernel costs by its figures: operations and bytes.
#pragma once

#include "graph/graph.h"
#include "graph/partition/fuse.h"
#include "tensor/workload.h"

namespace tensmith {

/// Units: floating-point operations of one call of all nodes of a group (graph/cost.h).
double flops_of(const graph::Graph& graph, const graph::Group& group);
/// Units: bytes of all inputs and outputs of a workload, each once; symbolic extents count as 1.
double traffic_of(const Workload& workload);

/// Units: bytes of tables that the nodes of a group gather from beyond what they take out of them; a workload's traffic
/// counts the whole tables.
double untouched_of(const graph::Graph& graph, const graph::Group& group);

}  // namespace tensmith
