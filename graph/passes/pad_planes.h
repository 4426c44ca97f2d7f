/// Padding apart from convolutions whose rows of pixels become vectors.
#pragma once

#include "graph/passes/rewrite.h"

namespace tensmith::graph {

/// Puts a Pad in front of convolutions whose results are stored as the caller wants them, plane by plane: their vectors
/// run along rows of pixels, and taps beyond the ends of a row would mask lanes in the innermost loop. Behind
/// separate_rows, which decides which results these are.
int pad_planes(GraphEditor& edit, const PassOptions& options);

}  // namespace tensmith::graph
