// sinh, cosh, asinh, acosh, atanh. f32 is computed in f64 with short polynomials: these are rare, and the result is
// right to half an ulp.
#include <limits>

#include "codegen/math/coefficients.h"
#include "codegen/math/functions.h"
#include "codegen/math/ir.h"
#include "codegen/math/parts.h"

namespace tensmith::math {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Runs `f(x, precision)` on f64: f32 is widened first and the result rounded.
template <typename F>
Expr in_double(const Expr& x, const F& f) {
  if (x.dtype().bits == 64) return f(x, Precision::kDouble);
  return cast(kFloat32, f(cast(kFloat64, x), Precision::kWide));
}

/// a + a t q(t) with t = a^2.
Expr odd_polynomial(const Expr& a, std::span<const double> q) {
  const Expr t = a * a;
  return fma(a * t, horner(t, q), a);
}

/// log(a + sqrt(a^2 + 1)) for a >= 1.
Expr far_asinh(const Expr& a, Precision precision) {
  const Constants c(a.dtype());
  const Format& format = format_of(precision);
  if (precision == Precision::kWide) return log_of(format, a + sqrt(fma(a, a, c(1))), /*has_subnormals=*/false);
  // From 2^28 on log(2a) to the last bit; a^2 would overflow later.
  const Expr large = a > c(0x1p28);
  const Expr s = sqrt(fma(a, a, c(1)));
  const Expr argument = select(large, a, a + s);
  return log_of(format, argument, /*has_subnormals=*/false) + select(large, c(kLn2Parts64[0]), c(0)) +
         select(large, c(kLn2Parts64[1]), c(0));
}

}  // namespace

Expr sinh(const Expr& x) {
  return in_double(x, [](const Expr& v, Precision precision) {
    const Constants c(v.dtype());
    const Format& format = format_of(precision);
    const Expr a = abs(v);
    const Expr half = exp_of(format, a, -1);
    const Expr far = half - c(0.25) / half;
    return copy_sign(select(a < c(1), odd_polynomial(a, pick(precision, {}, kSinhWide, kSinh64)), far), v);
  });
}

Expr cosh(const Expr& x) {
  return in_double(x, [](const Expr& v, Precision precision) {
    const Expr half = exp_of(format_of(precision), abs(v), -1);
    return half + Constants(v.dtype())(0.25) / half;
  });
}

Expr asinh(const Expr& x) {
  return in_double(x, [](const Expr& v, Precision precision) {
    const Constants c(v.dtype());
    const Expr a = abs(v);
    const Expr near = odd_polynomial(a, pick(precision, {}, kAsinhWide, kAsinh64));
    const Expr far = select(a < c(kInfinity), far_asinh(a, precision), a);
    return copy_sign(select(a < c(1), near, far), v);
  });
}

Expr acosh(const Expr& x) {
  return in_double(x, [](const Expr& v, Precision precision) {
    const Constants c(v.dtype());
    // log1p(u + sqrt(u (u + 2))) with u = v - 1; below 1 the root is NaN or, below -1, the argument negative.
    const Expr u = v - c(1);
    Expr result;
    if (precision == Precision::kWide) {
      result = log_of(format_of(precision), v + sqrt(fma(u, u, u + u)), /*has_subnormals=*/false);
    } else {
      const Expr large = v > c(0x1p28);
      const Expr argument = select(large, u, u + sqrt(fma(u, u, u + u)));
      const Expr ln2 = select(large, c(kLn2Parts64[0] + kLn2Parts64[1]), c(0));
      result = log1p_of(format_of(precision), argument) + ln2;
    }
    const Expr valid = select(v >= c(1), result, c(std::numeric_limits<double>::quiet_NaN()));
    return select(v < c(kInfinity), valid, v);
  });
}

Expr atanh(const Expr& x) {
  return in_double(x, [](const Expr& v, Precision precision) {
    const Constants c(v.dtype());
    const Expr a = abs(v);
    const Expr near = odd_polynomial(a, pick(precision, {}, kAtanhWide, kAtanh64));
    // log1p(2a / (1 - a)) / 2; at 1 the quotient is infinite, beyond it is negative.
    const Expr quotient = (a + a) / (c(1) - a);
    const Expr far = c(0.5) * log1p_of(format_of(precision), quotient);
    const Expr checked = select(a <= c(1), far, c(std::numeric_limits<double>::quiet_NaN()));
    return copy_sign(select(a < c(0.5), near, checked), v);
  });
}

}  // namespace tensmith::math
