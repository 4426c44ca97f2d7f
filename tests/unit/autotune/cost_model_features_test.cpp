// Features of small loops against what one computes by hand, and the answers of the closed form to changes of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "autotune/cost_model/analytic_cycles.h"
#include "autotune/cost_model/features.h"
#include "autotune/cost_model/footprint.h"
#include "tensor/parse.h"
#include "tests/support/workloads.h"

namespace tensmith {
namespace {

const Target& machine() {
  static const Target target = Target::parse("sapphirerapids,cores=4,l1=48K,l2=2M,l3=32M").value();
  return target;
}

LoopTree tree_of(const std::string& text, int threads = 1) {
  const Result<LoopFunction> function = parse_function(text);
  if (!function.ok()) throw std::runtime_error(function.failure().message);
  return read_loop_tree(function.value(), threads);
}

KernelFacts facts_of(const std::string& text, int threads = 1) {
  return kernel_facts(tree_of(text, threads), machine());
}

/// The nest with most instructions.
const NestFacts& main_nest(const KernelFacts& facts) {
  return *std::max_element(facts.nests.begin(), facts.nests.end(), [](const NestFacts& a, const NestFacts& b) {
    return a.turns * (a.ops[0] + a.ops[1] + a.vector_loads) < b.turns * (b.ops[0] + b.ops[1] + b.vector_loads);
  });
}

double ops(const NestFacts& nest, OpKind kind) { return nest.ops[static_cast<size_t>(kind)]; }

/// A register tile of rows x vectors over 256 steps, `blocks` times `columns` of them.
std::string product(int rows, int vectors, int blocks = 8, int columns = 4, const char* kind = "for",
                    const std::string& prefetch = "") {
  const std::string r = std::to_string(rows), v = std::to_string(vectors), all = std::to_string(16 * vectors);
  return "func f(A: f32[" + std::to_string(rows * blocks) + ", 256], B: f32[" + std::to_string(columns) + ", 256, " +
         all + "], C: f32[" + std::to_string(rows * blocks) + ", " + std::to_string(16 * vectors * columns) +
         "]) -> C {\n " + kind + " io in " + std::to_string(blocks) + " {\n  for jo in " + std::to_string(columns) +
         " {\n   alloc T: f32[" + r + ", " + all + "] register\n   for k in 256 {\n" + prefetch + "    unrolled i in " +
         r + " {\n     unrolled v in " + v +
         " {\n      vectorized l in 16 {\n       T[i, v * 16 + l] = T[i, v * 16 + l] + A[io * " + r +
         " + i, k] * B[jo, k, v * 16 + l]\n      }\n     }\n    }\n   }\n   unrolled i2 in " + r +
         " {\n    unrolled v2 in " + v + " {\n     vectorized l2 in 16 {\n      C[io * " + r + " + i2, jo * " + all +
         " + v2 * 16 + l2] = T[i2, v2 * 16 + l2]\n     }\n    }\n   }\n  }\n }\n}\n";
}

TEST(Features, RegisterTileByHand) {
  const KernelFacts facts = facts_of(product(14, 2));
  ASSERT_EQ(facts.nests.size(), 2u);
  const NestFacts& nest = main_nest(facts);
  EXPECT_DOUBLE_EQ(ops(nest, OpKind::kFma), 28);
  EXPECT_DOUBLE_EQ(ops(nest, OpKind::kMul), 0);
  EXPECT_DOUBLE_EQ(ops(nest, OpKind::kAdd), 0);
  EXPECT_DOUBLE_EQ(nest.vector_loads, 2);   // B once for all rows
  EXPECT_DOUBLE_EQ(nest.scalar_loads, 14);  // A once for all vectors
  EXPECT_DOUBLE_EQ(nest.stores, 0);
  EXPECT_DOUBLE_EQ(nest.accumulators, 28);
  EXPECT_DOUBLE_EQ(nest.rows, 14);
  EXPECT_DOUBLE_EQ(nest.vectors, 2);
  EXPECT_LE(nest.live, 32);
  EXPECT_DOUBLE_EQ(nest.lanes, 16);
  EXPECT_DOUBLE_EQ(nest.unroll, 28);
  EXPECT_DOUBLE_EQ(nest.turns, 8 * 4 * 256);
  EXPECT_DOUBLE_EQ(nest.extent, 256);
  EXPECT_DOUBLE_EQ(nest.entries, 32);
  EXPECT_DOUBLE_EQ(nest.chain, 4);
  EXPECT_DOUBLE_EQ(facts.flops, 2.0 * 112 * 128 * 256);
  // A whole, B whole, C whole.
  EXPECT_NEAR(facts.kernel_bytes, 4.0 * (112 * 256 + 4 * 256 * 32 + 112 * 128), 1);
  // A turn: a line of each of 14 rows of A, 2 lines of B.
  EXPECT_NEAR(nest.turn_bytes, 16 * 64, 1);
  // In all, 114,688 + 131,072 + 57,344 bytes stay in L2, not in L1.
  EXPECT_GT(nest.misses[0], 2048 * 8 - 1);  // B comes from L2 for each block of rows
  EXPECT_DOUBLE_EQ(nest.misses[1], 0);
  const AccessFacts& heaviest = nest.accesses[0];
  EXPECT_DOUBLE_EQ(heaviest.weight, 28.0 * 16 * 8 * 4 * 256);
}

TEST(Features, SerialLoopsByHand) {
  const KernelFacts facts = facts_of(
      "func f(X: f32[100, 33], Y: f32[33, 100]) -> Y {\n for i in 33 {\n  for j in 100 {\n   Y[i, j] = X[j, i] * X[j, "
      "i] "
      "+ 1.0\n  }\n }\n}\n");
  ASSERT_EQ(facts.nests.size(), 1u);
  const NestFacts& nest = facts.nests[0];
  EXPECT_DOUBLE_EQ(ops(nest, OpKind::kFma), 1);
  EXPECT_DOUBLE_EQ(nest.scalar_ops, 1);
  EXPECT_DOUBLE_EQ(nest.scalar_loads, 1);  // the same element twice
  EXPECT_DOUBLE_EQ(nest.stores, 1);
  EXPECT_DOUBLE_EQ(nest.lanes, 1);
  ASSERT_EQ(nest.accesses.size(), 2u);
  const AccessFacts& read = nest.accesses[nest.accesses[0].is_write ? 1 : 0];
  EXPECT_DOUBLE_EQ(read.stride, 33);
  EXPECT_DOUBLE_EQ(read.bytes, 400);
  EXPECT_DOUBLE_EQ(read.distinct_bytes, 400);
  EXPECT_DOUBLE_EQ(read.distinct_lines, 100);  // each on a line of its own
  EXPECT_EQ(read.reuse, Reuse::kNone);
  // All of it stays in L1.
  EXPECT_DOUBLE_EQ(nest.misses[0], 0);
}

TEST(Features, KindsOfAccess) {
  const KernelFacts facts = facts_of(
      "func f(X: f32[64, 64], I: i64[64], Y: f32[64, 64]) -> Y {\n for i in 64 {\n  for o in 4 {\n   vectorized l in "
      "16 "
      "{\n    Y[i, o * 16 + l] = X[o * 16 + l, i] + X[i, I[o * 16 + l]] + X[i, 0]\n   }\n  }\n }\n}\n");
  const NestFacts& nest = main_nest(facts);
  EXPECT_DOUBLE_EQ(nest.strided, 16);  // X[o * 16 + l, i]
  EXPECT_DOUBLE_EQ(nest.gathers, 16);
  EXPECT_DOUBLE_EQ(nest.stores, 1);
  // X[i, 0] is read once for all turns of `o`.
  EXPECT_DOUBLE_EQ(nest.scalar_loads, 0.25);
}

TEST(Features, GuardsCountByHowOftenTheyHold) {
  const KernelFacts facts = facts_of(
      "func f(X: f32[1000], Y: f32[1000]) -> Y {\n for i in 100 {\n  for j in 40 {\n   if i * 40 + j < 1000 {\n    Y[i "
      "* "
      "40 + j] = X[i * 40 + j] + 1.0\n   }\n  }\n }\n}\n");
  const NestFacts& nest = facts.nests[0];
  EXPECT_NEAR(nest.chance, 0.25, 0.03);
  EXPECT_DOUBLE_EQ(nest.guards, 1);
  EXPECT_NEAR(ops(nest, OpKind::kAdd), 0.25, 0.03);
}

TEST(Features, FusedLoopsAreTakenApart) {
  const LoopTree tree = tree_of(
      "func f(X: f32[12, 7, 64], Y: f32[12, 7, 64]) -> Y {\n parallel p in 84 {\n  let i: i64 = p // 7\n  let j: i64 = "
      "p "
      "% 7\n  for k in 64 {\n   Y[i, j, k] = X[i, j, k] + 1.0\n  }\n }\n}\n");
  ASSERT_EQ(tree.loops.size(), 4u);
  EXPECT_DOUBLE_EQ(tree.loops[1].extent, 12);
  EXPECT_DOUBLE_EQ(tree.loops[2].extent, 7);
  EXPECT_EQ(tree.stores[0].accesses.back().strides, (std::vector<double>{0, 448, 64, 1}));
}

TEST(Features, WindowsOverlap) {
  const LoopTree tree = tree_of(
      "func f(X: f32[30, 30], Y: f32[28, 28]) -> Y {\n for i in 28 {\n  for j in 28 {\n   for a in 3 {\n    for b in 3 "
      "{\n "
      "    Y[i, j] = Y[i, j] + X[i + a, j + b]\n    }\n   }\n  }\n }\n}\n");
  const TreeAccess* read = nullptr;
  for (const TreeAccess& access : tree.stores[0].accesses)
    if (tree.buffers[static_cast<size_t>(access.buffer)].bytes == 3600) read = &access;
  ASSERT_NE(read, nullptr);
  const std::vector<int> path = tree.path(tree.stores[0].loop);
  EXPECT_DOUBLE_EQ(footprint_of(tree, *read, path, 4, machine()).bytes, 12);
  EXPECT_DOUBLE_EQ(footprint_of(tree, *read, path, 3, machine()).bytes, 36);
  EXPECT_DOUBLE_EQ(footprint_of(tree, *read, path, 2, machine()).bytes, 3 * 30 * 4);
  EXPECT_DOUBLE_EQ(footprint_of(tree, *read, path, 1, machine()).bytes, 3600);
}

TEST(Features, ThreadsWithoutWork) {
  const auto idle = [](int blocks, int threads) {
    return facts_of(product(8, 2, blocks, 4, "parallel"), threads).idle;
  };
  EXPECT_NEAR(idle(8, 4), 0, 1e-9);
  EXPECT_NEAR(idle(3, 4), 0.25, 1e-9);
  EXPECT_NEAR(idle(5, 4), 1 - 5.0 / 8, 1e-9);
  EXPECT_NEAR(idle(1, 2), 0.5, 1e-9);
  const KernelFacts serial = facts_of(product(8, 2, 8, 4), 4);
  EXPECT_NEAR(serial.idle, 0.75, 1e-9);
  EXPECT_DOUBLE_EQ(serial.serial_share, 1);
  EXPECT_DOUBLE_EQ(facts_of(product(8, 2, 8, 4, "parallel"), 4).starts, 1);
}

TEST(Features, NamesAndPlacesHaveNoInfluence) {
  std::string text = product(6, 2);
  const KernelFeatures before = features_of(parse_function(text).value(), machine(), 2);
  for (size_t at = 0; (at = text.find("io", at)) != std::string::npos; at += 4) text.replace(at, 2, "conv");
  text.replace(text.find("func f"), 6, "func depthwise");
  EXPECT_EQ(before, features_of(parse_function(text).value(), machine(), 2));
  EXPECT_EQ(before.kernel.size(), kernel_feature_names().size());
  EXPECT_EQ(before.nests.size(), 2 * nest_feature_names().size());
  for (const auto* row : {&before.kernel, &before.nests})
    for (float value : *row) EXPECT_TRUE(std::isfinite(value));
}

TEST(Features, EveryWorkloadHasThem) {
  for (const WorkloadCase& c : workload_cases()) {
    ScheduleRequest request;
    request.target = machine();
    request.threads = 2;
    for (const Schedule& schedule : {default_schedule(c.workload, request), plain_schedule(c.workload, request)}) {
      const KernelFeatures features = features_of(schedule, request);
      EXPECT_GT(features.nests.size(), 0u) << c.name;
      EXPECT_GE(features.analytic_cycles, 1) << c.name;
      EXPECT_EQ(features, features_of(schedule, request)) << c.name;
      for (const auto* row : {&features.kernel, &features.nests})
        for (float value : *row) EXPECT_TRUE(std::isfinite(value)) << c.name;
    }
  }
}

TEST(AnalyticCycles, AnswerToChanges) {
  const auto cycles = [](const std::string& text, int threads = 1) { return kernel_cycles(facts_of(text, threads)); };
  const double tile = cycles(product(14, 2));
  // About the FMAs by two ports: 28 FMAs in 14 cycles a turn.
  EXPECT_GT(tile, 32 * 256 * 14);
  EXPECT_LT(tile, 1.5 * 32 * 256 * 14);
  // More accumulators than registers spill: 28 rows in one tile against the same work in two.
  EXPECT_GT(cycles(product(28, 2, 4)), 1.3 * tile);
  // Few accumulators wait for their latencies and load more.
  EXPECT_GT(cycles(product(1, 1, 112, 8)), 2 * tile);
  // Scalar code takes far longer.
  EXPECT_GT(
      cycles("func f(A: f32[112, 256], B: f32[256, 128], C: f32[112, 128]) -> C {\n for i in 112 {\n  for j in 128 "
             "{\n   for k in 256 {\n    C[i, j] = C[i, j] + A[i, k] * B[k, j]\n   }\n  }\n }\n}\n"),
      8 * tile);
  // Threads help, idle ones do not.
  const double two = cycles(product(14, 2, 8, 4, "parallel"), 2);
  EXPECT_LT(two, 0.7 * tile);
  EXPECT_GT(cycles(product(14, 2, 9, 4, "parallel"), 4), 1.3 * cycles(product(14, 2, 8, 4, "parallel"), 4));
  // Data from beyond a cache costs more for the same work.
  EXPECT_GT(cycles(product(14, 2, 8, 400)) / 100, 1.02 * tile);
}

TEST(AnalyticCycles, CacheShareFallsWithTheWorkingSet) {
  double before = 1;
  for (double bytes = 1 << 10; bytes < (1 << 20); bytes *= 1.3) {
    const double now = stays_in_cache(bytes, 48 << 10);
    EXPECT_LE(now, before);
    before = now;
  }
  EXPECT_DOUBLE_EQ(stays_in_cache(1 << 10, 48 << 10), 1);
  EXPECT_DOUBLE_EQ(before, 0);
}

}  // namespace
}  // namespace tensmith
