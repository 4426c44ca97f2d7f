// Reductions whose pieces go into accumulators of their own.
#include <gtest/gtest.h>

#include "tests/unit/schedule/check_schedule.h"

namespace tensmith {
namespace {

std::vector<std::string> steps(int piece, int unroll) {
  std::vector<std::string> list = {"cache_write stage=C name=acc",
                                   "split stage=C loop=i0 factor=2 outer=io inner=ii",
                                   "split stage=C loop=i1 factor=8 outer=jo inner=ji",
                                   "reorder stage=C loops=io,jo,ii,ji",
                                   "compute_at stage=acc consumer=C at=jo",
                                   "tile stage=acc rows=i0 columns=i1 lanes=8",
                                   "unroll stage=C loop=ii",
                                   "vectorize stage=C loop=ji"};
  if (unroll > 1) list.push_back("pragma stage=acc loop=r0 key=unroll value=" + std::to_string(unroll));
  list.push_back("pragma stage=acc loop=r0 key=piece value=" + std::to_string(piece));
  return list;
}

/// Rows times weights over so many steps.
SizedWorkload product(int64_t depth) {
  const Tensor a = placeholder("A", {3, depth}, kFloat32), b = placeholder("B", {depth, 13}, kFloat32, true);
  const Tensor c =
      sum("C", {3, 13}, {depth}, [&](const Indices& i, const Indices& r) { return a(i[0], r[0]) * b(r[0], i[1]); });
  return {make_workload("product", {a, b}, {c}), {}};
}

TEST(ReduceInPieces, GivesTheSameResults) {
  for (const int piece : {1, 4, 12, 24})
    for (const int unroll : {1, 4}) {
      SCOPED_TRACE(testing::Message() << piece << " steps a piece, " << unroll << " a turn");
      expect_correct(product(48), steps(piece, unroll));
    }
}

TEST(ReduceInPieces, KeepsTotalsBesideAccumulators) {
  const std::string text = lowered_text(make_schedule(product(48).workload, steps(12, 4)));
  EXPECT_NE(text.find("acc_total"), std::string::npos) << text;
  EXPECT_NE(text.find("r0_piece"), std::string::npos) << text;
}

TEST(ReduceInPieces, LeavesLoopsThatPiecesDoNotDivide) {
  for (const int piece : {5, 48, 96}) {
    const Schedule schedule = make_schedule(product(48).workload, steps(piece, 1));
    EXPECT_EQ(lowered_text(schedule).find("acc_total"), std::string::npos) << piece;
    expect_correct(product(48), steps(piece, 1));
  }
}

}  // namespace
}  // namespace tensmith
