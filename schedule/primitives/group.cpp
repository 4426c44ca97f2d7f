#include <algorithm>
#include <set>

#include "schedule/primitives/accesses.h"
#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

/// The stages on the ways from `from` to `stage`, both included, the last one first; empty when there is no way.
std::vector<int> members(const ScheduleState& state, const Step& step) {
  const auto index_of = [&](const char* name) {
    return static_cast<int>(state.find(step.text(name)) - state.stages.data());
  };
  const int first = index_of("from"), last = index_of("stage");
  // Producers come first in the list: what `from` leads to, then of those what leads to `stage`.
  std::set<int> after{first}, both;
  for (int k = first; k <= last; ++k)
    if (after.count(k))
      for (const int user : state.consumers_of(k)) after.insert(user);
  std::vector<int> found;
  for (int k = last; k >= first; --k) {
    if (!after.count(k)) continue;
    const std::vector<int> users = state.consumers_of(k);
    if (k != last && std::none_of(users.begin(), users.end(), [&](int user) { return both.count(user) != 0; }))
      continue;
    both.insert(k);
    found.push_back(k);
  }
  return both.count(first) && both.count(last) ? found : std::vector<int>();
}

/// Consumers move before their producers, which then are read inside the loop.
std::vector<Step> moves(const ScheduleState& state, const Step& step) {
  std::vector<Step> steps;
  for (const int k : members(state, step))
    if (state.stages[k].attach != AttachKind::kInlined)
      steps.push_back(
          {"compute_at",
           {{"stage", state.stages[k].name}, {"consumer", step.text("consumer")}, {"at", step.text("at")}}});
  return steps;
}

Result<void> check(const ScheduleState& state, const Step& step) {
  const std::vector<Step> steps = moves(state, step);
  if (members(state, step).empty())
    return Failure{"group-no-path", "stage " + step.text("stage") + " does not depend on " + step.text("from") +
                                        "; name the last stage of the group and the first one"};
  const Result<ScheduleState> next = after_steps(state, steps);
  return next.ok() ? Result<void>() : Result<void>(next.failure());
}

void apply(ScheduleState& state, const Step& step) { state = after_steps(state, moves(state, step)).value(); }

}  // namespace

const PrimitiveDef& group_primitive() {
  static const PrimitiveDef def{
      .name = "group",
      .doc =
          "Computes a group of stages at one loop of a consumer: all that lie on the ways from one stage to another.\n"
          "Inlined ones stay inlined.\n"
          "Rewrite: P; Q reads P; for i: C(i) reads Q  -->  for i: P for this i; Q for this i; C(i)",
      .halide = "compute_at (of several)",
      .tvm = "create_group with compute_at",
      .args = {{"stage", ArgKind::kStage, "the last stage of the group"},
               {"from", ArgKind::kStage, "the first one"},
               {"consumer", ArgKind::kStage, "the consumer"},
               {"at", ArgKind::kNewName, "a loop of the consumer"}},
      .check = check,
      .apply = apply,
      .samples = {{"stencils", {"group stage=C from=P consumer=Q at=i0"}}}};
  return def;
}

}  // namespace tensmith
