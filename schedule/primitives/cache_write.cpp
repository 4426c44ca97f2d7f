#include "schedule/primitives/accesses.h"
#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  if (Result<void> ok = check_no_attached(state, stage); !ok) return ok;
  if (state.find(step.text("name")))
    return Failure{"duplicate-stage", "there is already a stage '" + step.text("name") + "'; choose another name"};
  if (!stage.relations.empty())
    return Failure{"cache-after-split",
                   "stage " + stage.name + " already has split or fused loops; use cache_write first"};
  return {};
}

void apply(ScheduleState& state, const Step& step) {
  const int computing = split_off_copy(state, step.text("stage"), step.text("name"));
  // What it computes has its loops in the order of its axes.
  StageState fresh = fresh_stage(state.stages[computing].stage, step.text("name"));
  fresh.attach = state.stages[computing].attach;
  fresh.attach_stage = state.stages[computing].attach_stage;
  fresh.attach_loop = state.stages[computing].attach_loop;
  state.stages[computing] = fresh;
}

}  // namespace

const PrimitiveDef& cache_write_primitive() {
  static const PrimitiveDef def{
      .name = "cache_write",
      .doc =
          "Computes a stage into a buffer of its own, which the stage then copies out; the copy may be tiled and\n"
          "the computation be done per tile in registers.\n"
          "Rewrite: C[i] = f(i)  -->  C'[i] = f(i); C[i] = C'[i]",
      .halide = "in (of the output)",
      .tvm = "cache_write",
      .args = {{"stage", ArgKind::kStage, "the stage"}, {"name", ArgKind::kNewName, "name of the computing stage"}},
      .check = check,
      .apply = apply,
      .samples = {{"dense", {"cache_write stage=C name=Cacc"}}}};
  return def;
}

}  // namespace tensmith
