// Where numbers noted on loops go when the loops are split, tiled and fused.
#include <gtest/gtest.h>

#include "tests/unit/schedule/check_schedule.h"

namespace tensmith {
namespace {

Attrs marks_of(const Schedule& schedule, const std::string& loop) {
  const StageState& stage = *schedule.state().find("C");
  return stage.loops[stage.find_loop(loop)].attrs;
}

// Loops of C in `dense`: i0 of 7, i1 of 23 (read from the workload where it matters), r0.
const std::vector<std::string> kMarks = {"pragma stage=C loop=i0 key=unroll value=3",
                                         "pragma stage=C loop=i0 key=min_chunk value=10",
                                         "annotate stage=C loop=i0 key=note.a value=7"};

std::vector<std::string> with(std::vector<std::string> steps, const std::vector<std::string>& more) {
  steps.insert(steps.end(), more.begin(), more.end());
  return steps;
}

TEST(Marks, SplitHandsThemOn) {
  const SizedWorkload dense = sample_workload("dense");
  const std::vector<std::string> steps = with(kMarks, {"split stage=C loop=i0 factor=4 outer=io inner=ii"});
  const Schedule schedule = make_schedule(dense.workload, steps);
  EXPECT_EQ(marks_of(schedule, "io"), (Attrs{{"min_chunk", 3}, {"note.a", 7}}));
  EXPECT_EQ(marks_of(schedule, "ii"), (Attrs{{"unroll", 3}, {"note.a", 7}}));
  EXPECT_NE(loop_nest_text(schedule.state()).find("for io @(min_chunk = 3, note.a = 7)"), std::string::npos);
  expect_correct(dense, with(steps, {"parallel stage=C loop=io"}));
}

TEST(Marks, SplitRoundsIterationsUp) {
  const SizedWorkload dense = sample_workload("dense");
  for (const auto& [factor, piece] : {std::pair{1, 6}, {2, 3}, {4, 2}, {6, 1}, {100, 1}}) {
    const Schedule schedule = make_schedule(
        dense.workload, {"pragma stage=C loop=r0 key=piece value=6",
                         "split stage=C loop=r0 factor=" + std::to_string(factor) + " outer=ro inner=ri"});
    EXPECT_EQ(marks_of(schedule, "ro"), (Attrs{{"piece", piece}})) << factor;
    EXPECT_EQ(marks_of(schedule, "ri"), Attrs{}) << factor;
  }
}

TEST(Marks, SplitBackAndForthKeepsThem) {
  const SizedWorkload dense = sample_workload("dense");
  const std::vector<std::string> steps =
      with(kMarks, {"split stage=C loop=i0 factor=2 outer=io inner=ii", "fuse stage=C loops=io,ii fused=i"});
  EXPECT_EQ(marks_of(make_schedule(dense.workload, steps), "i"),
            (Attrs{{"min_chunk", 10}, {"note.a", 7}, {"unroll", 3}}));
  expect_correct(dense, with(steps, {"parallel stage=C loop=i"}));
}

TEST(Marks, FuseJoinsThem) {
  const SizedWorkload dense = sample_workload("dense");
  const Workload& workload = dense.workload;
  int64_t columns = 0;
  ASSERT_TRUE(as_const_int(Schedule(workload).state().find("C")->stage->axes[1].extent, &columns));
  const std::vector<std::string> steps =
      with(kMarks, {"pragma stage=C loop=i1 key=unroll value=2", "annotate stage=C loop=i1 key=note.a value=8",
                    "annotate stage=C loop=i1 key=note.b value=9", "fuse stage=C loops=i0,i1 fused=ij"});
  EXPECT_EQ(marks_of(make_schedule(workload, steps), "ij"),
            (Attrs{{"min_chunk", 10 * columns}, {"note.a", 7}, {"note.b", 9}, {"unroll", 2}}));
  expect_correct(dense, with(steps, {"parallel stage=C loop=ij"}));
}

TEST(Marks, FuseOfThreeLoopsAndOfASymbolicOne) {
  const SizedWorkload conv = sample_workload("conv");
  Schedule three = make_schedule(
      conv.workload, {"pragma stage=Y loop=i0 key=min_chunk value=2", "fuse stage=Y loops=i0,i1,i2 fused=f"});
  const StageState& y = *three.state().find("Y");
  int64_t middle = 0, inner = 0;
  ASSERT_TRUE(as_const_int(y.stage->axes[1].extent, &middle) && as_const_int(y.stage->axes[2].extent, &inner));
  EXPECT_EQ(y.loops[y.find_loop("f")].attrs, (Attrs{{"min_chunk", 2 * middle * inner}}));

  const SizedWorkload symbolic = sample_workload("dense_m");
  const Schedule open = make_schedule(symbolic.workload,
                                      {"reorder stage=C loops=i1,i0,r0", "pragma stage=C loop=i1 key=min_chunk value=5",
                                       "fuse stage=C loops=i1,i0 fused=f"});
  EXPECT_EQ(marks_of(open, "f"), (Attrs{{"min_chunk", 5}})) << "an extent that is not known counts as 1";
}

TEST(Marks, TileHandsThemOn) {
  const SizedWorkload dense = sample_workload("dense");
  const std::vector<std::string> steps = {"split stage=R loop=i0 factor=6 outer=io inner=ii",
                                          "split stage=R loop=i1 factor=16 outer=jo inner=ji",
                                          "reorder stage=R loops=jo,io,ii,ji",
                                          "compute_at stage=C consumer=R at=io",
                                          "annotate stage=C loop=i1 key=note.a value=1",
                                          "tile stage=C rows=i0 columns=i1 lanes=8"};
  const Schedule schedule = make_schedule(dense.workload, steps);
  EXPECT_EQ(marks_of(schedule, "i1.v"), (Attrs{{"note.a", 1}}));
  EXPECT_EQ(marks_of(schedule, "i1.l"), (Attrs{{"note.a", 1}}));
}

}  // namespace
}  // namespace tensmith
