// Steps that put stages or caches between a stage and its operands or results, together with other steps and at sizes
// that nothing divides.
#include <gtest/gtest.h>

#include <array>

#include "tensor/print.h"
#include "tests/unit/schedule/check_schedule.h"

namespace tensmith {
namespace {

Expr f32(double value) { return make_const(kFloat32, value); }

std::string loops_of(const SizedWorkload& sized, const std::vector<std::string>& steps) {
  return lowered_text(make_schedule(sized.workload, steps), "loop_nests");
}

// ---- reindex
// ---------------------------------------------------------------------------------------------------------

TEST(ReindexTest, ConvolutionAsProductOfRows) {
  // im2col: copied per row of the result, zeros in the border without a condition, the product in vectors.
  const std::vector<std::string> steps = {"reindex stage=Y producer=X name=Xr",
                                          "transform_layout stage=Xr layout=0,1,3,4,5,2",
                                          "reorder stage=Y loops=i0,i2,i1,r0,r1,r2,i3",
                                          "parallel stage=Y loop=i2",
                                          "vectorize stage=Y loop=i3",
                                          "compute_at stage=Xr consumer=Y at=i2",
                                          "decompose_padding stage=Xr loop=i3",
                                          "set_axis_separator stage=Xr separators=5"};
  for (const ConvShape& shape : {ConvShape{1, 3, 7, 9, 5, 3, 1, 1},
                                 {2, 2, 6, 5, 3, 3, 2, 1},
                                 {1, 1, 8, 17, 2, 3, 1, 2},
                                 {1, 2, 5, 4, 3, 5, 1, 2}})
    expect_correct({conv_workload(shape), {}}, steps);
}

TEST(ReindexTest, GatherReadsEachRowOnce) {
  const Tensor x = placeholder("X", {9, 13}, kFloat32), at = placeholder("at", {5}, kInt32);
  const Tensor safe =
      compute("safe", {5}, [&](const Indices& i) { return floor_mod(cast(kInt64, at(i[0])), Expr(9)); });
  const Tensor y = sum("Y", {5, 7}, {13},
                       [&](const Indices& i, const Indices& r) { return x(safe(i[0]), r[0]) * cast(kFloat32, i[1]); });
  const SizedWorkload gather{make_workload("gather", {x, at}, {y}), {}};
  expect_correct(gather, {"reindex stage=Y producer=X name=rows"});
  expect_correct(gather, {"reindex stage=Y producer=X name=rows", "compute_at stage=rows consumer=Y at=i0",
                          "split stage=Y loop=r0 factor=4 outer=ro inner=ri", "vectorize stage=Y loop=i1",
                          "vectorize stage=rows loop=r0", "parallel stage=Y loop=i0"});
}

TEST(ReindexTest, OneOfSeveralPlaces) {
  for (const int64_t read : {0, 1, 2})
    expect_correct(sample_workload("stencils"), {"reindex stage=C producer=P name=Pr read=" + std::to_string(read),
                                                 "split stage=C loop=i0 factor=5 outer=o inner=i",
                                                 "compute_at stage=Pr consumer=C at=o", "vectorize stage=Pr loop=i1"});
}

// ---- cache_index
// -----------------------------------------------------------------------------------------------------

SizedWorkload resize_workload(int64_t rows, int64_t columns, bool symbolic) {
  const Var n("N");
  const Expr size = symbolic ? Expr(n) : Expr(rows);
  const Tensor x = placeholder("X", {size, columns}, kFloat32);
  const Tensor y = compute("Y", {size * 5, columns}, [&](const Indices& i) {
    return x(floor_div(i[0] * 3 + 1, Expr(15)), i[1]) + x(floor_div(i[0] * 3 + 1, Expr(15)), Expr(0));
  });
  return {make_workload("resize", {x}, {y}), symbolic ? std::vector<int64_t>{rows} : std::vector<int64_t>{}};
}

TEST(CacheIndexTest, ResizedRows) {
  for (const bool symbolic : {false, true})
    for (const int64_t rows : {1, 3, 8}) {
      const SizedWorkload sized = resize_workload(rows, 7, symbolic);
      expect_correct(sized, {"cache_index stage=Y producer=X dim=0 name=I"});
      expect_correct(sized, {"split stage=Y loop=i0 factor=4 outer=o inner=i tail=peel",
                             "cache_index stage=Y producer=X dim=0 name=I", "compute_at stage=I consumer=Y at=o",
                             "parallel stage=Y loop=o", "vectorize stage=Y loop=i1"});
    }
  // Both reads share the index, whose arithmetic is gone from the inner loops.
  const std::string loops = loops_of(resize_workload(3, 7, false), {"cache_index stage=Y producer=X dim=0 name=I"});
  EXPECT_EQ(loops.find("//"), loops.rfind("//")) << loops;
}

TEST(CacheIndexTest, StridedConvolutionInVectors) {
  expect_correct(sample_workload("depthwise"),
                 {"cache_index stage=Y producer=X dim=3 name=I", "compute_at stage=I consumer=Y at=i1",
                  "unroll stage=I loop=r1", "vectorize stage=Y loop=i3", "parallel stage=Y loop=i1"});
}

// ---- decompose_padding
// -----------------------------------------------------------------------------------------------

TEST(DecomposePaddingTest, LoopsInsideHaveNoCondition) {
  const std::string text =
      lowered_text(make_schedule(sample_workload("padded").workload, {"decompose_padding stage=P loop=i0"}));
  EXPECT_EQ(text.find("if "), std::string::npos) << text;
  EXPECT_EQ(text.find("select"), std::string::npos) << text;
}

TEST(DecomposePaddingTest, WithOtherSteps) {
  const SizedWorkload padded = sample_workload("padded");
  for (const char* tail : {"peel", "guard", "shift"})
    for (const char* loop : {"o", "i", "i1"})
      expect_correct(padded, {std::string("split stage=P loop=i0 factor=5 outer=o inner=i tail=") + tail,
                              std::string("decompose_padding stage=P loop=") + loop, "vectorize stage=P loop=i1"});
  expect_correct(padded, {"split stage=C loop=i0 factor=4 outer=o inner=i", "compute_at stage=P consumer=C at=o",
                          "decompose_padding stage=P loop=i0", "double_buffer stage=P", "vectorize stage=C loop=i1"});
  expect_correct(padded, {"decompose_padding stage=P loop=i1", "decompose_reduction stage=P loop=i0",
                          "reorder stage=P loops=i1,i0", "write_at stage=C loop=i0 name=Cl lanes=4"});
}

// ---- pad_einsum
// ------------------------------------------------------------------------------------------------------

TEST(PadEinsumTest, ProductWithoutEdges) {
  const std::vector<std::string> steps = {"pad_einsum stage=C multiples=4,8,4 name=Cp",
                                          "split stage=Cp loop=i0 factor=4 outer=io inner=ii",
                                          "split stage=Cp loop=i1 factor=8 outer=jo inner=ji",
                                          "split stage=Cp loop=r0 factor=4 outer=ko inner=ki",
                                          "reorder stage=Cp loops=io,jo,ko,ki,ii,ji",
                                          "unroll stage=Cp loop=ii",
                                          "vectorize stage=Cp loop=ji",
                                          "parallel stage=Cp loop=io",
                                          "transform_layout stage=B_pad layout=1/8,0,1%8",
                                          "vectorize stage=A_pad loop=i1"};
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{7, 19, 23}, {1, 1, 1}, {4, 8, 5}, {13, 33, 4}, {5, 40, 9}})
    expect_correct({dense_workload(m, n, k), {}}, steps);
  for (const int64_t m : {1, 4, 6, 11}) expect_correct({dense_workload(Var("M"), 19, 7), {m}}, steps);
  // No tail is left: no condition but those of the copies.
  const std::string text = loops_of({dense_workload(7, 19, 23), {}}, {steps.begin(), steps.begin() + 7});
  EXPECT_NE(text.find("unrolled ii in 4"), std::string::npos) << text;
  EXPECT_EQ(text.find("if "), std::string::npos) << text;
}

