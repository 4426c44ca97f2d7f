// Storage that lives on between the iterations of a loop: rings and slots.
#include <gtest/gtest.h>

#include <array>

#include "tests/unit/schedule/check_schedule.h"

namespace tensmith {
namespace {

Expr f32(double value) { return make_const(kFloat32, value); }

/// P, then sums of three rows of it, twice; symbolic rows when `n` is set.
SizedWorkload rows_workload(int64_t rows, int64_t columns, bool symbolic = false, int64_t step = 1) {
  const Var n("N");
  const Expr size = symbolic ? Expr(n) : Expr(rows);
  const Tensor x = placeholder("X", {size * step + 4, columns}, kFloat32);
  const Tensor p =
      compute("P", {size * step + 4, columns}, [&](const Indices& i) { return x(i[0], i[1]) * f32(2) + f32(1); });
  const Tensor q = compute("Q", {size * step + 2, columns}, [&](const Indices& i) {
    return p(i[0], i[1]) + p(i[0] + 1, i[1]) * f32(0.5) + p(i[0] + 2, i[1]);
  });
  const Tensor c = compute("C", {size, columns}, [&](const Indices& i) {
    return q(i[0] * step, i[1]) - q(i[0] * step + 1, i[1]) * f32(0.5) + q(i[0] * step + 2, i[1]);
  });
  return {make_workload("rows", {x}, {c}), symbolic ? std::vector<int64_t>{rows} : std::vector<int64_t>{}};
}

// The window moves along a part of a loop whose last piece is shorter: neither the ring's length nor what is still
// fresh may follow from that piece alone.
TEST(RollingBufferTest, WindowsReachIntoShorterPieces) {
  for (const int64_t rows : {31, 32, 33, 37})
    expect_correct(rows_workload(rows, 3), {"split stage=C loop=i0 factor=5 outer=o inner=i tail=peel",
                                            "split stage=C loop=o factor=8 outer=oo inner=oi tail=peel",
                                            "compute_at stage=Q consumer=C at=oi", "rolling_buffer stage=Q"});
}

TEST(RollingBufferTest, RowsAreComputedOnce) {
  const std::vector<std::string> steps = {"compute_at stage=Q consumer=C at=i0", "compute_at stage=P consumer=C at=i0",
                                          "rolling_buffer stage=Q", "rolling_buffer stage=P"};
  for (const int64_t rows : {1, 2, 3, 7, 16, 17}) {
    SCOPED_TRACE(rows);
    for (const int64_t step : {1, 2, 3}) {
      expect_correct(rows_workload(rows, 5, false, step), steps);
      expect_correct(rows_workload(rows, 5, true, step), steps);
    }
  }
  const std::string loops = lowered_text(make_schedule(rows_workload(17, 5).workload, steps), "loop_nests");
  EXPECT_NE(loops.find("alloc Q: f32[4, 5] stack"), std::string::npos) << loops;
  EXPECT_NE(loops.find("alloc P: f32[8, 5] stack"), std::string::npos) << loops;
}

TEST(RollingBufferTest, FollowsTilesAndTails) {
  for (const char* tail : {"peel", "guard"})
    for (const int64_t rows : {1, 4, 11, 12}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, tail " << tail);
      const std::string split = std::string("split stage=C loop=i0 factor=4 outer=o inner=i tail=") + tail;
      for (const char* at : {"o", "i"})
        for (const bool symbolic : {false, true})
          expect_correct(rows_workload(rows, 6, symbolic),
                         {split, std::string("compute_at stage=Q consumer=C at=") + at,
                          std::string("compute_at stage=P consumer=C at=") + at, "rolling_buffer stage=Q",
                          "rolling_buffer stage=P", "vectorize stage=Q loop=i1"});
    }
}

TEST(RollingBufferTest, OneOfTwo) {
  for (const char* which : {"P", "Q"})
    expect_correct(rows_workload(9, 5), {"compute_at stage=Q consumer=C at=i0", "compute_at stage=P consumer=C at=i0",
                                         std::string("rolling_buffer stage=") + which});
  expect_correct(rows_workload(9, 5), {"compute_at stage=Q consumer=C at=i0", "compute_at stage=P consumer=Q at=i0",
                                       "rolling_buffer stage=Q", "rolling_buffer stage=P"});
}

TEST(RollingBufferTest, ConvolutionWithPadding) {
  // The rows of a depthwise convolution's input, computed by the expanding one as they are needed.
  const std::vector<std::string> steps = {"reorder stage=O loops=i1,i0",         "compute_at stage=D6 consumer=O at=i1",
                                          "compute_at stage=D consumer=O at=i1", "compute_at stage=E6 consumer=O at=i1",
                                          "compute_at stage=E consumer=O at=i1", "rolling_buffer stage=E6"};
  for (const auto& [h, w] : {std::array<int64_t, 2>{7, 9}, {1, 4}, {2, 3}, {9, 5}}) {
    SCOPED_TRACE(testing::Message() << h << " x " << w);
    expect_correct({expand_depthwise_project_workload(3, 6, 5, h, w), {}}, steps);
  }
}

TEST(RollingBufferTest, RefusesWindowsThatDoNotMoveOn) {
  const Tensor x = placeholder("X", {9}, kFloat32);
  const Tensor p = compute("P", {9}, [&](const Indices& i) { return x(i[0]) + f32(1); });
  const Tensor back = compute("C", {8}, [&](const Indices& i) { return p(Expr(8) - i[0]) + p(Expr(7) - i[0]); });
  const Schedule schedule = make_schedule(make_workload("back", {x}, {back}),
                                          {"compute_at stage=P consumer=C at=i0", "rolling_buffer stage=P"});
  try {
    lower(schedule);
    FAIL();
  } catch (const ScheduleError& error) {
    EXPECT_EQ(error.id(), "window-illegal") << error.what();
  }
}

TEST(PipelineTest, RunsAhead) {
  for (const int64_t slots : {2, 3, 5})
    for (const char* tail : {"peel", "guard"})
      for (const int64_t rows : {1, 2, 4, 11}) {
        SCOPED_TRACE(testing::Message() << slots << " slots, " << rows << " rows, tail " << tail);
        const std::string window = "pipeline stage=Q slots=" + std::to_string(slots);
        expect_correct(rows_workload(rows, 5), {"compute_at stage=Q consumer=C at=i0", window});
        expect_correct(rows_workload(rows, 5, true), {"compute_at stage=Q consumer=C at=i0", window,
                                                      "compute_at stage=P consumer=Q at=i0", "rolling_buffer stage=P"});
        expect_correct(rows_workload(rows, 5),
                       {std::string("split stage=C loop=i0 factor=3 outer=o inner=i tail=") + tail,
                        "compute_at stage=Q consumer=C at=o", window});
      }
}

TEST(PipelineTest, FollowsReversedReads) {
  const Tensor x = placeholder("X", {11}, kFloat32);
  const Tensor p = compute("P", {11}, [&](const Indices& i) { return x(i[0]) + f32(1); });
  const Tensor c = compute("C", {11}, [&](const Indices& i) { return p(Expr(10) - i[0]); });
  expect_correct({make_workload("reversed", {x}, {c}), {}},
                 {"split stage=C loop=i0 factor=4 outer=o inner=i", "compute_at stage=P consumer=C at=o",
                  "double_buffer stage=P"});
}

TEST(PipelineTest, ParallelLoopsOutside) {
  expect_correct({dense_workload(7, 19, 23), {}},
                 {"parallel stage=C loop=i0", "split stage=C loop=r0 factor=4 outer=ko inner=ki",
                  "reorder stage=C loops=i0,ko,i1,ki", "cache_read stage=B consumer=C name=Bc",
                  "compute_at stage=Bc consumer=C at=ko", "double_buffer stage=Bc"});
}

// Where the index of what is read is computed by a stage, which part of it an iteration needs is not known before.
TEST(PipelineTest, WhatIsReadAtComputedIndicesIsCopiedWhole) {
  const Tensor x = placeholder("X", {33}, kFloat32);
  const Tensor y =
      compute("Y", {36}, [&](const Indices& i) { return select(i[0] >= 1 && i[0] < 34, x(i[0] - 1), f32(0)); });
  const SizedWorkload padded{make_workload("padded", {x}, {y}), {}};
  for (const int slots : {2, 7})
    expect_correct(padded,
                   {"read_at stage=Y loop=i0 producer=X name=Xc", "cache_index stage=Y producer=Xc dim=0 name=I",
                    "pipeline stage=Xc slots=" + std::to_string(slots)});
}

// Q runs ahead and computes R, which reads P: P of the iteration at hand is not what it needs.
TEST(PipelineTest, RefusesToRunAheadOfWhatStagesInsideRead) {
  const Tensor x = placeholder("X", {33}, kFloat32);
  const Tensor p = compute("P", {33}, [&](const Indices& i) { return x(i[0]) * f32(0.5); });
  const Tensor r = compute("R", {33}, [&](const Indices& i) { return p(Expr(32) - i[0]); });
  const Tensor q = compute("Q", {33}, [&](const Indices& i) { return r(i[0]) + f32(1); });
  const Tensor c = compute("C", {33}, [&](const Indices& i) { return q(i[0]) - p(i[0]); });
  Schedule schedule(make_workload("ahead", {x}, {c}));
  for (const char* step :
       {"compute_at stage=Q consumer=C at=i0", "double_buffer stage=Q", "compute_at stage=R consumer=Q at=i0"})
    schedule.apply(parse_step(step).value());
  const Result<void> refused = schedule.try_apply(parse_step("compute_at stage=P consumer=C at=i0").value());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.failure().id, "window-illegal");
  EXPECT_NE(refused.failure().message.find("runs ahead of stage P"), std::string::npos) << refused.failure().message;
}

}  // namespace
}  // namespace tensmith
