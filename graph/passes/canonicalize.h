/// One form for what can be said in many.
#pragma once

#include "graph/passes/rewrite.h"

namespace tensmith::graph {

/// Removes nodes that do nothing, writes all changes of shape as Reshape with constant dims, Gemm as MatMul and Add,
/// powers as products, and puts constants on the right, so that the passes behind have one pattern to look for.
int canonicalize(GraphEditor& edit, const PassOptions& options);
/// The rules, for tests and documentation.
std::span<const Rule> canonicalize_rules();

}  // namespace tensmith::graph