TEST(PadEinsumTest, NeutralForOtherReductions) {
  expect_correct(sample_workload("max_plus"), {"pad_einsum stage=C multiples=2,4,1 name=Cp"});
  expect_correct({softmax_workload(5, 13), {}},
                 {"pad_einsum stage=m multiples=1,8 name=mp", "split stage=mp loop=r0 factor=8 outer=ro inner=ri",
                  "rfactor stage=mp loop=ri name=mr", "vectorize stage=mr loop=ri", "compute_inline stage=X_pad"});
  // Start values and what is summed have padding of their own.
  expect_correct(sample_workload("siblings"), {"pad_einsum stage=T multiples=4,8 name=Tp"});
  // One operand twice, at different axes: two copies.
  const Tensor a = placeholder("A", {7, 5}, kFloat32);
  const Tensor g =
      sum("G", {7, 7}, {5}, [&](const Indices& i, const Indices& r) { return a(i[0], r[0]) * a(i[1], r[0]); });
  expect_correct({make_workload("gram", {a}, {g}), {}}, {"pad_einsum stage=G multiples=4,8,8 name=Gp"});
}

TEST(PadEinsumTest, PaddingOfPadding) {
  expect_correct({dense_workload(7, 19, 23), {}},
                 {"pad_einsum stage=C multiples=4,8,5 name=Cp", "pad_einsum stage=A_pad multiples=7,6 name=Ap",
                  "pad_einsum stage=B_pad multiples=9,1 name=Bp"});
  expect_correct(sample_workload("dense_m"),
                 {"pad_einsum stage=C multiples=4,8,4 name=Cp", "pad_einsum stage=A_pad multiples=7,6 name=Ap"});
}

