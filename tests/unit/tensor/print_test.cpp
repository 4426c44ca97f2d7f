#include "tensor/print.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tensor/parse.h"
#include "tests/support/golden.h"
#include "tests/support/round_trip.h"

namespace tensmith {
namespace {

const Var i("i"), j("j"), n("n");
const Var x("x", kFloat32), h("h", kFloat16), b("b", kBool), u("u", kUInt8), w("w", kInt32);
const Var v("v", kFloat32.with_lanes(8));

TEST(Print, InfixNeedsOnlyTheParenthesesThatChangeMeaning) {
  const Expr a(i), c(j), d(n);
  EXPECT_EQ(to_string(a + c * d), "i + j * n");
  EXPECT_EQ(to_string((a + c) * d), "(i + j) * n");
  EXPECT_EQ(to_string(a - (c - d)), "i - (j - n)");
  EXPECT_EQ(to_string(a - c - d), "i - j - n");
  EXPECT_EQ(to_string(floor_mod(floor_div(a, 16), c) * 4), "i // 16 % j * 4");
  EXPECT_EQ(to_string(a * floor_mod(c, 16)), "i * (j % 16)");
  EXPECT_EQ(to_string((a < c) && ((c < d) || logical_not(b))), "i < j && (j < n || !b)");
  EXPECT_EQ(to_string(Binary::make(BinaryOp::kEQ, a < c, b)), "(i < j) == b");
  EXPECT_EQ(to_string(Binary::make(BinaryOp::kAnd, Binary::make(BinaryOp::kShl, a, c), d)), "i << j & n");
  EXPECT_EQ(to_string(Not::make(Binary::make(BinaryOp::kXor, a, c))), "~(i ^ j)");
  EXPECT_EQ(to_string(trunc_div(a, c)), "trunc_div(i, j)");
  EXPECT_EQ(to_string(min(a, max(c, 3))), "min(i, max(j, 3))");
}

TEST(Print, ConstantsCarryTheirTypeWhereNothingElseGivesIt) {
  EXPECT_EQ(to_string(Expr(7)), "7");
  EXPECT_EQ(to_string(IntImm::make(kInt8, -7)), "-7i8");
  EXPECT_EQ(to_string(IntImm::make(kUInt64, -1)), "18446744073709551615u64");
  EXPECT_EQ(to_string(IntImm::make(kInt64, INT64_MIN)), "-9223372036854775808");
  EXPECT_EQ(to_string(make_bool(true)), "true");
  EXPECT_EQ(to_string(make_const(kFloat32, 0.1)), "0.1");
  EXPECT_EQ(to_string(make_const(kFloat64, 0.1)), "0.1f64");
  EXPECT_EQ(to_string(make_const(kFloat16, 0.1)), "0.099975586f16");
  EXPECT_EQ(to_string(make_const(kFloat32, 1)), "1.0");
  EXPECT_EQ(to_string(make_const(kFloat32, 1e30)), "1e+30");
  EXPECT_EQ(to_string(make_const(kFloat64, -std::numeric_limits<double>::infinity())), "-inf_f64");
  EXPECT_EQ(to_string(make_const(kBFloat16, std::nan(""))), "nan_bf16");
  EXPECT_EQ(to_string(Expr(h) + make_const(kFloat16, 2)), "h + 2.0");
  EXPECT_EQ(to_string(Expr(u) < make_const(kUInt8, 200)), "u < 200");
  EXPECT_EQ(to_string(Expr(v) * make_const(kFloat32, 0.5)), "v * 0.5");
  EXPECT_EQ(to_string(make_const(kInt32.with_lanes(4), 3)), "broadcast(3i32, 4)");
  EXPECT_EQ(to_string(select(b, make_const(kFloat16, 1), make_const(kFloat16, 2))), "select(b, 1.0f16, 2.0f16)");
  EXPECT_EQ(to_string(max(Expr(w), make_const(kInt32, 0))), "max(w, 0)");
}

TEST(Print, NamesAreUniqueAndFreeOfReservedWords) {
  const Buffer a = make_buffer("a", kFloat32, {10});
  const auto loop = [&](const char* name) {
    const Var var(name);
    return For::make(var, 0, 10, ForKind::kSerial, Store::make(a, {var}, make_zero(kFloat32)));
  };
  EXPECT_EQ(
      to_string(Block::make({loop("i"), loop("i"), loop("i_1"), loop("for"), loop("f32"), loop("x.outer"), loop("")})),
      "for i in 10 {\n  a[i] = 0.0\n}\n"
      "for i_1 in 10 {\n  a[i_1] = 0.0\n}\n"
      "for i_2 in 10 {\n  a[i_2] = 0.0\n}\n"
      "for for_1 in 10 {\n  a[for_1] = 0.0\n}\n"
      "for f32 in 10 {\n  a[f32] = 0.0\n}\n"
      "for x_outer in 10 {\n  a[x_outer] = 0.0\n}\n"
      "for v in 10 {\n  a[v] = 0.0\n}\n");
}

TEST(Print, OneVariableBoundTwiceGetsTwoNames) {
  const Buffer a = make_buffer("a", kInt64, {10});
  const Stmt inner = For::make(i, 0, 5, ForKind::kSerial, Store::make(a, {i}, i));
  const Stmt nest = For::make(i, 0, 2, ForKind::kSerial, Block::make({inner, Store::make(a, {i}, Expr(i) + 1)}));
  EXPECT_EQ(to_string(nest),
            "for i in 2 {\n"
            "  for i_1 in 5 {\n    a[i_1] = i_1\n  }\n"
            "  a[i] = i + 1\n"
            "}\n");
}

TEST(Print, EveryStatementGolden) {
  expect_golden("tensor/every_statement.txt", to_string(every_statement_function()));
}
TEST(Print, EveryExpressionGolden) {
  expect_golden("tensor/every_expression.txt", to_string(every_expression_function()));
}

TEST(Print, ALetThatIsNotLastGetsItsOwnBraces) {
  const Buffer a = make_buffer("a", kInt64, {10});
  const Stmt let = LetStmt::make(j, Expr(3), Store::make(a, {j}, j));
  EXPECT_EQ(to_string(Block::make({let, Store::make(a, {0}, Expr(1))})),
            "{\n  let j: i64 = 3\n  a[j] = j\n}\na[0] = 1\n");
  EXPECT_EQ(to_string(Block::make({Store::make(a, {0}, Expr(1)), let})), "a[0] = 1\nlet j: i64 = 3\na[j] = j\n");
}

}  // namespace
}  // namespace tensmith
