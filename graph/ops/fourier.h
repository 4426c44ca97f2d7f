/// The discrete Fourier transform as stages.
#pragma once

#include <functional>
#include <optional>

#include "graph/op_def.h"
#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

/// A complex number; `imaginary` null: real.
struct Complex {
  Expr real, imaginary;
};

/// What is transformed.
struct Fourier {
  Shape batch;     ///< all dims but that of the transform
  int64_t length;  ///< of the transform
  int64_t bins;    ///< how many of the `length` results are wanted, from the front
  bool inverse;    ///< sign of the exponent; the result is not divided by the length
  DType dtype;     ///< float32 or float64
  std::function<Complex(const Indices& batch, const Expr& n)> element;
};

/// The real and the imaginary parts, of shape batch + [bins].
/// Cost: length * (sum of the prime factors, those of 2 in pairs) complex products; one pass for each factor.
std::vector<Tensor> fourier_transform(const Fourier& what);
/// The factors of the passes; short transforms are done in one.
std::vector<int64_t> fourier_factors(int64_t length);

}  // namespace tensmith::graph::ops
