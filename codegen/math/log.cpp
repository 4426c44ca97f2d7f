// log, rsqrt.
#include <limits>

#include "codegen/math/functions.h"
#include "codegen/math/ir.h"
#include "codegen/math/parts.h"

namespace tensmith::math {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

Mantissa split_mantissa(const Format& format, const Expr& x, bool has_subnormals) {
  const Constants c(x.dtype());
  const double smallest = format.mantissa_bits == 23 ? 0x1p-126 : 0x1p-1022;
  const double lift = format.mantissa_bits == 23 ? 0x1p23 : 0x1p52;
  const Expr subnormal = x < c(smallest);
  const Expr bits = int_bits(has_subnormals ? select(subnormal, x * c(lift), x) : x);
  const Constants i(bits.dtype());
  const Expr exponent = shift_right(bits - i.integer(format.sqrt_half_bits), format.mantissa_bits);
  const Expr m = float_bits(bits - shift_left(exponent, format.mantissa_bits));
  // Through 32 bits: converting 64-bit integers is one instruction only with AVX-512.
  Expr k = cast(x.dtype(), cast(kInt32, exponent));
  if (has_subnormals) k = k + select(subnormal, c(-format.mantissa_bits), c(0));
  return {k, m};
}

Expr log_of(const Format& format, const Expr& x, bool has_subnormals) {
  const Constants c(x.dtype());
  const auto [k, m] = split_mantissa(format, x, has_subnormals);
  const Expr f = m - c(1);
  const Expr tail = f * f * fma(horner(f, format.log), f, c(-0.5));
  const Expr low = fma(k, c(format.ln2_low), tail);
  const Expr high = fma(k, c(format.ln2_high), f);
  if (format.precision == Precision::kSingleFast || format.precision == Precision::kWide) return high + low;
  // What the sum of the two large terms lost.
  return high + (low + (f - fma(k, c(-format.ln2_high), high)));
}

Expr log_checked(const Format& format, const Expr& x) {
  const Constants c(x.dtype());
  const Expr edge = select(x == c(0), c(-kInfinity), c(kNan));
  return select(x == c(kInfinity), x, select(x > c(0), log_of(format, x, /*has_subnormals=*/true), edge));
}

Expr log1p_of(const Format& format, const Expr& u) {
  const Constants c(u.dtype());
  const Expr w = c(1) + u;
  // w - 1 is exact and differs from u by what the sum lost.
  const Expr lost = (u - (w - c(1))) / w;
  return select(u < c(kInfinity), log_of(format, w, /*has_subnormals=*/false) + lost, u);
}

Expr log(const Expr& x, bool fast) { return log_checked(format_of(precision_of(x.dtype(), fast)), x); }

Expr rsqrt(const Expr& x, bool fast) {
  const Constants c(x.dtype());
  const Expr first = c(1) / sqrt(x);
  if (fast && x.dtype().bits == 32) return first;
  // One Newton step on 1 - x * first^2, with the product's rounding error carried along. x = 0 and infinity make h NaN.
  const Expr h = x * first;
  const Expr h_low = fma(x, first, -h);
  const Expr e = fnma(h_low, first, fnma(h, first, c(1)));
  return select(h == h, fma(first * c(0.5), e, first), first);
}

}  // namespace tensmith::math