TEST(PadEinsumTest, OneOperandAtAnAxisAndBesideIt) {
  // Both copies have one shape, but the second read goes on where the first one's axis has ended.
  const Tensor x = placeholder("X", {15, 15}, kFloat32);
  const Tensor s =
      compute("S", {15, 14}, [&](const Indices& i) { return x(i[0], i[1]) + x(i[0], i[1] + 1) * f32(0.5); });
  const Tensor y = compute("Y", {15, 14}, [&](const Indices& i) { return s(i[0], i[1]) * f32(2); });
  expect_correct({make_workload("beside", {x}, {y}), {}}, {"pad_einsum stage=S multiples=8,3 name=Sp"});
  // Two axes of different lengths that get the same one.
  const Tensor v = placeholder("V", {14}, kFloat32);
  const Tensor p = sum("P", {13}, {14}, [&](const Indices& i, const Indices& r) { return v(i[0]) * v(r[0]); });
  expect_correct({make_workload("outer", {v}, {p}), {}}, {"pad_einsum stage=P multiples=15,1 name=Pp"});
  const Tensor w = placeholder("W", {14}, kFloat32);
  const Tensor o = compute("O", {13, 14}, [&](const Indices& i) { return w(i[0]) * w(i[1]); });
  expect_correct({make_workload("outer", {w}, {o}), {}}, {"pad_einsum stage=O multiples=15,15 name=Op"});
}

TEST(PadEinsumTest, InfinityInAFactorDoesNotReachThePadding) {
  // 0 * infinity is no zero: a factor that the reduction axis does not move must not be padded on it.
  const Tensor a = placeholder("A", {7, 5}, kFloat32), s = placeholder("s", {7}, kFloat32);
  const Tensor c = sum("C", {7}, {5}, [&](const Indices& i, const Indices& r) { return a(i[0], r[0]) * s(i[0]); });
  Schedule schedule(make_workload("scaled", {a, s}, {c}));
  const Result<void> refused = schedule.try_apply(parse_step("pad_einsum stage=C multiples=1,8 name=Cp").value());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.failure().id, "pad-einsum-body");
  expect_correct({schedule.workload(), {}}, {"pad_einsum stage=C multiples=4,1 name=Cp"});
}

