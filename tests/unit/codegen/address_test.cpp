// Addresses that the loops around move on: right in every form of index, and without arithmetic in the innermost loop.
#include "codegen/asm_guard.h"
#include "tests/unit/codegen/micro_kernel.h"
#include "tests/unit/codegen/run_code.h"

namespace tensmith {
namespace {

Stmt serial(const Var& v, Expr min, Expr extent, Stmt body) {
  return For::make(v, std::move(min), std::move(extent), ForKind::kSerial, std::move(body));
}

InterpValue counted(int64_t count) {
  std::vector<double> numbers;
  for (int64_t k = 0; k < count; ++k) numbers.push_back(static_cast<double>(k % 251 - 125));
  return values(kFloat32, numbers);
}

class AddressTest : public testing::TestWithParam<std::string> {
 protected:
  /// y[0..99] of float32, after the body ran on x of 4,000 elements, must be what the interpreter gives.
  void check(const Stmt& body, const std::vector<Var>& scalars = {}, const std::vector<int64_t>& numbers = {}) {
    const LoopFunction f{"f", {x, y}, scalars, {y}, body, {}};
    InterpValue in = counted(4000), got = counted(100), want = counted(100), in_again = counted(4000);
    ASSERT_TRUE(interpret(f, {&in_again, &want}, numbers, InterpFloat::kRounded).ok());
    ASSERT_EQ(run_code(f, GetParam(), {&in, &got}, numbers), 0);
    expect_equal(got, want, GetParam());
  }
  Stmt sum_to(const Expr& to, const Expr& from) { return Store::make(y, {to}, load(y, {to}) + load(x, {from})); }

