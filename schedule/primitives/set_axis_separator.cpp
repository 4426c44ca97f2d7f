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
  int64_t last = 0;
  for (int64_t separator : step.numbers("separators")) {
    if (separator <= last)
      return Failure{"bad-separators", "separators: expected rising numbers from 1 on, got " +
                                           std::to_string(separator) + " behind " + std::to_string(last)};
    last = separator;
  }
  return check_separators(stage, step.numbers("separators"));
}

void apply(ScheduleState& state, const Step& step) {
  state.find(step.text("stage"))->separators = step.numbers("separators");
}

}  // namespace

const PrimitiveDef& set_axis_separator_primitive() {
  static const PrimitiveDef def{
      .name = "set_axis_separator",
      .doc =
          "Makes the storage of a stage an array of separate pieces, as memories of several dimensions are: the\n"
          "dimensions (of its layout) before a separator count pieces, those behind it lie in one piece, and each\n"
          "piece begins at a cache line of its own, so that vectors do not straddle lines and threads do not write\n"
          "to the same one. Without separators it is one piece again.\n"
          "Rewrite: allocate P[14, 9]  --separators 1-->  allocate P[14, 16]",
      .halide = "align_storage",
      .tvm = "set_axis_separator",
      .args = {{"stage", ArgKind::kStage, "the stage"},
               {"separators", ArgKind::kInts, "dimensions of its layout before which a piece begins, rising"}},
      .check = check,
      .apply = apply,
      .samples = {{"dense", {"set_axis_separator stage=C separators=1"}},
                  {"expand_depthwise_project",
                   {"compute_at stage=E6 consumer=D at=i1", "set_axis_separator stage=E6 separators=1,2"}},
                  {"dense_m",
                   {"transform_layout stage=C layout=1/4,0,1%4", "set_axis_separator stage=C separators=1"}}},
      .keeps_places = true};
  return def;
}

}  // namespace tensmith
