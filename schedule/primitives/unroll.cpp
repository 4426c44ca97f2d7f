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
  return {};
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  stage.loops[stage.find_loop(step.text("loop"))].kind = ForKind::kUnrolled;
}

}  // namespace

const PrimitiveDef& unroll_primitive() {
  static const PrimitiveDef def{
      .name = "unroll",
      .doc =
          "Turns the iterations of a loop into copies of its body; a loop whose extent is no constant stays a loop.\n"
          "Rewrite: for i in 3: f(i)  -->  f(0); f(1); f(2)",
      .halide = "unroll",
      .tvm = "unroll",
      .args = {{"stage", ArgKind::kStage, "the stage"}, {"loop", ArgKind::kLoop, "the loop"}},
      .check = check,
      .apply = apply,
      .samples = {{"dense", {"split stage=C loop=i0 factor=3 outer=io inner=ii", "unroll stage=C loop=ii"}}},
      .keeps_places = true};
  return def;
}

}  // namespace tensmith