// ---- read_at, write_at
// -----------------------------------------------------------------------------------------------

TEST(ReadAtTest, CopiesWhatAnIterationReads) {
  for (const int64_t lanes : {1, 4, 16})
    for (const char* tail : {"peel", "guard"}) {
      const std::string n = std::to_string(lanes);
      expect_correct({dense_workload(7, 19, 23), {}},
                     {std::string("split stage=C loop=i1 factor=8 outer=jo inner=ji tail=") + tail,
                      "reorder stage=C loops=jo,i0,r0,ji", "parallel stage=C loop=jo",
                      "read_at stage=C loop=jo producer=B name=Bc lanes=" + n, "vectorize stage=C loop=ji",
                      "read_at stage=C loop=i0 producer=A name=Ac scope=stack lanes=" + n});
      expect_correct(sample_workload("stencils"),
                     {std::string("split stage=C loop=i0 factor=4 outer=o inner=i tail=") + tail,
                      "read_at stage=C loop=o producer=P name=Pc lanes=" + n, "compute_at stage=P consumer=C at=o",
                      "rolling_buffer stage=P"});
    }
}

TEST(WriteAtTest, CollectsWhatAnIterationComputes) {
  for (const int64_t lanes : {1, 4, 16})
    for (const char* tail : {"peel", "guard"}) {
      const std::string n = std::to_string(lanes);
      expect_correct(sample_workload("max_plus"),
                     {std::string("split stage=C loop=i0 factor=2 outer=io inner=ii tail=") + tail,
                      std::string("split stage=C loop=i1 factor=4 outer=jo inner=ji tail=") + tail,
                      "reorder stage=C loops=io,jo,r0,ii,ji", "parallel stage=C loop=io", "vectorize stage=C loop=ji",
                      "write_at stage=C loop=jo name=Cl scope=stack lanes=" + n});
      // What is computed at loops of the stage stays with the loops.
      expect_correct(
          sample_workload("dense_m"),
          {std::string("split stage=R loop=i0 factor=3 outer=io inner=ii tail=") + tail, "parallel stage=R loop=io",
           "compute_at stage=C consumer=R at=ii", "write_at stage=R loop=io name=Rl lanes=" + n});
    }
  // Several outputs are collected together.
  expect_correct(sample_workload("complex_product"),
                 {"split stage=C loop=i0 factor=3 outer=o inner=i", "write_at stage=C loop=o name=Cl lanes=2"});
}

TEST(WriteAtTest, RegisterTile) {
  expect_correct(
      {dense_workload(7, 19, 23), {}},
      {"split stage=C loop=i0 factor=3 outer=io inner=ii", "split stage=C loop=i1 factor=8 outer=jo inner=ji",
       "reorder stage=C loops=io,jo,r0,ii,ji", "unroll stage=C loop=ii", "vectorize stage=C loop=ji",
       "write_at stage=C loop=jo name=Cl scope=register", "unroll stage=C loop=ii", "vectorize stage=C loop=ji"});
}

// ---- cache_inplace
// ---------------------------------------------------------------------------------------------------

TEST(CacheInplaceTest, AccumulatorsPerPieceOfTheReduction) {
  for (const char* scope : {"stack", "register"})
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{7, 19, 23}, {1, 1, 1}, {6, 16, 8}, {13, 33, 31}}) {
      SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << " in " << scope);
      expect_correct(
          {dense_workload(m, n, k), {}},
          {"split stage=C loop=r0 factor=8 outer=ko inner=ki", "split stage=C loop=i0 factor=3 outer=io inner=ii",
           "split stage=C loop=i1 factor=8 outer=jo inner=ji", "reorder stage=C loops=ko,io,jo,ki,ii,ji",
           "unroll stage=C loop=ii", "vectorize stage=C loop=ji", "parallel stage=C loop=io",
           std::string("cache_inplace stage=C loop=jo scope=") + scope,
           "read_at stage=C loop=ko producer=B name=Bc lanes=8"});
    }
}

