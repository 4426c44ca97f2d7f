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
/// Whether computing an element twice in place leaves it as it is: no reduction, or one by max or min.
bool is_repeatable(const StageState& stage);
/// Refuses an order in which a loop over output elements that was split with tail=shift (or is about to be: `shifted`)
/// lies inside the place where a reduction's start value is stored: its overlapping pieces would add elements twice.
/// Errors: shift-inside-reduction.
Result<void> check_shift_order(const StageState& stage, const std::vector<int>& order, int init_loop, int shifted = -1);
/// Refuses a loop whose iterations overlap because it was split with tail=shift: they must run one after the other.
/// Errors: shift-overlap.
Result<void> check_no_overlap(const StageState& stage, int loop);
/// Refuses a stage inside which others are computed. Errors: attach-point.
Result<void> check_no_attached(const ScheduleState& state, const StageState& stage);
/// Replaces reads of buffers in all stages but `except`.
void redirect_reads(ScheduleState& state, const BufferNode* from, const Buffer& to, const std::string& except = {});

}  // namespace tensmith
