/// Constant folding.
#pragma once

#include "graph/passes/rewrite.h"

namespace tensmith::graph {

/// Computes at compile time what does not depend on the inputs: nodes whose inputs are all constants (by the
/// interpreter; moves of data natively), sizes that the type rules know, and `If` with a known condition (whose branch
/// takes its place). A result beyond `constant_limit_bytes` is only made when it is not larger than the constants that
/// it replaces, and one that is much larger than they are (an Expand) stays in the graph, where fusion makes it free.
int fold(GraphEditor& edit, const PassOptions& options);

}  // namespace tensmith::graph
