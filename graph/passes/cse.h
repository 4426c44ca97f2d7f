/// Common subexpressions and dead code.
#pragma once

#include "graph/passes/rewrite.h"

namespace tensmith::graph {

/// Nodes with the same operator, inputs and attributes become one; so do constants with the same content.
int eliminate_common(GraphEditor& edit, const PassOptions& options);
/// Removes nodes that no output needs.
int eliminate_dead(GraphEditor& edit, const PassOptions& options);

}  // namespace tensmith::graph
