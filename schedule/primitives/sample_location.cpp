#include "schedule/primitives/accesses.h"
#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

/// The step that puts the stage where the decision says.
Step move_to(const ScheduleState& state, const Step& step, int64_t position) {
  if (position < 0) return {"compute_root", {{"stage", step.text("stage")}}};
  const StageState& consumer = *state.find(step.text("consumer"));
  return {"compute_at",
          {{"stage", step.text("stage")},
           {"consumer", consumer.name},
           {"at", consumer.loops[consumer.order[static_cast<size_t>(position)]].name}}};
}

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& consumer = *state.find(step.text("consumer"));
  if (Result<void> ok = check_has_loops(consumer); !ok) return ok;
  const std::vector<int64_t>& decision = step.numbers("decision");
  const auto loops = static_cast<int64_t>(consumer.order.size());
  if (decision.size() != 1 || decision[0] < -1 || decision[0] >= loops)
    return Failure{"bad-decision", "decision: expected -1 (root) or the position of a loop of " + consumer.name +
                                       ", up to " + std::to_string(loops - 1) + "; leave it out to draw it"};
  const Result<ScheduleState> next = after_steps(state, {move_to(state, step, decision[0])});
  return next.ok() ? Result<void>() : Result<void>(next.failure());
}

Result<std::vector<int64_t>> draw(const ScheduleState& state, const Step& step, Rng& rng) {
  const StageState& consumer = *state.find(step.text("consumer"));
  if (Result<void> ok = check_has_loops(consumer); !ok) return ok.failure();
  std::vector<int64_t> legal;
  Failure refused;
  for (int64_t position = -1; position < static_cast<int64_t>(consumer.order.size()); ++position) {
    const Result<ScheduleState> next = after_steps(state, {move_to(state, step, position)});
    if (next.ok()) legal.push_back(position);
    else refused = next.failure();
  }
  if (legal.empty()) return refused;
  return std::vector<int64_t>{legal[rng.below(legal.size())]};
}

void apply(ScheduleState& state, const Step& step) {
  state = after_steps(state, {move_to(state, step, step.numbers("decision")[0])}).value();
}

}  // namespace

const PrimitiveDef& sample_location_primitive() {
  static const PrimitiveDef def{
      .name = "sample_location",
      .doc =
          "Computes a stage at root or at a loop of a consumer, drawn at random among the places that are legal. The\n"
          "decision is recorded with the step: replay uses it, mutate draws another one.\n"
          "Rewrite: P everywhere; for i: C(i) reads P  -->  as it is, or for i: P for this i; C(i) reads it",
      .halide = "none",
      .tvm = "sample_compute_location with compute_at",
      .args = {{"stage", ArgKind::kStage, "the producer"},
               {"consumer", ArgKind::kStage, "the consumer"},
               {"decision", ArgKind::kInts, "position of the loop from the outermost, -1: root; none: drawn", ""}},
      .check = check,
      .apply = apply,
      .samples = {{"dense", {"sample_location stage=C consumer=R decision=0"}},
                  {"stencils", {"sample_location stage=P consumer=C"}}},
      .draw = draw};
  return def;
}

}  // namespace tensmith
