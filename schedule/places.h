/// Whether the stages of a schedule stand where everything that is read has been computed before.
#pragma once

#include "schedule/state.h"

namespace tensmith {

/// What must hold of the places of all stages after every step, whichever stage it moved, and again of the stages that
/// are lowered: a stage computed at a loop has all its readers inside that loop; an output computed at a loop is
/// computed whole; nothing is computed inside itself. Where a window moves over the iterations of a loop
/// (rolling_buffer) or runs ahead of them (double_buffer, pipeline), they run in order and none is left out.
/// Errors: attach-illegal, attach-cycle, compute-at-output, window-illegal.
Result<void> check_places(const ScheduleState& state);

}  // namespace tensmith
