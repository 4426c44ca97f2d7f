#include <algorithm>

#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"
#include "tensor/equal_hash.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

/// Whether the consumer, complete and at root, reads each element of the stage exactly where it computes the same
/// element, so that computing what it needs computes everything.
bool reads_all(const ScheduleState& state, const StageState& stage, const StageState& consumer) {
  if (consumer.attach != AttachKind::kRoot || consumer.stage->axes.size() != stage.stage->axes.size()) return false;
  bool found = false;
  const auto look = [&](const Expr& body) {
    if (body.get() == nullptr) return;
    visit(body, [&](const Expr& e) {
      const auto* read = e.as<Load>();
      if (!read || state.producer_of(read->buffer.get()) != &stage - state.stages.data()) return true;
      std::vector<const ExprNode*> seen;
      bool matches = true;
      for (size_t d = 0; d < read->indices.size(); ++d) {
        const auto axis = std::find_if(consumer.stage->axes.begin(), consumer.stage->axes.end(),
                                       [&](const Axis& a) { return a.var.same_as(read->indices[d]); });
        matches = matches && axis != consumer.stage->axes.end() && equal(axis->extent, stage.stage->axes[d].extent) &&
                  std::find(seen.begin(), seen.end(), read->indices[d].get()) == seen.end();
        seen.push_back(read->indices[d].get());
      }
      found |= matches;
      return true;
    });
  };
  for (const Expr& body : consumer.stage->bodies) look(body);
  for (const Expr& initial : consumer.stage->initial) look(initial);
  return found;
}

/// Whether stage `index` is computed inside the loop `loop` of stage `consumer` (directly or through other stages).
bool inside(const ScheduleState& state, int index, const StageState& consumer, int position) {
  for (const StageState* s = &state.stages[index]; s->attach == AttachKind::kAt; s = state.find(s->attach_stage))
    if (s->attach_stage == consumer.name && consumer.order_position(consumer.find_loop(s->attach_loop)) >= position)
      return true;
  return false;
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
  const int position = consumer.order_position(loop);
  for (int user : state.consumers_of(index)) {
    const StageState& other = state.stages[user];
    if (other.name == consumer.name || other.attach == AttachKind::kInlined || inside(state, user, consumer, position))
      continue;
    return Failure{"attach-illegal", "stage " + other.name + " also reads " + stage.name +
                                         " but is not computed inside " + consumer.name + "." + step.text("at") +
                                         "; compute it there first, or choose a loop that surrounds both"};
  }
  if (state.consumers_of(index).empty() && !state.is_output(index))
    return Failure{"attach-illegal", "nobody reads stage " + stage.name};
  bool feeds = false;
  for (int user : state.consumers_of(index))
    feeds |= state.stages[user].name == consumer.name || state.stages[user].attach == AttachKind::kInlined ||
             inside(state, user, consumer, position);
  if (feeds && state.is_output(index) && !reads_all(state, stage, consumer))
    return Failure{"compute-at-output",
                   "stage " + stage.name + " is an output of the workload, but " + consumer.name +
                       " does not need all of it element by element; leave it at root and use cache_write"};
  // What this stage reads must still surround it.
  for (const StageState& other : state.stages) {
    if (other.attach != AttachKind::kAt || other.attach_stage == stage.name) continue;
    const std::vector<int> users = state.consumers_of(static_cast<int>(&other - state.stages.data()));
    if (std::find(users.begin(), users.end(), index) == users.end()) continue;
    const StageState& owner = *state.find(other.attach_stage);
    const int limit = owner.order_position(owner.find_loop(other.attach_loop));
    const bool surrounds = owner.name == consumer.name
                               ? position >= limit
                               : inside(state, static_cast<int>(&consumer - state.stages.data()), owner, limit);
    if (!surrounds)
      return Failure{"attach-illegal", "stage " + other.name + " is computed at " + other.attach_stage + "." +
                                           other.attach_loop + " and read by " + stage.name +
                                           ", which would leave that loop; move " + other.name + " first"};
  }
  if (!feeds) return Failure{"attach-illegal", "stage " + consumer.name + " does not read " + stage.name};
  return {};
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  stage.attach = AttachKind::kAt;
  stage.attach_stage = step.text("consumer");
  stage.attach_loop = step.text("at");
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
