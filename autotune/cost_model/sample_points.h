/// Index expressions evaluated at some points of the loops' ranges, all at a time. Internal to autotune/cost_model/.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "tensor/expr.h"

namespace tensmith {

inline constexpr int kSamplePoints = 48;
using SampledValue = std::array<int64_t, kSamplePoints>;
/// Values of variables in scope.
using SampledVars = std::unordered_map<const VarNode*, SampledValue>;

/// What a symbolic extent or an unknown value counts as.
inline constexpr int64_t kGuessedValue = 64;

/// Variables that are not in scope and data that are loaded count as kGuessedValue; the middle of nothing in
/// particular.
SampledValue sample_value(const Expr& e, const SampledVars& vars);

/// Points spread evenly over [min, min + extent): the golden ratio's multiples, another sequence for each `salt`.
SampledValue spread_points(const SampledValue& min, const SampledValue& extent, int salt);

}  // namespace tensmith
