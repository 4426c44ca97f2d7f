/// Transposed convolutions as convolutions.
#pragma once

#include "graph/passes/rewrite.h"

namespace tensmith::graph {

/// A transposed convolution with constant weights becomes convolutions, each for those phases of the output positions
/// (positions modulo the stride) whose taps meet the same inputs, and an Interleave of their results: no product with
/// an inserted zero is left. Phases that meet different inputs share one convolution, with zeros in its weights, where
/// the vectors filled better outweigh these. Without stride it is one convolution.
int split_phases(GraphEditor& edit, const PassOptions& options);

}  // namespace tensmith::graph
