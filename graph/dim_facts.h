/// What is known of every symbolic dim, for reasoning about shapes.
#pragma once

#include "tensor/simplify.h"

namespace tensmith::graph {

/// Each variable of `e` is a dim: between 0 and 2^40 (the largest dim that import accepts).
Facts dim_facts(const Expr& e);
/// The dim in canonical form.
Expr simplify_dim(const Expr& e);

}  // namespace tensmith::graph
