#include "tensor/interpret.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/support/run_text.h"

// Line by line the semantics that stand at the head of tensor/expr.h, then statements, vectors, calls and failures.

namespace tensmith {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

int64_t int_of(const std::string& dtype, const std::string& e, InterpFloat mode = InterpFloat::kRounded) {
  return ints_of(dtype, e, 1, mode)[0];
}
double float_of(const std::string& dtype, const std::string& e, InterpFloat mode = InterpFloat::kRounded) {
  return floats_of(dtype, e, 1, mode)[0];
}
bool is(const std::string& condition) { return int_of("bool", condition) != 0; }

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

TEST(InterpretSemantics, IntegersWrap) {
  EXPECT_EQ(int_of("i8", "127i8 + 1"), -128);
  EXPECT_EQ(int_of("i8", "-128i8 - 1"), 127);
  EXPECT_EQ(int_of("i8", "100i8 * 100"), 16);
  EXPECT_EQ(int_of("u8", "250u8 + 10"), 4);
  EXPECT_EQ(int_of("u8", "3u8 - 5"), 254);
  EXPECT_EQ(int_of("i4", "7i4 + 1"), -8);
  EXPECT_EQ(int_of("u4", "15u4 * 15"), 1);
  EXPECT_EQ(int_of("i16", "32767i16 + 1"), -32768);
  EXPECT_EQ(int_of("u16", "0u16 - 1"), 65535);
  EXPECT_EQ(int_of("i32", "2147483647i32 + 1"), -2147483648);
  EXPECT_EQ(int_of("u32", "0u32 - 1"), 4294967295);
  EXPECT_EQ(int_of("i64", "9223372036854775807 + 1i64"), INT64_MIN);
  EXPECT_EQ(int_of("u64", "0u64 - 1"), -1);
  EXPECT_EQ(int_of("i8", "~5i8"), -6);
  EXPECT_EQ(int_of("u8", "~5u8"), 250);
}

TEST(InterpretSemantics, DivisionRounds) {
  EXPECT_EQ(int_of("i64", "-7 // 2i64"), -4);
  EXPECT_EQ(int_of("i64", "-7 % 2i64"), 1);
  EXPECT_EQ(int_of("i64", "7 // -2i64"), -4);
  EXPECT_EQ(int_of("i64", "7 % -2i64"), -1);
  EXPECT_EQ(int_of("i64", "-8 // 2i64"), -4);
  EXPECT_EQ(int_of("i32", "trunc_div(-7i32, 2i32)"), -3);
  EXPECT_EQ(int_of("i32", "trunc_mod(-7i32, 2i32)"), -1);
  EXPECT_EQ(int_of("i32", "trunc_mod(7i32, -2i32)"), 1);
  EXPECT_EQ(int_of("u64", "18446744073709551615u64 // 2"), INT64_MAX);
  EXPECT_EQ(int_of("u64", "trunc_mod(18446744073709551615u64, 10u64)"), 5);
  for (const char* zero : {"5i32 // 0", "5i32 % 0", "trunc_div(5i32, 0i32)", "trunc_mod(5i32, 0i32)"})
    EXPECT_EQ(int_of("i32", zero), 0) << zero;
  for (const char* zero : {"5u64 // 0", "5u64 % 0"}) EXPECT_EQ(int_of("u64", zero), 0) << zero;
  EXPECT_EQ(int_of("i64", "trunc_div(-9223372036854775808, -1)"), INT64_MIN);
  EXPECT_EQ(int_of("i64", "-9223372036854775808 // -1i64"), INT64_MIN);
  EXPECT_EQ(int_of("i64", "trunc_mod(-9223372036854775808, -1)"), 0);
  EXPECT_EQ(int_of("i8", "trunc_div(-128i8, -1i8)"), -128);
  EXPECT_EQ(int_of("i8", "-128i8 // -1"), -128);
  EXPECT_EQ(float_of("f32", "1.0 / 0.0"), kInf);
}

TEST(InterpretSemantics, NanAndInfinityAreKept) {
  for (const char* nan :
       {"min(nan, 1.0)", "min(1.0, nan)", "max(nan, 1.0)", "max(1.0, nan)", "0.0 / 0.0", "inf - inf", "nan + 1.0"})
    EXPECT_TRUE(std::isnan(float_of("f32", nan))) << nan;
  EXPECT_EQ(float_of("f32", "min(-inf, 1.0)"), -kInf);
  EXPECT_EQ(float_of("f32", "max(3.0, 1.0)"), 3);
  for (const char* false_one :
       {"nan == nan", "nan < 1.0", "nan > 1.0", "nan <= 1.0", "nan >= 1.0", "1.0 < nan", "isnan(1.0)", "isinf(nan)"})
    EXPECT_FALSE(is(false_one)) << false_one;
  for (const char* true_one : {"nan != nan", "nan != 1.0", "isnan(nan)", "isinf(-inf)", "-0.0 == 0.0"})
    EXPECT_TRUE(is(true_one)) << true_one;
  EXPECT_EQ(float_of("f32", "minnum(nan, 1.0)"), 1);
  EXPECT_TRUE(std::isnan(float_of("f32", "minnum(1.0, nan)")));
  EXPECT_EQ(float_of("f32", "maxnum(nan, 1.0)"), 1);
  EXPECT_EQ(float_of("f32", "maxnum(2.0, 1.0)"), 2);
}

TEST(InterpretSemantics, FloatToIntegerSaturates) {
  EXPECT_EQ(int_of("i8", "i8(127.9)"), 127);
  EXPECT_EQ(int_of("i8", "i8(-1.9)"), -1);
  EXPECT_EQ(int_of("i8", "i8(1e9)"), 127);
  EXPECT_EQ(int_of("i8", "i8(-inf)"), -128);
  EXPECT_EQ(int_of("i8", "i8(nan)"), 0);
  EXPECT_EQ(int_of("u8", "u8(-1.0)"), 0);
  EXPECT_EQ(int_of("u8", "u8(255.9)"), 255);
  EXPECT_EQ(int_of("u8", "u8(300.0)"), 255);
  EXPECT_EQ(int_of("i32", "i32(2147483648.0)"), INT32_MAX);
  EXPECT_EQ(int_of("i64", "i64(1e30)"), INT64_MAX);
  EXPECT_EQ(int_of("i64", "i64(-1e30)"), INT64_MIN);
  EXPECT_EQ(int_of("u64", "u64(1e30)"), -1);
  EXPECT_EQ(int_of("u64", "u64(1e19f64)"), static_cast<int64_t>(10000000000000000000u));
  EXPECT_EQ(int_of("i4", "i4(100.0)"), 7);
}

TEST(InterpretSemantics, OtherCasts) {
  EXPECT_EQ(int_of("i8", "i8(300)"), 44);
  EXPECT_EQ(int_of("u8", "u8(-1)"), 255);
  EXPECT_EQ(int_of("i64", "i64(255u8)"), 255);
  EXPECT_EQ(int_of("i64", "i64(i8(255u8))"), -1);
  EXPECT_EQ(int_of("u64", "u64(-1i8)"), -1);
  EXPECT_TRUE(is("bool(2i32)"));
  EXPECT_TRUE(is("bool(256)"));
  EXPECT_TRUE(is("bool(0.5)"));
  EXPECT_TRUE(is("bool(nan)"));
  EXPECT_FALSE(is("bool(-0.0)"));
  EXPECT_EQ(float_of("f32", "f32(true)"), 1);
  EXPECT_EQ(int_of("i32", "i32(3.0 < 4.0)"), 1);
  EXPECT_EQ(float_of("f32", "f32(16777217)"), 16777216);
  EXPECT_EQ(float_of("f32", "f32(16777219)"), 16777220);
  EXPECT_EQ(float_of("f32", "f32(18446744073709551615u64)"), 18446744073709551616.0);
  // Through double this would round twice: down to a tie, then to even.
  EXPECT_EQ(float_of("f32", "f32(9007199791611905)"), 9007200328482816.0);
  EXPECT_EQ(float_of("f64", "f64(9007199254740993)"), 9007199254740992.0);
}

TEST(InterpretSemantics, NarrowFloatsRoundToNearestEven) {
  EXPECT_EQ(float_of("f16", "f16(2049.0)"), 2048);
  EXPECT_EQ(float_of("f16", "f16(2051.0)"), 2052);
  EXPECT_EQ(float_of("f16", "f16(65519.0)"), 65504);
  EXPECT_EQ(float_of("f16", "f16(65520.0)"), kInf);
  EXPECT_EQ(float_of("f16", "f16(-1e10)"), -kInf);
  EXPECT_EQ(float_of("f16", "f16(5.9604645e-08)"), 5.9604644775390625e-08);  // the smallest
  EXPECT_EQ(float_of("f16", "f16(2.9e-08)"), 0);
  EXPECT_EQ(float_of("f16", "f16(3e-08)"), 5.9604644775390625e-08);
  EXPECT_TRUE(std::signbit(float_of("f16", "f16(-1e-20)")));
  EXPECT_EQ(float_of("bf16", "bf16(257.0)"), 256);
  EXPECT_EQ(float_of("bf16", "bf16(259.0)"), 260);
  EXPECT_EQ(float_of("bf16", "bf16(3.4e38)"), kInf);
  EXPECT_EQ(float_of("bf16", "bf16(1e-40)"), 0x1p-133);
  EXPECT_EQ(float_of("f32", "f32(1e-50f64)"), 0);
  EXPECT_EQ(float_of("f32", "f32(1e39f64)"), kInf);
  EXPECT_EQ(float_of("f16", "2048.0f16 + 1.0f16"), 2048);
  EXPECT_EQ(float_of("f32", "16777216.0 + 1.0"), 16777216);
  EXPECT_EQ(float_of("bf16", "256.0bf16 + 1.0bf16"), 256);
}

TEST(InterpretSemantics, ExactModeKeepsDoubles) {
  EXPECT_EQ(float_of("f32", "16777216.0 + 1.0", InterpFloat::kExact), 16777217);
  EXPECT_EQ(float_of("f16", "f16(2049.0)", InterpFloat::kExact), 2049);
  EXPECT_EQ(float_of("f16", "f16(1e10)", InterpFloat::kExact), float{1e10});
  EXPECT_EQ(int_of("i32", "i32(f16(2049.0))", InterpFloat::kExact), 2049);
  EXPECT_EQ(int_of("i32", "bitcast:i32(1.0 + 1e-09)", InterpFloat::kExact), 0x3f800000);  // bits need the type
}

TEST(InterpretSemantics, BranchesThatAreNotTakenNeedNotBeInBounds) {
  const std::string head = "func f(out: f32[8], a: f32[4]; n: i64) -> out { ";
  InterpValue a = float_values(kFloat32, {1, 2, 3, 4});
  InterpValue out = make_interp_value(kFloat32, 8);
  const auto run = [&](const std::string& body) { return run_text(head + body + " }", {&out, &a}, {9}); };
  EXPECT_TRUE(run("out[0] = select(n < 4, a[n], 5.0)").ok());
  EXPECT_EQ(out.f[0], 5);
  EXPECT_TRUE(run("out[ramp(0, 1, 8)] = select(ramp(0, 1, 8) < 4, a[ramp(0, 1, 8)], -1.0)").ok());
  EXPECT_EQ(out.f, (Floats{1, 2, 3, 4, -1, -1, -1, -1}));
  // Nested, with a scalar in a branch that no lane takes, with parts of a concat, and with a predicate.
  EXPECT_TRUE(
      run("out[ramp(0, 1, 8)] = select(ramp(0, 1, 8) < 4, select(ramp(-2, 1, 8) < 0, 0.0, a[ramp(-2, 1, 8)]), -1.0)")
          .ok());
  EXPECT_EQ(out.f, (Floats{0, 0, 1, 2, -1, -1, -1, -1}));
  EXPECT_TRUE(run("out[ramp(0, 1, 8)] = select(ramp(0, 1, 8) < 0, broadcast(a[n], 8), 7.0)").ok());
  EXPECT_EQ(out.f[7], 7);
  EXPECT_TRUE(
      run("out[ramp(0, 1, 8)] = select(ramp(0, 1, 8) < 4, concat(a[ramp(0, 1, 4)], a[ramp(4, 1, 4)]), 6.0)").ok());
  EXPECT_EQ(out.f, (Floats{1, 2, 3, 4, 6, 6, 6, 6}));
  EXPECT_TRUE(run("out[ramp(0, 1, 8)] = a[ramp(0, 1, 8) if ramp(0, 1, 8) < 3]").ok());
  EXPECT_EQ(out.f, (Floats{1, 2, 3, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(run("out[ramp(4, 1, 8) if ramp(0, 1, 8) < 2] = broadcast(9.0, 8)").ok());
  EXPECT_EQ(out.f, (Floats{1, 2, 3, 0, 9, 9, 0, 0}));
  // A lane that is on must be in bounds.
  EXPECT_EQ(run("out[ramp(0, 1, 8)] = select(ramp(0, 1, 8) < 5, a[ramp(0, 1, 8)], -1.0)").failure().id,
            "interp-bounds");
  EXPECT_EQ(run("out[0] = select(n < 10, a[n], 5.0)").failure().id, "interp-bounds");
  EXPECT_EQ(run("out[0] = f32(n < 4 && a[n] > 0.0)").failure().id, "interp-bounds");
}

TEST(InterpretSemantics, Shifts) {
  EXPECT_EQ(int_of("i8", "-128i8 >> 3"), -16);
  EXPECT_EQ(int_of("u8", "128u8 >> 3"), 16);
  EXPECT_EQ(int_of("i8", "1i8 << 7"), -128);
  EXPECT_EQ(int_of("i8", "1i8 << 8"), 0);
  EXPECT_EQ(int_of("i8", "-1i8 >> 8"), -1);
  EXPECT_EQ(int_of("i8", "1i8 >> 100"), 0);
  EXPECT_EQ(int_of("u8", "255u8 >> 8"), 0);
  EXPECT_EQ(int_of("u64", "18446744073709551615u64 >> 63"), 1);
  EXPECT_EQ(int_of("i64", "-1 >> 64i64"), -1);
  EXPECT_EQ(int_of("i64", "1 << 64i64"), 0);
  EXPECT_EQ(int_of("i64", "1 << -1i64"), 0);
}

TEST(InterpretSemantics, ComparisonsFollowTheType) {
  EXPECT_TRUE(is("200u8 > 100"));
  EXPECT_TRUE(is("18446744073709551615u64 > 1"));
  EXPECT_TRUE(is("-1i64 < 1"));
  EXPECT_EQ(int_of("u64", "max(18446744073709551615u64, 1u64)"), -1);
  EXPECT_EQ(int_of("i64", "max(-1i64, 1i64)"), 1);
  EXPECT_EQ(int_of("u64", "min(18446744073709551615u64, 1u64)"), 1);
  EXPECT_TRUE(is("true && !false"));
  EXPECT_TRUE(is("false || true"));
  EXPECT_TRUE(is("true ^ false"));
  EXPECT_FALSE(is("true ^ true"));
  EXPECT_EQ(int_of("i32", "12i32 & 10 | 1"), 9);
  EXPECT_EQ(int_of("i32", "12i32 ^ 10"), 6);
}

TEST(InterpretIntrinsics, FloatFunctions) {
  const std::pair<const char*, double> cases[] = {{"abs(-2.5f64)", 2.5},
                                                  {"sqrt(2.0f64)", std::sqrt(2.0)},
                                                  {"rsqrt(4.0f64)", 0.5},
                                                  {"exp(1.5f64)", std::exp(1.5)},
                                                  {"log(2.0f64)", std::log(2.0)},
                                                  {"tanh(0.5f64)", std::tanh(0.5)},
                                                  {"erf(0.5f64)", std::erf(0.5)},
                                                  {"sigmoid(2.0f64)", 1 / (1 + std::exp(-2.0))},
                                                  {"sin(1.0f64)", std::sin(1.0)},
                                                  {"cos(1.0f64)", std::cos(1.0)},
                                                  {"tan(1.0f64)", std::tan(1.0)},
                                                  {"asin(0.5f64)", std::asin(0.5)},
                                                  {"acos(0.5f64)", std::acos(0.5)},
                                                  {"atan(0.5f64)", std::atan(0.5)},
                                                  {"sinh(0.5f64)", std::sinh(0.5)},
                                                  {"cosh(0.5f64)", std::cosh(0.5)},
                                                  {"asinh(0.5f64)", std::asinh(0.5)},
                                                  {"acosh(1.5f64)", std::acosh(1.5)},
                                                  {"atanh(0.5f64)", std::atanh(0.5)},
                                                  {"pow(2.0f64, 0.5f64)", std::pow(2.0, 0.5)},
                                                  {"floor(-1.5f64)", -2},
                                                  {"ceil(-1.5f64)", -1},
                                                  {"trunc(-1.5f64)", -1},
                                                  {"round_even(2.5f64)", 2},
                                                  {"round_even(3.5f64)", 4},
                                                  {"copysign(2.0f64, -0.0f64)", -2},
                                                  {"fma(3.0f64, 4.0f64, 5.0f64)", 17}};
  // The compiler folds the expected values, so the last digits may differ from libm's.
  for (const auto& [text, value] : cases) EXPECT_DOUBLE_EQ(float_of("f64", text), value) << text;
  EXPECT_EQ(float_of("f32", "exp(1.0)"), static_cast<float>(std::exp(1.0)));
  EXPECT_EQ(float_of("f16", "exp(1.0f16)"), 2.71875);
}

TEST(InterpretIntrinsics, FmaRoundsOnce) {
  // (1 + 2^-12)^2 - 1 = 2^-11 + 2^-24: a product rounded to f32 loses the last part.
  EXPECT_EQ(float_of("f32", "fma(1.0002441, 1.0002441, -1.0)"), 0x1p-11 + 0x1p-24);
  EXPECT_EQ(float_of("f32", "1.0002441 * 1.0002441 + -1.0"), 0x1p-11);
  for (const float a : {1.1f, 1e20f, 3.3333e-20f, 16777215.0f, 1e-30f})
    for (const float b : {-0.7f, 1.0000001f, 3e10f, 1e-15f})
      for (const float c : {1.0f, -16777216.0f, 1e-45f, 8388609.0f, -0.77f}) {
        InterpValue in = float_values(kFloat32, {a, b, c}), out = make_interp_value(kFloat32, 1);
        ASSERT_TRUE(run_text("func f(x: f32[3], out: f32[1]) -> out { out[0] = fma(x[0], x[1], x[2]) }", {&in, &out},
                             {}, InterpFloat::kRounded)
                        .ok());
        EXPECT_EQ(out.f[0], std::fma(a, b, c)) << a << " * " << b << " + " << c;
      }
}

TEST(InterpretIntrinsics, Integers) {
  EXPECT_EQ(int_of("i8", "abs(-128i8)"), -128);
  EXPECT_EQ(int_of("i32", "abs(-5i32)"), 5);
  EXPECT_EQ(int_of("u8", "abs(200u8)"), 200);
  EXPECT_EQ(int_of("i32", "popcount(-1i32)"), 32);
  EXPECT_EQ(int_of("u8", "popcount(7u8)"), 3);
  EXPECT_EQ(int_of("i8", "clz(1i8)"), 7);
  EXPECT_EQ(int_of("i32", "clz(0i32)"), 32);
  EXPECT_EQ(int_of("i64", "clz(-1)"), 0);
  EXPECT_EQ(int_of("i32", "mulhi(-1i32, 1i32)"), -1);
  EXPECT_EQ(int_of("u32", "mulhi(4294967295u32, 4294967295u32)"), 4294967294);
  EXPECT_EQ(int_of("i64", "mulhi(-9223372036854775808, 2)"), -1);
  EXPECT_EQ(int_of("u64", "mulhi(18446744073709551615u64, 18446744073709551615u64)"), -2);
  EXPECT_EQ(int_of("i16", "mulhi(32767i16, 32767i16)"), 16383);
}

TEST(InterpretIntrinsics, BitcastKeepsBits) {
  EXPECT_EQ(int_of("i32", "bitcast:i32(1.0)"), 0x3f800000);
  EXPECT_EQ(int_of("i32", "bitcast:i32(-0.0)"), INT32_MIN);
  EXPECT_EQ(float_of("f32", "bitcast:f32(1078530011i32)"), 3.14159274101257324);
  EXPECT_EQ(int_of("i64", "bitcast:i64(-2.0f64)"), INT64_MIN + 0x4000000000000000);
  EXPECT_EQ(int_of("u16", "bitcast:u16(1.5f16)"), 0x3e00);
  EXPECT_EQ(int_of("u16", "bitcast:u16(f16(5.9604645e-08))"), 1);
  EXPECT_EQ(int_of("u16", "bitcast:u16(-inf_f16)"), 0xfc00);
  EXPECT_EQ(int_of("u16", "bitcast:u16(1.5bf16)"), 0x3fc0);
  EXPECT_EQ(ints_of("u8", "bitcast:u8x4(1078530011i32)", 4), (Ints{0xdb, 0x0f, 0x49, 0x40}));
  EXPECT_EQ(ints_of("u4", "bitcast:u4x4(bitcast:u8x2(4660i16))", 4), (Ints{4, 3, 2, 1}));
  EXPECT_EQ(int_of("i64", "bitcast:i64(concat(1i32, -1i32))"), -4294967295);
  // Every f16 goes through a float and back.
  InterpValue in = make_interp_value(kUInt16, 65536), out = make_interp_value(kUInt16, 65536);
  for (int64_t k = 0; k < 65536; ++k) in.i[static_cast<size_t>(k)] = k;
  for (const char* type : {"f16", "bf16"}) {
    const std::string t(type);
    ASSERT_TRUE(run_text("func f(x: u16[65536], out: u16[65536]) -> out { for i in 65536 { out[i] = bitcast:u16(" + t +
                             "(f32(bitcast:" + t + "(x[i])))) } }",
                         {&in, &out}, {}, InterpFloat::kRounded)
                    .ok());
    const int64_t infinity = t == "f16" ? 0x7c00 : 0x7f80;
    for (int64_t k = 0; k < 65536; ++k)
      if ((k & 0x7fff) <= infinity) {
        ASSERT_EQ(out.i[static_cast<size_t>(k)], k) << type;
      }
  }
}

TEST(InterpretVectors, LaneByLane) {
  EXPECT_EQ(ints_of("i64", "ramp(5, -2, 4)", 4), (Ints{5, 3, 1, -1}));
  EXPECT_EQ(ints_of("i8", "ramp(120i8, 5i8, 3)", 3), (Ints{120, 125, -126}));
  EXPECT_EQ(ints_of("i64", "ramp(0, 1, 4) * 3 + broadcast(1, 4)", 4), (Ints{1, 4, 7, 10}));
  EXPECT_EQ(floats_of("f32", "f32x4(ramp(0, 1, 4)) / 2.0", 4), (Floats{0, 0.5, 1, 1.5}));
  EXPECT_EQ(ints_of("bool", "ramp(0, 1, 4) < 2", 4), (Ints{1, 1, 0, 0}));
  EXPECT_EQ(ints_of("i64", "select(ramp(0, 1, 4) % 2 == 0, ramp(10, 10, 4), -1)", 4), (Ints{10, -1, 30, -1}));
  EXPECT_EQ(ints_of("i64", "shuffle(ramp(0, 10, 4), 3, 3, 0)", 3), (Ints{30, 30, 0}));
  EXPECT_EQ(ints_of("i64", "concat(7, ramp(0, 1, 2), 9)", 4), (Ints{7, 0, 1, 9}));
  EXPECT_EQ(int_of("i64", "extract_lane(ramp(0, 10, 4), 2)"), 20);
  EXPECT_EQ(floats_of("f32", "exp(broadcast(0.0, 2))", 2), (Floats{1, 1}));
  EXPECT_EQ(ints_of("i64", "(let v: i64x4 = ramp(1, 1, 4) in v * v)", 4), (Ints{1, 4, 9, 16}));
}

TEST(InterpretVectors, Reductions) {
  EXPECT_EQ(int_of("i64", "reduce_add(ramp(1, 1, 8))"), 36);
  EXPECT_EQ(int_of("i64", "reduce_add(ramp(1, 1, 7))"), 28);
  EXPECT_EQ(int_of("i8", "reduce_add(broadcast(100i8, 3))"), 44);
  EXPECT_EQ(int_of("i64", "reduce_mul(ramp(1, 1, 5))"), 120);
  EXPECT_EQ(int_of("i64", "reduce_min(ramp(5, -3, 5))"), -7);
  EXPECT_EQ(int_of("i64", "reduce_max(ramp(5, -3, 5))"), 5);
  EXPECT_TRUE(is("reduce_or(ramp(0, 1, 8) == 5)"));
  EXPECT_FALSE(is("reduce_and(ramp(0, 1, 8) < 7)"));
  EXPECT_TRUE(std::isnan(float_of("f32", "reduce_max(concat(1.0, nan, 2.0))")));
  // The tree: (1e8 + 1) + (-1e8 + 1) in f32, where the sum from the left gives 1.
  EXPECT_EQ(float_of("f32", "reduce_add(concat(1e8, -1e8, 1.0, 1.0))"), 0);
  EXPECT_EQ(float_of("f32", "reduce_add(concat(1e8, 1.0, -1e8, 1.0))"), 2);
}

TEST(InterpretVectors, DotAccumulate) {
  const std::string head = "func f(acc: i32[2], a: u8[8], b: i8[8], s: i8[8]) -> acc { ";
  InterpValue acc = int_values(kInt32, {1000, INT32_MAX}), a = int_values(kUInt8, {255, 255, 1, 0, 1, 0, 0, 0});
  InterpValue b = int_values(kInt8, {127, -128, 2, 3, 1, 5, 5, 5}), s = int_values(kInt8, {-1, 1, 1, 1, 0, 0, 0, 0});
  ASSERT_TRUE(
      run_text(head + "acc[ramp(0, 1, 2)] = dot_accumulate(acc[ramp(0, 1, 2)], a[ramp(0, 1, 8)], b[ramp(0, 1, 8)]) }",
               {&acc, &a, &b, &s})
          .ok());
  EXPECT_EQ(acc.i, (Ints{1000 - 255 + 2, INT32_MIN}));
  acc.i = {0, 0};
  ASSERT_TRUE(
      run_text(head + "acc[ramp(0, 1, 2)] = dot_accumulate(acc[ramp(0, 1, 2)], s[ramp(0, 1, 8)], b[ramp(0, 1, 8)]) }",
               {&acc, &a, &b, &s})
          .ok());
  EXPECT_EQ(acc.i, (Ints{-127 - 128 + 2 + 3, 0}));
}

TEST(InterpretStatements, LoopsBranchesAndMemory) {
  InterpValue out = make_interp_value(kInt64, 6);
  const auto run = [&](const std::string& body, const std::vector<int64_t>& scalars = {3}) {
    out.i.assign(6, 0);
    const Result<void> ran = run_text("func f(out: i64[2, 3]; n: i64) -> out { " + body + " }", {&out}, scalars);
    EXPECT_TRUE(ran.ok()) << ran.failure().message;
    return out.i;
  };
  EXPECT_EQ(run("for i in 2 { for j in n { out[i, j] = 10 * i + j } }"), (Ints{0, 1, 2, 10, 11, 12}));
  EXPECT_EQ(run("for i in 1 +: 4 { out[i] = i }"), (Ints{0, 1, 2, 3, 4, 0}));
  EXPECT_EQ(run("for i in n { out[i] = 1 }", {-5}), (Ints{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(run("for i in n { if i == 0 { out[i] = 7 } else if i == 1 { out[i] = 8 } else { out[i] = 9 } }"),
            (Ints{7, 8, 9, 0, 0, 0}));
  EXPECT_EQ(run("if n < 0 { } else { out[1] = 2 }"), (Ints{0, 2, 0, 0, 0, 0}));
  EXPECT_EQ(run("alloc c: i64[] stack c[] = 0 while c[] * c[] < 30 { c[] = c[] + 1 } out[0] = c[]"),
            (Ints{6, 0, 0, 0, 0, 0}));
  EXPECT_EQ(run("let a = n * 2 let b = a + 1 out[0] = a * b"), (Ints{42, 0, 0, 0, 0, 0}));
  // A let keeps its value when what it read changes.
  EXPECT_EQ(run("out[0] = 5 let a = out[0] out[0] = 6 out[1] = a out[2] = out[0]"), (Ints{6, 5, 6, 0, 0, 0}));
  EXPECT_EQ(run("for n in 2 { for n in n + 1 { out[n] = out[n] + 1 } out[5] = out[5] + n }"), (Ints{2, 1, 0, 0, 0, 1}));
  EXPECT_EQ(run("out[0] = (let x = n in x * x + (let x = x + 1 in x * x))"), (Ints{25, 0, 0, 0, 0, 0}));
  EXPECT_EQ(run("parallel i in 2 { unrolled j in 3 { vectorized k in 1 { out[i, j + k] = i + j } } }"),
            (Ints{0, 1, 2, 1, 2, 3}));
  EXPECT_EQ(run("for i in n { alloc t: i64[i + 1] for j in i + 1 { t[j] = j } out[i] = t[i] }"),
            (Ints{0, 1, 2, 0, 0, 0}));
  EXPECT_EQ(run("out[ramp(0, 1, 6)] = out[ramp(5, -1, 6)] + i64x6(i32x6(ramp(0, 2, 6)))"), (Ints{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(run("out[broadcast(1, 2), ramp(0, 2, 2)] = broadcast(4, 2)"), (Ints{0, 0, 0, 4, 0, 4}));
}

TEST(InterpretStatements, NewMemoryIsPoisoned) {
  InterpValue f = make_interp_value(kFloat32, 1), i = make_interp_value(kInt8, 1);
  ASSERT_TRUE(
      run_text("func f(f: f32[1], i: i8[1]) -> f, i { alloc a: f32[4] stack alloc b: i8[4] f[0] = a[2] i[0] = b[2] }",
               {&f, &i})
          .ok());
  EXPECT_TRUE(std::isnan(f.f[0]));
  EXPECT_NE(i.i[0], 0);
}

TEST(InterpretStatements, SharedSubexpressionsRunOnce) {
  // 2^60 nodes when walked as a tree.
  const Buffer out = make_buffer("out", kFloat64, {1});
  Expr e = load(out, {0});
  for (int k = 0; k < 60; ++k) e = e + e;
  InterpValue value = float_values(kFloat64, {1});
  ASSERT_TRUE(interpret(LoopFunction{"f", {out}, {}, {out}, Store::make(out, {0}, e), {}}, {&value}, {}).ok());
  EXPECT_EQ(value.f[0], 0x1p60);
}

TEST(InterpretStatements, SharedNodesFollowTheBindingAround) {
  const Buffer out = make_buffer("out", kInt64, {8});
  const auto run = [&](const Stmt& body) {
    InterpValue value = make_interp_value(kInt64, 8);
    const Result<void> ran = interpret(LoopFunction{"f", {out}, {}, {out}, body, {}}, {&value}, {});
    EXPECT_TRUE(ran.ok()) << ran.failure().message;
    return value.i;
  };
  const Var x("x");
  const Expr e = Expr(x) * 10;
  const auto put = [&](int at, const Expr& value) { return Store::make(out, {at}, value); };
  // One node under several bindings of its variable: inner ones hide, outer ones come back.
  EXPECT_EQ(run(LetStmt::make(x, 1, Block::make({put(0, e), LetStmt::make(x, 2, put(1, e)), put(2, e)}))),
            (Ints{10, 20, 10, 0, 0, 0, 0, 0}));
  EXPECT_EQ(run(For::make(x, 1, 1, ForKind::kSerial,
                          Block::make({put(0, e), For::make(x, 2, 2, ForKind::kSerial, put(1, e)), put(2, e)}))),
            (Ints{10, 30, 10, 0, 0, 0, 0, 0}));
  EXPECT_EQ(run(put(0, Let::make(x, 1, e + Let::make(x, 2, e) + e))), (Ints{40, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(run(put(0, Let::make(x, 1, e) + Let::make(x, 2, e))), (Ints{30, 0, 0, 0, 0, 0, 0, 0}));
  // A load is not carried over a store, neither to the next statement nor out of a loop.
  const Expr read = load(out, {0}) + 1;
  const Var i("i");
  EXPECT_EQ(run(For::make(i, 1, 3, ForKind::kSerial, Block::make({put(0, read), Store::make(out, {i}, read)}))),
            (Ints{3, 2, 3, 4, 0, 0, 0, 0}));
  EXPECT_EQ(run(If::make(read > 0, Block::make({put(0, read), put(1, read)}))), (Ints{1, 2, 0, 0, 0, 0, 0, 0}));
  // What one branch computed is not known in the other, nor behind both.
  const Var c("c", kBool);
  const Expr either = Select::make(c, e * e, e) + e * e;
  EXPECT_EQ(run(LetStmt::make(x, 1, LetStmt::make(c, make_bool(false), put(0, either)))),
            (Ints{110, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(InterpretCalls, FunctionsOfTheProgram) {
  const std::string callee =
      "func add(x: f32[n], y: f32[n]; n: i64, by: f32) -> y { assert n < 5, 5, \"n\" for i in n { y[i] = x[i] + by } "
      "}\n";
  InterpValue out = float_values(kFloat32, {0, 1, 2, 3, 4, 5, 6, 7}), code = make_interp_value(kInt32, 1);
  const auto run = [&](const std::string& body) {
    return run_text(callee + "func main(out: f32[8], code: i32[1]) -> out, code { " + body + " }", {&out, &code});
  };
  // Sub-buffers begin at the element whose address is taken.
  ASSERT_TRUE(run("eval extern:i32 add(address_of(out[1]), address_of(out[5]), 3, 0.5)").ok());
  EXPECT_EQ(out.f, (Floats{0, 1, 2, 3, 4, 1.5, 2.5, 3.5}));
  ASSERT_TRUE(run("code[0] = extern:i32 add(address_of(out[1]), address_of(out[3]), 5, 0.5)").ok());
  EXPECT_EQ(code.i[0], 5);
  ASSERT_TRUE(run("let p = address_of(out[0]) eval extern:i32 add(p, p, 4, 1.0)").ok());
  EXPECT_EQ(out.f[3], 4);
  EXPECT_TRUE(run("eval extern:i32 add(address_of(out[8]), address_of(out[0]), 0, 0.5)").ok());
  // Failures.
  const Result<void> failed = run("eval extern:i32 add(address_of(out[1]), address_of(out[3]), 5, 0.5)");
  EXPECT_EQ(failed.failure().id, "assert-failed");
  EXPECT_EQ(failed.failure().message, "add: assertion failed with code 5: n");
  EXPECT_EQ(run("eval extern:i32 add(address_of(out[6]), address_of(out[0]), 3, 0.5)").failure().message,
            "add: expected 3 elements for x, got 2");
  EXPECT_EQ(run("eval extern:i32 add(address_of(out[9]), address_of(out[0]), 0, 0.5)").failure().id, "interp-bounds");
  EXPECT_EQ(run("eval extern:i32 sub(address_of(out[0]))").failure().id, "interp-unknown-function");
  EXPECT_EQ(run("eval extern:i32 add(address_of(code[0]), address_of(out[0]), 1, 0.5)").failure().id,
            "interp-arguments");
  EXPECT_EQ(run("eval extern:i32 add(3, 1.5)").failure().id, "interp-malformed");
  EXPECT_EQ(run_text("func f() { eval extern:i32 f() }", {}).failure().id, "interp-limit");
}

TEST(InterpretCalls, ArenaOfBytesHoldsEveryType) {
  const std::string text =
      "func fill(x: f32[4], n: i64[2]) -> x, n { for i in 4 { x[i] = f32(i) } for i in 2 { n[i] = i + 100 } }\n"
      "func take(x: f32[4], n: i64[2], out: f32[1]) -> out { out[0] = x[3] + f32(n[1]) }\n"
      "func main(out: f32[1]) -> out { alloc arena: u8[64]\n"
      "  eval extern:i32 fill(address_of(arena[16]), address_of(arena[48]))\n"
      "  eval extern:i32 take(address_of(arena[16]), address_of(arena[48]), address_of(out[0])) }";
  InterpValue out = make_interp_value(kFloat32, 1);
  const Result<void> ran = run_text(text, {&out});
  ASSERT_TRUE(ran.ok()) << ran.failure().message;
  EXPECT_EQ(out.f[0], 104);
  std::string small = text;
  small.replace(small.find("u8[64]"), 6, "u8[63]");
  EXPECT_EQ(run_text(small, {&out}).failure().message, "fill: expected 2 elements for n, got 1");
}

TEST(InterpretFailures, AreNamed) {
  InterpValue a = make_interp_value(kFloat32, 12);
  const auto run = [&](const std::string& body, int64_t n = 3) {
    const Result<void> ran =
        run_text("func f(A: f32[4, n]; n: i64) -> A { " + body + " }", {&a}, {n}, InterpFloat::kExact, 1000);
    return ran.ok() ? std::string("ok") : ran.failure().id + ": " + ran.failure().message;
  };
  EXPECT_EQ(run("A[1, 3] = 0.0"), "interp-bounds: f: expected an index inside A[4, 3], got [1, 3]");
  EXPECT_EQ(run("A[-1, 0] = 0.0"), "interp-bounds: f: expected an index inside A[4, 3], got [-1, 0]");
  EXPECT_EQ(run("A[0] = A[12]"), "interp-bounds: f: expected an index inside A[4, 3], got [12]");
  EXPECT_EQ(run("A[0] = A[11]"), "ok");
  EXPECT_EQ(run("A[0, ramp(0, 1, 4)] = broadcast(0.0, 4)"),
            "interp-bounds: f: expected an index inside A[4, 3], got [0, 3]");
  EXPECT_EQ(run("alloc t: f32[2, 2, 2] stack t[1, 1, n] = 0.0"),
            "interp-bounds: f: expected an index inside t[2, 2, 2], got [1, 1, 3]");
  EXPECT_EQ(run("A[0] = 0.0", 4), "interp-bounds: f: expected 16 elements for A, got 12");
  EXPECT_EQ(run("A[0] = 0.0", -4),
            "interp-bounds: f: expected extents of A from 0 to 2^63 elements in all, got extent -4");
  EXPECT_EQ(run("A[0] = 0.0", INT64_MAX),
            "interp-bounds: f: expected extents of A from 0 to 2^63 elements in all, got extent 4");
  EXPECT_EQ(run("assert n > 5, 42, \"n is small\""), "assert-failed: f: assertion failed with code 42: n is small");
  EXPECT_EQ(run("while true { A[0] = 0.0 }"), "interp-limit: f: expected at most 1000 steps, got more");
  EXPECT_EQ(run("for i in 1000000000 { for j in 0 { A[0] = 0.0 } }"),
            "interp-limit: f: expected at most 1000 steps, got more");
  EXPECT_EQ(run("alloc t: f32[n * 1000000000] t[0] = 0.0").substr(0, 12), "interp-limit");
  EXPECT_EQ(run("eval floor(3)"), "interp-malformed: f: expected a float for floor, got floor(3)");
  EXPECT_EQ(run("eval bitcast:i32(3)").substr(0, 16), "interp-malformed");
  EXPECT_EQ(run("eval shuffle(ramp(0, 1, 4), 4)").substr(0, 16), "interp-malformed");
  EXPECT_EQ(run("eval reduce_or(broadcast(1.0, 4))").substr(0, 16), "interp-malformed");
  EXPECT_EQ(run("eval dot_accumulate(1, 2, 3)").substr(0, 16), "interp-malformed");
}

TEST(InterpretFailures, ArgumentsMustFit) {
  InterpValue f32 = make_interp_value(kFloat32, 4), i32 = make_interp_value(kInt32, 4);
  const std::string text = "func f(A: f32[4]; n: i64) -> A { A[0] = 1.0 }";
  EXPECT_TRUE(run_text(text, {&f32}, {1}).ok());
  EXPECT_EQ(run_text(text, {}, {1}).failure().message, "f: expected 1 buffers, got 0");
  EXPECT_EQ(run_text(text, {&f32}, {}).failure().message, "f: expected 1 scalars, got 0");
  EXPECT_EQ(run_text(text, {&i32}, {1}).failure().message, "f: expected a buffer of f32 for A, got i32");
  EXPECT_EQ(run_text(text, {nullptr}, {1}).failure().message, "f: expected a buffer of f32 for A, got none");
  EXPECT_EQ(interpret(LoopProgram{}, {}, {}).failure().id, "interp-arguments");
  InterpValue out = make_interp_value(kFloat32, 1);
  ASSERT_TRUE(run_text("func f(A: f32[1]; x: f32, b: u8) -> A { A[0] = x + f32(b) }", {&out},
                       {std::bit_cast<int64_t>(0.5), 258})
                  .ok());
  EXPECT_EQ(out.f[0], 2.5);
}

TEST(InterpretFailures, FreeVariablesAndBuffersAreRefused) {
  const Buffer a = make_buffer("a", kFloat32, {4}), b = make_buffer("b", kFloat32, {4});
  InterpValue value = make_interp_value(kFloat32, 4);
  const Var x("x");
  const Result<void> free_var =
      interpret(LoopFunction{"f", {a}, {}, {a}, Store::make(a, {x}, make_zero(kFloat32)), {}}, {&value}, {});
  EXPECT_EQ(free_var.failure().message, "f: variable x is used outside its scope");
  const Result<void> free_buffer =
      interpret(LoopFunction{"f", {a}, {}, {a}, Store::make(b, {0}, make_zero(kFloat32)), {}}, {&value}, {});
  EXPECT_EQ(free_buffer.failure().message, "f: buffer b is used outside its scope");
}

}  // namespace
}  // namespace tensmith
