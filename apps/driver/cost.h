/// What a node or a kernel costs by its figures: operations and bytes.
#pragma once

#include "graph/graph.h"
#include "graph/partition/fuse.h"
#include "tensor/workload.h"

namespace tensmith {

/// Floating-point operations of one call of a node with static dims: by the operator's own rule, else one an element;
/// 0 for operators that only move elements.
double flops_of(const graph::Graph& graph, const graph::Node& node);
/// The same for a group.
double flops_of(const graph::Graph& graph, const graph::Group& group);
/// Bytes of all inputs and outputs of a workload, each once; symbolic extents count as 1.
double traffic_of(const Workload& workload);

}  // namespace tensmith
