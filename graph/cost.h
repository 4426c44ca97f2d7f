/// What nodes cost by their figures alone.
#pragma once

#include "graph/op_def.h"

namespace tensmith::graph {

/// Elements of a type; each symbolic dim counts as `symbolic`.
double count_elements(const TensorType& type, double symbolic);

/// Units: floating-point operations of one call, by the operator's own rule; without one an element of the first output
/// each, 0 for operators that only move elements. Symbolic dims count as `symbolic` there, and as the operator's rule
/// says else.
double flops_of(const Graph& graph, const Node& node, double symbolic = 1);

/// What a kernel of the node has to do: `flops_of` and all bytes of its inputs, or less by the operator's own rule.
/// Units: operations, bytes.
OpWork work_of(const Graph& graph, const Node& node, double symbolic = 1);

}  // namespace tensmith::graph
