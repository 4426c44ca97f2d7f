#include "codegen/math/coefficients.h"
#include "codegen/math/f32.h"
#include "codegen/math/ir.h"

namespace tensmith::math {

namespace {

constexpr double kLog2E = 1.4426950408889634;
// ln 2 in two parts: the first has 15 bits, so that its product with an exponent is exact.
constexpr double kLn2High = 0.693145751953125;
constexpr double kLn2Low = 1.4286068203094172e-06;
// 1.5 * 2^23: adding it leaves the nearest integer in the low bits of the sum.
constexpr double kRounder = 12582912.0;

/// x = n ln 2 + r with |r| <= ln(2) / 2.
struct Reduced {
  Expr bits;  ///< u32: n + bias in the low 9 bits, zeros in the next 9
  Expr r;
};

Reduced reduce(const Expr& x, int bias) {
  const Constants c(x.dtype());
  const Expr shifted = fma(x, c(kLog2E), c(kRounder + bias));
  const Expr n = shifted - c(kRounder + bias);
  return {uint_bits(shifted), fma(n, c(-kLn2Low), fma(n, c(-kLn2High), x))};
}

/// (e^r - 1) / r.
Expr exp_quotient(const Expr& r, bool fast) {
  const Constants c(r.dtype());
  return fma(fast ? horner(r, kExpFast) : horner(r, kExp), r, c(1));
}

/// 2^n from bits with bias 127; n in [-126, 127].
Expr power_of_two(const Expr& bits) { return float_bits(shift_left(bits, 23)); }

/// 2^n = first * second for n in [-252, 256], from bits with bias 254. Multiplying by both in turn gives infinity where the
/// result is too large and rounds subnormal results once.
struct TwoFactors {
  explicit TwoFactors(const Expr& bits) {
    const Expr half = shift_right(bits, 1);
    first = power_of_two(half);
    second = power_of_two(bits - half);
  }
  Expr scale(const Expr& p) const { return p * first * second; }
  Expr first, second;
};

/// 1 / d or up to 2^-17 more, for d in [1, 2]; cheaper than a division where its rounding is of no use.
Expr rough_inverse(const Expr& d) {
  const Expr first = horner(d, kInverse);
  // A Newton step never overshoots; its constant is raised by more than it can fall short (2^-18.4).
  return fma(first, fnma(first, d, Constants(d.dtype())(1 + 0x1p-17)), first);
}

}  // namespace

Expr exp_f32(const Expr& x, bool fast) {
  const Constants c(x.dtype());
  // Beyond these bounds the result is 0 or infinity whatever x is.
  const Reduced reduced = reduce(clamp_high(clamp_low(x, c(-104)), c(89)), 254);
  const Expr p = fma(exp_quotient(reduced.r, fast), reduced.r, c(1));
  return TwoFactors(reduced.bits).scale(p);
}

Expr sigmoid_f32(const Expr& x, bool fast) {
  const Constants c(x.dtype());
  // With e = exp(-|x|): 1 / (1 + e) for x >= 0 and e / (1 + e) below, so that nothing overflows.
  const Reduced reduced = reduce(clamp_low(-abs(x), c(-104)), 254);
  const TwoFactors power(reduced.bits);
  const Expr quotient = exp_quotient(reduced.r, false);
  const Expr p = fma(quotient, reduced.r, c(1));
  const Expr negative = x < c(0);
  if (fast) {
    const Expr e = power.scale(p);
    return select(negative, e, c(1)) / (c(1) + e);
  }
  // e = s p with a power of two s. An approximate quotient is improved once by the exact remainder
  // numerator - quotient - quotient s p, so that a single rounding counts in full. The first difference is exact because the quotient
  // is at least half the numerator: the inverse errs upwards.
  const Expr s = power.first * power.second;
  const Expr inverse = rough_inverse(fma(s, p, c(1)));
  const Expr numerator = select(negative, p, c(1));
  const Expr p_low = fma(quotient, reduced.r, c(1) - p);
  const Expr rough = numerator * inverse;
  const Expr rest = fnma(rough * s, p, numerator - rough) + select(negative, p_low, c(0));
  const Expr result = fma(rest, inverse, rough);
  return select(negative, power.scale(result), result);
}

Expr tanh_f32(const Expr& x, bool fast) {
  const Constants c(x.dtype());
  const Expr a = abs(x);
  const Reduced reduced = reduce(clamp_high(a, c(9.1)) * c(-2), 127);  // from 9.1 on the result is 1
  const Expr s = power_of_two(reduced.bits);
  if (fast) {
    // m / (2 - m) with m = 1 - exp(-2a) = (1 - s) - s (e^r - 1), which keeps its relative accuracy near 0.
    const Expr r = reduced.r;
    const Expr m = fnma(fma(r * horner(r, kExp), r, r), s, c(1) - s);
    return copy_sign(m / (c(2) - m), x);
  }
  const Expr t = x * x;
  const Expr near = fma(a * t, horner(t, kTanhNear), a);
  // 1 - 2 e / (1 + e) with e = exp(-2a).
  const Expr e = fma(exp_quotient(reduced.r, false), reduced.r, c(1)) * s;
  const Expr far = fma(e, horner(e, kTanhFar), c(1));
  return copy_sign(select(a < c(kTanhSplit[0]), near, far), x);
}

Expr erf_f32(const Expr& x, bool fast) {
  const Constants c(x.dtype());
  const Expr a = abs(x);
  if (fast) {
    // 1 - 2^e with e = a R(a) = n + f: (1 - 2^n) - 2^n (2^f - 1), which keeps its relative accuracy near 0. From 3.92 on that is 1.
    const Expr limited = clamp_high(a, c(3.92));
    const Expr e = limited * horner(limited, kErfFast);
    const Expr shifted = e + c(kRounder + 127);
    const Expr f = e - (shifted - c(kRounder + 127));
    const Expr s = power_of_two(uint_bits(shifted));
    return copy_sign(fma(f * horner(f, kMinusExp2M1), s, c(1) - s), x);
  }
  const Expr near = fma(horner(x * x, kErfNear), x, x);
  // 1 - 2^e with e = log2(erfc(a)); from 4 on that is 1.
  const Expr z = clamp_high(a, c(4)) - c(kErfFarStart[0]);
  const Expr e = horner(z, kErfFar);
  const Expr shifted = e + c(kRounder + 127);
  const Expr f = e - (shifted - c(kRounder + 127));
  const Expr far = fma(horner(f, kMinusExp2), power_of_two(uint_bits(shifted)), c(1));
  return select(a < c(kErfSplit[0]), near, copy_sign(far, x));
}

}  // namespace tensmith::math
