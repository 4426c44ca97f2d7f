#include <algorithm>

#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  const std::vector<int64_t>& points = step.numbers("points");
  if (points.size() > 8)
    return Failure{"bad-points", "points: expected at most 8, got " + std::to_string(points.size())};
  for (size_t k = 0; k < points.size(); ++k) {
    if (points[k] == 0)
      return Failure{"bad-points",
                     "points: expected iterations from 1 on, or negative ones from the end, got 0, where nothing lies "
                     "before"};
    if (k > 0 && (points[k] > 0) != (points[k - 1] > 0) ? points[k] > 0 : k > 0 && points[k] <= points[k - 1])
      return Failure{"bad-points", "points: expected rising numbers, those from the end (negative) last, got " +
                                       std::to_string(points[k]) + " behind " + std::to_string(points[k - 1])};
  }
  const LoopVar& loop = stage.loops[stage.find_loop(step.text("loop"))];
  if (!loop.cuts.empty())
    return Failure{"loop-already-marked", "loop " + loop.name + " is already cut; name all points in one step"};
  return {};
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  LoopVar& loop = stage.loops[stage.find_loop(step.text("loop"))];
  loop.cuts = step.numbers("points");
  if (loop.cuts.empty()) loop.attrs["partition"] = 1;
}

}  // namespace

const PrimitiveDef& loop_partition_primitive() {
  static const PrimitiveDef def{
      .name = "loop_partition",
      .doc =
          "Cuts the iterations of a loop into pieces with bodies of their own: before each of the points (negative:\n"
          "counted from the end), so that what only concerns the edges leaves the middle; without points, where a\n"
          "condition on the loop changes, also where lowering would not do so by itself (parallel loops, large\n"
          "bodies).\n"
          "Rewrite: for i in N: f(i)  --points 1,-1-->  f(0); for i in [1, N - 1): f(i); f(N - 1)",
      .halide = "partition (and specialize)",
      .tvm = "loop_partition",
      .args = {{"stage", ArgKind::kStage, "the stage"},
               {"loop", ArgKind::kLoop, "the loop"},
               {"points", ArgKind::kInts, "iterations before which it is cut, rising, negative ones last"}},
      .check = check,
      .apply = apply,
      .samples = {{"conv", {"loop_partition stage=Y loop=i2 points=1,-1"}},
                  {"conv", {"parallel stage=Y loop=i2", "loop_partition stage=Y loop=i2 points="}},
                  {"dense",
                   {"split stage=C loop=i0 factor=3 outer=io inner=ii", "loop_partition stage=C loop=io points=1"}},
                  {"dense_m", {"loop_partition stage=C loop=i0 points=2,-3"}}},
      .keeps_places = true};
  return def;
}

}  // namespace tensmith
