/// The first lowering step: loop nests from the stages' loops, with every bound derived from what the consumers need.
#pragma once

#include "schedule/schedule.h"

namespace tensmith {

/// Loops with physical (multi-dimensional) indices; stages that are neither inlined nor outputs are Allocate nodes,
/// those of scope kGlobal stand outermost. Tails are peeled, guarded or shifted as the splits say; conditions stand as
/// far out as their variables allow. Parameters: inputs, then outputs. Errors: ScheduleError `bounds-unknown`,
/// `attach-illegal`, `register-size`.
LoopFunction build_loop_nests(const ScheduleState& state, int64_t line_bytes);

}  // namespace tensmith
