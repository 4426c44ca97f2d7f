/// How a stage's body walks through memory: strides of loop variables in physical buffers.
#pragma once

#include <optional>
#include <vector>

#include "schedule/state.h"

namespace tensmith {

/// One read of a buffer in a stage's body.
struct TensorAccess {
  Buffer buffer;              ///< logical
  int producer = -1;          ///< stage index
  std::vector<Expr> indices;  ///< logical
};

/// All reads in the bodies of a stage (not those of its conditions), each (buffer, indices) once.
std::vector<TensorAccess> accesses_of(const ScheduleState& state, const StageNode& stage);

/// Units: elements. How far apart in memory two neighbouring values of `axis` are, near the origin of all other axes; 0
/// when the access does not depend on it, nothing when it is not constant (data-dependent, symbolic).
std::optional<int64_t> stride_of(const ScheduleState& state, const TensorAccess& access, const StageNode& stage,
                                 const Var& axis);
/// The same for where a stage stores its output; with `apart`, for two values of `axis` that far apart, the first at 0.
std::optional<int64_t> store_stride_of(const StageState& stage, int output, const Var& axis, int64_t apart = 0);

/// Whether index expression `e` is exactly this variable.
bool is_var(const Expr& e, const Var& var);

}  // namespace tensmith
