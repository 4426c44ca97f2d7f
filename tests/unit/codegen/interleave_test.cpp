// Copies of long chains that run in turn: the order of the code, and results where reads and writes meet.
#include <sstream>

#include "tests/unit/codegen/run_code.h"

namespace tensmith {
namespace {

constexpr int kLanes = 8, kCopies = 4;

/// A chain of dependent steps that is exact in int32.
Expr chain(Expr v) {
  for (int step = 0; step < 10; ++step) v = max(v + (step * 3 - 11), v * 5 - step);
  return v;
}

Expr vector_load(const Buffer& b, const Expr& base) { return Load::make(b, {Ramp::make(base, Expr(1), kLanes)}); }

/// For each i: four vectors of `to` from `from`, `distance` elements behind.
LoopFunction copies(const Buffer& from, const Buffer& to, int64_t distance, bool sums) {
  const Var i("i");
  std::vector<Stmt> body;
  for (int copy = 0; copy < kCopies; ++copy) {
    const Expr at = i * (kLanes * kCopies) + copy * kLanes;
    const Expr value = chain(vector_load(from, at));
    body.push_back(
        Store::make(to, {Ramp::make(at + distance, Expr(1), kLanes)}, sums ? value + vector_load(to, at) : value));
  }
  std::vector<Buffer> buffers{from};
  if (!to.same_as(from)) buffers.push_back(to);
  return {"f", buffers, {}, {to}, For::make(i, Expr(0), Expr(5), ForKind::kSerial, Block::make(body)), {}};
}

InterpValue counted(int count) {
  std::vector<int64_t> numbers;
  for (int k = 0; k < count; ++k) numbers.push_back(k * 37 - 90);
  return int_values(kInt32, numbers);
}

class InterleaveTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Targets, InterleaveTest, testing::ValuesIn(runnable_targets()),
                         [](const auto& info) { return test_name(info.param); });

TEST_P(InterleaveTest, SameResultsWhereverReadsAndWritesMeet) {
  const Buffer x = make_buffer("x", kInt32, {Expr(200)}), y = make_buffer("y", kInt32, {Expr(200)});
  for (int64_t distance : {0, 1, kLanes, 3 * kLanes}) {
    for (bool sums : {false, true}) {
      for (bool in_place : {false, true}) {
        const LoopFunction f = copies(x, in_place ? x : y, distance, sums);
        InterpValue a = counted(200), b = counted(200), want_a = a, want_b = b;
        std::vector<InterpValue*> got{&a}, want{&want_a};
        if (!in_place) got.push_back(&b), want.push_back(&want_b);
        ASSERT_TRUE(interpret(f, want, {}).ok());
        ASSERT_EQ(run_code(f, GetParam(), got), 0);
        expect_equal(*got.back(), *want.back(), "distance " + std::to_string(distance));
      }
    }
  }
}

/// Reads of vectors that stand before the first write.
int reads_before_writes(const LoopFunction& f, const char* target) {
  CodegenOptions options;
  options.want_asm = true;
  const std::string text = compile({{f}}, Target::parse(target).value(), options).assembly;
  std::istringstream lines(text.substr(text.find("LBB0_1")));
  int reads = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("vmov") == std::string::npos || line.find('(') == std::string::npos) continue;
    if (line.find("%rip") != std::string::npos || line.find("%rsp") != std::string::npos) continue;  // a constant
    if (line.back() == ')') break;
    ++reads;
  }
  return reads;
}

TEST(InterleaveCode, CopiesRunInTurnOnlyWhereNothingChanges) {
  const Buffer x = make_buffer("x", kInt32, {Expr(200)}), y = make_buffer("y", kInt32, {Expr(200)});
  for (const char* target : {"x86-64-v3", "znver4", "sapphirerapids"}) {
    EXPECT_EQ(reads_before_writes(copies(x, y, 0, false), target), kCopies) << target;
    EXPECT_EQ(reads_before_writes(copies(x, x, 0, false), target), kCopies) << target;
    // Each copy reads what the one before it wrote.
    EXPECT_EQ(reads_before_writes(copies(x, x, kLanes, false), target), 1) << target;
    // Buffers that may be the same memory.
    LoopFunction overlapping = copies(x, y, 0, false);
    overlapping.attrs[kMayOverlap] = 3;
    EXPECT_EQ(reads_before_writes(overlapping, target), 1) << target;
  }
}

}  // namespace
}  // namespace tensmith
