// Simplification of statements: what is dropped and replaced, which facts count where, and random programs that must
// compute the same before and after.

#include <gtest/gtest.h>

#include <cstdlib>

#include "tensor/equal_hash.h"
#include "tensor/print.h"
#include "tensor/simplify.h"
#include "tensor/verify.h"
#include "tests/support/random_loops.h"

namespace tensmith {
namespace {

Stmt loop(const Var& v, const Expr& extent, Stmt body, ForKind kind = ForKind::kSerial) {
  return For::make(v, 0, extent, kind, std::move(body));
}
Expr number(double value) { return FloatImm::make(kFloat32, value); }

class SimplifyStmtTest : public ::testing::Test {
 protected:
  std::string text(const Stmt& s, const Facts& facts = {}) const {
    const Stmt simple = simplify(s, facts);
    EXPECT_TRUE(equal(simplify(simple, facts), simple));
    return simple ? to_string(simple) : "";
  }
  Stmt store(const Expr& at, Expr value = number(1)) const { return Store::make(C, {at}, std::move(value)); }

  Var M{"M"}, i{"i"}, j{"j"}, x{"x"};
  Buffer C = make_buffer("C", kFloat32, {Expr(1000)});
  Buffer idx = make_buffer("idx", kInt64, {Expr(1000)});
};

TEST_F(SimplifyStmtTest, LoopsThatRunNeverOrOnce) {
  EXPECT_EQ(text(loop(i, 0, store(i))), "");
  EXPECT_EQ(text(loop(i, min(M, 0), store(i))), "");
  EXPECT_EQ(text(loop(i, 1, store(i + 2))), "C[2] = 1.0\n");
  EXPECT_EQ(text(For::make(i, M, Expr(1), ForKind::kParallel, store(i + 2))), "C[M + 2] = 1.0\n");
  EXPECT_EQ(text(loop(j, 8, loop(i, floor_div(j, 8), store(i)))), "");
  EXPECT_EQ(text(loop(j, 8, loop(i, floor_div(j, 8) + 1, store(i + j)))), "for j in 8 {\n  C[j] = 1.0\n}\n");
  EXPECT_EQ(text(loop(i, min(max(M, 0), 1), store(i + 2))), "if 1 <= M {\n  C[2] = 1.0\n}\n");
  // A loaded start keeps its name: the body may overwrite it.
  const Stmt loaded =
      For::make(i, load(idx, {Expr(0)}), Expr(1), ForKind::kSerial, Block::make({store(i), store(i + 1)}));
  EXPECT_EQ(text(loaded), "let i: i64 = idx[0]\nC[i] = 1.0\nC[i + 1] = 1.0\n");
}

TEST_F(SimplifyStmtTest, BranchesKnowTheirCondition) {
  const auto branch = [&](const Expr& cond) { return If::make(cond, store(0), store(1)); };
  EXPECT_EQ(text(loop(i, 8, If::make(i < 8, store(i)))), "for i in 8 {\n  C[i] = 1.0\n}\n");
  EXPECT_EQ(text(loop(i, 8, If::make(i >= 8, store(i)))), "");
  EXPECT_EQ(text(If::make(M < 5, branch(M < 7))), "if M < 5 {\n  C[0] = 1.0\n}\n");
  EXPECT_EQ(text(If::make(M < 5, Stmt(), branch(M < 3))), "if 5 <= M {\n  C[1] = 1.0\n}\n");
  EXPECT_EQ(text(If::make(M < 5, loop(i, 0, store(i)), store(2))), "if 5 <= M {\n  C[2] = 1.0\n}\n");
  EXPECT_EQ(text(If::make(M == 4, store(M * 2))), "if M == 4 {\n  C[8] = 1.0\n}\n");
  // Memory may change between the condition and its use.
  const Expr flag = load(idx, {Expr(0)}) == 0;
  const Stmt changing = If::make(flag, Block::make({Store::make(idx, {Expr(0)}, Expr(1)), If::make(flag, store(0))}));
  EXPECT_EQ(text(changing), to_string(changing));
  EXPECT_EQ(text(Block::make({Assert::make(M < 5, 1, "small"), branch(M < 7)})),
            "assert M < 5, 1, \"small\"\nC[0] = 1.0\n");
}

TEST_F(SimplifyStmtTest, TilesLoseTheirGuards) {
  const Var io("io"), ii("ii");
  const Expr row = io * 6 + ii;
  const auto nest = [&](const Expr& tiles) { return loop(io, tiles, loop(ii, 6, If::make(row < M, store(row)))); };
  EXPECT_EQ(text(nest(floor_div(M, 6))), "for io in M // 6 {\n  for ii in 6 {\n    C[io * 6 + ii] = 1.0\n  }\n}\n");
  Facts facts;
  facts.set(M, {.lo = 12, .hi = 12});
  EXPECT_EQ(text(nest(ceil_div(M, 6)), facts), "for io in 2 {\n  for ii in 6 {\n    C[io * 6 + ii] = 1.0\n  }\n}\n");
  EXPECT_EQ(text(nest(ceil_div(M, 6))),
            "for io in (M + 5) // 6 {\n  for ii in 6 {\n    if io * 6 + ii < M {\n      C[io * 6 + ii] = 1.0\n    }\n  "
            "}\n}\n");
}

TEST_F(SimplifyStmtTest, ClippedTapsKnowTheirEdge) {
  // Taps of a convolution at the left edge: the loop runs only for x == 0, so conditions on x inside are decided.
  const Var tap("tap");
  const Stmt edge = loop(x, 4, loop(tap, max(x * -14, -1) + 1, If::make(x >= 1, store(x), store(tap))));
  EXPECT_EQ(text(edge), "for x in 4 {\n  if x < 1 {\n    C[0] = 1.0\n  }\n}\n");
}

TEST_F(SimplifyStmtTest, Lets) {
  EXPECT_EQ(text(LetStmt::make(x, Expr(3), store(x + 1))), "C[4] = 1.0\n");
  EXPECT_EQ(text(loop(i, 8, LetStmt::make(x, i, store(x + 1)))), "for i in 8 {\n  C[i + 1] = 1.0\n}\n");
  EXPECT_EQ(text(LetStmt::make(x, M * 2, store(0))), "C[0] = 1.0\n");
  EXPECT_EQ(text(LetStmt::make(x, M * 2, store(x))), "let x: i64 = M * 2\nC[x] = 1.0\n");
  EXPECT_EQ(text(LetStmt::make(x, M * 2, If::make(floor_mod(x, 2) == 0, store(x)))),
            "let x: i64 = M * 2\nC[x] = 1.0\n");
  EXPECT_EQ(text(loop(i, 4, LetStmt::make(x, i * 2, If::make(x < 7, store(x))))),
            "for i in 4 {\n  let x: i64 = i * 2\n  C[x] = 1.0\n}\n");
  const Var y("y");
  EXPECT_EQ(text(LetStmt::make(x, M * 2, LetStmt::make(y, x * M, store(0)))),
            "C[0] = 1.0\n");  // unused by way of each other
}

TEST_F(SimplifyStmtTest, StoresAndEffects) {
  const Expr off = Broadcast::make(make_bool(false), 8), on = Broadcast::make(make_bool(true), 8);
  const Expr lanes = Ramp::make(Expr(0), Expr(1), 8);
  EXPECT_EQ(text(Store::make(C, {lanes}, Broadcast::make(number(0), 8), off)), "");
  EXPECT_EQ(text(Store::make(C, {lanes}, Broadcast::make(number(0), 8), on)), "C[ramp(0, 1, 8)] = 0.0\n");
  EXPECT_EQ(text(Evaluate::make(M + 1)), "");
  const Stmt effect = Evaluate::make(Call::make_extern(kInt32, "f", {M}));
  EXPECT_EQ(text(effect), to_string(effect));
  EXPECT_EQ(text(Allocate::make(make_buffer("t", kFloat32, {Expr(4)}), loop(i, 0, store(i)))), "");
  EXPECT_EQ(text(While::make(make_bool(false), store(0))), "");
}

TEST_F(SimplifyStmtTest, UnchangedProgramsStayTheSameNodes) {
  const Stmt s = loop(i, M, loop(j, 8, If::make(i < j, store(i * 8 + j))));
  EXPECT_TRUE(simplify(s).same_as(s));
}

int64_t from_env(const char* name, int64_t usual) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : usual;
}

TEST_F(SimplifyStmtTest, RandomProgramsComputeTheSame) {
  const int64_t first = from_env("TS_FUZZ_SEED", 0), count = from_env("TS_FUZZ_COUNT", 200);
  for (int64_t seed = first; seed < first + count; ++seed) {
    const RandomLoops random = random_loops(static_cast<uint64_t>(seed));
    LoopFunction simple = random.function;
    simple.body = simplify(simple.body);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_string(random.function) + "\n" + to_string(simple));
    EXPECT_TRUE(equal(simplify(simple.body), simple.body)) << to_string(simplify(simple.body));
    std::vector<InterpValue> expected = random.buffers, actual = random.buffers;
    const auto run = [&](const LoopFunction& f, std::vector<InterpValue>& buffers) {
      std::vector<InterpValue*> pointers;
      for (InterpValue& value : buffers) pointers.push_back(&value);
      const Result<void> ran = interpret(f, pointers, random.scalars, InterpFloat::kRounded, 10000000);
      EXPECT_TRUE(ran.ok()) << ran.failure().message;
    };
    run(random.function, expected);
    run(simple, actual);
    for (size_t k = 0; k < expected.size(); ++k) expect_same(actual[k], expected[k], random.function.buffers[k]->name);
    // What the verifier accepts it also accepts simplified.
    const Result<void> before = verify(random.function), after = verify(simple);
    EXPECT_TRUE(after.ok() || !before.ok()) << after.failure().message;
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tensmith
