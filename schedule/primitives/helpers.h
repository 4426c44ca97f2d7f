/// Checks that several primitives share.
#pragma once

#include <string>

#include "schedule/state.h"

namespace tensmith {

/// Refuses stages that have no loops to schedule (placeholders, imperative and inlined ones).
Result<void> check_has_loops(const StageState& stage);
/// Notes a request of a loop in place of an earlier one for the same producer.
void add_prefetch(LoopVar& loop, const Prefetch& prefetch);
/// Hands requests of a loop that was split on to the inner loop: its steps are those of the whole.
void move_prefetches(StageState& stage, int whole, int inner);
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
/// Refuses a stage whose loops are split, fused, reordered or marked already. Errors: already-scheduled.
Result<void> check_unscheduled(const StageState& stage);
/// Refuses stages that cannot live on from one iteration of a loop to the next: those that are not computed at one,
/// outputs, register tiles, those with a window already. Errors: window-illegal.
Result<void> check_window(const ScheduleState& state, const StageState& stage);
/// Refuses separators (set_axis_separator) beyond the dimensions of the stage's layouts. Errors: bad-separators.
Result<void> check_separators(const StageState& stage, const std::vector<int64_t>& separators);
/// Where the stage reads stage `producer` only element by element: by dim of the producer, the axis of the stage that
/// is its index, all of them different and as long as the dim. Errors: not-elementwise.
Result<std::vector<int>> matching_axes(const ScheduleState& state, const StageState& stage, int producer);
/// What is computed at loops of one stage is so at those of another one, which has taken them over.
void rename_places(ScheduleState& state, const std::string& from, const std::string& to);
/// Replaces reads of buffers in all stages but `except`.
void redirect_reads(ScheduleState& state, const BufferNode* from, const Buffer& to, const std::string& except = {});

}  // namespace tensmith
