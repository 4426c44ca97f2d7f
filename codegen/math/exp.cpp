// exp, sigmoid, tanh, erf.
#include "codegen/math/coefficients.h"
#include "codegen/math/functions.h"
#include "codegen/math/ir.h"
#include "codegen/math/machine.h"
#include "codegen/math/parts.h"

namespace tensmith::math {

namespace {

constexpr double kLog2E = 1.4426950408889634;

/// About 1 / d for d in [1, 2], never less. f32: at most 2^-17 more; cheaper than a division where its rounding is of
/// no use.
Expr rough_inverse(const Format& format, const Expr& d) {
  const Constants c(d.dtype());
  if (format.precision == Precision::kDouble) return c(1) / d;
  const Expr first = horner(d, kInverse);
  // A Newton step never overshoots; its constant is raised by more than it can fall short (2^-18.4).
  return fma(first, fnma(first, d, c(1 + 0x1p-17)), first);
}

/// p 2^n where x >= low, 0 below.
Expr scale_above(const Expr& x, double low, const Expr& p, const Expr& n) {
  const Constants c(x.dtype());
  // Lanes that are left out do not underflow: a result below the smallest subnormal would cost two hundred cycles.
  return select(logical_not(x < c(low)), scale(p, n), c(0));
}

/// sigmoid of f32.
Expr sigmoid_by_reciprocal(const Format& format, const Expr& x, bool fast) {
  const Constants c(x.dtype());
  // x = n ln 2 - r, so exp(-x) = 2^-n (1 + q) with q = e^r - 1, and sigmoid = 2^n / (2^n + 1 + q); from 17.4 on 1.
  const Expr limited = clamp_high(x, c(18));
  const Expr n = fma(limited, c(kLog2E), c(format.rounder)) - c(format.rounder);
  const Expr r = fma(n, c(format.ln2_low), fma(n, c(format.ln2_high), -limited));
  const Expr quotient = exp_quotient(format, r);
  const Expr q = quotient * r, q_low = fma(quotient, r, -q);
  // Below 2^-64 this power only has to be small.
  const Expr power = scale(c(1), clamp_low(n, c(-64)));
  const Expr d = power + (c(1) + q), v = reciprocal(d);
  if (fast) return scale_above(x, format.exp_low, fma(fnma(v, d, c(1)), v, v), n);
  // The remainder 1 - v (2^n + 1 + q), larger terms first: each difference is exact or small.
  const Expr w = v * power;
  const Expr rest = fnma(v, q_low, fnma(v, q, c(1) - clamp_low(w, v)) - clamp_high(w, v));
  return scale_above(x, format.exp_low, fma(rest, v, v), n);
}

/// The function of table `pieces` (see fit.py) at `a`; `piece` holds its column in the low four bits, `is_first` tells
/// whether it is the one around 0.
template <size_t N>
Expr piecewise(const float (&pieces)[N][16], const Expr& a, const Expr& piece, const Expr& is_first) {
  const Expr t = a - lookup(pieces[0], piece);
  Expr sum = lookup(pieces[N - 1], piece);
  for (size_t k = N - 2; k >= 2; --k) sum = fma(sum, t, lookup(pieces[k], piece));
  return fma(sum, t, select(is_first, t, lookup(pieces[1], piece)));
}

/// e = n + f with |f| <= 1/2: 2^n as a float, and f.
struct Split {
  Expr power, f;
};
Split split_exponent(const Format& format, const Expr& e) {
  const Constants c(e.dtype());
  const double rounder = format.rounder + format.exponent_bias;
  const Expr shifted = e + c(rounder);
  return {power_of_two(format, uint_bits(shifted)), e - (shifted - c(rounder))};
}

}  // namespace

Reduced reduce_exp(const Format& format, const Expr& x, int bias) {
  const Constants c(x.dtype());
  const Expr shifted = fma(x, c(kLog2E), c(format.rounder + bias));
  const Expr n = shifted - c(format.rounder + bias);
  return {uint_bits(shifted), n, fma(n, c(-format.ln2_low), fma(n, c(-format.ln2_high), x))};
}

Expr power_of_two(const Format& format, const Expr& bits) { return float_bits(shift_left(bits, format.mantissa_bits)); }

TwoFactors::TwoFactors(const Format& format, const Expr& bits) {
  const Expr half = shift_right(bits, 1);
  first = power_of_two(format, half);
  second = power_of_two(format, bits - half);
}

Expr TwoFactors::scale(const Expr& p) const { return p * first * second; }

Expr exp_quotient(const Format& format, const Expr& r) {
  return fma(horner(r, format.exp), r, Constants(r.dtype())(1));
}

Expr exp_of(const Format& format, const Expr& x, int offset) {
  const Constants c(x.dtype());
  const Expr limited = clamp_high(clamp_low(x, c(format.exp_low)), c(format.exp_high - offset));
  const Reduced reduced = reduce_exp(format, limited, 2 * format.exponent_bias);
  const Expr p = fma(exp_quotient(format, reduced.r), reduced.r, c(1));
  const Constants i(reduced.bits.dtype());
  // A product that ends below the smallest subnormal costs a hundred cycles; exp of masked entries must not.
  const Expr some = select(x < c(format.exp_low), c(0), p);
  return TwoFactors(format, reduced.bits + i.integer(offset)).scale(some);
}

Expr exp(const Expr& x, const Form& form) {
  const Format& format = format_of(precision_of(x.dtype(), form.fast));
  if (!form.avx512) return exp_of(format, x);
  // Scaling by a power of two knows overflow. Below exp_low nothing but the choice counts.
  const Constants c(x.dtype());
  const Reduced reduced = reduce_exp(format, clamp_high(x, c(format.exp_high)), 0);
  const Expr p = fma(exp_quotient(format, reduced.r), reduced.r, c(1));
  return scale_above(x, format.exp_low, p, reduced.n);
}

Expr sigmoid(const Expr& x, const Form& form) {
  const Constants c(x.dtype());
  const Format& format = format_of(precision_of(x.dtype(), /*fast=*/false));
  if (form.avx512 && format.precision == Precision::kSingle) return sigmoid_by_reciprocal(format, x, form.fast);
  // With e = exp(-|x|): 1 / (1 + e) for x >= 0 and e / (1 + e) below, so that nothing overflows.
  const Reduced reduced = reduce_exp(format, clamp_low(-abs(x), c(format.exp_low)), 2 * format.exponent_bias);
  const TwoFactors power(format, reduced.bits);
  const Expr quotient = exp_quotient(format, reduced.r);
  const Expr p = fma(quotient, reduced.r, c(1));
  const Expr negative = x < c(0);
  const Expr e = power.scale(p);
  const Expr numerator = select(negative, e, c(1));
  const Expr d = c(1) + e;
  if (form.fast && format.precision == Precision::kSingle) return numerator / d;
  // An approximate quotient is improved once by the remainder numerator - quotient (1 + e), so that a single rounding
  // counts in full. Its first difference is exact because the quotient is at least half the numerator: the inverse errs
  // upwards.
  const Expr inverse = rough_inverse(format, d);
  const Expr rough = numerator * inverse;
  const Expr e_low = fma(quotient, reduced.r, c(1) - p) * (power.first * power.second);
  const Expr rest = fnma(rough, e, numerator - rough) + select(negative, e_low, c(0));
  return fma(rest, inverse, rough);
}

Expr tanh(const Expr& x, const Form& form) {
  const Constants c(x.dtype());
  const Precision precision = precision_of(x.dtype(), /*fast=*/false);
  const bool is_double = precision == Precision::kDouble;
  const Format& format = format_of(precision);
  const Expr a = abs(x);
  if (form.avx512 && !is_double) {
    // From 9.02 on the result is 1. The third bit of the mantissa of a + 1 is bit 21.
    const Expr inside = clamp_high(a, c(9.5)), shifted = inside + c(1);
    return copy_sign(piecewise(kTanhPieces, inside, shift_right(uint_bits(shifted), 21), shifted < c(1.25)), x);
  }
  const Expr limited = clamp_high(a, c(is_double ? 19.2 : 9.1));  // from there on the result is 1
  const Reduced reduced = reduce_exp(format, limited * c(-2), format.exponent_bias);
  const Expr r = reduced.r;
  const Expr s = power_of_two(format, reduced.bits);
  if (form.fast && !is_double) {
    // m / (2 - m) with m = 1 - exp(-2a) = (1 - s) - s (e^r - 1), which keeps its relative accuracy near 0.
    const Expr m = fnma(fma(r * horner(r, format.exp), r, r), s, c(1) - s);
    return copy_sign(m / (c(2) - m), x);
  }
  const Expr t = x * x;
  const Expr near = fma(a * t, horner(t, pick(precision, kTanhNear, {}, kTanhNear64)), a);
  // 1 - 2 e / (1 + e) with e = exp(-2a).
  const Expr e = fma(exp_quotient(format, r), r, c(1)) * s;
  const Expr far = fma(e, horner(e, pick(precision, kTanhFar, {}, kTanhFar64)), c(1));
  return copy_sign(select(a < c(kTanhSplit[0]), near, far), x);
}

Expr erf(const Expr& x, const Form& form) {
  const Constants c(x.dtype());
  const Precision precision = precision_of(x.dtype(), /*fast=*/false);
  const bool is_double = precision == Precision::kDouble;
  const Format& format = format_of(precision);
  const Expr a = abs(x);
  if (form.avx512 && !is_double) {
    // From 3.92 on the result is 1. The sum's low bits are the number of the piece, 15 at most.
    const Expr inside = clamp_high(a, c(4));
    const Expr piece = uint_bits(fma(inside, c(3.84375), c(format.rounder)));
    const Constants i(piece.dtype());
    return copy_sign(piecewise(kErfPieces, inside, piece, bit_and(piece, i.integer(15)) == i.integer(0)), x);
  }
  if (form.fast && !is_double) {
    // 1 - 2^e with e = a R(a) = n + f: (1 - 2^n) - 2^n (2^f - 1), which keeps its relative accuracy near 0. From 3.92
    // on that is 1.
    const Expr limited = clamp_high(a, c(3.92));
    const Split split = split_exponent(format, limited * horner(limited, kErfFast));
    return copy_sign(fma(split.f * horner(split.f, kMinusExp2M1), split.power, c(1) - split.power), x);
  }
  const Expr near = fma(horner(x * x, pick(precision, kErfNear, {}, kErfNear64)), x, x);
  // 1 - 2^e with e = log2(erfc(a)); from the bound on that is 1.
  const Expr z = clamp_high(a, c(is_double ? 5.95 : 4)) - c(is_double ? kErfFarStart64[0] : kErfFarStart[0]);
  const Split split = split_exponent(format, horner(z, pick(precision, kErfFar, {}, kErfFar64)));
  const Expr far = fma(horner(split.f, pick(precision, kMinusExp2, {}, kMinusExp264)), split.power, c(1));
  return select(a < c(kErfSplit[0]), near, copy_sign(far, x));
}

}  // namespace tensmith::math
