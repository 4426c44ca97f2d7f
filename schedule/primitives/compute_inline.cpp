#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  const int index = static_cast<int>(&stage - state.stages.data());
  if (stage.stage->stage_kind != StageKind::kCompute)
    return Failure{"inline-illegal",
                   "stage " + stage.name + " is an input or written out as statements and cannot be inlined"};
  if (stage.stage->reducer)
    return Failure{"inline-reduction", "stage " + stage.name + " is a reduction; use compute_at"};
  if (state.is_output(index)) return Failure{"inline-output", "stage " + stage.name + " is an output of the workload"};
  if (Result<void> ok = check_no_attached(state, stage); !ok) return ok;
  for (int user : state.consumers_of(index))
    if (state.stages[user].stage->stage_kind == StageKind::kImperative)
      return Failure{
          "inline-into-statements",
          "stage " + state.stages[user].name + " is written out as statements and reads " + stage.name + " as memory"};
  return {};
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  stage.attach = AttachKind::kInlined;
  stage.window = Window::kNone;
}

}  // namespace

const PrimitiveDef& compute_inline_primitive() {
  static const PrimitiveDef def{.name = "compute_inline",
                                .doc =
                                    "Puts the expression of a stage in place of each read of it.\n"
                                    "Rewrite: P[i] = f(i); C[i] = g(P[i])  -->  C[i] = g(f(i))",
                                .halide = "compute_inline",
                                .tvm = "compute_inline",
                                .args = {{"stage", ArgKind::kStage, "the stage"}},
                                .check = check,
                                .apply = apply,
                                .samples = {{"softmax", {"compute_inline stage=e"}}}};
  return def;
}

}  // namespace tensmith
