#include "schedule/primitives/helpers.h"
#include "schedule/primitives/loop_marks.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  const std::vector<std::string>& names = step.texts("loops");
  if (names.size() < 2)
    return Failure{"fuse-too-few", "expected at least two loops, got " + std::to_string(names.size())};
  if (Result<void> ok = check_new_loop(stage, step.text("fused")); !ok) return ok;
  const int first = stage.order_position(stage.find_loop(names[0]));
  for (size_t k = 0; k < names.size(); ++k) {
    const int loop = stage.find_loop(names[k]);
    if (Result<void> ok = check_not_attach_point(state, stage, names[k]); !ok) return ok;
    if (stage.order_position(loop) != first + static_cast<int>(k))
      return Failure{"fuse-not-adjacent",
                     "loop " + names[k] + " does not follow " + names[k ? k - 1 : 0] + " directly; use reorder first"};
    if (stage.loops[loop].is_reduce != stage.loops[stage.find_loop(names[0])].is_reduce)
      return Failure{"fuse-mixed", "loops " + names[0] + " and " + names[k] + ": one is a reduction, the other is not"};
    if (stage.loops[loop].kind != ForKind::kSerial || !stage.loops[loop].cuts.empty())
      return Failure{"fuse-of-marked-loop",
                     "loop " + names[k] + " is already parallel, vectorized, unrolled or cut; fuse before that step"};
    if (!stage.loops[loop].prefetches.empty())
      return Failure{"fuse-of-marked-loop", "loop " + names[k] + " asks for data ahead; fuse before prefetch"};
  }
  return {};
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  const std::vector<std::string>& names = step.texts("loops");
  int left = stage.find_loop(names[0]);
  for (size_t k = 1; k < names.size(); ++k) {
    const int right = stage.find_loop(names[k]);
    const int fused = static_cast<int>(stage.loops.size());
    const bool last = k + 1 == names.size();
    stage.loops.push_back(
        {last ? step.text("fused") : step.text("fused") + "." + std::to_string(k), stage.loops[left].is_reduce});
    stage.relations.push_back({LoopRelation::Kind::kFuse, fused, left, right});
    fuse_marks(stage, left, right, fused);
    const int position = stage.order_position(left);
    stage.order[position] = fused;
    stage.order.erase(stage.order.begin() + position + 1);
    left = fused;
  }
}

}  // namespace

const PrimitiveDef& fuse_primitive() {
  static const PrimitiveDef def{
      .name = "fuse",
      .doc =
          "Turns adjacent loops into one. Of marks (pragma, annotate) min_chunk and piece come from the outer loop,\n"
          "times the constant extent of the inner one, unroll from the inner loop, all others from the outer one; a\n"
          "mark that only one of them has comes from that one.\n"
          "Rewrite: for i in N: for j in M  -->  for fused in N * M: i = fused / M, j = fused % M",
      .halide = "fuse",
      .tvm = "fuse",
      .args = {{"stage", ArgKind::kStage, "the stage"},
               {"loops", ArgKind::kLoops, "adjacent loops, outermost first"},
               {"fused", ArgKind::kNewName, "name of the result"}},
      .check = check,
      .apply = apply,
      .samples = {{"dense", {"fuse stage=C loops=i0,i1 fused=ij"}}},
      .keeps_places = true};
  return def;
}

}  // namespace tensmith
