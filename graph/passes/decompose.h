/// Operators that are defined by simpler ones.
#pragma once

#include "graph/passes/rewrite.h"

namespace tensmith::graph {

/// Replaces every node whose operator has no compute rule but a decomposition.
int decompose(GraphEditor& edit, const PassOptions& options);

}  // namespace tensmith::graph
