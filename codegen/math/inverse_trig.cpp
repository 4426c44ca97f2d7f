// asin, acos, atan. f32 is computed in f64 with short polynomials: these are rare, and the result is right to half an
// ulp.
#include <limits>

#include "codegen/math/coefficients.h"
#include "codegen/math/functions.h"
#include "codegen/math/ir.h"

namespace tensmith::math {

namespace {

template <typename F>
Expr in_double(const Expr& x, const F& f) {
  if (x.dtype().bits == 64) return f(x, Precision::kDouble);
  return cast(kFloat32, f(cast(kFloat64, x), Precision::kWide));
}

/// For |x| above 1/2: u = sqrt((1 - |x|) / 2), whose arc sine is half the arc cosine of |x|; NaN beyond 1. For others
/// |x|. In double the root's rounding error goes along.
struct Half {
  Expr u;
  Expr u_low;  ///< null when not needed
  Expr is_far;
};
Half half_angle(const Expr& a, Precision precision) {
  const Constants c(a.dtype());
  const Expr is_far = a > c(0.5);
  const Expr z = fma(a, c(-0.5), c(0.5));  // exact above 1/2
  const Expr root = sqrt(z);
  const Expr u = select(is_far, root, a);
  if (precision == Precision::kWide) return {u, {}, is_far};
  // At z = 0 the correction would be 0 / 0.
  const Expr correction = select(root > c(0), fnma(root, root, z) / (root + root), c(0));
  return {u, select(is_far, correction, c(0)), is_far};
}

}  // namespace

Expr atan(const Expr& x) {
  return in_double(x, [](const Expr& v, Precision precision) {
    const Constants c(v.dtype());
    const Expr a = abs(v);
    // Beyond 1: pi/2 - atan(1/a).
    const Expr far = a > c(1);
    const Expr u = select(far, c(-1) / a, a);
    const Expr t = u * u;
    const Expr tail = u * t * horner(t, pick(precision, {}, kAtanWide, kAtan64));
    const Expr base = select(far, c(kHalfPi64[0]), c(0));
    if (precision == Precision::kWide) return copy_sign(base + (u + tail), v);
    // base + u with what the sum loses (base is the larger one), and the quotient's rounding error.
    const Expr sum = base + u;
    const Expr lost = (base - sum) + u;
    const Expr u_low = select(far && a < c(std::numeric_limits<double>::infinity()), fma(u, a, c(1)) * u, c(0));
    return copy_sign(sum + (lost + (tail + (u_low + select(far, c(kHalfPi64[1]), c(0))))), v);
  });
}

Expr asin(const Expr& x) {
  return in_double(x, [](const Expr& v, Precision precision) {
    const Constants c(v.dtype());
    const Half half = half_angle(abs(v), precision);
    const Expr u = half.u, t = u * u;
    const Expr tail = u * t * horner(t, pick(precision, {}, kAsinWide, kAsin64));
    if (precision == Precision::kWide) {
      const Expr arc = u + tail;
      return copy_sign(select(half.is_far, fma(arc, c(-2), c(kHalfPi64[0])), arc), v);
    }
    // pi/2 - 2 (u + tail)
    const Expr high = fma(u, c(-2), c(kHalfPi64[0]));
    const Expr lost = fma(u, c(-2), c(kHalfPi64[0]) - high);
    const Expr far = high + fma(tail + half.u_low, c(-2), lost + c(kHalfPi64[1]));
    return copy_sign(select(half.is_far, far, u + tail), v);
  });
}

Expr acos(const Expr& x) {
  return in_double(x, [](const Expr& v, Precision precision) {
    const Constants c(v.dtype());
    const Half half = half_angle(abs(v), precision);
    const Expr u = half.u, t = u * u;
    Expr tail = u * t * horner(t, pick(precision, {}, kAsinWide, kAsin64));
    if (half.u_low) tail = tail + half.u_low;
    const Expr negative = v < c(0);
    // Near 0: pi/2 - asin(x). Beyond 1/2: 2 asin(u), and below -1/2 pi minus that. In one form base - scale (u + tail).
    const Expr scale = select(half.is_far, select(negative, c(2), c(-2)), select(negative, c(-1), c(1)));
    const Expr parts = select(half.is_far, select(negative, c(2), c(0)), c(1));
    const Expr base = parts * c(kHalfPi64[0]);
    const Expr high = fnma(scale, u, base);
    const Expr lost = fnma(scale, u, base - high);
    return high + fnma(scale, tail, fma(parts, c(kHalfPi64[1]), lost));
  });
}

}  // namespace tensmith::math
