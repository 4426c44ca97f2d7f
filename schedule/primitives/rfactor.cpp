#include <algorithm>

#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"
#include "tensor/simplify.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  if (state.find(step.text("name")))
    return Failure{"duplicate-stage", "there is already a stage '" + step.text("name") + "'; choose another name"};
  if (!stage.stage->reducer) return Failure{"rfactor-no-reduction", "stage " + stage.name + " is no reduction"};
  const int loop = stage.find_loop(step.text("loop"));
  if (!stage.loops[loop].is_reduce)
    return Failure{"rfactor-no-reduction", "loop " + step.text("loop") + " is no reduction loop"};
  if (stage.stage->reduce_axes.empty())
    return Failure{"rfactor-no-reduction", "stage " + stage.name + " has no reduce axis"};
  for (const LoopRelation& r : stage.relations) {
    if (!stage.loops[r.whole].is_reduce)
      return Failure{"rfactor-after-split", "loops over output elements of " + stage.name +
                                                " are already split or fused; use rfactor before those steps"};
    if (r.kind == LoopRelation::Kind::kFuse)
      return Failure{"rfactor-of-fused", "reduction loops of " + stage.name + " are fused; split without fusing"};
    if (r.tail == Tail::kShiftInwards)
      return Failure{"rfactor-of-shifted", "a reduction loop of " + stage.name + " is split with tail=shift"};
  }
  for (const LoopVar& l : stage.loops)
    if (l.kind != ForKind::kSerial || !l.cuts.empty())
      return Failure{"rfactor-after-mark", "loop " + l.name + " is already marked; use rfactor before that step"};
  return check_no_attached(state, stage);
}

/// The value of a reduce loop as an expression of the loops it was split into, and the conditions for being inside its
/// extent.
struct ReduceAxes {
  const StageState& stage;
  std::vector<Expr> extents, values;  // by loop
  Expr where;

  void build() {
    extents.resize(stage.loops.size());
    values.resize(stage.loops.size());
    for (size_t k = 0; k < stage.reduce_loops.size(); ++k)
      extents[stage.reduce_loops[k]] = stage.stage->reduce_axes[k].extent;
    for (const LoopRelation& r : stage.relations) {
      extents[r.outer] = simplify(ceil_div(extents[r.whole], Expr(r.factor)));
      extents[r.inner] = Expr(r.factor);
    }
  }
  void resolve() {
    for (auto r = stage.relations.rbegin(); r != stage.relations.rend(); ++r) {
      values[r->whole] = values[r->outer] * Expr(r->factor) + values[r->inner];
      if (can_prove(floor_mod(extents[r->whole], Expr(r->factor)) == 0)) continue;
      const Expr inside = values[r->whole] < extents[r->whole];
      where = where ? (where && inside) : inside;
    }
  }
};

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  const int position = static_cast<int>(&stage - state.stages.data());
  const int factored = stage.find_loop(step.text("loop"));
  const Stage original = stage.stage;
  ReduceAxes axes{stage, {}, {}, {}};
  axes.build();

  // Partial results: one more axis, the factored loop; the other reduce loops stay reductions, now as axes of their
  // own.
  std::vector<Axis> partial_axes, reduce_axes;
  VarMap rename;
  for (const Axis& axis : original->axes) {
    partial_axes.push_back({Var(axis.var.name()), axis.extent});
    rename[axis.var.operator->()] = partial_axes.back().var;
  }
  const Axis lane{Var(stage.loops[factored].name), axes.extents[factored]};
  partial_axes.push_back(lane);
  for (int loop : stage.order) {
    if (!stage.loops[loop].is_reduce) continue;
    if (loop == factored) {
      axes.values[loop] = lane.var;
    } else {
      reduce_axes.push_back({Var(stage.loops[loop].name), axes.extents[loop]});
      axes.values[loop] = reduce_axes.back().var;
    }
  }
  axes.resolve();
  for (size_t k = 0; k < stage.reduce_loops.size(); ++k)
    rename[original->reduce_axes[k].var.operator->()] = axes.values[stage.reduce_loops[k]];

  const Stage partial = rebuild_stage(original, [&](StageNode& node) {
    node.name = step.text("name");
    node.axes = partial_axes;
    node.reduce_axes = reduce_axes;
    node.initial.clear();
    node.outputs.clear();
    for (const Buffer& output : original->outputs) {
      std::vector<Expr> shape = output->shape;
      shape.push_back(lane.extent);
      node.outputs.push_back(make_buffer(step.text("name"), output->dtype, shape));
    }
    for (Expr& body : node.bodies) body = substitute(body, rename);
    if (node.where) node.where = substitute(node.where, rename);
    if (axes.where) node.where = node.where ? (node.where && axes.where) : axes.where;
  });
  const Stage rest = rebuild_stage(original, [&](StageNode& node) {
    Var r(stage.loops[factored].name);
    node.reduce_axes = {{r, lane.extent}};
    node.where = {};
    node.producers = original->producers;
    node.producers.push_back(partial);
    std::vector<Expr> indices;
    for (const Axis& axis : node.axes) indices.push_back(axis.var);
    indices.push_back(r);
    node.bodies.clear();
    for (const Buffer& output : partial->outputs) node.bodies.push_back(load(output, indices));
  });
  StageState final_stage = fresh_stage(rest, stage.name);
  final_stage.attach = stage.attach;
  final_stage.attach_stage = stage.attach_stage;
  final_stage.attach_loop = stage.attach_loop;
  final_stage.scope = stage.scope;
  final_stage.layouts = stage.layouts;
  StageState partial_stage = fresh_stage(partial, step.text("name"));
  // The natural order: the factored loop innermost, so that it can be vectorized.
  const int lane_loop = partial_stage.axis_loops.back();
  partial_stage.order.erase(std::find(partial_stage.order.begin(), partial_stage.order.end(), lane_loop));
  partial_stage.order.push_back(lane_loop);
  if (stage.attach == AttachKind::kAt) {
    partial_stage.attach = AttachKind::kAt;
    partial_stage.attach_stage = stage.attach_stage;
    partial_stage.attach_loop = stage.attach_loop;
  }
  state.stages[position] = final_stage;
  state.stages.insert(state.stages.begin() + position, partial_stage);
}

}  // namespace

const PrimitiveDef& rfactor_primitive() {
  static const PrimitiveDef def{
      .name = "rfactor",
      .doc =
          "Splits a reduction in two: partial results for each iteration of one of its loops, then a reduction of\n"
          "those. The partial results can be computed in vector lanes or on other threads. Split the reduce axis\n"
          "before.\n"
          "Rewrite: for ko: for ki: S += f(ko, ki)  -->  for ko: for ki: P[ki] += f(ko, ki); for ki: S += P[ki]",
      .halide = "rfactor",
      .tvm = "rfactor",
      .args = {{"stage", ArgKind::kStage, "the reduction"},
               {"loop", ArgKind::kLoop, "the reduce loop that becomes an axis of the partial results"},
               {"name", ArgKind::kNewName, "name of the stage of partial results"}},
      .check = check,
      .apply = apply,
      .samples = {{"dense", {"split stage=C loop=r0 factor=8 outer=ko inner=ki", "rfactor stage=C loop=ki name=P"}}}};
  return def;
}

}  // namespace tensmith
