#include "codegen/math/coefficients.h"
#include "codegen/math/f32.h"
#include "codegen/math/ir.h"

#include <limits>

namespace tensmith::math {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
// ln 2 in two parts: the first has 15 bits, so that its product with an exponent is exact.
constexpr double kLn2High = 0.693145751953125;
constexpr double kLn2Low = 1.4286068203094172e-06;

}  // namespace

Expr log_f32(const Expr& x, bool fast) {
  const Constants c(x.dtype());
  const DType int_type = kInt32.with_lanes(x.dtype().lanes);
  const Constants i(int_type);
  const Expr subnormal = x < c(0x1p-126);
  const Expr bits = int_bits(select(subnormal, x * c(0x1p23), x));
  // x = 2^k m with m in [sqrt(1/2), sqrt(2)).
  const Expr exponent = shift_right(bits - i.integer(0x3f3504f3), 23);
  const Expr m = float_bits(bits - shift_left(exponent, 23));
  const Expr k = cast(x.dtype(), exponent) + select(subnormal, c(-23), c(0));
  const Expr f = m - c(1);
  const Expr tail = f * f * fma(horner(f, fast ? std::span<const double>(kLogFast) : std::span<const double>(kLog)), f, c(-0.5));
  const Expr low = fma(k, c(kLn2Low), tail);
  Expr result;
  const Expr high = fma(k, c(kLn2High), f);
  if (fast) {
    result = high + low;
  } else {
    const Expr lost = f - fma(k, c(-kLn2High), high);
    result = high + (low + lost);
  }
  const Expr edge = select(x == c(0), c(-kInfinity), c(kNan));
  return select(x == c(kInfinity), x, select(x > c(0), result, edge));
}

Expr rsqrt_f32(const Expr& x, bool fast) {
  const Constants c(x.dtype());
  const Expr first = c(1) / sqrt(x);
  if (fast) return first;
  // One Newton step on 1 - x * first^2, with the product's rounding error carried along. x = 0 and infinity make h NaN.
  const Expr h = x * first;
  const Expr h_low = fma(x, first, -h);
  const Expr e = fnma(h_low, first, fnma(h, first, c(1)));
  return select(h == h, fma(first * c(0.5), e, first), first);
}

}  // namespace tensmith::math
