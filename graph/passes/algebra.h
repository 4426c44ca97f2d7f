/// Identities of arithmetic that hold exactly (up to the sign of zero).
#pragma once

#include "graph/passes/rewrite.h"

namespace tensmith::graph {

/// Neutral and absorbing elements, double negation, repeated casts, broadcasts that the reader makes anyway, and pieces
/// that are cut and put together again. Never reassociates floats.
int simplify_algebra(GraphEditor& edit, const PassOptions& options);
std::span<const Rule> algebra_rules();

}  // namespace tensmith::graph
