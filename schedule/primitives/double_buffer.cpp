#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  return check_window(state, *state.find(step.text("stage")));
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  stage.window = Window::kPipelined;
  stage.slots = 2;
}

}  // namespace

const PrimitiveDef& double_buffer_primitive() {
  static const PrimitiveDef def{
      .name = "double_buffer",
      .doc =
          "Computes a stage one iteration ahead of the loop that it is computed at, into two buffers that take\n"
          "turns (as pipeline with two slots).\n"
          "Rewrite: for i: { P for i; C(i) }  -->  P[0] for 0; for i: { P[(i+1) % 2] for i+1; C(i) reads P[i % 2] }",
      .halide = "ring_buffer(2)",
      .tvm = "double_buffer_scope",
      .args = {{"stage", ArgKind::kStage, "the stage; it is computed at a serial loop"}},
      .check = check,
      .apply = apply,
      .samples = {{"dense",
                   {"cache_read stage=A consumer=C name=Ac", "compute_at stage=Ac consumer=C at=i0",
                    "double_buffer stage=Ac"}}}};
  return def;
}

}  // namespace tensmith
