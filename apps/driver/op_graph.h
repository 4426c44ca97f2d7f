/// Graphs of a single operator (or a small pattern), written as a word: for tuning and timing without a model.
#pragma once

#include <string>
#include <string_view>

#include "graph/graph.h"

namespace tensmith {

/// `matmul:512x768x768:f32` and the like: KIND:SIZES:f32, where the type may be left out. Weights are constants of
/// random values. Errors: bad-op, naming what the kind wants or all kinds.
Result<graph::Graph> graph_of_op(std::string_view text);
/// A line for each kind: its sizes and what it computes.
std::string op_kinds();

}  // namespace tensmith
