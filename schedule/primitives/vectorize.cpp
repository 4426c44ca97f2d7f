#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  const LoopVar& loop = stage.loops[stage.find_loop(step.text("loop"))];
  if (loop.kind != ForKind::kSerial)
    return Failure{"loop-already-marked", "loop " + loop.name + " is already parallel, vectorized or unrolled"};
  return check_no_overlap(stage, stage.find_loop(loop.name));
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  stage.loops[stage.find_loop(step.text("loop"))].kind = ForKind::kVectorized;
}

}  // namespace

const PrimitiveDef& vectorize_primitive() {
  static const PrimitiveDef def{
      .name = "vectorize",
      .doc =
          "Turns the iterations of a loop into vector lanes; the extent must be a constant when lowering.\n"
          "Rewrite: for j in 16: C[i, j] = ...  -->  C[i, 0:16] = ...",
      .halide = "vectorize",
      .tvm = "vectorize",
      .args = {{"stage", ArgKind::kStage, "the stage"}, {"loop", ArgKind::kLoop, "the loop"}},
      .check = check,
      .apply = apply,
      .samples = {{"dense", {"split stage=C loop=i1 factor=8 outer=jo inner=ji", "vectorize stage=C loop=ji"}}},
      .keeps_places = true};
  return def;
}

}  // namespace tensmith
