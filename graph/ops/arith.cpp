#include "graph/ops/arith.h"

#include <cmath>
#include <limits>

namespace tensmith::graph::ops {

DType compute_type(DType dtype) { return dtype.is_float() && dtype.bits < 32 ? kFloat32 : dtype; }

Expr widen(const Expr& value) { return cast(compute_type(value.dtype()), value); }

Tensor narrow(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  return compute("round", tensor.shape(), [&](const Indices& i) { return cast(dtype, tensor(i)); });
}

Expr constant_like(const Expr& like, double value) { return make_const(like.dtype(), value); }

Expr with_value(const char* name, const Expr& value, const std::function<Expr(const Expr&)>& body) {
  if (value.kind() == NodeKind::kVar || value.kind() == NodeKind::kFloatImm || value.kind() == NodeKind::kIntImm)
    return body(value);
  Var var(name, value.dtype());
  return let(var, value, body(var));
}

Expr expm1(const Expr& value) {
  return with_value("x", value, [](const Expr& x) {
    const Expr far = call(Intrinsic::kExp, {x}) - constant_like(x, 1);
    // tanh(x/2) (exp(x) + 1) = exp(x) - 1 exactly; float64 uses it throughout the middle range, where accuracy counts
    // more than speed.
    if (x.dtype().bits == 64) {
      const Expr near =
          call(Intrinsic::kTanh, {x * constant_like(x, 0.5)}) * (call(Intrinsic::kExp, {x}) + constant_like(x, 1));
      return select(call(Intrinsic::kAbs, {x}) < constant_like(x, 1), near, far);
    }
    // Taylor series up to x^9: the first term left out is below 2e-9 of the result for |x| < 0.5.
    Expr series = constant_like(x, 1.0 / 362880);
    for (double factorial : {40320.0, 5040.0, 720.0, 120.0, 24.0, 6.0, 2.0})
      series = series * x + constant_like(x, 1 / factorial);
    return select(call(Intrinsic::kAbs, {x}) < constant_like(x, 0.5), series * x * x + x, far);
  });
}

Expr log1p(const Expr& value) {
  // With w = 1 + x rounded, log(w) x / (w - 1) repairs the rounding of w (Kahan); for w == 1 the result is x itself.
  return with_value("x", value, [](const Expr& x) {
    const Expr one = constant_like(x, 1);
    return with_value("w", x + one,
                      [&](const Expr& w) { return select(w == one, x, call(Intrinsic::kLog, {w}) * (x / (w - one))); });
  });
}

Expr softplus(const Expr& value) {
  return with_value("x", value, [](const Expr& x) {
    const Expr tail = call(Intrinsic::kExp, {-call(Intrinsic::kAbs, {x})});
    return max(x, constant_like(x, 0)) + log1p(tail);
  });
}

Expr silu(const Expr& value) {
  return with_value("x", value, [](const Expr& x) { return x * call(Intrinsic::kSigmoid, {x}); });
}

Expr gelu_erf(const Expr& value) {
  return with_value("x", value, [](const Expr& x) {
    return x * constant_like(x, 0.5) *
           (call(Intrinsic::kErf, {x * constant_like(x, std::sqrt(0.5))}) + constant_like(x, 1));
  });
}

Expr gelu_tanh(const Expr& value) {
  return with_value("x", value, [](const Expr& x) {
    const double scale = std::sqrt(2 / M_PI);
    const Expr inner = x * (x * x * constant_like(x, 0.044715 * scale) + constant_like(x, scale));
    return x * constant_like(x, 0.5) * (call(Intrinsic::kTanh, {inner}) + constant_like(x, 1));
  });
}

Expr float_remainder(const Expr& a_in, const Expr& b_in) {
  const DType type = a_in.dtype();
  const auto in_double = [](const Expr& a, const Expr& b) {
    const Expr zero = constant_like(a, 0);
    const auto abs = [](const Expr& e) { return call(Intrinsic::kAbs, {e}); };
    const Expr quotient = call(Intrinsic::kTrunc, {a / b});
    return with_value("r", call(Intrinsic::kFma, {-quotient, b, a}), [&](const Expr& r) {
      // The rounded quotient may be one too large or too small in magnitude; fma gives the exact remainder for it.
      const Expr step = call(Intrinsic::kCopySign, {b, a});
      const Expr wrong_sign = (r < zero && a > zero) || (r > zero && a < zero);
      const Expr fixed = select(wrong_sign, r + step, select(abs(r) >= abs(b), r - step, r));
      const Expr infinite_divisor = call(Intrinsic::kIsInf, {b}) && logical_not(call(Intrinsic::kIsInf, {a})) && a == a;
      return select(infinite_divisor, a, fixed);
    });
  };
  const Expr result = with_value("a", cast(kFloat64, a_in), [&](const Expr& a) {
    return with_value("b", cast(kFloat64, b_in), [&](const Expr& b) { return in_double(a, b); });
  });
  return cast(type, result);
}

Expr power_of_magnitude(const Expr& value, int64_t p) {
  if (p == 2) return with_value("x", value, [](const Expr& x) { return x * x; });
  const Expr magnitude = call(Intrinsic::kAbs, {value});
  return p == 1 ? magnitude : call(Intrinsic::kPow, {magnitude, constant_like(value, static_cast<double>(p))});
}

Expr root_of(const Expr& sum, int64_t p) {
  if (p == 1) return sum;
  return p == 2 ? call(Intrinsic::kSqrt, {sum})
                : call(Intrinsic::kPow, {sum, constant_like(sum, 1 / static_cast<double>(p))});
}

double lowest_of(DType dtype) { return dtype.is_int() ? -std::ldexp(1.0, dtype.bits - 1) : 0.0; }
double highest_of(DType dtype) { return std::ldexp(1.0, dtype.is_int() ? dtype.bits - 1 : dtype.bits) - 1; }

Expr round_saturate(const Expr& value, DType dtype) {
  const Expr rounded = call(Intrinsic::kRoundEven, {value});
  return cast(dtype,
              max(min(rounded, constant_like(value, highest_of(dtype))), constant_like(value, lowest_of(dtype))));
}

}  // namespace tensmith::graph::ops
