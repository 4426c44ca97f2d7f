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
  if (loop.is_reduce)
    return Failure{"parallel-reduction",
                   "loop " + loop.name + " is a reduction: its iterations write one element; use rfactor first"};
  return check_no_overlap(stage, stage.find_loop(loop.name));
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  stage.loops[stage.find_loop(step.text("loop"))].kind = ForKind::kParallel;
}

}  // namespace

const PrimitiveDef& parallel_primitive() {
  static const PrimitiveDef def{
      .name = "parallel",
      .doc =
          "Lets the iterations of a loop run on several threads. Not a loop whose pieces overlap (tail=shift):\n"
          "although both write equal values, what is read after two unordered plain writes has no meaning in the\n"
          "memory model of LLVM.\n"
          "Rewrite: for i in N  -->  parallel i in N",
      .halide = "parallel",
      .tvm = "parallel",
      .args = {{"stage", ArgKind::kStage, "the stage"}, {"loop", ArgKind::kLoop, "the loop"}},
      .check = check,
      .apply = apply,
      .samples = {{"dense", {"parallel stage=C loop=i0"}}}};
  return def;
}

}  // namespace tensmith
