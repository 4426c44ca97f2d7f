#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (stage.stage->stage_kind == StageKind::kPlaceholder)
    return Failure{"compute-at-input", "stage " + stage.name + " is an input"};
  return {};
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  stage.attach = AttachKind::kRoot;
  stage.attach_stage.clear();
  stage.attach_loop.clear();
  stage.window = Window::kNone;
}

}  // namespace

const PrimitiveDef& compute_root_primitive() {
  static const PrimitiveDef def{
      .name = "compute_root",
      .doc =
          "Computes the whole stage before its consumers (the state at the start).\n"
          "Rewrite: undoes compute_at and compute_inline",
      .halide = "compute_root",
      .tvm = "compute_root",
      .args = {{"stage", ArgKind::kStage, "the stage"}},
      .check = check,
      .apply = apply,
      .samples = {{"dense", {"compute_at stage=C consumer=R at=i0", "compute_root stage=C"}}}};
  return def;
}

}  // namespace tensmith
