#include "schedule/prefetches.h"
#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  const int64_t distance = step.number("distance");
  if (distance < 1 || distance > 4096)
    return Failure{"bad-distance", "distance: expected 1 to 4096 iterations, got " + std::to_string(distance)};
  return check_prefetch(state, stage, stage.find_loop(step.text("loop")), {step.text("producer"), distance});
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  add_prefetch(stage.loops[stage.find_loop(step.text("loop"))], {step.text("producer"), step.number("distance")});
}

}  // namespace

const PrimitiveDef& prefetch_primitive() {
  static const PrimitiveDef def{.name = "prefetch",
                                .doc =
                                    "Asks the processor, in each iteration of a loop, for the first element of a\n"
                                    "tensor that an iteration `distance` later reads.\n"
                                    "Rewrite: for k: use B[k]  -->  for k: prefetch B[k + distance]; use B[k]",
                                .halide = "prefetch",
                                .tvm = "prefetch (removed there)",
                                .args = {{"stage", ArgKind::kStage, "the reading stage"},
                                         {"producer", ArgKind::kStage, "the stage or input that is read"},
                                         {"loop", ArgKind::kLoop, "a loop of the reading stage"},
                                         {"distance", ArgKind::kInt, "iterations ahead"}},
                                .check = check,
                                .apply = apply,
                                .samples = {{"dense", {"prefetch stage=C producer=B loop=r0 distance=8"}}},
                                .keeps_places = true};
  return def;
}

}  // namespace tensmith
