/// Elementwise functions of f32 and f64 in any number of lanes, as loop IR without calls.
///
/// Each takes leaves (variables or constants) and gives an expression that uses them; `share` names what occurs twice.
/// All keep NaN, infinities, signed zeros and subnormals. Measured maxima in ulp, against exact values (f32: over all
/// inputs, except pow): see README.md.
#pragma once

#include "codegen/math/format.h"

namespace tensmith::math {

/// Which form of a function.
struct Form {
  bool fast = false;    ///< within 3.5 ulp instead of 1
  bool avx512 = false;  ///< by the operations of machine.h
};

Expr exp(const Expr& x, const Form& form);
Expr sigmoid(const Expr& x, const Form& form);
Expr tanh(const Expr& x, const Form& form);
Expr erf(const Expr& x, const Form& form);
Expr log(const Expr& x, bool fast);
Expr rsqrt(const Expr& x, bool fast);
/// `small`: |x| is known to stay below 65536 (values of f16), so that the reduction of large arguments can be left out.
Expr sin(const Expr& x, bool small, bool fast);
Expr cos(const Expr& x, bool small, bool fast);
Expr tan(const Expr& x, bool small);
Expr pow(const Expr& x, const Expr& y);
Expr asin(const Expr& x);
Expr acos(const Expr& x);
Expr atan(const Expr& x);
Expr sinh(const Expr& x);
Expr cosh(const Expr& x);
Expr asinh(const Expr& x);
Expr acosh(const Expr& x);
Expr atanh(const Expr& x);

}  // namespace tensmith::math
