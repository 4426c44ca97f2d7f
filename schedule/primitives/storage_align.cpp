#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  if (state.is_output(static_cast<int>(&stage - state.stages.data())))
    return Failure{
        "scope-of-output",
        "stage " + stage.name + " is an output of the workload, whose memory belongs to the caller; use cache_write"};
  const int64_t elements = step.number("elements");
  if (elements < 0 || elements > 1024)
    return Failure{"bad-alignment", "elements: expected 0 to 1024, got " + std::to_string(elements)};
  return {};
}

void apply(ScheduleState& state, const Step& step) {
  state.find(step.text("stage"))->align_elements = step.number("elements");
}

}  // namespace

const PrimitiveDef& storage_align_primitive() {
  static const PrimitiveDef def{
      .name = "storage_align",
      .doc =
          "Lengthens the rows of a stage's storage by `elements` when they would be a multiple of 4 KiB, which\n"
          "makes rows fall into the same cache sets.\n"
          "Rewrite: allocate P[14, 1024]  --elements 16-->  allocate P[14, 1040]",
      .halide = "align_storage",
      .tvm = "storage_align",
      .args = {{"stage", ArgKind::kStage, "the stage"}, {"elements", ArgKind::kInt, "elements added to a row"}},
      .check = check,
      .apply = apply,
      .samples = {{"dense", {"storage_align stage=C elements=16"}}},
      .keeps_places = true};
  return def;
}

}  // namespace tensmith