TEST(CacheInplaceTest, BesideOtherSteps) {
  for (const char* tail : {"peel", "guard"}) {
    const std::string split = std::string("split stage=Y loop=i3 factor=4 outer=xo inner=xi tail=") + tail;
    // A condition on the points, start values in the cache or before it.
    expect_correct(sample_workload("conv"), {split, "reorder stage=Y loops=i0,i1,r0,i2,xo,r1,r2,xi",
                                             "cache_inplace stage=Y loop=xo", "vectorize stage=Y loop=xi"});
    expect_correct(sample_workload("conv"), {split, "cache_inplace stage=Y loop=i2", "parallel stage=Y loop=i1"});
    expect_correct(sample_workload("conv"), {split, "cache_inplace stage=Y loop=r0"});
  }
  expect_correct(sample_workload("int8_product"),
                 {"split stage=C loop=r0 factor=7 outer=ko inner=ki", "reorder stage=C loops=ko,i0,i1,ki",
                  "cache_inplace stage=C loop=i0", "vectorize stage=C loop=i1"});
  expect_correct(
      {arg_max_workload(6, 19), {}},
      {"split stage=best loop=r0 factor=5 outer=ro inner=ri", "split stage=best loop=i0 factor=4 outer=o inner=i",
       "reorder stage=best loops=ro,o,ri,i", "cache_inplace stage=best loop=o"});
  expect_correct(
      sample_workload("dense_m"),
      {"split stage=C loop=r0 factor=5 outer=ko inner=ki", "split stage=C loop=i0 factor=4 outer=io inner=ii",
       "reorder stage=C loops=ko,io,ki,ii,i1", "cache_inplace stage=C loop=io", "vectorize stage=C loop=i1"});
}

// ---- set_axis_separator
// ----------------------------------------------------------------------------------------------

TEST(AxisSeparatorTest, PiecesBeginAtCacheLines) {
  const auto shape = [](const std::string& steps_of, const std::string& layout) {
    return loops_of({dense_workload(7, 19, 23), {}},
                    {"transform_layout stage=C layout=" + layout, "set_axis_separator stage=C separators=" + steps_of});
  };
  EXPECT_NE(shape("1", "0,1").find("alloc C: f32[7, 32]"), std::string::npos);
  // Of the dims of a piece the one grows by which the least is added: 5 blocks of 7 rows of 4 lanes.
  EXPECT_NE(shape("1", "1/4,0,1%4").find("alloc C: f32[5, 8, 4]"), std::string::npos) << shape("1", "1/4,0,1%4");
  expect_correct(sample_workload("expand_depthwise_project"),
                 {"compute_at stage=E6 consumer=D at=i0", "compute_at stage=E consumer=D at=i0",
                  "parallel stage=D loop=i0", "set_axis_separator stage=E6 separators=1,2",
                  "set_axis_separator stage=E separators=2", "vectorize stage=E6 loop=i2"});
  expect_correct(sample_workload("stencils"), {"compute_at stage=P consumer=C at=i0", "rolling_buffer stage=P",
                                               "set_axis_separator stage=P separators=1"});
  expect_correct(sample_workload("softmax_n"), {"set_axis_separator stage=e separators=1", "parallel stage=e loop=i0"});
}

TEST(SetAxisSeparatorTest, PiecesAreAsLongAsTheTargetsCacheLines) {
  const Schedule schedule =
      make_schedule(sample_workload("dense").workload, {"set_axis_separator stage=C separators=1"});
  for (const auto& [line, columns] : {std::pair{64, "32"}, {128, "32"}, {256, "64"}}) {
    LowerOptions options;
    options.pass_limit = 0;
    options.line_bytes = line;
    const std::string text = to_string(lower(schedule, options).function);
    EXPECT_NE(text.find(std::string(", ") + columns + "]"), std::string::npos) << line << "\n" << text;
  }
}

// ---- blockize
// --------------------------------------------------------------------------------------------------------

