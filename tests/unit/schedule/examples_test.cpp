// The schedules that the two middle layers were designed for, at sizes that nothing divides.
#include <gtest/gtest.h>

#include <array>

#include "tests/support/golden.h"
#include "tests/unit/schedule/check_schedule.h"

namespace tensmith {
namespace {

/// A register tile of `rows` by 16 with a packed constant and the epilogue in the tile.
std::vector<std::string> register_tile(int rows) {
  return {"transform_layout stage=B layout=1/16,0,1%16",
          "split stage=R loop=i0 factor=" + std::to_string(rows) + " outer=io inner=ii tail=peel",
          "split stage=R loop=i1 factor=16 outer=jo inner=ji tail=peel",
          "reorder stage=R loops=jo,io,ii,ji",
          "parallel stage=R loop=io",
          "compute_at stage=C consumer=R at=io",
          "tile stage=C rows=i0 columns=i1 lanes=8",
          "split stage=C loop=r0 factor=4 outer=ko inner=ki tail=peel",
          "unroll stage=R loop=ii",
          "split stage=R loop=ji factor=8 outer=jv inner=jl tail=peel",
          "unroll stage=R loop=jv",
          "vectorize stage=R loop=jl"};
}

TEST(WorkedExampleTest, RegisterTileWithEpilogue) {
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{7, 19, 23}, {1, 1, 1}, {6, 16, 8}, {13, 33, 5}, {5, 40, 1}, {12, 17, 9}}) {
    SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
    expect_correct({dense_workload(m, n, k), {}}, register_tile(6));
  }
}

TEST(WorkedExampleTest, SymbolicRows) {
  for (const int64_t m : {1, 3, 4, 5, 8, 11}) {
    SCOPED_TRACE(m);
    expect_correct({dense_workload(Var("M"), 19, 7), {m}}, register_tile(4));
  }
}

TEST(WorkedExampleTest, BlockedConvolution) {
  const std::vector<std::string> steps = {
      "cache_write stage=Y name=acc",
      "transform_layout stage=Y layout=0,1/8,2,3,1%8",
      "transform_layout stage=W layout=0/8,1,2,3,0%8",
      "split stage=Y loop=i1 factor=8 outer=oo inner=oi",
      "split stage=Y loop=i3 factor=4 outer=xo inner=xi",
      "reorder stage=Y loops=i0,oo,i2,xo,xi,oi",
      "fuse stage=Y loops=i0,oo,i2 fused=rows",
      "parallel stage=Y loop=rows",
      "compute_at stage=acc consumer=Y at=xo",
      "tile stage=acc rows=i3 columns=i1 lanes=8",
      "unroll stage=acc loop=r2",
      "unroll stage=Y loop=xi",
      "vectorize stage=Y loop=oi",
  };
  for (const ConvShape& shape : {ConvShape{1, 3, 7, 9, 8, 3, 1, 1},
                                 {2, 2, 6, 5, 16, 3, 2, 1},
                                 {1, 1, 8, 8, 8, 1, 1, 0},
                                 {1, 2, 5, 4, 8, 5, 1, 2}}) {
    SCOPED_TRACE(testing::Message() << shape.h << " x " << shape.w << ", kernel " << shape.kernel);
    expect_correct({conv_workload(shape), {}}, steps);
  }
}

TEST(WorkedExampleTest, ExpandDepthwiseProjectByRows) {
  const std::vector<std::string> steps = {
      "split stage=O loop=i1 factor=4 outer=yo inner=yi tail=peel",
      "reorder stage=O loops=yo,i0,yi",
      "parallel stage=O loop=yo",
      "compute_at stage=D6 consumer=O at=yo",
      "compute_at stage=D consumer=O at=yo",
      "compute_at stage=E6 consumer=O at=yo",
      "compute_at stage=E consumer=O at=yo",
      "compute_inline stage=D6",
      "vectorize stage=E loop=i2",
      "split stage=D loop=i2 factor=4 outer=xo inner=xi tail=peel",
      "vectorize stage=D loop=xi",
  };
  for (const auto& [h, w] : {std::array<int64_t, 2>{7, 9}, {4, 4}, {1, 1}, {9, 5}}) {
    SCOPED_TRACE(testing::Message() << h << " x " << w);
    expect_correct({expand_depthwise_project_workload(3, 6, 5, h, w), {}}, steps);
  }
  // Four rows of O need four of D and six of E: two are computed twice a step.
  const Schedule schedule =
      make_schedule(expand_depthwise_project_workload(3, 6, 5, 16, 8), {steps.begin(), steps.begin() + 7});
  const std::string loops = lowered_text(schedule, "loop_nests");
  EXPECT_NE(loops.find("alloc D: f32[6, 4, 8] stack"), std::string::npos) << loops;
  EXPECT_NE(loops.find("alloc E: f32[6, 6, 8] stack"), std::string::npos) << loops;
}

TEST(WorkedExampleTest, SoftmaxInOneKernel) {
  const std::vector<std::string> steps = {
      "split stage=m loop=r0 factor=8 outer=mo inner=mi tail=peel",
      "rfactor stage=m loop=mi name=mp",
      "split stage=s loop=r0 factor=8 outer=so inner=si tail=peel",
      "rfactor stage=s loop=si name=sp",
      "compute_at stage=s consumer=Y at=i0",
      "compute_at stage=sp consumer=Y at=i0",
      "compute_at stage=e consumer=Y at=i0",
      "compute_at stage=m consumer=Y at=i0",
      "compute_at stage=mp consumer=Y at=i0",
      "vectorize stage=mp loop=mi",
      "vectorize stage=sp loop=si",
      "vectorize stage=m loop=mi",
      "vectorize stage=s loop=si",
      "split stage=e loop=i1 factor=8 outer=eo inner=ei tail=peel",
      "vectorize stage=e loop=ei",
      "split stage=Y loop=i1 factor=8 outer=yo inner=yi tail=peel",
      "vectorize stage=Y loop=yi",
      "parallel stage=Y loop=i0",
  };
  for (const int64_t columns : {1, 7, 8, 13, 16, 33}) {
    SCOPED_TRACE(columns);
    expect_correct({softmax_workload(3, columns), {}}, steps);
    expect_correct({softmax_workload(Var("N"), columns), {5}}, steps);
  }
}

}  // namespace
}  // namespace tensmith
