// Where stages are computed: legality after every step that moves one, and regions of which nothing is left.
#include <gtest/gtest.h>

#include "tensor/print.h"
#include "tensor/simplify.h"
#include "tests/unit/schedule/check_schedule.h"

namespace tensmith {
namespace {

Expr f32(double value) { return make_const(kFloat32, value); }

std::string refusal(const Workload& workload, const std::vector<std::string>& before, const std::string& step) {
  Schedule schedule = make_schedule(workload, before);
  const Result<void> ok = schedule.try_apply(parse_step(step).value());
  return ok ? "legal" : ok.failure().id;
}

/// P and R are outputs; Q reads P, and R sums every other row of Q.
Workload conditional_workload() {
  const Tensor x = placeholder("X", {4, 5, 9}, kFloat32);
  const Tensor p = compute("P", x.shape(), [&](const Indices& i) { return x(i[0], i[1], i[2]) + f32(1); });
  const Tensor q = compute("Q", x.shape(), [&](const Indices& i) { return p(i[0], i[1], i[2]) * f32(2); });
  const Tensor r = reduce(
      "R", {4, 9}, {5}, sum_reducer(kFloat32), [&](const Indices& i, const Indices& r) { return q(i[0], r[0], i[1]); },
      [&](const Indices& i, const Indices& r) { return floor_mod(r[0] + i[0], Expr(2)) == 0; });
  return make_workload("conditional", {x}, {r, p});
}

// An output that is computed at a consumer must not get under a condition, whichever of the two moves.
TEST(PlacesTest, OutputsStayWhole) {
  const Workload w = conditional_workload();
  EXPECT_EQ(refusal(w, {}, "compute_at stage=P consumer=Q at=i2"), "legal");
  EXPECT_EQ(refusal(w, {"compute_at stage=P consumer=Q at=i2"}, "compute_at stage=Q consumer=R at=r0"),
            "compute-at-output");
  EXPECT_EQ(refusal(w, {"compute_at stage=P consumer=Q at=i2"}, "compute_at stage=Q consumer=R at=i0"),
            "compute-at-output");
  EXPECT_EQ(refusal(w, {"compute_at stage=Q consumer=R at=r0"}, "compute_at stage=P consumer=Q at=i2"),
            "compute-at-output");
  EXPECT_EQ(refusal(w, {"compute_at stage=P consumer=Q at=i2"}, "compute_inline stage=Q"), "attach-point");
  expect_correct({w, {}}, {"compute_at stage=P consumer=Q at=i2", "reorder stage=Q loops=i1,i0,i2"});
  expect_correct({w, {}}, {"compute_at stage=P consumer=Q at=i1", "cache_read stage=P consumer=Q name=Pc"});
}

TEST(PlacesTest, OutputsStayWholeUnderTheConditionOfTheirReader) {
  const Tensor x = placeholder("X", {6, 8}, kFloat32);
  const Tensor p = compute("P", {6}, [&](const Indices& i) { return x(i[0], 0) + f32(1); });
  const Tensor r = reduce(
      "R", {6}, {8}, sum_reducer(kFloat32), [&](const Indices& i, const Indices& r) { return x(i[0], r[0]) * p(i[0]); },
      [&](const Indices& i, const Indices& r) { return r[0] < i[0]; });
  const Workload w = make_workload("own_condition", {x}, {r, p});
  EXPECT_EQ(refusal(w, {}, "compute_at stage=P consumer=R at=r0"), "compute-at-output");
  expect_correct({w, {}}, {"compute_at stage=P consumer=R at=i0"});
  // The start values, and with them all conditions, move outwards.
  EXPECT_EQ(refusal(w, {"compute_at stage=P consumer=R at=i0"}, "decompose_reduction stage=R loop=i0"),
            "compute-at-output");
}

TEST(PlacesTest, ReadersStayInside) {
  EXPECT_EQ(
      refusal(softmax_workload(5, 13), {"compute_at stage=s consumer=Y at=i0", "compute_at stage=e consumer=Y at=i0"},
              "compute_root stage=s"),
      "attach-illegal");
  EXPECT_EQ(refusal(softmax_workload(5, 13), {"compute_at stage=s consumer=Y at=i0", "compute_inline stage=e"},
                    "compute_at stage=m consumer=s at=i0"),
            "attach-illegal");
}

/// What reads T at the iterations that a padded or guarded tail adds must compute nothing.
Workload chain_workload() {
  const Tensor x = placeholder("X", {3, 127}, kFloat32);
  const Tensor c = compute("C", {3, 127}, [&](const Indices& i) { return x(i[0], i[1]) * f32(0.5); });
  const Tensor s =
      compute("S", {2, 127}, [&](const Indices& i) { return c(i[0], i[1]) + c(i[0] + 1, i[1]) * f32(0.5); });
  const Tensor two = compute("T", {2, 127}, [&](const Indices& i) { return s(i[0], i[1]) + f32(1); });
  const Tensor t = compute("U", {127, 2}, [&](const Indices& i) { return two(i[1], i[0]); });
  const Tensor r = sum("R", {127}, {2}, [&](const Indices& i, const Indices& r) { return t(i[0], r[0]); });
  return make_workload("chain", {x}, {r});
}

TEST(PlacesTest, NothingIsComputedForTails) {
  for (const char* tail : {"pad", "guard", "peel"}) {
    SCOPED_TRACE(tail);
    expect_correct({chain_workload(), {}},
                   {"split stage=T loop=i0 factor=4 outer=o inner=i tail=peel",
                    std::string("split stage=U loop=i0 factor=4 outer=o inner=i tail=") + tail,
                    "compute_at stage=S consumer=T at=i", "compute_at stage=T consumer=U at=i1"});
    expect_correct({chain_workload(), {}},
                   {std::string("split stage=U loop=i0 factor=16 outer=o inner=i tail=") + tail,
                    "split stage=U loop=i factor=5 outer=io inner=ii tail=guard", "compute_at stage=T consumer=U at=io",
                    "compute_at stage=S consumer=T at=i0"});
  }
}

// Shifted pieces overlap, so their own loop is never parallel (see the parallel primitive); beside parallel loops they
// are fine, and the verifier agrees after each pass.
TEST(PlacesTest, ShiftedLoopsBesideParallelOnesVerify) {
  const std::vector<std::vector<std::string>> schedules = {
      {"split stage=R loop=i1 factor=8 outer=jo inner=ji tail=shift", "parallel stage=R loop=i0",
       "vectorize stage=R loop=ji"},
      {"split stage=R loop=i0 factor=3 outer=io inner=ii tail=shift", "parallel stage=R loop=ii"},
      {"split stage=R loop=i0 factor=3 outer=io inner=ii tail=shift", "reorder stage=R loops=i1,io,ii",
       "parallel stage=R loop=i1"},
      {"split stage=R loop=i1 factor=8 outer=jo inner=ji tail=shift", "parallel stage=R loop=i0",
       "compute_at stage=C consumer=R at=jo", "split stage=C loop=i1 factor=4 outer=a inner=b tail=shift"},
      {"split stage=C loop=i1 factor=8 outer=jo inner=ji tail=shift", "parallel stage=C loop=i0"},
  };
  for (const std::vector<std::string>& steps : schedules) {
    std::string text;
    for (const std::string& step : steps) text += step + "\n";
    SCOPED_TRACE(text);
    expect_correct({dense_workload(7, 19, 23), {}}, steps);
    LowerOptions options;
    options.verify_each = true;
    EXPECT_NO_THROW(lower(make_schedule(dense_workload(7, 19, 23), steps), options));
  }
}

// What is too large for a thread's stack gets a part for each iteration of the parallel loop.
TEST(PlacesTest, ParallelIterationsHaveWorkspacesOfTheirOwn) {
  const std::vector<std::string> steps = {"split stage=R loop=i0 factor=4 outer=io inner=ii",
                                          "parallel stage=R loop=io", "compute_at stage=C consumer=R at=io",
                                          "set_scope stage=C scope=global"};
  expect_correct({dense_workload(23, 19, 13), {}}, steps);
  LowerOptions options;
  options.verify_each = true;
  const LoweredKernel kernel = lower(make_schedule(dense_workload(23, 19, 13), steps), options);
  ASSERT_FALSE(kernel.function.buffers.empty());
  EXPECT_EQ(to_string(simplify(num_elements(kernel.function.buffers.back()))), "456") << "6 iterations, 4 x 19 each";
}

// The part of P that an iteration needs has one row or none: that there is one is known inside the fused loop alone,
// which must be taken apart as it was put together.
TEST(PlacesTest, FusedLoopsOfPartsThatMayBeEmpty) {
  const Tensor x = placeholder("X", {3, 1, 5}, kFloat32);
  const Tensor p = compute("P", {3, 1, 5}, [&](const Indices& i) { return x(i) + make_const(kFloat32, 1); });
  const Tensor c = compute("C", {3, 4, 5}, [&](const Indices& i) {
    return select(i[1] >= 1 && i[1] < 2, p(i[0], i[1] - 1, i[2]), make_const(kFloat32, 0));
  });
  expect_correct(
      {make_workload("padded_rows", {x}, {c}), {}},
      {"reorder stage=P loops=i2,i1,i0", "split stage=P loop=i1 factor=5 outer=o inner=i",
       "fuse stage=C loops=i1,i2 fused=f", "compute_at stage=P consumer=C at=f", "fuse stage=P loops=i2,o,i fused=g"});
}

}  // namespace
}  // namespace tensmith
