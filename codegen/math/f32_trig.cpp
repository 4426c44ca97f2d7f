#include "codegen/math/coefficients.h"
#include "codegen/math/f32.h"
#include "codegen/math/ir.h"

namespace tensmith::math {

namespace {

/// |x| = quadrant * pi/2 + high + low with |high| <= pi/4 and a little.
struct Angle {
  Expr quadrant;  ///< i32; only the low two bits count
  Expr high, low;
};

/// Bound of the reduction by three parts of pi/2.
constexpr double kLarge = 65536;

/// For |x| <= kLarge. The first step is exact: its result is a multiple of 2^-24 below 1.
Angle reduce_small(const Expr& a, bool fast) {
  const Constants c(a.dtype());
  constexpr double kRounder = 12582912.0;  // 1.5 * 2^23
  const Expr shifted = fma(a, c(0.6366197723675814), c(kRounder));
  const Expr n = shifted - c(kRounder);
  const Expr first = fma(n, c(-kHalfPi32[0]), a);
  if (fast) return {int_bits(shifted), fma(n, c(-kHalfPi32[2]), fma(n, c(-kHalfPi32[1]), first)), {}};
  // The second part's product as a sum of two floats: where the difference cancels, nothing is lost.
  const Expr product = n * c(kHalfPi32[1]);
  const Expr high = first - product;
  const Expr lost = (first - high) - product;
  const Expr low = fma(n, c(-kHalfPi32[2]), lost - fma(n, c(kHalfPi32[1]), -product));
  return {int_bits(shifted), high, low};
}

/// For |x| > kLarge, in 64-bit fixed point: |x| = m 2^e with a 24-bit integer m, and m * (2^e / (2 pi) mod 1) wraps around at a
/// whole turn by itself. A window of 96 bits of 2^e / (2 pi) leaves an error near 2^-62 turns; the closest that a float comes to
/// a multiple of pi/2 is 2^-30 or so.
Angle reduce_large(const Expr& a) {
  const int lanes = a.dtype().lanes;
  const DType u64 = kUInt64.with_lanes(lanes), f32 = a.dtype(), f64 = kFloat64.with_lanes(lanes);
  const Constants k(u64);
  const Expr bits = cast(u64, uint_bits(a));
  const Expr m = bit_or(bit_and(bits, k.integer(0x7fffff)), k.integer(0x800000));
  const Expr offset = shift_right(bits, 23) - k.integer(127 + 16);  // 0 for 2^16, at most 112
  const Expr count = bit_and(offset, k.integer(63));
  const Expr count_back = bit_xor(count, k.integer(63));
  const Expr far = offset >= k.integer(64);
  const auto word = [&](int i) { return k.integer(static_cast<int64_t>(kTurn32[i])); };
  const Expr w0 = select(far, word(1), word(0)), w1 = select(far, word(2), word(1)), w2 = select(far, word(3), word(2));
  const auto window = [&](const Expr& left, const Expr& right) {
    return bit_or(Binary::make(BinaryOp::kShl, left, count), Binary::make(BinaryOp::kShr, shift_right(right, 1), count_back));
  };
  const Expr turn = m * window(w0, w1) + shift_right(m * shift_right(window(w1, w2), 32), 32);
  const Expr quadrant = shift_right(turn + k.integer(int64_t{1} << 61), 62);
  const Expr rest = cast(f64, Call::make(kInt64.with_lanes(lanes), Intrinsic::kBitcast, {shift_left(turn, 2)}));
  const Expr angle = rest * make_const(f64, 1.5707963267948966 * 0x1p-64);
  const Expr high = cast(f32, angle);
  return {cast(kInt32.with_lanes(lanes), quadrant), high, cast(f32, angle - cast(f64, high))};
}

/// The sine of quadrant * pi/2 + high + low, times the sign bit `sign` (i32).
Expr sine(const Angle& angle, const Expr& sign) {
  const Expr r = angle.high;
  const Constants c(r.dtype());
  const Constants i(angle.quadrant.dtype());
  const Expr t = r * r;
  Expr sin, cos;
  const Expr half = fma(t, c(-0.5), c(1));
  if (angle.low) {
    sin = r + fma(r * t, horner(t, kSin), angle.low);
    const Expr lost = fma(t, c(-0.5), c(1) - half);
    cos = half + fma(t * t, horner(t, kCos), fnma(r, angle.low, lost));
  } else {
    sin = fma(r * t, horner(t, kSin), r);
    cos = fma(t * t, horner(t, kCos), half);
  }
  const Expr odd = bit_and(angle.quadrant, i.integer(1)) != i.integer(0);
  Expr flip = bit_and(shift_left(angle.quadrant, 30), i.integer(INT32_MIN));
  if (sign) flip = bit_xor(flip, sign);
  return float_bits(bit_xor(int_bits(select(odd, cos, sin)), flip));
}

Expr sine_or_cosine(const Expr& x, bool cosine, bool small, bool fast) {
  const Constants c(x.dtype());
  const Constants i(kInt32.with_lanes(x.dtype().lanes));
  const Expr a = abs(x);
  const auto finish = [&](Angle angle) {
    if (!cosine) return sine(angle, bit_and(int_bits(x), i.integer(INT32_MIN)));
    angle.quadrant = angle.quadrant + i.integer(1);
    return sine(angle, {});
  };
  const Expr usual = finish(reduce_small(a, fast));
  if (small) return usual;
  // The arm for large arguments is a Let of its own, so that it is only run when a lane needs it.
  const Var result("usual", usual.dtype());
  const Expr is_large = abs(x) > c(kLarge);
  const Expr lanes = select(is_large, select(x - x == c(0), finish(reduce_large(abs(x))), x - x), result);
  return Let::make(result, share(usual), select(any_lane(is_large), share(lanes), result));
}

}  // namespace

Expr sin_f32(const Expr& x, bool small, bool fast) { return sine_or_cosine(x, false, small, fast); }
Expr cos_f32(const Expr& x, bool small, bool fast) { return sine_or_cosine(x, true, small, fast); }

}  // namespace tensmith::math
