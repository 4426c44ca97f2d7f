#include "schedule/primitives/helpers.h"
#include "schedule/primitives/loop_marks.h"
#include "schedule/primitives/primitive_list.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  const std::string& loop = step.text("loop");
  if (Result<void> ok = check_not_attach_point(state, stage, loop); !ok) return ok;
  for (const char* name : {"outer", "inner"})
    if (step.text(name) != loop)
      if (Result<void> ok = check_new_loop(stage, step.text(name)); !ok) return ok;
  if (step.text("outer") == step.text("inner"))
    return Failure{"duplicate-loop", "outer and inner loop need different names"};
  const int64_t factor = step.number("factor");
  if (factor < 1 || factor > (int64_t{1} << 30))
    return Failure{"bad-factor", "factor: expected 1 to 2^30, got " + std::to_string(factor)};
  const LoopVar& l = stage.loops[stage.find_loop(loop)];
  if (l.kind != ForKind::kSerial)
    return Failure{"split-of-marked-loop",
                   "loop " + loop + " is already parallel, vectorized or unrolled; split it before that step"};
  if (!l.cuts.empty())
    return Failure{"split-of-marked-loop", "loop " + loop + " is cut into pieces; split it before loop_partition"};
  const Result<Tail> tail = parse_tail(step.text("tail"));
  if (!tail) return tail.failure();
  if (*tail == Tail::kShiftInwards) {
    if (l.is_reduce && !is_repeatable(stage))
      return Failure{
          "shift-of-reduction",
          "loop " + loop + " is a reduction: shifting would add elements twice; use tail=guard or tail=peel"};
    if (!l.is_reduce) return check_shift_order(stage, stage.order, stage.init_loop, stage.find_loop(loop));
  }
  if (*tail == Tail::kPad) {
    if (stage.window != Window::kNone)
      return Failure{"window-illegal", "stage " + stage.name +
                                           " keeps its storage between iterations, where a padded tail would "
                                           "overwrite what is needed; use tail=guard or tail=peel"};
    if (state.is_output(static_cast<int>(&stage - state.stages.data())))
      return Failure{"pad-of-output",
                     "stage " + stage.name +
                         " is an output of the workload, whose memory has no room for a padded tail; use cache_write, "
                         "or tail=peel"};
    if (stage.maker_of(stage.find_loop(loop)))
      return Failure{
          "pad-of-split-loop",
          "loop " + loop +
              " comes from a split or fuse, so its padding would lie between elements; use tail=guard or tail=peel"};
    bool loads = false;
    if (stage.stage->where.get())
      visit(stage.stage->where, [&](const Expr& e) {
        loads |= e.kind() == NodeKind::kLoad;
        return true;
      });
    if (loads)
      return Failure{"pad-of-where", "the condition of stage " + stage.name +
                                         " reads memory, which a padded tail would leave; use tail=guard or tail=peel"};
  }
  return {};
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  const int whole = stage.find_loop(step.text("loop"));
  const int outer = static_cast<int>(stage.loops.size()), inner = outer + 1;
  const bool is_reduce = stage.loops[whole].is_reduce;
  const int position = stage.order_position(whole);
  // The loop that disappears gives its name free, so that `split i -> i, ii` reads naturally.
  if (step.text("outer") == stage.loops[whole].name || step.text("inner") == stage.loops[whole].name)
    stage.loops[whole].name += "'";
  stage.loops.push_back({step.text("outer"), is_reduce});
  stage.loops.push_back({step.text("inner"), is_reduce});
  stage.relations.push_back(
      {LoopRelation::Kind::kSplit, whole, outer, inner, step.number("factor"), *parse_tail(step.text("tail"))});
  split_marks(stage, whole, outer, inner, step.number("factor"));
  move_prefetches(stage, whole, inner);
  stage.order[position] = outer;
  stage.order.insert(stage.order.begin() + position + 1, inner);
}

}  // namespace

const PrimitiveDef& split_primitive() {
  static const PrimitiveDef def{.name = "split",
                                .doc =
                                    "Turns a loop into two: the inner one has `factor` iterations. Of marks (pragma,\n"
                                    "annotate) min_chunk and piece go to the outer loop, divided by the factor and\n"
                                    "rounded up, unroll to the inner one, all others to both.\n"
                                    "Rewrite: for i in N\n"
                                    "    -->  for outer in ceil(N / factor): for inner in factor: i = outer *\n"
                                    "    factor + inner, with the last piece under a condition (guard), with a\n"
                                    "    body of its own (peel), starting earlier (shift) or computing unread\n"
                                    "    elements (pad).",
                                .halide = "split",
                                .tvm = "split",
                                .args = {{"stage", ArgKind::kStage, "the stage"},
                                         {"loop", ArgKind::kLoop, "the loop to split"},
                                         {"factor", ArgKind::kInt, "iterations of the inner loop"},
                                         {"outer", ArgKind::kNewName, "name of the outer loop"},
                                         {"inner", ArgKind::kNewName, "name of the inner loop"},
                                         {"tail",
                                          ArgKind::kText,
                                          "what happens where the factor does not divide",
                                          "peel",
                                          {"guard", "peel", "shift", "pad"}}},
                                .check = check,
                                .apply = apply,
                                .samples = {{"dense", {"split stage=C loop=i0 factor=6 outer=io inner=ii tail=peel"}},
                                            {"dense", {"split stage=C loop=i1 factor=7 outer=jo inner=ji tail=guard"}},
                                            {"dense", {"split stage=C loop=r0 factor=5 outer=ko inner=ki tail=peel"}}},
                                .keeps_places = true};
  return def;
}

}  // namespace tensmith
