#include "tests/support/random_loops.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tensor/equal_hash.h"
#include "tensor/parse.h"
#include "tensor/print.h"
#include "tensor/walk.h"
#include "tests/support/round_trip.h"

namespace tensmith {
namespace {

/// Number of random programs; TENSMITH_FUZZ_COUNT in the environment sets another one.
uint64_t fuzz_count(uint64_t usual) {
  const char* text = std::getenv("TENSMITH_FUZZ_COUNT");
  return text ? std::strtoull(text, nullptr, 10) : usual;
}

Result<void> run(const LoopFunction& f, std::vector<InterpValue>& buffers, const std::vector<int64_t>& scalars,
                 InterpFloat mode) {
  std::vector<InterpValue*> pointers;
  for (InterpValue& value : buffers) pointers.push_back(&value);
  return interpret(f, pointers, scalars, mode, 10000000);
}

TEST(RandomLoops, RunInBoundsAndRoundTrip) {
  for (uint64_t seed = 0; seed < fuzz_count(150); ++seed) {
    const RandomLoops random = random_loops(seed);
    expect_round_trip(random.function);
    const std::string text = to_string(random.function);
    std::vector<InterpValue> direct = random.buffers, parsed = random.buffers;
    for (const InterpFloat mode : {InterpFloat::kExact, InterpFloat::kRounded}) {
      const Result<void> ran = run(random.function, direct, random.scalars, mode);
      ASSERT_TRUE(ran.ok()) << "seed " << seed << ": " << ran.failure().message << "\n" << text;
      ASSERT_TRUE(run(parse_function(text).value(), parsed, random.scalars, mode).ok()) << text;
      for (size_t k = 0; k < direct.size(); ++k) expect_same(parsed[k], direct[k], random.function.buffers[k]->name);
    }
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed << "\n" << text;
  }
}

TEST(RandomLoops, RepeatForASeed) {
  EXPECT_TRUE(equal(random_loops(5).function, random_loops(5).function));
  EXPECT_FALSE(equal(random_loops(5).function, random_loops(6).function));
}

TEST(RandomLoops, ReachEveryKindOfNode) {
  std::vector<int> seen(static_cast<size_t>(NodeKind::kAssert) + 1);
  const auto note = [&](const auto& node) {
    ++seen[static_cast<size_t>(node->kind)];
    return true;
  };
  for (uint64_t seed = 0; seed < 60; ++seed) visit(random_loops(seed).function.body, note, note);
  for (size_t kind = 0; kind < seen.size(); ++kind) EXPECT_GT(seen[kind], 0) << "node kind " << kind;
}

TEST(RandomLoops, OptionsKeepWhatTheyExclude) {
  RandomLoopOptions options;
  options.types = {kFloat32, kInt32, kInt64};
  options.vectors = options.special_loops = false;
  options.only_exact = true;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const RandomLoops random = random_loops(seed, options);
    visit(
        random.function.body,
        [](const Stmt& s) {
          if (const auto* loop = s.as<For>()) {
            EXPECT_TRUE(loop->for_kind == ForKind::kSerial || loop->for_kind == ForKind::kParallel);
          }
          return true;
        },
        [](const Expr& e) {
          EXPECT_EQ(e.dtype().lanes, 1) << to_string(e);
          if (const auto* call = e.as<Call>()) {
            EXPECT_NE(call->id, Intrinsic::kExp);
          }
          return true;
        });
  }
}

}  // namespace
}  // namespace tensmith
