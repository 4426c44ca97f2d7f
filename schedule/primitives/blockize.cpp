#include <algorithm>

#include "schedule/primitives/accesses.h"
#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"
#include "tensor/equal_hash.h"

namespace tensmith {

namespace {

/// By stage, whether it reads stage `index` directly or through others.
std::vector<bool> dependents(const ScheduleState& state, int index) {
  std::vector<bool> depends(state.stages.size());
  std::vector<int> open{index};
  while (!open.empty()) {
    const int from = open.back();
    open.pop_back();
    for (int user : state.consumers_of(from)) {
      if (depends[user]) continue;
      depends[user] = true;
      open.push_back(user);
    }
  }
  return depends;
}

/// The axes of the second stage as those of the first one, by position.
VarMap common_axes(const StageNode& first, const StageNode& second) {
  VarMap map;
  for (size_t a = 0; a < second.axes.size(); ++a) map[second.axes[a].var.get()] = first.axes[a].var;
  for (size_t a = 0; a < second.reduce_axes.size(); ++a)
    map[second.reduce_axes[a].var.get()] = first.reduce_axes[a].var;
  return map;
}

bool same_extents(const std::vector<Axis>& a, const std::vector<Axis>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](const Axis& x, const Axis& y) { return equal(x.extent, y.extent); });
}

Result<void> check_computations(const StageState& stage, const StageState& with) {
  const auto refuse = [&](const std::string& why) {
    return Failure{"blockize-differs", "stages " + stage.name + " and " + with.name + " " + why};
  };
  const StageNode &first = *stage.stage, &second = *with.stage;
  if (first.reducer.has_value() != second.reducer.has_value())
    return refuse("differ: one is a reduction, the other is not; expected two of a kind");
  if (!same_extents(first.axes, second.axes) || !same_extents(first.reduce_axes, second.reduce_axes))
    return refuse("have axes of different number or extents; expected the same, in the same order");
  if ((first.where.get() == nullptr) != (second.where.get() == nullptr) ||
      (first.where.get() != nullptr && !equal(first.where, substitute(second.where, common_axes(first, second)))))
    return refuse("reduce under different conditions; expected the same");
  return {};
}

Result<void> check_dependences(const ScheduleState& state, const StageState& stage, const StageState& with) {
  const auto refuse = [&](const std::string& why) {
    return Failure{"blockize-depends",
                   "stages " + stage.name + " and " + with.name + " cannot be computed together: " + why};
  };
  const int first = static_cast<int>(&stage - state.stages.data()), second = static_cast<int>(&with - &state.stages[0]);
  if (dependents(state, second)[first])
    return refuse(stage.name + " needs what " + with.name + " gives; name them the other way round");
  const std::vector<bool> needs_first = dependents(state, first);
  if (!needs_first[second]) return {};
  for (size_t k = 0; k < state.stages.size(); ++k) {
    if (!needs_first[k] || static_cast<int>(k) == second) continue;
    if (dependents(state, static_cast<int>(k))[second])
      return refuse(with.name + " needs it through stage " + state.stages[k].name + "; inline that one first");
  }
  if (stage.stage->reducer)
    return refuse(with.name + " reads " + stage.name + ", whose results are not there before the reduction's end");
  const Result<std::vector<int>> axes = matching_axes(state, with, first);
  if (!axes) return axes.failure();
  for (size_t d = 0; d < axes.value().size(); ++d)
    if (axes.value()[d] != static_cast<int>(d)) return refuse(with.name + " reads it in another order");
  return {};
}

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  const StageState& with = *state.find(step.text("with"));
  for (const StageState* s : {&stage, &with})
    if (Result<void> ok = check_has_loops(*s); !ok) return ok;
  if (stage.name == with.name)
    return Failure{"blockize-depends", "stage " + stage.name + " is named twice; expected two stages"};
  if (state.find(step.text("name")))
    return Failure{"duplicate-stage", "there is already a stage '" + step.text("name") + "'; choose another name"};
  if (Result<void> ok = check_unscheduled(with); !ok) return ok;
  if (Result<void> ok = check_no_attached(state, with); !ok) return ok;
  for (const StageState* s : {&stage, &with})
    if (s->window != Window::kNone || s->scope || s->cache_loop >= 0 || s->intrinsic_loop >= 0 ||
        s->align_elements > 0 || !s->separators.empty())
      return Failure{"already-scheduled", "stage " + s->name +
                                              " has a window, a scope, a cache, an intrinsic or rows of its own; use "
                                              "blockize before those steps"};
  for (const LoopRelation& r : stage.relations)
    if (r.kind == LoopRelation::Kind::kSplit && (r.tail == Tail::kPad || r.tail == Tail::kShiftInwards))
      return Failure{"already-scheduled", "loop " + stage.loops[r.whole].name + " of " + stage.name +
                                              " has a padded or shifted tail, which " + with.name +
                                              " need not allow; use tail=guard or tail=peel"};
  if (stage.attach != with.attach || stage.attach_stage != with.attach_stage || stage.attach_loop != with.attach_loop)
    return Failure{"attach-illegal", "stages " + stage.name + " and " + with.name +
                                         " are computed at different places; expected the same"};
  if (Result<void> ok = check_computations(stage, with); !ok) return ok;
  return check_dependences(state, stage, with);
}

