/// Weights that are nothing but slow.
#pragma once

#include "graph/passes/rewrite.h"

namespace tensmith::graph {

/// Sets subnormal elements of constant float32 operands of products to zero, where the largest element is at least
/// 2^-100: what they add is below the rounding of every sum that the others take part in, but a multiply-add with such
/// an operand costs over a hundred cycles (pruned weights of trained models hold hundreds of thousands of them). Cost:
/// one pass over the weights.
int flush_subnormals(GraphEditor& edit, const PassOptions& options);

}  // namespace tensmith::graph
