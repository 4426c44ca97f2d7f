#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  return check_window(state, *state.find(step.text("stage")));
}

void apply(ScheduleState& state, const Step& step) { state.find(step.text("stage"))->window = Window::kRolling; }

}  // namespace

const PrimitiveDef& rolling_buffer_primitive() {
  static const PrimitiveDef def{
      .name = "rolling_buffer",
      .doc =
          "Keeps the storage of a stage that is computed at a loop from one iteration to the next, as a ring in the\n"
          "dimension along which what is needed moves on: each iteration computes only what the one before did not.\n"
          "Rewrite: for y: { P[y .. y+2]; C[y] reads them }  -->  P[0 .. 2]; C[0]; for y from 1: { P[y+2]; C[y] }",
      .halide = "store_at outside compute_at, fold_storage",
      .tvm = "rolling_buffer",
      .args = {{"stage", ArgKind::kStage, "the stage; it is computed at a serial loop"}},
      .check = check,
      .apply = apply,
      .samples = {{"stencils", {"compute_at stage=P consumer=C at=i0", "rolling_buffer stage=P"}},
                  {"stencils",
                   {"split stage=C loop=i0 factor=5 outer=io inner=ii", "compute_at stage=P consumer=C at=io",
                    "rolling_buffer stage=P"}}}};
  return def;
}

}  // namespace tensmith
