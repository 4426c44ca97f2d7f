/// Whether a constant of a model is the number that a formula has.
#pragma once

#include "runtime/base/dtype.h"

namespace tensmith::graph {

/// Whether `value`, computed from constants of type `dtype`, is `exact` as exporters write it: within two units of the
/// type's rounding (those of float32 for a wider type, whose numbers often come from there), or so near to `exact`
/// rounded or cut off at 4 to 12 decimals of which at least 4 are significant (1.4142, 0.79788, 0.1666667); or its
/// inverse is (1 / 1.4142). A number that merely lies near, as 1.4135 for sqrt(2), is another number.
bool is_written_as(double value, double exact, DType dtype);

}  // namespace tensmith::graph
