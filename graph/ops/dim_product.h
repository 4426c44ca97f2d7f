/// Products of dims in factored form, for comparing and dividing element counts that contain symbols.
#pragma once

#include <span>

#include "graph/graph.h"

namespace tensmith::graph::ops {

/// `constant` times all `factors` (none of which is a number or a product).
struct DimProduct {
  int64_t constant = 1;
  std::vector<Expr> factors;

  void multiply(const Expr& dim);
  Expr to_expr() const;
};

DimProduct dim_product(std::span<const Expr> dims);
/// Provably the same number.
bool same_product(const DimProduct& a, const DimProduct& b);
/// a / b with common factors cancelled; what is left is rounded down. `b` must not be the constant 0.
Expr quotient(DimProduct a, DimProduct b);

}  // namespace tensmith::graph::ops