  Buffer x = make_buffer("x", kFloat32, {Expr(4000)}), y = make_buffer("y", kFloat32, {Expr(100)});
  Var i{"i"}, j{"j"}, k{"k"}, n{"n"}, m{"m"}, t{"t"}, u{"u"};
};
INSTANTIATE_TEST_SUITE_P(Targets, AddressTest, testing::ValuesIn(runnable_targets()),
                         [](const auto& info) { return test_name(info.param); });

TEST_P(AddressTest, EveryLoopMovesItsPart) {
  check(serial(i, Expr(1), Expr(9),
               serial(j, Expr(2), Expr(8),
                      serial(k, Expr(0), Expr(3),
                             Block::make({sum_to(i * 10 + j, i * 200 + j * 17 - k * 3 + 12),
                                          sum_to(i * 10 + j, i * 200 + j * 17 - k * 3 + 7), sum_to(j, i + 2)})))));
}

TEST_P(AddressTest, FirstValuesMayBeSymbolicAndDependOnLoopsAround) {
  const Expr first = max(Expr(0), 2 - i), count = min(Expr(7), 10 - i) - first;
  const Stmt body = serial(
      i, m, Expr(9), serial(j, first, count, serial(k, i * 2 + j, Expr(3), sum_to(i * 10 + j, i * 200 + j * n + k))));
  check(body, {n, m}, {19, 0});
  check(body, {n, m}, {3, 1});
}

TEST_P(AddressTest, StridesMayBeSymbolic) {
  const Stmt body = serial(i, Expr(0), Expr(9),
                           serial(j, Expr(1), Expr(8), sum_to(i * 10 + j, n * (i * m) + n * j + j * i * 3 + m * 2)));
  check(body, {n, m}, {5, 7});
  check(body, {n, m}, {1, 0});
}

TEST_P(AddressTest, QuotientsChangeInsideTheirLoop) {
  check(serial(i, Expr(0), Expr(30),
               serial(j, Expr(0), Expr(3),
                      sum_to(floor_div(i, Expr(3)) * 10 + j,
                             floor_mod(i, Expr(4)) * 100 + floor_div(i * 2 + j, Expr(5)) * 3 + min(i, j) * 7))));
  // What divides by zero when its guard does not hold stays behind the guard.
  const Stmt guarded =
      serial(i, Expr(0), Expr(9), If::make(n > 0, serial(j, Expr(0), Expr(8), sum_to(j, floor_div(i * 40, n) + j))));
  check(guarded, {n}, {0});
  check(guarded, {n}, {3});
}

TEST_P(AddressTest, LetsAndReadsInIndices) {
  check(serial(
      i, Expr(0), Expr(9),
      LetStmt::make(
          t, i * 3 + 1,
          serial(j, Expr(0), Expr(8),
                 LetStmt::make(u, t + j * 2, Block::make({sum_to(i * 10 + j, t * 100 + j), sum_to(u, u * 40 + t)}))))));
  // An index that was read, from memory that changes.
  const Expr read = cast(kInt64, load(x, {i * 7 + 130}));
  check(serial(i, Expr(0), Expr(9), serial(j, Expr(0), Expr(8), sum_to(i * 10 + j, read + j + 200))));
  // The same variable means something else inside an expression.
  const Expr inner = Let::make(t, i + 5, load(x, {t * 20 + j}));
  check(
      serial(i, Expr(0), Expr(9),
             LetStmt::make(t, i * 2,
                           serial(j, Expr(0), Expr(8), Store::make(y, {i * 10 + j}, load(x, {t * 20 + j}) + inner)))));
}

TEST_P(AddressTest, BuffersThatLiveInsideALoop) {
  for (Scope scope : {Scope::kGlobal, Scope::kStack}) {
    const Buffer b = make_buffer("b", kFloat32, {Expr(64)}, scope);
    const Stmt fill = serial(j, Expr(0), Expr(8), Store::make(b, {j * 3 + i}, load(x, {i * 90 + j})));
    const Stmt use = serial(j, Expr(0), Expr(8), sum_to(i * 10 + j, j * 5 + i));
    const Stmt add =
        serial(k, Expr(0), Expr(8), Store::make(y, {i * 10 + k}, load(y, {i * 10 + k}) + load(b, {k * 3 + i})));
    check(serial(i, Expr(0), Expr(9), Allocate::make(b, Block::make({fill, use, add}))));
  }
}

TEST_P(AddressTest, ParallelLoopsStartAnywhere) {
  const Stmt inner = serial(j, Expr(0), Expr(8), sum_to(i * 10 + j, i * 300 + j * 2 + n * i));
  check(For::make(i, m, Expr(5), ForKind::kParallel, inner), {n, m}, {3, 4});
  check(serial(k, Expr(0), Expr(3), For::make(i, k * 2, Expr(4), ForKind::kParallel, inner)), {n}, {2});
}

TEST(AddressCode, InnermostLoopsHoldNoAddressArithmetic) {
  // A 3x3 window over 14 pixels of a tile in three loops: the reads of each loop are one pointer each.
  for (const char* name : {"x86-64-v3", "znver4", "sapphirerapids"}) {
    const Target target = Target::parse(name).value();
    CodegenOptions options;
    options.want_asm = true;
    const int rows = target.vector_bits == 512 ? 14 : 6;
    const LoopFunction kernel = make_conv_kernel(rows, 2, target.vector_bits / 32, 3, 58, 4);
    const std::string text = compile({{kernel}}, target, options).assembly;
    const std::vector<AsmFunction> functions = inspect_assembly(text);
    const AsmLoop* loop = functions.at(0).hot_loop();
    ASSERT_NE(loop, nullptr);
    EXPECT_EQ(loop->stack_references, 0) << text;
    // A load per row and column vector, two pointers and the counter moved on, compare and jump.
    EXPECT_LE(loop->instructions, loop->fmas + rows + 2 + 5) << text;
  }
}

TEST(AddressCode, LargeFramesAreMadeBeforeAnythingElse) {
  // Pages of a large frame are touched in a loop that counts in r11, which is free at the very start only.
  const Buffer x = make_buffer("x", kFloat32, {Expr(20000)}),
               b = make_buffer("b", kFloat32, {Expr(20000)}, Scope::kStack);
  const Var n("n"), i("i");
  const Stmt copies = Block::make({serial(i, Expr(0), n, Store::make(b, {i}, load(x, {i}) * 2)),
                                   serial(i, Expr(0), n, Store::make(x, {i}, load(b, {n - i})))});
  const LoopFunction f{"f", {x}, {n}, {x}, If::make(n > 1, Allocate::make(b, copies)), {}};
  CodegenOptions options;
  options.want_asm = true;
  const std::string text = compile({{f}}, Target::parse("x86-64-v3").value(), options).assembly;
  const size_t probe = text.find("%r11"), jump = text.find("\tj");
  ASSERT_NE(probe, std::string::npos) << text;
  EXPECT_LT(probe, jump) << text;
}

}  // namespace
}  // namespace tensmith
