#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  if (state.is_output(static_cast<int>(&stage - state.stages.data())))
    return Failure{
        "scope-of-output",
        "stage " + stage.name + " is an output of the workload, whose memory belongs to the caller; use cache_write"};
  return {};
}

void apply(ScheduleState& state, const Step& step) {
  const std::string& scope = step.text("scope");
  state.find(step.text("stage"))->scope = scope == "register" ? Scope::kRegister
                                          : scope == "stack"  ? Scope::kStack
                                                              : Scope::kGlobal;
}

}  // namespace

const PrimitiveDef& set_scope_primitive() {
  static const PrimitiveDef def{
      .name = "set_scope",
      .doc =
          "Says where a stage is stored: register (values; all indices constant after unrolling), stack (of the\n"
          "computing thread) or global (a workspace of the kernel).\n"
          "Rewrite: allocate P  -->  allocate P in that scope",
      .halide = "store_in",
      .tvm = "set_scope",
      .args = {{"stage", ArgKind::kStage, "the stage"},
               {"scope", ArgKind::kText, "the scope", nullptr, {"register", "stack", "global"}}},
      .check = check,
      .apply = apply,
      .samples = {{"dense", {"compute_at stage=C consumer=R at=i0", "set_scope stage=C scope=stack"}}},
      .keeps_places = true};
  return def;
}

}  // namespace tensmith