Reducer merged_reducer(const Reducer& first, const Reducer& second) {
  Reducer both = first;
  both.name = first.name + "_" + second.name;
  // Variables of its own: both stages may come from one reducer.
  VarMap map;
  for (const auto& [from, to] : {std::pair{&second.lhs, &both.lhs}, {&second.rhs, &both.rhs}})
    for (const Var& var : *from) {
      to->emplace_back(var.name(), var.dtype());
      map[var.get()] = to->back();
    }
  for (const Expr& combined : second.combined) both.combined.push_back(substitute(combined, map));
  both.identity.insert(both.identity.end(), second.identity.begin(), second.identity.end());
  return both;
}

Stage merged_stage(const ScheduleState& state, const Stage& first, const Stage& second, const std::string& name) {
  return rebuild_stage(first, [&](StageNode& node) {
    const VarMap map = common_axes(*first, *second);
    node.name = name;
    node.outputs.insert(node.outputs.end(), second->outputs.begin(), second->outputs.end());
    for (const Expr& body : second->bodies)
      node.bodies.push_back(rewrite(substitute(body, map), [&](const Expr& e) -> Expr {
        const auto* read = e.as<Load>();
        for (size_t o = 0; read && o < first->outputs.size(); ++o)
          if (first->outputs[o].same_as(read->buffer)) return first->bodies[o];
        return e;
      }));
    if (first->reducer) {
      node.reducer = merged_reducer(*first->reducer, *second->reducer);
      if (!first->initial.empty() || !second->initial.empty()) {
        if (first->initial.empty()) node.initial = first->reducer->identity;
        for (size_t o = 0; o < second->outputs.size(); ++o)
          node.initial.push_back(second->initial.empty() ? second->reducer->identity[o]
                                                         : substitute(second->initial[o], map));
      }
    }
    node.producers = producers_of(state, read_buffers(node));
  });
}

void apply(ScheduleState& state, const Step& step) {
  const StageState first = *state.find(step.text("stage")), second = *state.find(step.text("with"));
  const int a = static_cast<int>(state.find(first.name) - state.stages.data());
  const int b = static_cast<int>(state.find(second.name) - state.stages.data());
  StageState both = first;
  both.name = step.text("name");
  both.stage = merged_stage(state, first.stage, second.stage, both.name);
  both.layouts.insert(both.layouts.end(), second.layouts.begin(), second.layouts.end());
  both.notes.insert(second.notes.begin(), second.notes.end());
  // Between the two stand stages that need the earlier one, which come behind, and others that the later one may need.
  const std::vector<bool> depends = dependents(state, std::min(a, b));
  std::vector<StageState> before, behind;
  for (int k = 0; k < static_cast<int>(state.stages.size()); ++k) {
    if (k == a || k == b) continue;
    const bool is_behind = k > std::max(a, b) || (k > std::min(a, b) && depends[k]);
    (is_behind ? behind : before).push_back(state.stages[k]);
  }
  before.push_back(both);
  before.insert(before.end(), behind.begin(), behind.end());
  state.stages = std::move(before);
  rename_places(state, first.name, both.name);
  for (StageState& s : state.stages)
    for (LoopVar& loop : s.loops)
      for (Prefetch& prefetch : loop.prefetches)
        if (prefetch.producer == first.name || prefetch.producer == second.name) prefetch.producer = both.name;
}

}  // namespace

const PrimitiveDef& blockize_primitive() {
  static const PrimitiveDef def{
      .name = "blockize",
      .doc =
          "Makes two stages with the same axes one unit with the results of both: one set of loops, the first\n"
          "stage's, computes them (the sum and the sum of squares of a row in one sweep; two products of one\n"
          "operand; a value and what follows from it element by element). Three are made from two and one more. A\n"
          "part of one stage needs no such step to be a unit: what is computed at a loop, read_at, write_at,\n"
          "decompose_reduction and tensorize take everything inside a loop as one.\n"
          "Rewrite: for i: P[i] = f(i); for i: Q[i] = g(i)  -->  for i: { P[i] = f(i); Q[i] = g(i) }",
      .halide = "compute_with",
      .tvm = "blockize (of several blocks)",
      .args = {{"stage", ArgKind::kStage, "the first stage, whose loops stay as they are"},
               {"with", ArgKind::kStage, "the second one, not scheduled yet"},
               {"name", ArgKind::kNewName, "name of the stage that computes both"}},
      .check = check,
      .apply = apply,
      .samples = {{"siblings", {"blockize stage=S with=T name=ST"}},
                  {"siblings",
                   {"split stage=S loop=r0 factor=4 outer=ro inner=ri", "parallel stage=S loop=i0",
                    "blockize stage=S with=T name=ST"}},
                  {"stencils",
                   {"split stage=C loop=i0 factor=5 outer=io inner=ii", "vectorize stage=C loop=i1",
                    "compute_at stage=P consumer=C at=io", "blockize stage=C with=Q name=CQ"}}}};
  return def;
}

}  // namespace tensmith