TEST(BlockizeTest, OneSweepForTwoReductions) {
  const SizedWorkload siblings = sample_workload("siblings");
  const std::string loops = loops_of(siblings, {"blockize stage=T with=S name=TS"});
  EXPECT_EQ(loops.find("for r0"), loops.rfind("for r0")) << loops;
  expect_correct(
      siblings, {"blockize stage=T with=S name=TS", "split stage=TS loop=r0 factor=4 outer=ro inner=ri",
                 "rfactor stage=TS loop=ri name=P", "vectorize stage=P loop=ri", "compute_at stage=TS consumer=Y at=i0",
                 "compute_at stage=P consumer=Y at=i0", "parallel stage=Y loop=i0"});
  expect_correct(siblings,
                 {"split stage=S loop=r0 factor=4 outer=ro inner=ri", "reorder stage=S loops=ro,i0,ri",
                  "blockize stage=S with=T name=ST", "vectorize stage=ST loop=i0", "cache_inplace stage=ST loop=ro"});
}

TEST(BlockizeTest, AValueAndWhatFollowsFromIt) {
  const Tensor x = placeholder("X", {7, 9}, kFloat32);
  const Tensor p = compute("P", {7, 9}, [&](const Indices& i) { return x(i[0], i[1]) * f32(3); });
  const Tensor q = compute("Q", {7, 9}, [&](const Indices& i) { return p(i[0], i[1]) + f32(1); });
  const Tensor r = compute("R", {7, 9}, [&](const Indices& i) { return p(i[0], i[1]) * q(i[0], i[1]); });
  const SizedWorkload chain{make_workload("chain", {x}, {p, q, r}), {}};
  expect_correct(
      chain, {"split stage=P loop=i1 factor=4 outer=jo inner=ji", "vectorize stage=P loop=ji",
              "blockize stage=P with=Q name=PQ", "blockize stage=PQ with=R name=PQR", "parallel stage=PQR loop=i0"});
}

TEST(BlockizeTest, StagesBetweenKeepTheirOrder) {
  // M stands between S and T: it needs S, and Y needs all.
  const Tensor x = placeholder("X", {5, 8}, kFloat32);
  const auto row = [&](const char* name, double scale) {
    return sum(name, {5}, {8}, [&, scale](const Indices& i, const Indices& r) { return x(i[0], r[0]) * f32(scale); });
  };
  const Tensor s = row("S", 1);
  const Tensor m = compute("M", {5}, [&](const Indices& i) { return s(i[0]) * f32(0.5); });
  const Tensor t = row("T", 2);
  const Tensor y = compute("Y", {5}, [&](const Indices& i) { return m(i[0]) + t(i[0]) * s(i[0]); });
  const SizedWorkload between{make_workload("between", {x}, {y}), {}};
  for (const char* steps : {"blockize stage=S with=T name=B", "blockize stage=T with=S name=B"})
    expect_correct(between, {steps, "compute_at stage=M consumer=Y at=i0", "compute_at stage=B consumer=Y at=i0"});
}

// ---- prefetches
// ------------------------------------------------------------------------------------------------------

