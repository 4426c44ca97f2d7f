#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  if (const int64_t slots = step.number("slots"); slots < 2 || slots > 8)
    return Failure{"bad-slots", "slots: expected 2 to 8, got " + std::to_string(slots)};
  return check_window(state, *state.find(step.text("stage")));
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  stage.window = Window::kPipelined;
  stage.slots = step.number("slots");
}

}  // namespace

const PrimitiveDef& pipeline_primitive() {
  static const PrimitiveDef def{
      .name = "pipeline",
      .doc =
          "Computes a stage `slots` - 1 iterations ahead of the loop that it is computed at, into buffers that take\n"
          "turns: copies and what they wait for overlap with the work on what came before.\n"
          "Rewrite: for i: { P for i; C(i) }\n"
          "    --slots 3-->  P[0] for 0; P[1] for 1; for i: { P[(i+2) % 3] for i+2; C(i) reads P[i % 3] }",
      .halide = "ring_buffer",
      .tvm = "software pipeline annotations",
      .args = {{"stage", ArgKind::kStage, "the stage; it is computed at a serial loop"},
               {"slots", ArgKind::kInt, "buffers that take turns"}},
      .check = check,
      .apply = apply,
      .samples = {{"dense",
                   {"split stage=C loop=i0 factor=2 outer=io inner=ii", "cache_read stage=A consumer=C name=Ac",
                    "compute_at stage=Ac consumer=C at=io", "pipeline stage=Ac slots=3"}}}};
  return def;
}

}  // namespace tensmith
