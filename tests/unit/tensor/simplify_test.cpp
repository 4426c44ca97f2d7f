// The rules of the simplifier by family, on the index arithmetic that tiled loops make.

#include <gtest/gtest.h>

#include <cmath>

#include "tensor/equal_hash.h"
#include "tensor/print.h"
#include "tensor/simplify.h"

namespace tensmith {
namespace {

/// Variables with the ranges that the tests share: outer loops io, co, yo; inner ii < 6, ci < 16, ki < 3; M and N are
/// symbolic.
class SimplifyTest : public ::testing::Test {
 protected:
  SimplifyTest() {
    facts.set(M, {.lo = 1, .hi = 4096});
    facts.set(N, {.lo = 1, .hi = {}});
    range(io, 128);
    range(co, 16);
    range(yo, 14);
    range(ii, 6);
    range(ci, 16);
    range(ki, 3);
    range(j, 100);
  }
  void range(const Var& v, const Expr& extent) { facts.set_range(v, 0, extent); }
  std::string text(const Expr& e) const { return to_string(simplify(e, facts)); }
  bool proves(const Expr& e) const { return can_prove(e, facts); }
  std::string bounds(const Expr& e, const RangeMap& ranges) const {
    const Interval i = bounds_of(e, ranges, facts);
    return "[" + (i.lo ? to_string(i.lo) : "?") + ", " + (i.hi ? to_string(i.hi) : "?") + "]";
  }
  static const VarNode* node(const Var& v) { return static_cast<const VarNode*>(v.get()); }

