/// A plain evaluator of integer expressions for the tests of the simplifier: lane by lane, every operation spelled out.
#pragma once

#include <unordered_map>
#include <vector>

#include "tensor/expr.h"

namespace tensmith::testing {

using Lanes = std::vector<int64_t>;
using Env = std::unordered_map<const VarNode*, int64_t>;

/// The value in every lane. A load of a buffer gives a fixed pseudo-random value of its element type for each index.
Lanes evaluate(const Expr& e, Env& env);
/// The value of a scalar.
int64_t evaluate_scalar(const Expr& e, Env& env);

}  // namespace tensmith::testing
