#include "schedule/prefetches.h"
#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

Prefetch prefetch_of(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  return {step.text("producer"), 0, stage.attach_stage, state.find(stage.attach_stage)->find_loop(step.text("spread"))};
}

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  if (stage.attach != AttachKind::kAt)
    return Failure{"spread-loop", "stage " + stage.name + " has loops of its own only; compute it at a loop first"};
  const StageState& reader = *state.find(stage.attach_stage);
  const int spread = reader.find_loop(step.text("spread"));
  if (spread < 0)
    return Failure{"unknown-loop", "spread: stage " + reader.name + " has no loop " + step.text("spread")};
  return check_prefetch(state, stage, stage.find_loop(step.text("loop")), prefetch_of(state, step));
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  add_prefetch(stage.loops[stage.find_loop(step.text("loop"))], prefetch_of(state, step));
}

}  // namespace

const PrimitiveDef& prefetch_next_primitive() {
  static const PrimitiveDef def{
      .name = "prefetch_next",
      .doc =
          "Asks, while a loop sweeps over a block of a tensor, for the block that lies behind it, into the second\n"
          "cache. The sweep is done once per iteration of a loop further outside; each asks for an equal share (of\n"
          "a number of iterations that is not known, the first four). The loop may be split afterwards, the one\n"
          "outside be split or fused: the request stays with them.\n"
          "Rewrite: for s < S: for k < K: use B[k]\n"
          "    -->  for s < S: for k < K: prefetch B[K + share(s, k)]; use B[k], where share counts cache lines",
      .halide = "none",
      .tvm = "none",
      .args = {{"stage", ArgKind::kStage, "the reading stage"},
               {"producer", ArgKind::kStage, "the stage or input that is read, in steps of a constant size"},
               {"loop", ArgKind::kLoop,
                "a loop of the reading stage that sweeps over a block; of a reduction one of its reduction loops"},
               {"spread", ArgKind::kText, "a loop around the reading stage, of the stage that it is computed at"}},
      .check = check,
      .apply = apply,
      .samples = {{"dense",
                   {"reorder stage=R loops=i1,i0", "compute_at stage=C consumer=R at=i0",
                    "prefetch_next stage=C producer=B loop=r0 spread=i0"}}},
      .keeps_places = true};
  return def;
}

}  // namespace tensmith
