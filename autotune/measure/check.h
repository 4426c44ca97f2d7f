/// Whether a candidate's output is right.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/dtype.h"
#include "tensor/workload.h"

namespace tensmith {

/// What two right outputs of one workload may differ by, from the lengths of its reductions and its types.
struct OutputTolerance {
  /// Floats: of the larger of the element and the root mean square of the output.
  double relative = 0;
  /// Integers and bools: elements that may differ, as a part of all. Not 0 only where they are made from floats, whose
  /// last bits may tip a rounding or a comparison.
  double differing = 0;
};
OutputTolerance output_tolerance(const Workload& workload, size_t output);

/// Empty if the outputs agree, else how many elements differ and the worst one: `12 of 4096 elements differ, most of
/// all [17]: expected 0.5, got 0.25`. NaN equals NaN, infinities must be equal. Data: row-major.
std::string compare_outputs(const uint8_t* got, const uint8_t* expected, DType dtype, int64_t count,
                            const OutputTolerance& tolerance);

/// The part of a float output that is not finite; 0 for other types.
double non_finite_share(const uint8_t* data, DType dtype, int64_t count);

}  // namespace tensmith
