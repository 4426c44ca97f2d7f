// The functions as they run: against exact values, on several instruction sets and numbers of lanes. The full check of
// all 2^32 inputs is apps/bench/vector_math; here every 131,071st float runs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>

#include "apps/bench/vector_math/functions.h"
#include "apps/bench/vector_math/kernel.h"
#include "apps/bench/vector_math/ulp.h"
#include "codegen/math/expand.h"
#include "tests/unit/codegen/run_code.h"

namespace tensmith {
namespace {

constexpr int64_t kBlock = 512;

template <typename T>
struct Block {
  alignas(64) T x[kBlock], y[kBlock], out[kBlock];
};

template <typename T>
constexpr DType kTypeOf = sizeof(T) == 4 ? kFloat32 : kFloat64;

float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Runs `kernel` on the numbers that `next` gives, and fails beyond `limit` ulp from `exact(x)`.
template <typename T, typename Next, typename Exact>
void check(const ElementKernel& kernel, int64_t count, const Next& next, const Exact& exact, double limit,
           const std::string& what) {
  auto block = std::make_unique<Block<T>>();
  for (int64_t done = 0; done < count; done += kBlock) {
    for (T& x : block->x) x = next();
    kernel(block->x, block->y, block->out, kBlock);
    for (int64_t i = 0; i < kBlock; ++i)
      ASSERT_LE(ulp_error(block->out[i], exact(block->x[i])), limit)
          << what << " of " << testing::PrintToString(block->x[i]) << " gives "
          << testing::PrintToString(block->out[i]);
  }
}

class MathAccuracy : public testing::TestWithParam<MathFunction> {};
INSTANTIATE_TEST_SUITE_P(Functions, MathAccuracy,
                         testing::ValuesIn(math_functions().first(math_functions().size() - 1)),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(MathAccuracy, SingleOnEveryTarget) {
  const MathFunction& f = GetParam();
  for (const std::string& name : runnable_targets()) {
    const Target target = Target::parse(name).value();
    // Half of a register, one, and two on some target or other.
    for (const int lanes : {1, 2, 16, 32}) {
      for (const bool fast : {false, true}) {
        // Without FMA each one is a call.
        const uint32_t step = target.fma ? 131071 : 4194301;
        const ElementKernel kernel(f.id, 1, kFloat32, lanes, target, {.fast_math = fast});
        uint32_t bits = 0;
        check<float>(
            kernel, (int64_t{1} << 32) / step, [&] { return float_of(bits += step); }, f.exact,
            fast ? f.f32_fast_limit : f.f32_limit,
            std::string(f.name) + (fast ? " fast" : "") + " on " + name + ", lanes " + std::to_string(lanes));
      }
    }
  }
}

TEST_P(MathAccuracy, Double) {
  const MathFunction& f = GetParam();
  std::mt19937_64 random(7);
  const auto next = [&] {
    constexpr int kRanges[][2] = {{-1074, 1024}, {-30, 12}, {-4, 5}, {-2, 2}};
    const auto& range = kRanges[random() % 4];
    const double magnitude = std::ldexp(1 + static_cast<double>(random() >> 12) * 0x1p-52,
                                        range[0] + static_cast<int>(random() % (range[1] - range[0])));
    return random() & 1 ? -magnitude : magnitude;
  };
  const auto exact = [&](double x) { return f.exact_long(x); };
  for (const std::string& name : runnable_targets()) {
    const Target target = Target::parse(name).value();
    const ElementKernel kernel(f.id, 1, kFloat64, 8, target, {});
    check<double>(kernel, target.fma ? 20000 : 2000, next, exact, f.f64_limit, std::string(f.name) + " on " + name);
  }
}

/// Contraction of the remaining products and sums must not matter.
TEST_P(MathAccuracy, WithoutContraction) {
  const MathFunction& f = GetParam();
  const ElementKernel kernel(f.id, 1, kFloat32, 8, Target::host(), {.contract_fma = false});
  uint32_t bits = 1;
  check<float>(
      kernel, 8192, [&] { return float_of(bits += 524287); }, f.exact, f.f32_limit, f.name);
}

TEST_P(MathAccuracy, SpecialValues) {
  const MathFunction& f = GetParam();
  using Single = std::numeric_limits<float>;
  using Double = std::numeric_limits<double>;
  const float singles[] = {0.0f,
                           -0.0f,
                           1,
                           -1,
                           0.5f,
                           -0.5f,
                           2,
                           -2,
                           Single::infinity(),
                           -Single::infinity(),
                           Single::quiet_NaN(),
                           -Single::quiet_NaN(),
                           float_of(0x7f800001),
                           float_of(0x7fffffff),
                           Single::denorm_min(),
                           -Single::denorm_min(),
                           float_of(0x007fffff),
                           Single::min(),
                           -Single::min(),
                           Single::max(),
                           -Single::max(),
                           88.72283f,
                           88.72284f,
                           -87.33654f,
                           -87.33655f,
                           -103.97207f,
                           -103.97208f,
                           65536,
                           65540,
                           1e10f,
                           -1e22f,
                           std::nextafter(1.0f, 2.0f),
                           std::nextafter(1.0f, 0.0f),
                           std::nextafter(-1.0f, -2.0f)};
  const double doubles[] = {0.0,
                            -0.0,
                            1,
                            -1,
                            0.5,
                            -0.5,
                            2,
                            -2,
                            Double::infinity(),
                            -Double::infinity(),
                            Double::quiet_NaN(),
                            -Double::quiet_NaN(),
                            Double::denorm_min(),
                            -Double::denorm_min(),
                            Double::min(),
                            -Double::min(),
                            Double::max(),
                            -Double::max(),
                            709.782712893384,
                            709.7827128933841,
                            -708.3964185322641,
                            -745.1332191019411,
                            -745.1332191019412,
                            710.4758600739439,
                            710.475860073944,
                            0x1p26,
                            0x1.0000001p26,
                            1e22,
                            -1e300,
                            std::nextafter(1.0, 2.0),
                            std::nextafter(1.0, 0.0),
                            std::nextafter(-1.0, -2.0)};
  for (const bool fast : {false, true}) {
    const ElementKernel kernel(f.id, 1, kFloat32, 16, Target::host(), {.fast_math = fast});
    auto block = std::make_unique<Block<float>>();
    std::copy(std::begin(singles), std::end(singles), block->x);
    kernel(block->x, block->y, block->out, kBlock);
    for (size_t i = 0; i < std::size(singles); ++i)
      EXPECT_LE(ulp_error(block->out[i], f.exact(singles[i])), fast ? f.f32_fast_limit : f.f32_limit)
          << f.name << "(" << singles[i] << ") = " << block->out[i];
  }
  const ElementKernel kernel(f.id, 1, kFloat64, 8, Target::host(), {});
  auto block = std::make_unique<Block<double>>();
  std::copy(std::begin(doubles), std::end(doubles), block->x);
  kernel(block->x, block->y, block->out, kBlock);
  for (size_t i = 0; i < std::size(doubles); ++i)
    EXPECT_LE(ulp_error(block->out[i], f.exact_long(doubles[i])), f.f64_limit)
        << f.name << "(" << doubles[i] << ") = " << block->out[i];
}

/// All values of the 16-bit types: the f32 result is rounded once, so that next to half an ulp nothing is lost.
TEST_P(MathAccuracy, SmallFloats) {
  const MathFunction& f = GetParam();
  for (const DType type : {kFloat16, kBFloat16}) {
    InterpValue input = make_interp_value(type, 65536);
    std::vector<uint8_t> bytes(2 * 65536);
    for (int i = 0; i < 65536; ++i)
      bytes[2 * i] = static_cast<uint8_t>(i), bytes[2 * i + 1] = static_cast<uint8_t>(i >> 8);
    from_bytes(bytes, &input);
    const InterpValue got =
        map_elements("host", {input}, type, 16, [&](const std::vector<Expr>& x) { return call(f.id, x); });
    const int mantissa = type.is_bfloat() ? 7 : 10, lowest = type.is_bfloat() ? -126 : -14;
    const double largest = type.is_bfloat() ? 0x1.fep127 : 65504;
    for (int i = 0; i < 65536; ++i) {
      const double exact = f.exact(input.f[i]), value = got.f[i];
      if (std::isnan(exact)) {
        ASSERT_TRUE(std::isnan(value)) << f.name << "(" << input.f[i] << ") = " << value;
        continue;
      }
      const double ulp = std::ldexp(1.0, std::max(exact == 0 ? lowest : std::ilogb(exact), lowest) - mantissa);
      if (std::isinf(value)) {
        ASSERT_GE(std::fabs(exact), largest) << f.name << "(" << input.f[i] << ") = " << value;
        continue;
      }
      ASSERT_LE(std::fabs(value - exact), 0.5001 * ulp) << f.name << "(" << input.f[i] << ") = " << value;
    }
  }
}

/// The expanded loop IR means the same to the interpreter, which knows nothing of the machine.
TEST_P(MathAccuracy, Interpreted) {
  const MathFunction& f = GetParam();
  for (const DType type : {kFloat32, kFloat64}) {
    constexpr int kCount = 64;
    const Buffer in = make_buffer("in", type, {Expr(kCount)}), out = make_buffer("out", type, {Expr(kCount)});
    const Var i("i");
    const Stmt body =
        For::make(i, Expr(0), Expr(kCount), ForKind::kSerial, Store::make(out, {i}, call(f.id, {load(in, {i})})));
    InterpValue x = make_interp_value(type, kCount), y = make_interp_value(type, kCount);
    const double large[] = {1e5, -3e9, 1e20, 0x1p-30, HUGE_VAL, -HUGE_VAL, std::nan(""), 0.0};
    for (int k = 0; k < kCount; ++k) x.f[k] = static_cast<float>(k < 8 ? large[k] : (k - 35.5) * 0.17);
    const Result<void> done =
        interpret(LoopFunction{"f", {in, out}, {}, {out}, expand_math(body), {}}, {&x, &y}, {}, InterpFloat::kRounded);
    ASSERT_TRUE(done.ok()) << done.failure().message;
    for (int k = 0; k < kCount; ++k) {
      const double error = type == kFloat32 ? ulp_error(static_cast<float>(y.f[k]), f.exact(x.f[k]))
                                            : ulp_error(y.f[k], f.exact_long(x.f[k]));
      EXPECT_LE(error, type == kFloat32 ? f.f32_limit : f.f64_limit) << f.name << "(" << x.f[k] << ") = " << y.f[k];
    }
  }
}

template <typename T>
void check_power(const ElementKernel& kernel, Block<T>* block, int64_t count) {
  kernel(block->x, block->y, block->out, kBlock);
  for (int64_t i = 0; i < count; ++i) {
    const long double exact = std::pow(static_cast<long double>(block->x[i]), static_cast<long double>(block->y[i]));
    double error;
    if constexpr (sizeof(T) == 4) error = ulp_error(block->out[i], static_cast<double>(exact));
    else error = ulp_error(block->out[i], exact);
    ASSERT_LE(error, 1) << "pow(" << testing::PrintToString(block->x[i]) << ", " << testing::PrintToString(block->y[i])
                        << ") = " << block->out[i];
  }
}

template <typename T>
void check_powers() {
  using Limits = std::numeric_limits<T>;
  const ElementKernel kernel(Intrinsic::kPow, 2, kTypeOf<T>, 64 / sizeof(T), Target::host(), {});
  auto block = std::make_unique<Block<T>>();
  const double special[] = {0.0,
                            -0.0,
                            1,
                            -1,
                            2,
                            -2,
                            0.5,
                            -0.5,
                            3,
                            -3,
                            Limits::infinity(),
                            -Limits::infinity(),
                            Limits::quiet_NaN(),
                            Limits::denorm_min(),
                            -Limits::denorm_min(),
                            Limits::min(),
                            Limits::max(),
                            -Limits::max(),
                            1e10,
                            -1e10,
                            16777216,
                            16777215,
                            -16777217,
                            8388607.5,
                            0.1,
                            -0.1,
                            1.0000001,
                            0.9999999,
                            127,
                            128,
                            -149,
                            -150,
                            1023.5,
                            -1075,
                            1.0 / 3,
                            1.5,
                            -1.5,
                            0x1.8p53};
  for (const double y : special) {
    int64_t count = 0;
    for (const double x : special) block->x[count] = static_cast<T>(x), block->y[count++] = static_cast<T>(y);
    check_power(kernel, block.get(), count);
  }
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> unit(-1, 1);
  for (int round = 0; round < 40; ++round) {
    for (int64_t i = 0; i < kBlock; ++i) {
      const double x = std::ldexp(1 + std::fabs(unit(random)),
                                  static_cast<int>(unit(random) * (round % 2 ? 2 : Limits::max_exponent - 1)));
      block->x[i] = static_cast<T>(x);
      block->y[i] = static_cast<T>(unit(random) * std::log(static_cast<double>(Limits::max())) / std::log(x));
    }
    check_power(kernel, block.get(), kBlock);
  }
}

TEST(MathPower, Single) { check_powers<float>(); }
TEST(MathPower, Double) { check_powers<double>(); }

TEST(MathPower, ConstantExponents) {
  for (const double y : {0.0, 1.0, 2.0, -1.0, 0.5, 3.0, 1.5, -2.0}) {
    std::vector<double> x = {0.0,  -0.0,  1,    -1,    2.5,      -2.5,      1e-20,        -1e-13,
                             1e20, -1e13, 3e38, 1e-40, HUGE_VAL, -HUGE_VAL, std::nan(""), 0.1};
    const InterpValue input = values(kFloat32, x);
    const InterpValue got = map_elements("host", {input}, kFloat32, 16, [&](const std::vector<Expr>& arg) {
      return call(Intrinsic::kPow, {arg[0], make_const(arg[0].dtype(), y)});
    });
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_LE(ulp_error(static_cast<float>(got.f[i]), std::pow(input.f[i], y)), 1)
          << input.f[i] << " ^ " << y << " = " << got.f[i];
  }
}

}  // namespace
}  // namespace tensmith