  Facts facts;
  Var M{"M"}, N{"N"}, io{"io"}, co{"co"}, yo{"yo"}, ii{"ii"}, ci{"ci"}, ki{"ki"}, j{"j"}, x{"x"}, y{"y"};
};

TEST_F(SimplifyTest, SumsAreFlatAndOrdered) {
  EXPECT_EQ(text(x + 0), "x");
  EXPECT_EQ(text((Expr(1) + x) + 2), "x + 3");
  EXPECT_EQ(text(y + x - y), "x");
  EXPECT_EQ(text(x * 2 + x * 3 - x * 5), "0");
  EXPECT_EQ(text((x + 1) * 4 - 4), "x * 4");
  EXPECT_EQ(text(ii + io * 6), "io * 6 + ii");  // outer loops first
  EXPECT_EQ(text(Expr(5) - ii), "5 - ii");
  EXPECT_EQ(text(Expr(0) - ii - 5), "-5 - ii");
  EXPECT_EQ(text((io * 6 + ii) * 768 + ci), "io * 4608 + ii * 768 + ci");
  EXPECT_EQ(text((x * N + y) * M), "y * M + x * M * N");
  EXPECT_EQ(text(x * N - N * x), "0");
}

TEST_F(SimplifyTest, DivisionOfTiles) {
  EXPECT_EQ(text(floor_div(io * 16 + ci, 16)), "io");
  EXPECT_EQ(text(floor_mod(io * 16 + ci, 16)), "ci");
  EXPECT_EQ(text(floor_div(io * 16 + ci + 16, 16)), "io + 1");
  EXPECT_EQ(text(floor_div(io * 64 + ci * 4 + ki, 64)), "io");
  EXPECT_EQ(text(floor_div(io * 64 + ci * 4 + ki, 16)), "io * 4 + ci // 4");
  EXPECT_EQ(text(floor_mod(io * 64 + ci * 4 + ki, 16)), "ci % 4 * 4 + ki");
  EXPECT_EQ(text(floor_div(io * 4 + ki, 8)), "io // 2");
  EXPECT_EQ(text(floor_mod(io * 4 + ki, 8)), "io % 2 * 4 + ki");
  EXPECT_EQ(text(floor_div(floor_div(j, 4), 8)), "j // 32");
  EXPECT_EQ(text(floor_div(floor_mod(x, 32), 8)), "x // 8 % 4");
  EXPECT_EQ(text(floor_mod(floor_mod(x, 32), 8)), "x % 8");
  EXPECT_EQ(text(floor_div(x, 8) * 8 + floor_mod(x, 8)), "x");
  EXPECT_EQ(text(x - floor_div(x, 8) * 8), "x % 8");
  EXPECT_EQ(text(floor_div(x, 32) * 32 + floor_mod(floor_div(x, 8), 4) * 8 + floor_mod(x, 8)), "x");
  EXPECT_EQ(text(floor_mod(floor_div(x, 8), 4) * 8 + floor_mod(x, 8)), "x % 32");
  EXPECT_EQ(text(floor_div(ci, 16)), "0");
  EXPECT_EQ(text(floor_mod(ci, 16)), "ci");
  EXPECT_EQ(text(floor_div(x, -4)), "x * -1 // 4");
  EXPECT_EQ(text(floor_div(Expr(-7), 2)), "-4");
  EXPECT_EQ(text(floor_mod(Expr(-7), 2)), "1");
  EXPECT_EQ(text(trunc_div(Expr(-7), 2)), "-3");
  EXPECT_EQ(text(trunc_mod(Expr(-7), 2)), "-1");
  EXPECT_EQ(text(trunc_div(j, 7)), "j // 7");
  EXPECT_EQ(text(trunc_div(x, Expr(0))), "0");
}

TEST_F(SimplifyTest, DivisionBySymbols) {
  EXPECT_EQ(text(floor_div(x * N, N)), "x");
  EXPECT_EQ(text(floor_mod(x * N, N)), "0");
  range(y, N);
  EXPECT_EQ(text(floor_div(x * N + y, N)), "x");
  EXPECT_EQ(text(floor_mod(x * N + y, N)), "y");
  EXPECT_EQ(text(floor_div(x * N - 1, N)), "x - 1");
  EXPECT_EQ(text(floor_div(x * (N + 1) + y, N + 1)), "x");
  EXPECT_EQ(text(floor_mod(N, N)), "0");
  Var unknown("unknown");
  EXPECT_EQ(text(floor_div(x * unknown, unknown)), "unknown * x // unknown");  // may be zero
}

TEST_F(SimplifyTest, Residues) {
  facts.set(M, {.lo = 16, .hi = 4096, .modulus = 16, .remainder = 0});
  EXPECT_EQ(text(floor_mod(M, 16)), "0");
  EXPECT_EQ(text(floor_div(M, 16) * 16), "M");
  EXPECT_EQ(text(floor_div(M + ci, 16)), "M // 16");
  EXPECT_EQ(text(floor_mod(M * x + 5, 16)), "5");
  EXPECT_TRUE(proves(floor_mod(M * 3 + 8, 8) == 0));
  EXPECT_FALSE(proves(floor_mod(M * 3 + 8, 32) == 8));
  facts.assume(floor_mod(x, 4) == 1);
  EXPECT_EQ(text(floor_mod(x + 3, 4)), "0");
}

TEST_F(SimplifyTest, Comparisons) {
  EXPECT_EQ(text(io * 6 + ii < 768), "true");
  EXPECT_EQ(text(io * 6 + ii < 762), "io < 127");  // the whole tile is inside or outside
  EXPECT_EQ(text(io * 6 + ii < 700), "io * 6 + ii < 700");
  EXPECT_EQ(text(io * 16 + ci >= 256), "16 <= io");
  EXPECT_EQ(text(x + 3 < y + 5), "x < y + 2");
  EXPECT_EQ(text(x + 5 < y + 3), "x + 2 < y");
  EXPECT_EQ(text(logical_not(x < y)), "y < x + 1");
  EXPECT_EQ(text(x * 4 <= y * 8 + 3), "x < y * 2 + 1");
  EXPECT_EQ(text(x * 4 == 6), "false");
  EXPECT_EQ(text(x * 4 != 8), "x != 2");
  EXPECT_EQ(text(x == x + 1), "false");
  EXPECT_EQ(text(io < floor_div(M, 6)), "io * 6 + 5 < M");
  EXPECT_EQ(text(io < ceil_div(M, 6)), "io * 6 < M");
  EXPECT_EQ(text(floor_div(x, 4) < 3), "x < 12");
  EXPECT_EQ(text(x - y == 0), "x == y");
  EXPECT_EQ(text(min(x, 5) < 6), "true");
  EXPECT_EQ(text(Expr(0) <= min(ci, x)), "0 <= x");
  EXPECT_EQ(text(max(ci, x) < 20), "x < 20");
}

TEST_F(SimplifyTest, MinimumAndMaximum) {
  EXPECT_EQ(text(min(ci, 20)), "ci");
  EXPECT_EQ(text(max(ci, 20)), "20");
  EXPECT_EQ(text(min(x + 1, x + 5)), "x + 1");
  EXPECT_EQ(text(max(min(x, 4), min(4, x))), "min(x, 4)");
  EXPECT_EQ(text(max(x, min(x, y))), "x");
  EXPECT_EQ(text(min(min(x, 8), 4)), "min(x, 4)");
  EXPECT_EQ(text(min(io * 6 + 5, M - 1) - io * 6 + 1), "min(M - io * 6, 6)");
  EXPECT_EQ(text(min(io * 6, M - 6) + 5 - min(io * 6, M - 6) + 1), "6");
  EXPECT_EQ(text(min(io * 6 + 5, M - 1) - min(io * 6, M - 6) + 1), "6");
  EXPECT_EQ(text(min(ii, 5)), "ii");
  EXPECT_EQ(text(max(x * -1, -1) + 1), "1 - min(x, 1)");
  EXPECT_EQ(text(max(x * -1, -1) + min(x, 1)), "0");
  EXPECT_EQ(text(max(Expr(0), x - 1)), "max(x, 1) - 1");
  EXPECT_EQ(text(min(M - io * 6, 6)), "min(M - io * 6, 6)");
  EXPECT_EQ(text(max(max(x, 0), 0)), "max(x, 0)");
  EXPECT_EQ(text(floor_div(min(io * 16 + 15, M), 16)), "min(M // 16, io)");
}

TEST_F(SimplifyTest, Selects) {
  EXPECT_EQ(text(select(ci < 16, x, y)), "x");
  EXPECT_EQ(text(select(ci < 0, x, y)), "y");
  EXPECT_EQ(text(select(x < y, M, M)), "M");
  EXPECT_EQ(text(select(logical_not(x == y), x, M)), "select(x != y, x, M)");
  EXPECT_EQ(text(select(x < 8, min(x, 10), 3)), "select(x < 8, x, 3)");
  EXPECT_EQ(text(select(Expr(0) <= y - 1, max(y - 1, 0), y)), "select(1 <= y, y - 1, y)");
  EXPECT_EQ(text(select(x < 8, make_bool(true), make_bool(false))), "x < 8");
  // Each branch counts with the bounds that its condition gives.
  EXPECT_TRUE(proves(select(x < 8, x, Expr(7)) <= 7));
  EXPECT_EQ(text(select(x < y, select(x < y, ci, ii), ki)), "select(x < y, ci, ki)");
}

TEST_F(SimplifyTest, Booleans) {
  const Var p("p", kBool), q("q", kBool);
  EXPECT_EQ(text(p && p), "p");
  EXPECT_EQ(text(p || logical_not(p)), "true");
  EXPECT_EQ(text(p && logical_not(p)), "false");
  EXPECT_EQ(text(p && (p || q)), "p");
  EXPECT_EQ(text(x < 5 && x < 7), "x < 5");
  EXPECT_EQ(text(x < 7 && x < 5), "x < 5");
  EXPECT_EQ(text(x < 5 || x < 7), "x < 7");
  EXPECT_EQ(text(x < 5 && x >= 5), "false");
  EXPECT_EQ(text(ci < 16 && x < y), "x < y");
  EXPECT_EQ(text(logical_not(p == q)), "p != q");
  EXPECT_EQ(text(p == make_bool(true)), "p");
}

TEST_F(SimplifyTest, OtherIntegersKeepWrapping) {
  const Var a("a", kInt8), u("u", kUInt8), w("w", kInt32);
  EXPECT_EQ(text(Binary::make(BinaryOp::kAdd, Binary::make(BinaryOp::kAdd, a, IntImm::make(kInt8, 100)),
                              IntImm::make(kInt8, 100))),
            "a + -56");
  EXPECT_EQ(text(a + IntImm::make(kInt8, 1) > a), "a < a + 1");  // false for 127
  EXPECT_EQ(text(u >= IntImm::make(kUInt8, 0)), "true");
  EXPECT_EQ(text(cast(kInt64, u) < 256), "true");
  EXPECT_EQ(text(cast(kInt32, cast(kInt64, w))), "w");
  EXPECT_EQ(text(cast(kInt64, cast(kInt32, ci))), "ci");
  EXPECT_EQ(text(cast(kInt64, cast(kInt8, x))), "i64(i8(x))");
  EXPECT_EQ(text(Binary::make(BinaryOp::kMul, w, IntImm::make(kInt32, 0))), "0i32");
  EXPECT_EQ(text(trunc_div(w * IntImm::make(kInt32, 2), IntImm::make(kInt32, 2))),
            "trunc_div(w * 2, 2)");  // w * 2 may wrap
}

TEST_F(SimplifyTest, LoadedNumbersMayWrap) {
  const Buffer b = make_buffer("b", kInt64, {Expr(10)});
  const Expr v = load(b, {ii});
  EXPECT_EQ(text(v + 1 > v), "b[ii] < b[ii] + 1");
  EXPECT_EQ(text(floor_div(v * 4, 4)), "b[ii] * 4 // 4");
  EXPECT_EQ(text(v * 2 - v), "b[ii]");
  const Expr clamped = min(max(v, 0), 9);
  EXPECT_EQ(text(floor_div(clamped * 16 + ci, 16)), "min(max(b[ii], 0), 9)");
  EXPECT_TRUE(proves(clamped >= 0 && clamped < 10));
  EXPECT_FALSE(proves(v < 10));
}

TEST_F(SimplifyTest, FloatsKeepEveryBit) {
  const Var f("f", kFloat32), g("g", kFloat32);
  const auto number = [](double value) { return FloatImm::make(kFloat32, value); };
  EXPECT_EQ(text(f * number(1)), "f");
  EXPECT_EQ(text(f + number(0.0)), "f + 0.0");  // not for -0
  EXPECT_EQ(text(f + number(-0.0)), "f");
  EXPECT_EQ(text(f - number(0.0)), "f");
  EXPECT_EQ(text(f * number(0)), "f * 0.0");
  EXPECT_EQ(text(f - f), "f - f");
  EXPECT_EQ(text(f / number(4)), "f * 0.25");
  EXPECT_EQ(text(f / number(3)), "f / 3.0");
  EXPECT_EQ(text((f + number(1)) + number(2)), "f + 1.0 + 2.0");
  EXPECT_EQ(text(number(0.1) + number(0.2)), to_string(number(0.1f + 0.2f)));
  EXPECT_EQ(text(max(max(f, number(0)), number(0))), "max(f, 0.0)");
  EXPECT_EQ(text(f == f), "f == f");  // false for NaN
  EXPECT_EQ(text(f < f), "false");
  EXPECT_EQ(text(logical_not(f < g)), "!(f < g)");
  EXPECT_EQ(text(cast(kFloat32, cast(kFloat64, f))), "f");
  EXPECT_EQ(text(cast(kFloat32, cast(kFloat16, f))), "f32(f16(f))");
  EXPECT_EQ(text(call(Intrinsic::kExp, {number(0)})), "exp(0.0)");
  EXPECT_EQ(text(call(Intrinsic::kFloor, {number(-1.5)})), to_string(number(-2)));
  EXPECT_EQ(text(cast(kInt8, number(300))), "127i8");
  EXPECT_EQ(text(cast(kInt8, number(NAN))), "0i8");
}

TEST_F(SimplifyTest, Vectors) {
  const auto ramp = [](Expr base, int64_t stride, int lanes) { return Ramp::make(base, Expr(stride), lanes); };
  const auto all = [](Expr value, int lanes) { return Broadcast::make(value, lanes); };
  EXPECT_EQ(text(ramp(x, 1, 8) + all(y, 8)), "ramp(x + y, 1, 8)");
  EXPECT_EQ(text(ramp(x, 1, 8) * all(4, 8)), "ramp(x * 4, 4, 8)");
  EXPECT_EQ(text(ramp(x, 1, 8) - ramp(y, 1, 8)), "broadcast(x - y, 8)");
  EXPECT_EQ(text(floor_div(ramp(io * 8, 1, 8), all(8, 8))), "broadcast(io, 8)");
  EXPECT_EQ(text(floor_mod(ramp(io * 8, 1, 8), all(8, 8))), "ramp(0, 1, 8)");
  EXPECT_EQ(text(floor_mod(ramp(io * 8, 1, 8), all(16, 8))), "ramp(io % 2 * 8, 1, 8)");
  EXPECT_EQ(text(floor_div(ramp(x, 16, 8), all(16, 8))), "ramp(x // 16, 1, 8)");
  EXPECT_EQ(text(floor_mod(ramp(x, 16, 8), all(16, 8))), "broadcast(x % 16, 8)");
  EXPECT_EQ(text(ramp(io * 8, 1, 8) < all(1024, 8)), "broadcast(true, 8)");
  EXPECT_EQ(text(ramp(io * 8, 1, 8) < all(M, 8)), "ramp(0, 1, 8) < broadcast(M - io * 8, 8)");
  EXPECT_EQ(text(min(ramp(ci, 1, 8), all(100, 8))), "ramp(ci, 1, 8)");
  EXPECT_EQ(text(cast(kInt32, ramp(x, 1, 8))), "ramp(i32(x), 1, 8)");
  EXPECT_EQ(text(select(all(x < y, 8), ramp(x, 1, 8), ramp(x, 1, 8))), "ramp(x, 1, 8)");
  const Buffer b = make_buffer("b", kFloat32, {Expr(100)});
  EXPECT_EQ(text(load(b, {all(x, 8)})), "broadcast(b[x], 8)");
  EXPECT_EQ(text(Load::make(b, {ramp(x, 1, 8)}, all(make_bool(true), 8))), "b[ramp(x, 1, 8)]");
}

TEST_F(SimplifyTest, AssumptionsAndProofs) {
  const Var a("a"), b("b"), c("c");
  facts.assume(a < b);
  facts.assume(b < c);
  EXPECT_TRUE(proves(a + 1 < c));
  EXPECT_FALSE(proves(a + 2 < c));
  EXPECT_EQ(text(max(a, c)), "c");
  facts.set_range(x, 0, floor_div(M, 6));
  EXPECT_TRUE(proves(x * 6 + ii < M));
  EXPECT_FALSE(proves(x * 6 + ii + 1 < M));
  facts.set_range(y, 0, min(Expr(6), M - io * 6));
  EXPECT_TRUE(proves(io * 6 + y < M));
  const Var r("r"), s("s");
  facts.set_range(r, 0, M);
  facts.set_range(s, 0, N);
  EXPECT_TRUE(proves(r * N + s < M * N));  // a flat row-major index
  EXPECT_TRUE(proves(r * N + s >= 0));
  EXPECT_FALSE(proves(r * N + s + 1 < M * N));
  EXPECT_EQ(text(floor_div(r * N + s, N)), "r");
  facts.set_value(a, N * 2 + 1);
  EXPECT_TRUE(proves(a > N));
}

TEST_F(SimplifyTest, BoundsOfTiles) {
  const RangeMap tile{{node(ii), {Expr(0), Expr(5)}}};
  EXPECT_EQ(bounds(io * 6 + ii, tile), "[io * 6, io * 6 + 5]");
  EXPECT_EQ(bounds(y * 2 + ki, {{node(y), {yo * 4, yo * 4 + 3}}, {node(ki), {Expr(0), Expr(2)}}}),
            "[yo * 8, yo * 8 + 8]");
  EXPECT_EQ(bounds(floor_div(co * 16 + ci, 16), {{node(ci), {Expr(0), Expr(15)}}}), "[co, co]");
  EXPECT_EQ(bounds(floor_mod(co * 16 + ci, 16), {{node(ci), {Expr(0), Expr(15)}}}), "[0, 15]");
  EXPECT_EQ(bounds(floor_div(x, 7), {{node(x), {io * 14, io * 14 + 13}}}), "[io * 2, io * 2 + 1]");
  EXPECT_EQ(bounds(floor_mod(x, 8), {{node(x), {io * 4, io * 4 + 3}}}), "[io % 2 * 4, io % 2 * 4 + 3]");
  EXPECT_EQ(bounds(floor_mod(x, 7), {{node(x), {io * 14, io * 14 + 13}}}), "[0, 6]");
  EXPECT_EQ(bounds(Expr(5) - ii, tile), "[0, 5]");
  EXPECT_EQ(bounds(min(io * 6 + ii, M - 1), tile), "[min(M - 1, io * 6), min(M - 6, io * 6) + 5]");
  EXPECT_EQ(bounds(x * N + y, {{node(x), {Expr(0), M - 1}}, {node(y), {Expr(0), N - 1}}}), "[0, M * N - 1]");
  EXPECT_EQ(bounds(load(make_buffer("u", kUInt8, {Expr(9)}), {ii}), tile), "[0u8, 255u8]");
  EXPECT_EQ(bounds(load(make_buffer("w", kInt64, {Expr(9)}), {ii}), tile), "[?, ?]");
  EXPECT_EQ(bounds(cast(kInt64, load(make_buffer("u", kUInt8, {Expr(9)}), {ii})), tile), "[0, 255]");
  // Extents of tiles are constants.
  for (const Expr& e : {io * 6 + ii, floor_div(io * 12 + ii * 2, 2), min(io * 6, M - 6) + ii}) {
    const Interval i = bounds_of(e, tile, facts);
    EXPECT_EQ(text(i.hi - i.lo + 1), "6") << to_string(e);
  }
}

TEST_F(SimplifyTest, LinearForms) {
  const LinearForm form = linear_form((x + y * 2) * 3 - x + 7);
  ASSERT_EQ(form.terms.size(), 2u);
  EXPECT_EQ(form.constant, 7);
  EXPECT_EQ(to_string(from_linear_form(form)), "x * 2 + y * 6 + 7");
  EXPECT_TRUE(linear_form(x - x).terms.empty());
}

TEST_F(SimplifyTest, SharedPartsCostOnce) {
  // 2^60 paths through 60 sums and selects.
  Expr e = x;
  for (int i = 0; i < 60; ++i) e = min(e + e, select(e < y, e * 2, e - 1) + e);
  const Expr s = simplify(e, facts);
  EXPECT_TRUE(equal(simplify(s, facts), s));
}

TEST_F(SimplifyTest, TheLargestMaskIsOne) {
  const Expr e = Binary::make(BinaryOp::kAnd, Expr(x), Expr(INT64_MAX));
  EXPECT_EQ(to_string(simplify(e, facts)), to_string(e));
}

TEST_F(SimplifyTest, ProductsBeyondAllNumbersProveNothing) {
  // (2^64 - 1)^2 does not fit the 128 bits with a sign in which ends of intervals are computed.
  const Var a("a", kUInt64), b("b", kUInt64);
  for (const Expr& e : {Expr(a) * Expr(b) < make_const(kUInt64, 9), make_const(kUInt64, 9) < Expr(a) * Expr(b)})
    EXPECT_NE(simplify(e, facts).kind(), NodeKind::kIntImm) << to_string(simplify(e, facts));
}

TEST_F(SimplifyTest, SimpleExpressionsAreReturnedUnchanged) {
  const Expr e = io * 4608 + ii * 768 + ci;
  EXPECT_TRUE(simplify(e, facts).same_as(e));
}

}  // namespace
}  // namespace tensmith
