// sin, cos, tan.
#include "codegen/math/coefficients.h"
#include "codegen/math/functions.h"
#include "codegen/math/ir.h"
#include "codegen/math/parts.h"
#include "runtime/base/error.h"

namespace tensmith::math {

namespace {

/// |x| = quadrant * pi/2 + high + low with |high| <= pi/4 and a little. `low` may be null: left out.
struct Angle {
  Expr quadrant;  ///< i32 or i64, as wide as the float; only the low two bits count
  Expr high, low;
};

/// Up to here the reduction by three parts of pi/2 is exact enough; beyond, reduce_large works from here on.
double large_from(DType type) { return type.bits == 32 ? 0x1p16 : 0x1p26; }

/// For |x| up to large_from. The first step is exact: its result is a multiple of 2^-24 (2^-53) below 1.
Angle reduce_small(const Format& format, const Expr& a) {
  const Constants c(a.dtype());
  const std::span<const double> half_pi =
      a.dtype().bits == 32 ? std::span<const double>(kHalfPi32) : std::span<const double>(kHalfPi64);
  const Expr shifted = fma(a, c(0.6366197723675814), c(format.rounder));
  const Expr n = shifted - c(format.rounder);
  const Expr first = fma(n, c(-half_pi[0]), a);
  if (format.precision == Precision::kSingleFast) {
    return {int_bits(shifted), fma(n, c(-half_pi[2]), fma(n, c(-half_pi[1]), first)), {}};
  }
  // The second part's product as a sum of two floats: where the difference cancels, nothing is lost.
  const Expr product = n * c(half_pi[1]);
  const Expr high = first - product;
  const Expr lost = (first - high) - product;
  const Expr low = fma(n, c(-half_pi[2]), lost - fma(n, c(half_pi[1]), -product));
  return {int_bits(shifted), high, low};
}

Expr shift_left_by(const Expr& value, const Expr& count) { return Binary::make(BinaryOp::kShl, value, count); }
Expr shift_right_by(const Expr& value, const Expr& count) { return Binary::make(BinaryOp::kShr, value, count); }
Expr as_signed(const Expr& value) {
  return Call::make(kInt64.with_lanes(value.dtype().lanes), Intrinsic::kBitcast, {value});
}

/// `count` words of 64 bits of 1 / (2 pi) from bit `offset` on (a u64).
std::vector<Expr> turn_window(std::span<const uint64_t> words, const Expr& offset, size_t count) {
  const Constants k(offset.dtype());
  const Expr word_number = shift_right(offset, 6);
  std::vector<Expr> row;
  for (const uint64_t word : words) row.push_back(k.integer(static_cast<int64_t>(word)));
  // Shift the row left by the bits of the word number, largest first, keeping only what can still be reached.
  int bit = 0;
  while ((count + 1 + (size_t{1} << (bit + 1)) - 1) < words.size()) ++bit;
  for (; bit >= 0; --bit) {
    const size_t step = size_t{1} << bit, keep = count + step;
    const Expr taken = bit_and(word_number, k.integer(static_cast<int64_t>(step))) != k.integer(0);
    std::vector<Expr> next;
    for (size_t i = 0; i < keep; ++i)
      next.push_back(i + step < row.size() ? select(taken, row[i + step], row[i]) : row[i]);
    row = std::move(next);
  }
  const Expr shift = bit_and(offset, k.integer(63)), back = bit_xor(shift, k.integer(63));
  std::vector<Expr> window;
  for (size_t i = 0; i < count; ++i)
    window.push_back(bit_or(shift_left_by(row[i], shift), shift_right_by(shift_right(row[i + 1], 1), back)));
  return window;
}

/// For |x| >= large_from, in fixed point: |x| = m 2^e with an integer m, and m * (2^e / (2 pi) mod 1) wraps around at a
/// whole turn by itself. f32: a window of 96 bits of 2^e / (2 pi) leaves an error near 2^-62 turns, while the closest
/// that a float comes to a multiple of pi/2 is 2^-30 or so. Gives the angle as f64 in `high`, within 2^-52.
Angle reduce_large_single(const Expr& a) {
  const int lanes = a.dtype().lanes;
  const Constants k(kUInt64.with_lanes(lanes));
  const Expr bits = cast(kUInt64, uint_bits(a));
  const Expr m = bit_or(bit_and(bits, k.integer(0x7fffff)), k.integer(0x800000));
  const Expr offset = shift_right(bits, 23) - k.integer(127 + 16);
  const std::vector<Expr> window = turn_window(kTurn32, offset, 2);
  const Expr turn = m * window[0] + shift_right(m * shift_right(window[1], 32), 32);
  const Expr quadrant = shift_right(turn + k.integer(int64_t{1} << 61), 62);
  const Expr rest = cast(kFloat64, as_signed(shift_left(turn, 2)));
  return {as_signed(quadrant), rest * make_const(rest.dtype(), 1.5707963267948966 * 0x1p-64), {}};
}

/// The same for f64 with a window of 192 bits.
Angle reduce_large_double(const Expr& a) {
  const DType u64 = kUInt64.with_lanes(a.dtype().lanes);
  const Constants k(u64);
  const Constants c(a.dtype());
  const Expr bits = uint_bits(a);
  const Expr m = bit_or(bit_and(bits, k.integer(0xfffffffffffff)), k.integer(0x10000000000000));
  const Expr offset = shift_right(bits, 52) - k.integer(1023 + 26);
  const std::vector<Expr> window = turn_window(kTurn64, offset, 3);
  const auto high_product = [&](const Expr& x, const Expr& y) { return Call::make(u64, Intrinsic::kMulHigh, {x, y}); };
  const Expr middle = m * window[1];
  const Expr low = middle + high_product(m, window[2]);
  const Expr carry = select(low < middle, k.integer(1), k.integer(0));
  const Expr high = m * window[0] + high_product(m, window[1]) + carry;
  const Expr quadrant = shift_right(high + k.integer(int64_t{1} << 61), 62);
  // The signed rest of a quadrant, 126 bits, in pieces that convert exactly.
  const Expr rest = bit_or(shift_left(high, 2), shift_right(low, 62));
  const Expr below = shift_left(low, 2);
  const auto number = [&](const Expr& value) { return cast(kFloat64, as_signed(value)); };
  const Expr top = number(shift_right(as_signed(rest), 32)) * c(0x1p32);
  const Expr next = number(bit_and(rest, k.integer(0xffffffff)));
  const Expr last = number(shift_right(below, 11)) * c(0x1p-53);
  const Expr sum = top + next;
  const Expr sum_low = ((top - sum) + next) + last;
  const Expr v = sum + sum_low;
  const Expr v_low = (sum - v) + sum_low;
  // Times pi/2 in two parts.
  const Expr angle = v * c(kHalfPi64[0] * 0x1p-64);
  const Expr angle_low =
      fma(v, c(kHalfPi64[0] * 0x1p-64), -angle) + fma(v, c(kHalfPi64[1] * 0x1p-64), v_low * c(kHalfPi64[0] * 0x1p-64));
  return {as_signed(quadrant), angle, angle_low};
}

/// The rounding of an f64 angle to f32 high and low parts.
Angle narrow(const Angle& angle) {
  const Expr high = cast(kFloat32, angle.high);
  return {cast(kInt32, angle.quadrant), high, cast(kFloat32, angle.high - cast(kFloat64, high))};
}

Expr sine_of(const Format& format, const Angle& angle) {
  const Expr r = angle.high;
  const Expr t = r * r;
  const Expr q = horner(t, pick(format.precision, kSin, kSinWide, kSin64));
  return angle.low ? r + fma(r * t, q, angle.low) : fma(r * t, q, r);
}

Expr cosine_of(const Format& format, const Angle& angle) {
  const Expr r = angle.high;
  const Constants c(r.dtype());
  const Expr t = r * r;
  const Expr q = horner(t, pick(format.precision, kCos, kCosWide, kCos64));
  const Expr half = fma(t, c(-0.5), c(1));
  if (angle.low.get() == nullptr) return fma(t * t, q, half);
  const Expr lost = fma(t, c(-0.5), c(1) - half);
  return half + fma(t * t, q, fnma(r, angle.low, lost));
}

Expr is_odd(const Angle& angle) {
  const Constants i(angle.quadrant.dtype());
  return bit_and(angle.quadrant, i.integer(1)) != i.integer(0);
}

/// The lowest value of a signed type: the sign bit.
Expr sign_bit(DType type) { return make_const_int(type, type.bits == 32 ? INT32_MIN : INT64_MIN); }

/// The sine of quadrant * pi/2 + high + low, negated where the sign bit of `sign` (null: nowhere) is set.
Expr sine_of_quadrant(const Format& format, const Angle& angle, const Expr& sign) {
  const DType type = angle.quadrant.dtype();
  Expr flip = shift_left(angle.quadrant, type.bits - 2);
  if (sign) flip = bit_xor(flip, sign);
  flip = bit_and(flip, sign_bit(type));
  return float_bits(bit_xor(int_bits(select(is_odd(angle), cosine_of(format, angle), sine_of(format, angle))), flip));
}

/// `usual` for arguments up to large_from, `large` beyond; the latter stands in a Let of its own, so that it only runs
/// when a lane needs it. `large` gives an expression that only names x and its parameter.
template <typename F>
Expr with_large(const Expr& x, const Expr& usual, const F& large) {
  const Constants c(x.dtype());
  const Var result("usual", usual.dtype());
  const Expr is_large = abs(x) > c(large_from(x.dtype()));
  const Expr lanes = select(is_large, select(x - x == c(0), large(), x - x), result);
  return Let::make(result, share(usual), select(any_lane(is_large), share(lanes), result));
}

Expr sine_or_cosine(const Expr& x, bool cosine, bool small, bool fast) {
  const Format& format = format_of(precision_of(x.dtype(), fast));
  const auto finish = [&](const Format& f, Angle angle) {
    if (!cosine) return sine_of_quadrant(f, angle, int_bits(x));
    angle.quadrant = angle.quadrant + Constants(angle.quadrant.dtype()).integer(1);
    return sine_of_quadrant(f, angle, {});
  };
  const Expr usual = finish(format, reduce_small(format, abs(x)));
  if (small) return usual;
  return with_large(x, usual, [&] {
    const bool single = x.dtype().bits == 32;
    return finish(format_of(precision_of(x.dtype(), /*fast=*/false)),
                  single ? narrow(reduce_large_single(abs(x))) : reduce_large_double(abs(x)));
  });
}

/// sin / cos or -cos / sin, with the sign of `x`; the angle and the result are f64.
Expr tangent_of(const Format& format, const Angle& angle, const Expr& x) {
  const Expr sin = sine_of(format, angle), cos = cosine_of(format, angle);
  const Expr odd = is_odd(angle);
  const Expr ratio = select(odd, cos, sin) / select(odd, -sin, cos);
  return float_bits(bit_xor(int_bits(ratio), bit_and(int_bits(x), sign_bit(angle.quadrant.dtype()))));
}

}  // namespace

Expr sin(const Expr& x, bool small, bool fast) { return sine_or_cosine(x, /*cosine=*/false, small, fast); }
Expr cos(const Expr& x, bool small, bool fast) { return sine_or_cosine(x, /*cosine=*/true, small, fast); }

Expr tan(const Expr& x, bool small) {
  if (x.dtype().bits == 64) {
    const Format& format = format_of(Precision::kDouble);
    const Expr usual = tangent_of(format, reduce_small(format, abs(x)), x);
    return with_large(x, usual, [&] { return tangent_of(format, reduce_large_double(abs(x)), x); });
  }
  // In f64 two parts of pi/2 are more than enough for an f32 argument.
  const Format& format = format_of(Precision::kWide);
  const Expr wide = cast(kFloat64, x);
  const Constants c(wide.dtype());
  const Expr shifted = fma(abs(wide), c(0.6366197723675814), c(format.rounder));
  const Expr n = shifted - c(format.rounder);
  const Angle angle{int_bits(shifted), fma(n, c(-kHalfPi64[1]), fma(n, c(-kHalfPi64[0]), abs(wide))), {}};
  const Expr usual = cast(kFloat32, tangent_of(format, angle, wide));
  if (small) return usual;
  return with_large(x, usual,
                    [&] { return cast(kFloat32, tangent_of(format, reduce_large_single(abs(x)), cast(kFloat64, x))); });
}

}  // namespace tensmith::math
