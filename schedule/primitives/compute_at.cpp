#include <algorithm>

#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

/// Whether stage `index` is computed inside stage `consumer` (directly or through other stages).
bool inside(const ScheduleState& state, int index, const StageState& consumer) {
  for (const StageState* s = &state.stages[index]; s->attach == AttachKind::kAt; s = state.find(s->attach_stage))
    if (s->attach_stage == consumer.name) return true;
  return false;
}

/// Whether the stage's values get to the consumer, perhaps through stages that are inlined or computed inside it.
bool feeds(const ScheduleState& state, int index, const StageState& consumer) {
  const std::vector<int> users = state.consumers_of(index);
  return std::any_of(users.begin(), users.end(), [&](int user) {
    const StageState& s = state.stages[user];
    return s.name == consumer.name || (s.attach == AttachKind::kInlined && feeds(state, user, consumer)) ||
           inside(state, user, consumer);
  });
}

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  const StageState& consumer = *state.find(step.text("consumer"));
  if (stage.stage->stage_kind == StageKind::kPlaceholder)
    return Failure{"compute-at-input",
                   "stage " + stage.name + " is an input; use cache_read to get a stage that copies it"};
  if (Result<void> ok = check_has_loops(consumer); !ok) return ok;
  if (stage.name == consumer.name)
    return Failure{"compute-at-self", "stage " + stage.name + " cannot be computed inside itself"};
  const int loop = consumer.find_loop(step.text("at"));
  if (loop < 0) return Failure{"unknown-loop", "stage " + consumer.name + " has no loop '" + step.text("at") + "'"};
  if (stage.stage->stage_kind == StageKind::kImperative)
    return Failure{"no-loops",
                   "stage " + stage.name + " is written out as statements over its whole output; it stays at root"};
  const ForKind kind = consumer.loops[loop].kind;
  if (kind == ForKind::kVectorized || kind == ForKind::kUnrolled)
    return Failure{"attach-illegal",
                   "loop " + step.text("at") + " is vectorized or unrolled; compute at a loop outside it"};
  const int index = static_cast<int>(&stage - state.stages.data());
  // The consumer must not itself be computed inside the stage.
  for (const StageState* s = &consumer; s->attach == AttachKind::kAt; s = state.find(s->attach_stage))
    if (s->attach_stage == stage.name)
      return Failure{"attach-cycle", "stage " + consumer.name + " is itself computed inside " + stage.name};
  if (state.consumers_of(index).empty()) return Failure{"attach-illegal", "nobody reads stage " + stage.name};
  if (!feeds(state, index, consumer))
    return Failure{"attach-illegal", "stage " + consumer.name + " does not read " + stage.name};
  return {};
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  stage.attach = AttachKind::kAt;
  stage.attach_stage = step.text("consumer");
  stage.attach_loop = step.text("at");
  stage.window = Window::kNone;
}

}  // namespace

const PrimitiveDef& compute_at_primitive() {
  static const PrimitiveDef def{
      .name = "compute_at",
      .doc =
          "Computes the part of a stage that one iteration of a consumer's loop needs, inside that loop.\n"
          "Rewrite: P everywhere; for i: C(i) reads P  -->  for i: P for this i; C(i) reads it",
      .halide = "compute_at (and store_at)",
      .tvm = "compute_at",
      .args = {{"stage", ArgKind::kStage, "the producer"},
               {"consumer", ArgKind::kStage, "the consumer"},
               {"at", ArgKind::kNewName, "a loop of the consumer"}},
      .check = check,
      .apply = apply,
      .samples = {{"dense", {"compute_at stage=C consumer=R at=i0"}}}};
  return def;
}

}  // namespace tensmith
