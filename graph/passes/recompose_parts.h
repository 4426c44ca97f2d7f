/// What the patterns of recompose are made of.
#pragma once

#include "graph/passes/rewrite.h"

namespace tensmith::graph {

/// A value as a product: a number times other values (sorted). Squares and cubes count as factors that repeat.
struct Factors {
  double number = 1;
  std::vector<Value> others;
};
/// Takes products and quotients by numbers apart, through values that nothing else reads (x * x of a shared x * x
/// included).
Factors factors_of(const Rewriter& r, Value v);

/// The axes of a reduction that keeps dims, counted from the front, ascending. Nothing when they are not known or dims
/// are dropped.
std::optional<std::vector<int64_t>> reduced_axes(const Rewriter& r, const Node& n);

/// Rules over several operators, see recompose_rules.
bool layer_norm(Rewriter& r, const Node& n);
bool layer_norm_unscaled(Rewriter& r, const Node& n);
bool rms_norm(Rewriter& r, const Node& n);

}  // namespace tensmith::graph
