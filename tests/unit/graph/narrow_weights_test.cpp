/// Weights in the narrowest type that holds them, and where they stay in it.
#include "graph/passes/narrow_weights.h"

#include <gtest/gtest.h>

#include <cmath>

#include "graph/constant_math.h"
#include "graph/interpret.h"
#include "graph/partition/fuse.h"
#include "runtime/base/rng.h"

namespace tensmith::graph {
namespace {

constexpr int64_t kSteps = 40, kColumns = 24;

/// Whole numbers from -`levels` to `levels`, times a number for each column, rounded as a model's own Mul does it.
Constant quantised(int levels, int64_t steps = kSteps, int64_t columns = kColumns, float zero = 0) {
  Rng rng(3);
  std::vector<float> scale(static_cast<size_t>(columns));
  for (float& s : scale) s = static_cast<float>(rng.uniform(1e-4, 3e-2));
  std::vector<double> values(static_cast<size_t>(steps * columns));
  for (size_t k = 0; k < values.size(); ++k) {
    const float whole = std::nearbyint(static_cast<float>(rng.uniform(-levels, levels))) + zero;
    values[k] = whole * scale[k % static_cast<size_t>(columns)];
  }
  return Constant::from_floats(kFloat32, {steps, columns}, values);
}

Constant ordinary(DType rounded) {
  Rng rng(5);
  std::vector<double> values(static_cast<size_t>(kSteps * kColumns));
  for (double& v : values) v = rng.uniform(-1, 1);
  if (rounded != kFloat16) values[3] = 0x1p-40;  // smaller than halves can be
  const Constant once = Constant::from_floats(rounded, {kSteps, kColumns}, values);
  return map_elements(once, kFloat32, [](double x, int64_t) { return x; });
}

/// How far values times scale are from the weights, at most, as a part of these.
double error_of(const NarrowWeights& narrow, const Constant& weights) {
  double worst = 0;
  for (int64_t k = 0; k < weights.num_elements(); ++k) {
    const double scale = narrow.scale ? narrow.scale.float_at(k % weights.shape()[1]) : 1;
    const double want = weights.float_at(k), error = std::fabs(narrow.values.float_at(k) * scale - want);
    worst = std::max(worst, want == 0 ? error : error / std::fabs(want));
  }
  return worst;
}

TEST(NarrowWeights, FindsIntegersTimesANumberForEachColumn) {
  for (const int levels : {1, 7, 100, 127}) {
    const Constant weights = quantised(levels);
    const auto found = narrow(weights);
    ASSERT_TRUE(found) << levels;
    EXPECT_EQ(found->values.dtype(), kInt8) << levels;
    EXPECT_EQ(found->values.shape(), weights.shape());
    EXPECT_EQ(found->scale.shape(), std::vector<int64_t>{kColumns});
    EXPECT_LT(error_of(*found, weights), 5e-7) << levels;
  }
}

TEST(NarrowWeights, FindsThemBehindFurtherFactors) {
  // What folding a scale into weights does: another rounding.
  const Constant weights = map_elements(quantised(127), kFloat32, [](double x, int64_t k) {
    return static_cast<float>(x) * (k % kColumns < 10 ? 0.17677669F : 1.0F);
  });
  const auto found = narrow(weights);
  ASSERT_TRUE(found);
  EXPECT_LT(error_of(*found, weights), 5e-7);
}

TEST(NarrowWeights, TakesTwoBytesWhereOneIsTooFew) {
  const Constant weights = quantised(120, kSteps, kColumns, 120);  // unsigned bytes with zero points at their ends
  const auto found = narrow(weights);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->values.dtype(), kInt16);
  EXPECT_LT(error_of(*found, weights), 5e-7);
}

TEST(NarrowWeights, FindsSixteenBitFloats) {
  for (const DType type : {kFloat16, kBFloat16}) {
    const Constant weights = ordinary(type);
    const auto found = narrow(weights);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->values.dtype(), type);
    EXPECT_FALSE(found->scale);
    EXPECT_EQ(error_of(*found, weights), 0);
  }
}

TEST(NarrowWeights, KeepsZeros) {
  const Constant weights =
      map_elements(quantised(100), kFloat32, [](double x, int64_t k) { return k % kColumns == 4 ? 0.0 : x; });
  const auto found = narrow(weights);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->scale.float_at(4), 1);
  EXPECT_LT(error_of(*found, weights), 5e-7);
}

TEST(NarrowWeights, LeavesWhatIsNone) {
  EXPECT_FALSE(narrow(ordinary(kFloat32)));
  EXPECT_FALSE(narrow(quantised(1000)));
  EXPECT_FALSE(narrow(quantised(127, 8)));  // so few steps may be multiples by chance
  EXPECT_FALSE(narrow(quantised(127).with_shape({kSteps * kColumns})));
  EXPECT_FALSE(narrow(map_elements(quantised(127), kFloat64, [](double x, int64_t) { return x; })));
  for (const double odd : {static_cast<double>(NAN), static_cast<double>(INFINITY), 1e-41, 3.3333}) {
    // In the last column, so that all others are already found.
    const Constant weights = map_elements(quantised(127), kFloat32,
                                          [&](double x, int64_t k) { return k == kColumns * kSteps - 1 ? odd : x; });
    const auto found = narrow(weights);
    EXPECT_FALSE(found && found->values.dtype().is_integral()) << odd;
  }
}

