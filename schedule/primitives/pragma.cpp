#include "schedule/primitives/helpers.h"
#include "schedule/primitives/loop_marks.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  if (Result<void> ok = check_has_loops(*state.find(step.text("stage"))); !ok) return ok;
  return check_mark(step.text("key"), step.number("value"));
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  stage.loops[stage.find_loop(step.text("loop"))].attrs[step.text("key")] = step.number("value");
}

}  // namespace

const PrimitiveDef& pragma_primitive() {
  static const PrimitiveDef def{
      .name = "pragma",
      .doc =
          "Notes a number under a key on a loop, for lowering and code generation: unroll (copies of a serial\n"
          "loop's body), min_chunk (iterations of a parallel loop that are worth a thread), piece (iterations of a\n"
          "reduction's outermost loop that go into an accumulator of their own).\n"
          "Rewrite: for i  -->  for i [key = value]",
      .halide = "none",
      .tvm = "annotate",
      .args = {{"stage", ArgKind::kStage, "the stage"},
               {"loop", ArgKind::kLoop, "the loop"},
               {"key", ArgKind::kText, "what is noted", nullptr, mark_keys()},
               {"value", ArgKind::kInt, "the number"}},
      .check = check,
      .apply = apply,
      .samples = {{"dense", {"pragma stage=C loop=r0 key=unroll value=4"}}},
      .keeps_places = true};
  return def;
}

}  // namespace tensmith
