/// Replaces calls of mathematical functions by loop IR, so that no kernel calls libm and vectors stay vectors.
#pragma once

#include "tensor/stmt.h"

namespace tensmith {

/// How calls are replaced.
struct MathOptions {
  /// Cheaper forms: f32 within 3.5 ulp instead of 1. Special values are as exact as in the accurate forms.
  bool fast = false;
  /// The target has fused multiply-add. Without it those of f32 are computed in f64, ten times as many instructions but
  /// no calls; those of f64 stay and become calls of libm.
  bool fma = true;
  /// The target has AVX-512: its instructions for scaling by a power of two, tables of 16 entries and reciprocals are
  /// used (machine.h), which the interpreter does not know.
  bool avx512 = false;
};

/// The expression or statement with every call of Exp, Log, Tanh, Erf, Sigmoid, Rsqrt, Pow and of the trigonometric and
/// hyperbolic functions and their inverses written out: Let, Fma, Select, bits and integers, without branches (apart
/// from the reduction of large arguments of sin, cos and tan, which stands under a Select with a scalar condition). f16
/// and bf16 are computed in f32 and rounded once. Works before and after vectorisation, on any number of lanes. The
/// code counts on every operation being rounded to its type: the interpreter runs it rightly with InterpFloat::kRounded
/// only.
Stmt expand_math(const Stmt& s, const MathOptions& options = {});
Expr expand_math(const Expr& e, const MathOptions& options = {});

}  // namespace tensmith
