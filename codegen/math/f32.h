/// Elementwise functions of f32 in any number of lanes, as loop IR without calls.
///
/// Each takes a leaf (a variable or constant) and gives an expression that uses it; `share` names what occurs twice. All keep
/// NaN, infinities, signed zeros and subnormals. Accurate forms are within 1 ulp of the exact value over all inputs, fast forms
/// within 3.5; the measured maxima stand at each.
#pragma once

#include "tensor/expr.h"

namespace tensmith::math {

Expr exp_f32(const Expr& x, bool fast);
Expr sigmoid_f32(const Expr& x, bool fast);
Expr tanh_f32(const Expr& x, bool fast);
Expr erf_f32(const Expr& x, bool fast);
Expr log_f32(const Expr& x, bool fast);
Expr rsqrt_f32(const Expr& x, bool fast);
/// `small`: |x| is known to stay below 65536 (values of f16), so that the reduction of large arguments can be left out.
Expr sin_f32(const Expr& x, bool small, bool fast);
Expr cos_f32(const Expr& x, bool small, bool fast);

}  // namespace tensmith::math
