/// Index expressions as sums over loops. Internal to autotune/cost_model/.
#pragma once

#include <map>
#include <unordered_map>

#include "tensor/expr.h"

namespace tensmith {

/// `constant + sum of loop * coefficient`; quotients and remainders of loops that are not taken apart are their mean
/// slope, which has the right span.
struct AffineIndex {
  double constant = 0;
  std::map<int, double> loops;  ///< coefficients by loop number
  bool is_opaque = false;       ///< data
};

/// What variables stand for.
struct AffineScope {
  std::unordered_map<const VarNode*, AffineIndex> vars;
  /// Units: turns; by loop number.
  const std::vector<double>* extents = nullptr;
};

AffineIndex affine_index(const Expr& e, const AffineScope& scope);

}  // namespace tensmith
