// pow.
#include <limits>

#include "codegen/math/coefficients.h"
#include "codegen/math/functions.h"
#include "codegen/math/ir.h"
#include "codegen/math/parts.h"

namespace tensmith::math {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Expr trunc(const Expr& x) { return call(Intrinsic::kTrunc, {x}); }

/// log(a) for a >= 0 in f64 as an unevaluated sum. Special: -infinity for 0, infinity and NaN for themselves.
struct Sum {
  Expr high, low;
};

/// a + b as a sum without error, for |a| >= |b| or a = 0.
Sum fast_two_sum(const Expr& a, const Expr& b) {
  const Expr s = a + b;
  return {s, (a - s) + b};
}

/// a * b as a sum without error.
Sum two_product(const Expr& a, const Expr& b) {
  const Expr p = a * b;
  return {p, fma(a, b, -p)};
}

/// log(a) of f64 within 2^-66 or so, relatively: with s = f / (2 + f), log(1 + f) = 2s (1 + w/3 + w^2 Q(w)), w = s^2,
/// where the first two terms and s are carried as sums; w^2 Q(w) is below 2^-12.
Sum log_closely(const Expr& a) {
  const Format& format = format_of(Precision::kDouble);
  const Constants c(a.dtype());
  const auto [k, m] = split_mantissa(format, a, /*has_subnormals=*/true);
  const Expr f = m - c(1);
  const Sum g = fast_two_sum(c(2), f);
  const Expr inverse = c(1) / g.high;
  const Expr s = f * inverse;
  const Expr s_low = fnma(s, g.low, fnma(s, g.high, f)) * inverse;
  const Expr w = s * s;
  const Expr w_low = fma(s + s, s_low, fma(s, s, -w));
  // z = w/3 + w^2 Q(w), then 2s (1 + z).
  const Sum third = two_product(w, c(kThird64[0]));
  const Expr third_low = third.low + fma(w, c(kThird64[1]), w_low * c(kThird64[0]));
  // s alone is off by up to 1.5 ulp, so w^2 takes the low part in.
  const Sum z = fast_two_sum(third.high, fma(w + w, w_low, w * w) * horner(w, kLogOdd64));
  const Expr z_low = z.low + third_low;
  const Expr twice = s + s;
  const Sum product = two_product(twice, z.high);
  const Expr rest = product.low + fma(twice, z_low, (s_low + s_low) * z.high) + (s_low + s_low);
  const Sum mantissa = fast_two_sum(twice, product.high);
  const Expr mantissa_low = mantissa.low + rest;
  // k ln2 is the larger term unless k = 0.
  const Sum total = fast_two_sum(k * c(kLn2Parts64[0]), mantissa.high);
  const Expr total_low = total.low + (fma(k, c(kLn2Parts64[1]), mantissa_low) + k * c(kLn2Parts64[2]));
  return fast_two_sum(total.high, total_low);
}

/// |x|^y in f64, for logarithms with special values already in place.
Expr exp_of_product(const Sum& log, const Expr& y, Precision precision) {
  const Format& format = format_of(precision);
  const Constants c(y.dtype());
  // 1^y and a^0 are 1 for every y and a, infinities and NaN included.
  const Expr is_one = y == c(0) || log.high == c(0);
  if (precision == Precision::kWide) {
    // The result goes to f32: 150 bounds what matters there.
    const Expr product = select(is_one, c(0), y * log.high);
    const Expr limited = clamp_high(clamp_low(product, c(-150)), c(150));
    const Reduced reduced = reduce_exp(format, limited, format.exponent_bias);
    return fma(exp_quotient(format, reduced.r), reduced.r, c(1)) * power_of_two(format, reduced.bits);
  }
  const Sum product = two_product(y, log.high);
  const Expr limited = clamp_high(clamp_low(select(is_one, c(0), product.high), c(format.exp_low)), c(format.exp_high));
  // Beyond the bounds, or with infinite operands, the low part has no meaning.
  const Expr low = select(limited == product.high, fma(y, log.low, product.low), c(0));
  // e^(r + r_low) = (1 + r) + (r^2 q + r_low), where the first sum is carried without error.
  const Reduced reduced = reduce_exp(format, limited, 2 * format.exponent_bias);
  const Sum r = fast_two_sum(fma(reduced.n, c(-format.ln2_high), limited), fma(reduced.n, c(-format.ln2_low), low));
  const Sum linear = fast_two_sum(c(1), r.high);
  const Expr p = linear.high + (linear.low + fma(r.high * r.high, horner(r.high, format.exp), r.low));
  return TwoFactors(format, reduced.bits).scale(p);
}

/// Exact or nearly exact forms for common constant exponents; null for others.
Expr constant_power(const Expr& x, const Expr& y) {
  const Constants c(x.dtype());
  if (is_const_float(y, 0)) return c(1);
  if (is_const_float(y, 1)) return x;
  if (is_const_float(y, 2)) return x * x;
  if (is_const_float(y, -1)) return c(1) / x;
  if (is_const_float(y, 0.5)) return select(x == c(-kInfinity), c(kInfinity), sqrt(x + c(0)));  // -0 to +0
  if (is_const_float(y, 3)) {
    const Sum square = two_product(x, x);
    const Expr cube = square.high * x;
    return select(abs(cube) < c(kInfinity), fma(square.high, x, square.low * x), cube);
  }
  return {};
}

}  // namespace

Expr pow(const Expr& x, const Expr& y) {
  if (Expr special = constant_power(x, y)) return special;
  const Constants c(x.dtype());
  const bool is_single = x.dtype().bits == 32;
  const Expr a = is_single ? abs(cast(kFloat64, x)) : abs(x);
  const Constants w(a.dtype());
  Sum log = is_single ? Sum{log_of(format_of(Precision::kWide), a, /*has_subnormals=*/false), {}} : log_closely(a);
  log.high = select(a == w(0), w(-kInfinity), select(a < w(kInfinity), log.high, a));
  Expr magnitude =
      exp_of_product(log, is_single ? cast(kFloat64, y) : y, is_single ? Precision::kWide : Precision::kDouble);
  if (is_single) magnitude = cast(kFloat32, magnitude);
  // Infinite and large y count as even integers.
  const Expr is_integer = trunc(y) == y;
  const Expr half = y * c(0.5);
  const Expr is_odd = is_integer && trunc(half) != half;
  const Expr bits = int_bits(x);
  const Constants i(bits.dtype());
  const Expr sign = select(is_odd, bit_and(bits, i.integer(is_single ? INT32_MIN : INT64_MIN)), i.integer(0));
  const Expr result = float_bits(bit_or(int_bits(magnitude), sign));
  return select(x < c(0) && trunc(y) != y && x > c(-kInfinity), c(kNan), result);
}

}  // namespace tensmith::math