/// MatMul(x, weights) + 1 of so many rows.
Graph product(int64_t rows, const Constant& weights) {
  Graph graph;
  GraphEditor edit(graph);
  const Value x = edit.add_input("x", static_type(kFloat32, {1, rows, weights.shape()[0]}));
  const Value y{edit.add("MatMul", {x, edit.add_constant(weights, "w")}, {}, "y"), 0};
  const Value one = edit.add_constant(Constant::from_floats(kFloat32, {}, std::vector<double>{1}), "one");
  edit.set_outputs({{edit.add("Add", {y, one}, {}, "z"), 0}}, {"z"});
  return graph;
}

/// What the pass makes of it for a machine whose L2 holds nothing.
int narrowed(Graph* graph, const char* target = "sapphirerapids,l2=4K") {
  PassOptions options;
  options.target = Target::parse(target).value();
  GraphEditor edit(*graph);
  const int count = narrow_weights(edit, options);
  edit.erase_dead();
  const auto ok = verify(*graph);
  EXPECT_TRUE(ok.ok()) << ok.failure().message;
  return count;
}

TEST(NarrowWeights, StayNarrowForFewRows) {
  for (const int64_t rows : {1, 4, 14}) {
    Graph graph = product(rows, quantised(127));
    const Graph original = graph.clone();
    EXPECT_EQ(narrowed(&graph), 1) << rows;
    const std::string text = to_string(graph);
    EXPECT_NE(text.find("Cast"), std::string::npos) << text;
    EXPECT_NE(text.find("i8[40, 24]"), std::string::npos) << text;
    RefTensor x = make_ref_tensor(kFloat32, {1, rows, kSteps});
    for (int64_t k = 0; k < x.num_elements(); ++k) x.set(k, std::sin(static_cast<double>(k)));
    round_to_dtype(x);
    const auto want = interpret(original, {x}), got = interpret(graph, {x});
    ASSERT_TRUE(want.ok() && got.ok());
    for (int64_t k = 0; k < (*want)[0].num_elements(); ++k) EXPECT_NEAR((*got)[0].get(k), (*want)[0].get(k), 1e-6) << k;
  }
}

TEST(NarrowWeights, AreWidenedOnceForManyRows) {
  for (const int64_t rows : {16, 64, 512}) {
    Graph graph = product(rows, quantised(127));
    EXPECT_EQ(narrowed(&graph), 0) << rows;
  }
  // Sixteen registers hold tiles of fewer rows, which widen more often.
  Graph graph = product(14, quantised(127));
  EXPECT_EQ(narrowed(&graph, "x86-64-v3,l2=4K"), 0);
}

TEST(NarrowWeights, AreWidenedOnceWhereTheyStayInL2OrNoTargetIsKnown) {
  Graph graph = product(1, quantised(127));
  EXPECT_EQ(narrowed(&graph, "sapphirerapids,l2=1M"), 0);
  GraphEditor edit(graph);
  EXPECT_EQ(narrow_weights(edit, {}), 0);
}

TEST(NarrowWeights, HalvesNeedInstructionsThatWidenThem) {
  Graph graph = product(1, ordinary(kFloat16)), without = graph.clone(), brain = product(1, ordinary(kBFloat16));
  EXPECT_EQ(narrowed(&graph), 1);
  EXPECT_EQ(to_string(graph).find(" Mul("), std::string::npos);  // there is no scale
  EXPECT_EQ(narrowed(&without, "x86-64-v3,-f16c,l2=4K"), 0);
  EXPECT_EQ(narrowed(&brain, "x86-64-v3,-f16c,l2=4K"), 1);
}

TEST(NarrowWeights, AreWidenedInTheKernelOfTheProduct) {
  Graph graph = product(4, quantised(127));
  ASSERT_EQ(narrowed(&graph), 1);
  std::string why;
  const std::vector<Group> groups = fuse(graph, {}, &why);
  ASSERT_EQ(groups.size(), 1) << why;
  EXPECT_EQ(groups[0].nodes.size(), 4);  // Cast, MatMul, Mul, Add
  EXPECT_NE(why.find("weights are widened on the way"), std::string::npos) << why;
}

TEST(NarrowWeights, CyclesGrowWithRowsAndBytes) {
  const Target target = Target::parse("sapphirerapids").value();
  for (int64_t rows = 1; rows < 200; ++rows)
    for (const DType type : {kInt8, kFloat16, kFloat32})
      EXPECT_LE(cycles_of_weights(rows, type, target), cycles_of_weights(rows + 1, type, target));
  EXPECT_LT(cycles_of_weights(1, kInt8, target), cycles_of_weights(1, kFloat16, target));
  EXPECT_LT(cycles_of_weights(1, kFloat16, target), cycles_of_weights(1, kFloat32, target));
  EXPECT_GT(cycles_of_weights(128, kInt8, target), cycles_of_weights(128, kFloat32, target));
}

}  // namespace
}  // namespace tensmith::graph
