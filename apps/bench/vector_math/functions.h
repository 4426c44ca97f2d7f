/// The functions under test with their references.
#pragma once

#include <span>

#include "tensor/expr.h"

namespace tensmith {

/// One function; those of two arguments have the second references.
struct MathFunction {
  const char* name;
  Intrinsic id;
  int arity;
  double (*exact)(double);                 ///< for f32
  long double (*exact_long)(long double);  ///< for f64
  double f32_limit;                        ///< Units: ulp. What codegen/math promises
  double f32_fast_limit;
  double f64_limit;
  double low, high;  ///< arguments that timing uses
};

std::span<const MathFunction> math_functions();
/// Null when there is none of that name.
const MathFunction* find_math_function(const char* name);

}  // namespace tensmith
