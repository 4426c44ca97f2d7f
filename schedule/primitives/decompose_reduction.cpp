#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  if (!stage.stage->reducer) return Failure{"decompose-no-reduction", "stage " + stage.name + " is no reduction"};
  const int position = stage.order_position(stage.find_loop(step.text("loop")));
  for (int k = 0; k < position; ++k)
    if (stage.loops[stage.order[k]].is_reduce)
      return Failure{"decompose-inside-reduction", "loop " + step.text("loop") + " lies inside the reduction loop " +
                                                       stage.loops[stage.order[k]].name +
                                                       "; the start value must be stored outside all reduction loops"};
  return check_shift_order(stage, stage.order, stage.find_loop(step.text("loop")));
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  stage.init_loop = stage.find_loop(step.text("loop"));
}

}  // namespace

const PrimitiveDef& decompose_reduction_primitive() {
  static const PrimitiveDef def{.name = "decompose_reduction",
                                .doc =
                                    "Says where a reduction stores its start value: in loops of its own just before\n"
                                    "the given loop. Without this step that is before the outermost reduction loop.\n"
                                    "Rewrite: for i: { for j: { C = 0; for k: C += ... } }\n"
                                    "    --at j-->  for i: { for j: C = 0; for j: for k: C += ... }",
                                .halide = "pure definition and update scheduled apart",
                                .tvm = "decompose_reduction",
                                .args = {{"stage", ArgKind::kStage, "the reduction"},
                                         {"loop", ArgKind::kLoop, "the loop before which the start values are stored"}},
                                .check = check,
                                .apply = apply,
                                .samples = {{"dense", {"decompose_reduction stage=C loop=i1"}}}};
  return def;
}

}  // namespace tensmith
