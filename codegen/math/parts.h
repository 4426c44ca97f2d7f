/// Steps that several functions share.
#pragma once

#include "codegen/math/format.h"

namespace tensmith::math {

/// x = n ln 2 + r with |r| <= ln(2) / 2.
struct Reduced {
  Expr bits;  ///< unsigned: n + bias in the low bits, zeros in as many next ones (9 for f32, 12 for f64)
  Expr n;     ///< as a float
  Expr r;
};
Reduced reduce_exp(const Format& format, const Expr& x, int bias);

/// 2^n from bits with the format's bias; n in the range of normal numbers.
Expr power_of_two(const Format& format, const Expr& bits);

/// 2^n = first * second, from bits with twice the format's bias; n in twice the range of normal numbers. Multiplying by
/// both in turn gives infinity where the result is too large and rounds subnormal results once.
struct TwoFactors {
  TwoFactors(const Format& format, const Expr& bits);
  Expr scale(const Expr& p) const;
  Expr first, second;
};

/// (e^r - 1) / r.
Expr exp_quotient(const Format& format, const Expr& r);
/// e^x; `offset` is added to the exponent of the result, which so is e^x 2^offset without an overflow in between.
Expr exp_of(const Format& format, const Expr& x, int offset = 0);

/// log(x) for positive finite x (anything else gives a number without meaning). `has_subnormals`: x may be subnormal.
Expr log_of(const Format& format, const Expr& x, bool has_subnormals);
/// log(x) with the special values: NaN for negative x, -infinity for zero.
Expr log_checked(const Format& format, const Expr& x);
/// log(1 + u) for u >= 0, infinity included.
Expr log1p_of(const Format& format, const Expr& u);

/// x = 2^k m with m in [sqrt(1/2), sqrt(2)).
struct Mantissa {
  Expr k;  ///< as a float
  Expr m;
};
Mantissa split_mantissa(const Format& format, const Expr& x, bool has_subnormals);

}  // namespace tensmith::math
