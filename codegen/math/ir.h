/// Small words for writing arithmetic as loop IR: constants of the right lanes, fused operations, bits, polynomials.
#pragma once

#include <span>

#include "tensor/expr.h"

namespace tensmith::math {

/// Makes constants of one type: `const Constants c(x.dtype()); x * c(0.5)`.
class Constants {
 public:
  explicit Constants(DType type) : type_(type) {}
  Expr operator()(double value) const { return make_const(type_, value); }
  /// Of an integer type: all 64 bits of the value count.
  Expr integer(int64_t value) const { return make_const_int(type_, value); }

 private:
  DType type_;
};

/// a * b + c with one rounding.
Expr fma(Expr a, Expr b, Expr c);
/// c - a * b with one rounding.
Expr fnma(Expr a, Expr b, Expr c);
/// The bits as signed or unsigned integers of the same width, lane by lane.
Expr int_bits(Expr value);
Expr uint_bits(Expr value);
/// Integer bits as floats of the same width.
Expr float_bits(Expr bits);
Expr shift_left(Expr value, int count);
/// Arithmetic for signed types, logical for unsigned ones.
Expr shift_right(Expr value, int count);
Expr bit_and(Expr a, Expr b);
Expr bit_or(Expr a, Expr b);
Expr bit_xor(Expr a, Expr b);
Expr abs(Expr value);
Expr sqrt(Expr value);
/// The magnitude of `magnitude` (not negative) with the sign of `sign`.
Expr copy_sign(Expr magnitude, Expr sign);
/// `value` limited to [low, high]; a NaN stays NaN. One machine instruction a limit.
Expr clamp_low(Expr value, Expr low);
Expr clamp_high(Expr value, Expr high);
/// True when the condition holds in any lane; a scalar.
Expr any_lane(Expr condition);

/// c[0] + c[1] x + ... with a fused step each.
Expr horner(const Expr& x, std::span<const double> c);

/// A constant or a variable, also one broadcast: free to repeat.
bool is_leaf(const Expr& e);

/// Names every node that is used more than once by a Let around `root`, so that code generators see each value once.
/// Nodes are told apart by identity; a Let inside (an arm that was shared by itself and must stay where it is) is not
/// opened.
Expr share(const Expr& root);

}  // namespace tensmith::math
