// Arithmetic, comparisons, casts and element functions against plain C++, on every instruction set of this machine.
#include <cmath>
#include <limits>

#include "tests/unit/codegen/run_code.h"

namespace tensmith {
namespace {

class ExprTest : public testing::TestWithParam<std::string> {
 protected:
  const std::string& target() const { return GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Targets, ExprTest, testing::ValuesIn(runnable_targets()),
                         [](const auto& info) { return test_name(info.param); });

const double kNan = std::nan(""), kInf = HUGE_VAL;
const std::vector<double> kFloats = {0.0,     -0.0,  1.0,    -1.0,  0.5,          -2.5,          3.75,    kNan,
                                     kInf,    -kInf, 1e-3,   -1e5,  1e30,         -1e30,         1e-40,   6e-8,
                                     65504.0, 127.5, -128.5, 255.5, 2147483648.0, -2147483649.0, 32767.5, 1e10};

/// All pairs of the list as two operand arrays.
std::pair<InterpValue, InterpValue> float_pairs(DType type) {
  std::vector<double> a, b;
  for (double x : kFloats)
    for (double y : kFloats) a.push_back(x), b.push_back(y);
  return {values(type, a), values(type, b)};
}

InterpValue each(const InterpValue& a, const InterpValue& b, DType out,
                 const std::function<double(double, double)>& fn) {
  std::vector<double> results;
  for (size_t i = 0; i < a.f.size(); ++i) results.push_back(fn(a.f[i], b.f[i]));
  if (out.is_float()) return values(out, results);
  return int_values(out, std::vector<int64_t>(results.begin(), results.end()));
}

Expr binary(BinaryOp op, const std::vector<Expr>& in) { return Binary::make(op, in[0], in[1]); }

TEST_P(ExprTest, FloatArithmetic) {
  for (DType type : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
    auto [a, b] = float_pairs(type);
    for (int lanes : {1, 4, 16}) {
      const std::string what = to_string(type.with_lanes(lanes)) + " ";
      auto check = [&](BinaryOp op, DType out, const char* name, const std::function<double(double, double)>& fn) {
        expect_equal(map_elements(target(), {a, b}, out, lanes, [&](auto& in) { return binary(op, in); }),
                     each(a, b, out, fn), what + name);
      };
      auto exact = [&](double x, double y, auto fn) {
        return type == kFloat32 ? fn(static_cast<float>(x), static_cast<float>(y)) : fn(x, y);
      };
      check(BinaryOp::kAdd, type, "add",
            [&](double x, double y) { return exact(x, y, [](auto p, auto q) { return double(p + q); }); });
      check(BinaryOp::kSub, type, "sub",
            [&](double x, double y) { return exact(x, y, [](auto p, auto q) { return double(p - q); }); });
      check(BinaryOp::kMul, type, "mul",
            [&](double x, double y) { return exact(x, y, [](auto p, auto q) { return double(p * q); }); });
      check(BinaryOp::kDiv, type, "div",
            [&](double x, double y) { return exact(x, y, [](auto p, auto q) { return double(p / q); }); });
      check(BinaryOp::kEQ, kBool, "eq", [](double x, double y) { return x == y; });
      check(BinaryOp::kNE, kBool, "ne", [](double x, double y) { return x != y; });
      check(BinaryOp::kLT, kBool, "lt", [](double x, double y) { return x < y; });
      check(BinaryOp::kGE, kBool, "ge", [](double x, double y) { return x >= y; });
    }
  }
}

TEST_P(ExprTest, MinMaxKeepNan) {
  for (DType type : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
    auto [a, b] = float_pairs(type);
    // Which of two zeros of different sign is taken is free.
    auto no_zero_sign = [](InterpValue v) {
      for (double& x : v.f) x += 0.0;
      return v;
    };
    for (int lanes : {1, 8, 16}) {
      for (bool is_min : {true, false}) {
        const BinaryOp op = is_min ? BinaryOp::kMin : BinaryOp::kMax;
        auto reference = [&](double x, double y) {
          return std::isnan(x) || std::isnan(y) ? kNan : is_min ? std::min(x, y) : std::max(x, y);
        };
        const std::string what = to_string(type.with_lanes(lanes)) + (is_min ? " min" : " max");
        InterpValue got = map_elements(target(), {a, b}, type, lanes, [&](auto& in) { return binary(op, in); });
        expect_equal(no_zero_sign(got), no_zero_sign(each(a, b, type, reference)), what);
        // With a constant on either side (relu) the form is another one.
        for (bool left : {true, false}) {
          got = map_elements(target(), {a}, type, lanes, [&](auto& in) {
            Expr half = make_const(type.with_lanes(lanes), 0.5);
            return left ? Binary::make(op, half, in[0]) : Binary::make(op, in[0], half);
          });
          expect_equal(got, each(a, b, type, [&](double x, double) { return reference(x, 0.5); }), what + " constant");
        }
      }
    }
  }
}

template <typename T>
T floor_div_reference(T a, T b) {
  if (b == 0) return 0;
  if (std::is_signed_v<T> && b == static_cast<T>(-1))
    return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
  T q = static_cast<T>(a / b);
  return static_cast<T>(a % b != 0 && ((a % b < 0) != (b < 0)) ? q - 1 : q);
}

template <typename T>
void check_integers(const std::string& target, DType type, const std::vector<int64_t>& list) {
  std::vector<int64_t> a, b;
  for (int64_t x : list)
    for (int64_t y : list) a.push_back(static_cast<T>(x)), b.push_back(static_cast<T>(y));
  while (a.size() % 16) a.push_back(1), b.push_back(1);
  const InterpValue va = int_values(type, a), vb = int_values(type, b);
  using U = std::make_unsigned_t<T>;
  constexpr int kBits = sizeof(T) * 8;
  auto check = [&](BinaryOp op, DType out, const char* name, const std::function<int64_t(T, T)>& fn) {
    std::vector<int64_t> want;
    for (size_t i = 0; i < a.size(); ++i) want.push_back(fn(static_cast<T>(a[i]), static_cast<T>(b[i])));
    for (int lanes : {1, 16}) {
      const std::string what = to_string(type.with_lanes(lanes)) + " " + name;
      expect_equal(map_elements(target, {va, vb}, out, lanes, [&](auto& in) { return binary(op, in); }),
                   int_values(out, want), what);
    }
  };
  auto trunc_div = [](T x, T y) -> T {
    if (y == 0) return 0;
    if (std::is_signed_v<T> && y == static_cast<T>(-1)) return static_cast<T>(0 - static_cast<U>(x));
    return static_cast<T>(x / y);
  };
  check(BinaryOp::kAdd, type, "add", [](T x, T y) { return static_cast<T>(static_cast<U>(x) + static_cast<U>(y)); });
  check(BinaryOp::kSub, type, "sub", [](T x, T y) { return static_cast<T>(static_cast<U>(x) - static_cast<U>(y)); });
  check(BinaryOp::kMul, type, "mul",
        [](T x, T y) { return static_cast<T>(uint64_t{static_cast<U>(x)} * static_cast<U>(y)); });
  check(BinaryOp::kFloorDiv, type, "floor_div", [](T x, T y) { return floor_div_reference(x, y); });
  check(BinaryOp::kFloorMod, type, "floor_mod", [](T x, T y) -> T {
    if (y == 0) return 0;
    return static_cast<T>(static_cast<U>(x) - uint64_t{static_cast<U>(floor_div_reference(x, y))} * static_cast<U>(y));
  });
  check(BinaryOp::kTruncDiv, type, "trunc_div", trunc_div);
  check(BinaryOp::kTruncMod, type, "trunc_mod", [&](T x, T y) -> T {
    return y == 0 ? 0
                  : static_cast<T>(static_cast<U>(x) - uint64_t{static_cast<U>(trunc_div(x, y))} * static_cast<U>(y));
  });
  check(BinaryOp::kMin, type, "min", [](T x, T y) { return std::min(x, y); });
  check(BinaryOp::kMax, type, "max", [](T x, T y) { return std::max(x, y); });
  check(BinaryOp::kAnd, type, "and", [](T x, T y) { return static_cast<T>(x & y); });
  check(BinaryOp::kOr, type, "or", [](T x, T y) { return static_cast<T>(x | y); });
  check(BinaryOp::kXor, type, "xor", [](T x, T y) { return static_cast<T>(x ^ y); });
  check(BinaryOp::kShl, type, "shl", [](T x, T y) {
    return static_cast<U>(y) >= kBits ? T{0} : static_cast<T>(uint64_t{static_cast<U>(x)} << static_cast<U>(y));
  });
  check(BinaryOp::kShr, type, "shr",
        [](T x, T y) { return static_cast<U>(y) >= kBits ? static_cast<T>(x < 0 ? -1 : 0) : static_cast<T>(x >> y); });
  check(BinaryOp::kLT, kBool, "lt", [](T x, T y) { return x < y; });
  check(BinaryOp::kLE, kBool, "le", [](T x, T y) { return x <= y; });
  check(BinaryOp::kGT, kBool, "gt", [](T x, T y) { return x > y; });
  check(BinaryOp::kEQ, kBool, "eq", [](T x, T y) { return x == y; });
}

const std::vector<int64_t> kIntegers = {
    0,   1,   -1,   2,   -2,  3,     -3,     5,     -7,        8,         31,         32,        63,        64,
    100, 127, -128, 255, 256, 32767, -32768, 65535, INT32_MAX, INT32_MIN, 4294967295, INT64_MAX, INT64_MIN, 1000000007};

TEST_P(ExprTest, Integers) {
  check_integers<int8_t>(target(), kInt8, kIntegers);
  check_integers<uint8_t>(target(), kUInt8, kIntegers);
  check_integers<int16_t>(target(), kInt16, kIntegers);
  check_integers<uint16_t>(target(), kUInt16, kIntegers);
  check_integers<int32_t>(target(), kInt32, kIntegers);
  check_integers<uint32_t>(target(), kUInt32, kIntegers);
  check_integers<int64_t>(target(), kInt64, kIntegers);
  check_integers<uint64_t>(target(), kUInt64, kIntegers);
}

TEST_P(ExprTest, DivisionByConstants) {
  std::vector<int64_t> list;
  for (int64_t v = -40; v < 40; ++v) list.push_back(v);
  const InterpValue in = int_values(kInt64, list);
  for (int64_t divisor : {1, 2, 3, 7, 8, 16, -1, -3, -8, 0}) {
    for (int lanes : {1, 8}) {
      std::vector<int64_t> quotients, rests;
      for (int64_t v : list) {
        quotients.push_back(floor_div_reference(v, divisor));
        rests.push_back(divisor == 0 ? 0 : v - divisor * quotients.back());
      }
      const Expr constant = make_const_int(kInt64.with_lanes(lanes), divisor);
      auto run = [&](BinaryOp op) {
        return map_elements(target(), {in}, kInt64, lanes, [&](auto& x) { return Binary::make(op, x[0], constant); });
      };
      expect_equal(run(BinaryOp::kFloorDiv), int_values(kInt64, quotients), "floor_div by " + std::to_string(divisor));
      expect_equal(run(BinaryOp::kFloorMod), int_values(kInt64, rests), "floor_mod by " + std::to_string(divisor));
    }
  }
}

TEST_P(ExprTest, FourBitIntegersWrap) {
  std::vector<int64_t> a, b;
  for (int64_t x = -8; x < 8; ++x)
    for (int64_t y = -8; y < 8; ++y) a.push_back(x), b.push_back(y);
  for (DType type : {kInt4, kUInt4}) {
    const InterpValue va = int_values(type, a), vb = int_values(type, b);
    auto check = [&](BinaryOp op, const std::function<int64_t(int64_t, int64_t)>& fn) {
      std::vector<int64_t> want;
      for (size_t i = 0; i < a.size(); ++i) want.push_back(fn(va.i[i], vb.i[i]));
      for (int lanes : {1, 16})
        expect_equal(map_elements(target(), {va, vb}, type, lanes, [&](auto& in) { return binary(op, in); }),
                     int_values(type, want), to_string(type) + " op " + std::to_string(static_cast<int>(op)));
    };
    check(BinaryOp::kAdd, std::plus<>());
    check(BinaryOp::kSub, std::minus<>());
    check(BinaryOp::kMul, std::multiplies<>());
    check(BinaryOp::kFloorDiv, [](int64_t x, int64_t y) { return y == 0 ? 0 : floor_div_reference(x, y); });
    check(BinaryOp::kMax, [](int64_t x, int64_t y) { return std::max(x, y); });
    check(BinaryOp::kShl, [](int64_t x, int64_t y) { return y < 0 || y >= 4 ? 0 : x << y; });
  }
}

TEST_P(ExprTest, FloatToIntegerSaturates) {
  std::vector<double> list = kFloats;
  for (double edge : {7.0,
                      8.0,
                      15.0,
                      16.0,
                      127.0,
                      128.0,
                      255.0,
                      256.0,
                      32767.0,
                      65535.0,
                      65536.0,
                      2147483520.0,
                      4294967040.0,
                      4294967296.0,
                      9223371487098961920.0,
                      9223372036854775808.0,
                      18446742974197923840.0,
                      18446744073709551616.0,
                      0.99,
                      1e38})
    list.push_back(edge), list.push_back(-edge), list.push_back(edge + 0.5);
  while (list.size() % 16) list.push_back(-0.75);
  for (DType from : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
    const InterpValue in = values(from, list);
    for (DType to : {kInt8, kUInt8, kInt16, kUInt16, kInt32, kUInt32, kInt64, kUInt64, kInt4, kUInt4}) {
      std::vector<int64_t> want;
      const int digits = to.is_int() ? to.bits - 1 : to.bits;
      for (double v : in.f) {
        const double t = std::trunc(v), limit = std::ldexp(1.0, digits);
        if (std::isnan(v)) want.push_back(0);
        else if (t >= limit) want.push_back(to == kUInt64 ? -1 : static_cast<int64_t>((uint64_t{1} << digits) - 1));
        else if (to.is_uint()) want.push_back(t <= 0 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(t)));
        else want.push_back(t <= -limit ? static_cast<int64_t>(-limit) : static_cast<int64_t>(t));
      }
      for (int lanes : {1, 16})
        expect_equal(map_elements(target(), {in}, to, lanes, [&](auto& x) { return cast(to.with_lanes(lanes), x[0]); }),
                     int_values(to, want), to_string(from.with_lanes(lanes)) + " to " + to_string(to));
    }
    std::vector<int64_t> truth;
    for (double v : in.f) truth.push_back(v != 0);
    expect_equal(map_elements(target(), {in}, kBool, 16, [&](auto& x) { return cast(kBool.with_lanes(16), x[0]); }),
                 int_values(kBool, truth), to_string(from) + " to bool");
  }
}

TEST_P(ExprTest, SmallFloatsConvertExactly) {
  for (DType type : {kFloat16, kBFloat16}) {
    std::vector<int64_t> all;
    for (int64_t bits = 0; bits < 65536; ++bits) all.push_back(bits);
    const InterpValue bits = int_values(kUInt16, all);
    std::vector<uint8_t> raw = to_bytes(bits);
    InterpValue exact = make_interp_value(type, 65536);
    from_bytes(raw, &exact);
    for (int lanes : {1, 16}) {
      InterpValue got = map_elements(target(), {bits}, kFloat64, lanes, [&](auto& in) {
        Expr as_float = Call::make(type.with_lanes(lanes), Intrinsic::kBitcast, {in[0]});
        return cast(kFloat64.with_lanes(lanes), as_float);
      });
      got.dtype = type;
      expect_equal(got, exact, "widen " + to_string(type.with_lanes(lanes)));
    }
    // Around every representable value: the value itself, the tie above it, and a little beside the tie.
    std::vector<double> numbers;
    for (size_t i = 0; i + 1 < 0x7f80; i += 7) {
      const double v = exact.f[i], next = exact.f[i + 1];
      if (!std::isfinite(next) || std::isnan(v)) continue;
      const double tie = (v + next) / 2;
      for (double x : {v, tie, std::nextafter(tie, 0.0), std::nextafter(tie, HUGE_VAL)})
        numbers.push_back(x), numbers.push_back(-x);
    }
    for (double x : {kNan, kInf, -kInf, 65519.0, 65520.0, 65536.0, 3.39e38, 3.4e38, 1e-30, 2.9e-8, 2.99e-8, 1e300})
      numbers.push_back(x);
    while (numbers.size() % 16) numbers.push_back(0);
    for (DType from : {kFloat64, kFloat32}) {
      const InterpValue in = values(from, numbers);
      for (int lanes : {1, 16})
        expect_equal(
            map_elements(target(), {in}, type, lanes, [&](auto& x) { return cast(type.with_lanes(lanes), x[0]); }),
            values(type, in.f), to_string(from.with_lanes(lanes)) + " to " + to_string(type));
    }
  }
}

TEST_P(ExprTest, IntegerToFloatRoundsOnce) {
  std::vector<int64_t> list = kIntegers;
  for (int64_t v : {16777217, 16777219, 33554435, 2049, 2051, 257, 259, 8519681, 16842753})
    list.push_back(v), list.push_back(-v);
  while (list.size() % 8) list.push_back(12345);
  for (DType from : {kInt8, kUInt8, kInt16, kInt32, kUInt32, kInt64}) {
    const InterpValue in = int_values(from, list);
    for (DType to : {kFloat16, kBFloat16, kFloat32, kFloat64}) {
      std::vector<double> want;
      for (int64_t v : in.i)
        want.push_back(to == kFloat32 ? static_cast<double>(static_cast<float>(v)) : static_cast<double>(v));
      for (int lanes : {1, 8})
        expect_equal(map_elements(target(), {in}, to, lanes, [&](auto& x) { return cast(to.with_lanes(lanes), x[0]); }),
                     values(to, want), to_string(from.with_lanes(lanes)) + " to " + to_string(to));
    }
  }
  for (DType from : {kInt32, kInt8, kUInt16}) {  // narrowing wraps, widening keeps the value
    const InterpValue in = int_values(from, list);
    for (DType to : {kInt8, kUInt8, kInt16, kUInt64, kInt64, kInt4})
      expect_equal(map_elements(target(), {in}, to, 8, [&](auto& x) { return cast(to.with_lanes(8), x[0]); }),
                   int_values(to, in.i), to_string(from) + " to " + to_string(to));
  }
}

TEST_P(ExprTest, FloatFunctions) {
  struct Row {
    Intrinsic id;
    double (*fn)(double);
  };
  const Row rows[] = {{Intrinsic::kAbs, std::fabs},    {Intrinsic::kSqrt, std::sqrt},
                      {Intrinsic::kFloor, std::floor}, {Intrinsic::kCeil, std::ceil},
                      {Intrinsic::kTrunc, std::trunc}, {Intrinsic::kRoundEven, std::nearbyint}};
  std::vector<double> list = kFloats;
  for (double v : {0.49999997, 1.5, 2.5, -0.5, -1.5, 8388609.0, 4503599627370497.5}) list.push_back(v);
  while (list.size() % 16) list.push_back(2.0);
  for (DType type : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
    const InterpValue in = values(type, list);
    for (int lanes : {1, 16}) {
      for (const Row& row : rows) {
        InterpValue got = map_elements(target(), {in}, type, lanes, [&](auto& x) { return call(row.id, {x[0]}); });
        expect_equal(got, each(in, in, type, [&](double v, double) { return row.fn(v); }),
                     to_string(type.with_lanes(lanes)) + " " + intrinsic_info(row.id).name);
      }
      auto flag = [&](Intrinsic id) {
        return map_elements(target(), {in}, kBool, lanes,
                            [&](auto& x) { return Call::make(kBool.with_lanes(lanes), id, {x[0]}); });
      };
      expect_equal(flag(Intrinsic::kIsNan), each(in, in, kBool, [](double v, double) { return std::isnan(v); }),
                   "isnan");
      expect_equal(flag(Intrinsic::kIsInf), each(in, in, kBool, [](double v, double) { return std::isinf(v); }),
                   "isinf");
      auto [a, b] = float_pairs(type);
      expect_equal(map_elements(target(), {a, b}, type, lanes,
                                [&](auto& x) {
                                  return call(Intrinsic::kCopySign, {x[0], x[1]});
                                }),
                   each(a, b, type, [](double x, double y) { return std::copysign(x, y); }), "copysign");
      expect_equal(map_elements(target(), {a, b}, type, lanes,
                                [&](auto& x) {
                                  return call(Intrinsic::kMinNum, {x[0], x[1]});
                                }),
                   each(a, b, type, [](double x, double y) { return x < y ? x : y; }), "minnum");
      expect_equal(map_elements(target(), {a, b}, type, lanes,
                                [&](auto& x) {
                                  return call(Intrinsic::kMaxNum, {x[0], x[1]});
                                }),
                   each(a, b, type, [](double x, double y) { return x > y ? x : y; }), "maxnum");
    }
  }
}

TEST_P(ExprTest, FusedMultiplyAddRoundsOnce) {
  for (DType type : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
    const double tiny = std::ldexp(1.0, type == kFloat64 ? -52 : type == kFloat32 ? -23 : type == kFloat16 ? -10 : -7);
    const InterpValue x = values(type, {1 + tiny, 3, -1.5, 1 - tiny / 2}),
                      z = values(type, {-1 - 2 * tiny, 0.125, 2.25, -1 + tiny});
    std::vector<double> want;
    for (size_t i = 0; i < 4; ++i)
      want.push_back(type == kFloat64 ? std::fma(x.f[i], x.f[i], z.f[i]) : x.f[i] * x.f[i] + z.f[i]);
    for (int lanes : {1, 4})
      expect_equal(map_elements(target(), {x, z}, type, lanes,
                                [&](auto& in) {
                                  return call(Intrinsic::kFma, {in[0], in[0], in[1]});
                                }),
                   values(type, want), to_string(type.with_lanes(lanes)) + " fma");
    if (type != kFloat32 && type != kFloat64) continue;
    // Contraction off: the product is rounded on its own.
    CodegenOptions strict;
    strict.contract_fma = false;
    std::vector<double> twice;
    for (size_t i = 0; i < 4; ++i)
      twice.push_back(type == kFloat32 ? static_cast<float>(x.f[i] * x.f[i]) + z.f[i] : x.f[i] * x.f[i] + z.f[i]);
    expect_equal(map_elements(
                     target(), {x, z}, type, 4, [&](auto& in) { return in[0] * in[0] + in[1]; }, strict),
                 values(type, twice), to_string(type) + " without contraction");
  }
}

TEST_P(ExprTest, BitFunctions) {
  const InterpValue u32 = int_values(kUInt32, {0, 1, 255, 0x80000000, 0xffffffff, 0x12345678, 7, 65536});
  const InterpValue i8 = int_values(kInt8, {0, 1, -1, -128, 127, 64, 5, -7});
  for (int lanes : {1, 8}) {
    auto apply = [&](const InterpValue& in, DType out, Intrinsic id) {
      return map_elements(target(), {in}, out, lanes, [&](auto& x) { return call(id, {x[0]}); });
    };
    expect_equal(apply(u32, kUInt32, Intrinsic::kPopCount), int_values(kUInt32, {0, 1, 8, 1, 32, 13, 3, 1}),
                 "popcount");
    expect_equal(apply(u32, kUInt32, Intrinsic::kLeadingZeros), int_values(kUInt32, {32, 31, 24, 0, 0, 3, 29, 15}),
                 "clz");
    expect_equal(apply(i8, kInt8, Intrinsic::kPopCount), int_values(kInt8, {0, 1, 8, 1, 7, 1, 2, 6}), "popcount i8");
    expect_equal(apply(i8, kInt8, Intrinsic::kAbs), int_values(kInt8, {0, 1, 1, -128, 127, 64, 5, 7}), "abs i8");
    std::vector<int64_t> high;
    for (int64_t v : u32.i) high.push_back(static_cast<int64_t>((static_cast<uint64_t>(v) * 0xfedcba98) >> 32));
    std::vector<int64_t> constant(8, 0xfedcba98);
    expect_equal(map_elements(target(), {u32, int_values(kUInt32, constant)}, kUInt32, lanes,
                              [](auto& x) {
                                return call(Intrinsic::kMulHigh, {x[0], x[1]});
                              }),
                 int_values(kUInt32, high), "mulhi");
    const InterpValue floats = values(kFloat32, {1.0, -0.0, 2.5, kInf, -1.0, 1e-40, 3.0, 0.0});
    InterpValue bits = make_interp_value(kUInt32, 8);
    from_bytes(to_bytes(floats), &bits);
    expect_equal(
        map_elements(target(), {floats}, kUInt32, lanes,
                     [&](auto& x) { return Call::make(kUInt32.with_lanes(lanes), Intrinsic::kBitcast, {x[0]}); }),
        bits, "bitcast");
    expect_equal(map_elements(target(), {i8}, kInt8, lanes, [](auto& x) { return Not::make(x[0]); }),
                 int_values(kInt8, {-1, -2, 0, 127, -128, -65, -6, 6}), "not");
  }
}

TEST_P(ExprTest, BoolLogic) {
  const InterpValue a = int_values(kBool, {0, 0, 1, 1}), b = int_values(kBool, {0, 1, 0, 1});
  for (int lanes : {1, 4}) {
    auto apply = [&](const std::function<Expr(const std::vector<Expr>&)>& fn) {
      return map_elements(target(), {a, b}, kBool, lanes, fn);
    };
    expect_equal(apply([](auto& x) { return x[0] && x[1]; }), int_values(kBool, {0, 0, 0, 1}), "and");
    expect_equal(apply([](auto& x) { return x[0] || x[1]; }), int_values(kBool, {0, 1, 1, 1}), "or");
    expect_equal(apply([](auto& x) { return binary(BinaryOp::kXor, x); }), int_values(kBool, {0, 1, 1, 0}), "xor");
    expect_equal(apply([](auto& x) { return x[0] == x[1]; }), int_values(kBool, {1, 0, 0, 1}), "eq");
    expect_equal(apply([](auto& x) { return Not::make(x[0]); }), int_values(kBool, {1, 1, 0, 0}), "not");
    expect_equal(map_elements(target(), {a, b}, kFloat16, lanes,
                              [&](auto& x) {
                                return select(x[0], cast(kFloat16.with_lanes(lanes), x[1]),
                                              make_const(kFloat16.with_lanes(lanes), -2));
                              }),
                 values(kFloat16, {-2, -2, 0, 1}), "select");
  }
}

TEST_P(ExprTest, LetBindsOncePerUse) {
  const InterpValue in = values(kFloat32, {1, 2, 3, 4});
  // The same variable is bound twice in one statement, and a shared node uses it under both.
  expect_equal(map_elements(target(), {in}, kFloat32, 1,
                            [](auto& x) {
                              Var v("v", kFloat32);
                              Expr square = v * v;
                              return let(v, x[0], square) + let(v, x[0] + make_const(kFloat32, 1), square);
                            }),
               values(kFloat32, {5, 13, 25, 41}), "let");
}

TEST_P(ExprTest, VectorFunctions) {
  std::vector<double> list;
  for (int i = 0; i < 16; ++i) list.push_back(i * 0.5 - 3);
  const InterpValue in = values(kFloat32, list);
  auto reduce = [&](Intrinsic id, int lanes, int count) {
    Buffer x = make_buffer("x", kFloat32, {Expr(16)}), y = make_buffer("y", kFloat32, {Expr(16)});
    Var i("i");
    Expr value = Call::make(kFloat32, id, {Load::make(x, {Ramp::make(i * lanes, Expr(1), lanes)})});
    LoopFunction f{
        "reduce", {x, y}, {}, {y}, For::make(i, Expr(0), Expr(count), ForKind::kSerial, Store::make(y, {i}, value)),
        {}};
    InterpValue from = in, to = make_interp_value(kFloat32, 16);
    EXPECT_EQ(run_code(f, target(), {&from, &to}), 0);
    to.f.resize(count);
    return to;
  };
  for (int lanes : {2, 3, 4, 5, 8, 16}) {
    const int count = 16 / lanes;
    std::vector<double> sums, products, least, most;
    for (int i = 0; i < count; ++i) {
      double sum = 0, product = 1, low = kInf, high = -kInf;
      for (int lane = 0; lane < lanes; ++lane) {
        const double v = list[i * lanes + lane];
        sum += v, product *= v, low = std::min(low, v), high = std::max(high, v);
      }
      sums.push_back(sum), products.push_back(product + 0.0), least.push_back(low), most.push_back(high);
    }
    expect_equal(reduce(Intrinsic::kReduceAdd, lanes, count), values(kFloat32, sums),
                 "sum of " + std::to_string(lanes));
    InterpValue product = reduce(Intrinsic::kReduceMul, lanes, count);
    for (double& v : product.f) v += 0.0;
    expect_equal(product, values(kFloat32, products), "product of " + std::to_string(lanes));
    expect_equal(reduce(Intrinsic::kReduceMin, lanes, count), values(kFloat32, least),
                 "min of " + std::to_string(lanes));
    expect_equal(reduce(Intrinsic::kReduceMax, lanes, count), values(kFloat32, most),
                 "max of " + std::to_string(lanes));
  }
  expect_equal(map_elements(target(), {in}, kFloat32, 8,
                            [](auto& x) {
                              return call(Intrinsic::kShuffle, {x[0], Expr(7), Expr(6), Expr(5), Expr(4), Expr(0),
                                                                Expr(0), Expr(1), Expr(2)});
                            }),
               values(kFloat32, {.5, 0, -.5, -1, -3, -3, -2.5, -2, 4.5, 4, 3.5, 3, 1, 1, 1.5, 2}), "shuffle");
  expect_equal(
      map_elements(
          target(), {in}, kFloat32, 4,
          [](auto& x) {
            Expr last = Call::make(kFloat32, Intrinsic::kExtractLane, {x[0], Expr(3)});
            Expr pair = Call::make(kFloat32.with_lanes(2), Intrinsic::kConcat, {last, make_const(kFloat32, 9)});
            Expr first = Call::make(kFloat32, Intrinsic::kExtractLane, {x[0], Expr(0)});
            return Call::make(kFloat32.with_lanes(4), Intrinsic::kConcat, {first, pair, last});
          }),
      values(kFloat32, {-3, -1.5, 9, -1.5, -1, .5, 9, .5, 1, 2.5, 9, 2.5, 3, 4.5, 9, 4.5}), "concat and extract");
}

TEST_P(ExprTest, DotAccumulate) {
  for (int lanes : {1, 3, 4, 8, 16, 20}) {
    const int count = lanes * 2;
    std::vector<int64_t> a, b, acc;
    for (int i = 0; i < count * 4; ++i) a.push_back((i * 37) % 256), b.push_back((i * 91) % 256 - 128);
    a[0] = a[1] = a[2] = a[3] = 255;  // would saturate 16-bit pairs
    b[0] = b[1] = b[2] = b[3] = 127;
    b[4] = b[5] = b[6] = b[7] = a[4] = a[5] = a[6] = a[7] = -128;
    for (int i = 0; i < count; ++i) acc.push_back(i * 1000 - 5);
    for (DType left : {kUInt8, kInt8}) {
      InterpValue va = int_values(left, a), vb = int_values(kInt8, b), vacc = int_values(kInt32, acc);
      std::vector<int64_t> want = acc;
      for (int i = 0; i < count * 4; ++i) want[i / 4] += va.i[i] * vb.i[i];
      Buffer ba = make_buffer("a", left, {Expr(count * 4)}), bb = make_buffer("b", kInt8, {Expr(count * 4)}),
             bc = make_buffer("c", kInt32, {Expr(count)});
      Var i("i");
      const Expr at = lanes == 1 ? Expr(i) : Ramp::make(i * lanes, Expr(1), lanes),
                 four = Ramp::make(i * (4 * lanes), Expr(1), 4 * lanes);
      Expr dot = Call::make(kInt32.with_lanes(lanes), Intrinsic::kDotAccumulate,
                            {Load::make(bc, {at}), Load::make(ba, {four}), Load::make(bb, {four})});
      LoopFunction f{
          "dot", {ba, bb, bc}, {}, {bc}, For::make(i, Expr(0), Expr(2), ForKind::kSerial, Store::make(bc, {at}, dot)),
          {}};
      EXPECT_EQ(run_code(f, target(), {&va, &vb, &vacc}), 0);
      expect_equal(vacc, int_values(kInt32, want), to_string(left) + " dot of " + std::to_string(lanes));
    }
  }
}

}  // namespace
}  // namespace tensmith
