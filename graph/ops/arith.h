/// The arithmetic of compute rules: in which type they compute, and scalar functions that need more than one intrinsic.
#pragma once

#include "tensor/workload.h"

namespace tensmith::graph::ops {

/// The type in which values of `dtype` are computed: f16 and bf16 in f32 (rounded once at the end), all others as they
/// are.
DType compute_type(DType dtype);
/// The value in its compute type.
Expr widen(const Expr& value);
/// The sum of `value` in its compute type is kept: a tensor of `dtype` made from one of its compute type; the tensor
/// itself when no rounding is due.
Tensor narrow(const Tensor& tensor, DType dtype);

/// A float constant of the type of `like`.
Expr constant_like(const Expr& like, double value);

/// `body` over a variable that stands for `value`, so that it is evaluated once; constants and variables are put in
/// directly.
Expr with_value(const char* name, const Expr& value, const std::function<Expr(const Expr&)>& body);

/// exp(x) - 1 without cancellation near 0 (at most 2 ulp for float32).
Expr expm1(const Expr& x);
/// log(1 + x) without cancellation near 0, for x >= 0.
Expr log1p(const Expr& x);
/// log(1 + exp(x)) that neither overflows nor cancels.
Expr softplus(const Expr& x);
/// x / (1 + exp(-x)) in the form x * sigmoid(x).
Expr silu(const Expr& x);
/// 0.5 x (1 + erf(x / sqrt 2)).
Expr gelu_erf(const Expr& x);
/// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
Expr gelu_tanh(const Expr& x);
/// The remainder of truncating float division (C's fmod); exact while |a / b| < 2^53, computed in f64 for narrower
/// types.
Expr float_remainder(const Expr& a, const Expr& b);
/// |x|^p, and the p-th root of a sum of such powers, without a call for p = 1 and 2.
Expr power_of_magnitude(const Expr& x, int64_t p);
Expr root_of(const Expr& sum, int64_t p);
/// `value` brought into [low, high] of the integer type and converted: round to nearest even, saturate.
Expr round_saturate(const Expr& value, DType dtype);
/// The lowest and highest value of an integer type, as doubles.
double lowest_of(DType dtype);
double highest_of(DType dtype);

}  // namespace tensmith::graph::ops