int count_of(const std::string& text, const std::string& what) {
  int count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

const std::vector<std::string> kBlocks = {"split stage=R loop=i0 factor=2 outer=io inner=ii",
                                          "split stage=R loop=i1 factor=8 outer=jo inner=ji",
                                          "reorder stage=R loops=jo,io,ii,ji",
                                          "compute_at stage=C consumer=R at=io",
                                          "reorder stage=C loops=r0,i0,i1",
                                          "transform_layout stage=B layout=1/8,0,1%8"};

std::vector<std::string> with(std::vector<std::string> steps, const std::vector<std::string>& more) {
  steps.insert(steps.end(), more.begin(), more.end());
  return steps;
}

TEST(PrefetchNextTest, SurvivesLaterSplitsOfItsLoops) {
  const std::string next = "prefetch_next stage=C producer=B loop=r0 spread=io";
  for (const std::vector<std::string>& later : std::vector<std::vector<std::string>>{
           {},
           {"split stage=C loop=r0 factor=4 outer=ko inner=ki"},
           {"split stage=C loop=r0 factor=4 outer=r0 inner=ki", "split stage=C loop=ki factor=2 outer=ki inner=kii"},
           {"prefetch stage=C producer=A loop=r0 distance=2"}}) {
    const std::vector<std::string> steps = with(with(kBlocks, {next}), later);
    expect_correct({dense_workload(7, 19, 23), {}}, steps);
    EXPECT_GE(count_of(loops_of({dense_workload(7, 19, 23), {}}, steps), "prefetch:i32(B"), 1);
  }
  // The loop over which the shares are spread is split, fused, and its name given to another one.
  for (const std::vector<std::string>& later : std::vector<std::vector<std::string>>{
           {"split stage=R loop=jo factor=2 outer=jo inner=jm"}, {"split stage=R loop=jo factor=2 outer=a inner=jo"}}) {
    const std::vector<std::string> steps =
        with(with(kBlocks, {"prefetch_next stage=C producer=B loop=r0 spread=jo"}), later);
    expect_correct({dense_workload(7, 19, 23), {}}, steps);
    EXPECT_GE(count_of(loops_of({dense_workload(7, 19, 23), {}}, steps), "prefetch:i32(B"), 1);
  }
}

TEST(PrefetchNextTest, AsksForUnknownExtentsAndBackwards) {
  const Var m("M"), k("K");
  const Tensor a = placeholder("A", {m, k}, kFloat32), b = placeholder("B", {k, 8}, kFloat32);
  const Tensor back =
      sum("C", {m, 8}, {k}, [&](const Indices& i, const Indices& r) { return a(i[0], r[0]) * b(k - 1 - r[0], i[1]); });
  const Tensor out = compute("R", {m, 8}, [&](const Indices& i) { return back(i[0], i[1]) + f32(1); });
  const SizedWorkload sized{make_workload("back", {a, b}, {out}), {5, 9}};
  const std::vector<std::string> steps = {"compute_at stage=C consumer=R at=i0", "reorder stage=C loops=r0,i0,i1",
                                          "prefetch_next stage=C producer=B loop=r0 spread=i0"};
  expect_correct(sized, steps);
  EXPECT_GE(count_of(loops_of(sized, steps), "prefetch:i32(B"), 1) << loops_of(sized, steps);
  const std::vector<std::string> known = with({"split stage=R loop=i0 factor=2 outer=io inner=ii"},
                                              {"compute_at stage=C consumer=R at=io", "reorder stage=C loops=r0,i0,i1",
                                               "prefetch_next stage=C producer=B loop=r0 spread=io"});
  const SizedWorkload dense{dense_workload(Var("M"), 19, 7), {5}};
  expect_correct(dense, known);
  EXPECT_GE(count_of(loops_of(dense, known), "prefetch:i32(B"), 1);
}

TEST(PrefetchNextTest, FollowsItsStageAndRefusesToBeLost) {
  Schedule schedule =
      make_schedule(dense_workload(7, 19, 23), with(kBlocks, {"prefetch_next stage=C producer=B loop=r0 spread=io"}));
  const auto id = [&](const std::string& step) {
    const Result<void> done = schedule.try_apply(parse_step(step).value());
    return done ? std::string("ok") : done.failure().id;
  };
  EXPECT_EQ(id("compute_root stage=C"), "spread-loop");
  EXPECT_EQ(id("compute_at stage=C consumer=R at=jo"), "spread-loop");
  EXPECT_EQ(id("cache_read stage=B consumer=C name=Bc"), "prefetch-not-read");
  EXPECT_NE(loop_nest_text(schedule.state()).find("prefetch B next, spread over R.io"), std::string::npos);
  EXPECT_EQ(id("unannotate stage=C loop=r0 key=prefetch_next:B"), "ok");
  EXPECT_EQ(id("compute_root stage=C"), "ok");
}

}  // namespace
}  // namespace tensmith
