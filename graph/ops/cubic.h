/// The cubic convolution kernel of Resize and GridSample.
/// Source: R. Keys, "Cubic convolution interpolation for digital image processing" (1981), equation 4 with a free
/// coefficient.
#pragma once

#include "graph/ops/arith.h"

namespace tensmith::graph::ops {

/// The weight of a sample at distance `d` (any sign); 0 from a distance of 2 on.
Expr cubic_kernel(const Expr& d, double a);
double cubic_kernel(double d, double a);

}  // namespace tensmith::graph::ops
