/// Checks that several primitives share.
#pragma once

#include <string>

#include "schedule/state.h"

namespace tensmith {

/// Refuses stages that have no loops to schedule (placeholders, imperative and inlined ones).
Result<void> check_has_loops(const StageState& stage);
/// Refuses a loop name that the stage already uses.
Result<void> check_new_loop(const StageState& stage, const std::string& name);
/// Refuses a loop at which another stage is computed, since it would disappear or move.
Result<void> check_not_attach_point(const ScheduleState& state, const StageState& stage, const std::string& loop);
/// Replaces reads of buffers in all stages but `except`.
void redirect_reads(ScheduleState& state, const BufferNode* from, const Buffer& to, const std::string& except = {});

}  // namespace tensmith
