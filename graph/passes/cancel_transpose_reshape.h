/// Moves of data that undo each other.
#pragma once

#include "graph/passes/rewrite.h"

namespace tensmith::graph {

/// Merges transposes that follow each other, lets transposes sink through elementwise operators, Concat, reductions,
/// Softmax and Pad until they meet, and merges reshapes around elementwise operators. A transpose never gets copied.
int cancel_transpose_reshape(GraphEditor& edit, const PassOptions& options);
std::span<const Rule> cancel_transpose_reshape_rules();

}  // namespace tensmith::graph
