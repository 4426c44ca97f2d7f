/// Mean and variance along axes, as all normalisations use them.
#pragma once

#include "graph/ops/reduced_shape.h"

namespace tensmith::graph::ops {

/// Mean and 1 / sqrt(variance + epsilon) with the reduced axes kept. Two passes: the squares are taken of centred
/// values, so nothing cancels.
struct Moments {
  Tensor mean, variance, inverse_deviation;
};
/// `load` gives the element in its compute type at an index into the reduced tensor.
Moments moments(const std::string& name, const ReducedShape& shape, double epsilon,
                const std::function<Expr(const Indices& in)>& load);

/// 1 / sqrt(mean of squares + epsilon).
Tensor inverse_root_mean_square(const std::string& name, const ReducedShape& shape, double epsilon,
                                const std::function<Expr(const Indices& in)>& load);

/// The same for the reference rules: of every output element of a reduction of `x`.
struct ReferenceMoments {
  std::vector<double> mean, variance;
};
ReferenceMoments reference_moments(const RefTensor& x, const Dims& strides, int64_t outputs);

}  // namespace tensmith::graph::ops
