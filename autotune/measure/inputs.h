/// The values that candidates are checked and timed with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autotune/measure/task.h"
#include "runtime/base/dtype.h"

namespace tensmith {

/// A parameter of a task's kernels.
struct MeasureParameter {
  std::string name;
  std::vector<int64_t> shape;
  DType dtype;
  Layout layout;  ///< as the request fixes it; constants: free
  bool is_constant = false;

  int64_t count() const;
  /// Units: bytes, row-major.
  int64_t bytes() const { return count() * dtype.bytes(); }
};
std::vector<MeasureParameter> input_parameters(const MeasureTask& task);
std::vector<MeasureParameter> output_parameters(const MeasureTask& task);

/// Sets of inputs.
enum class InputSet : int {
  kRandom = 0,  ///< floats from -1 to 1; small integers of the whole range, wide ones and bools 0 or 1
  kEdges = 1,   ///< zeros of both signs, ones, small and larger magnitudes; the ends of small integers
  kWinner = 2,  ///< normal distribution; NaN and infinity where every output element depends on few inputs
};
inline constexpr int kNumInputSets = 3;

/// How the values of a set are drawn.
struct InputDraw {
  uint64_t seed = 0;
  bool positive = false;    ///< floats from 0.1 on, for workloads that give NaN otherwise
  bool non_finite = false;  ///< kWinner: with NaN and infinity
};
/// Row-major elements of an input. The same parameter and draw give the same bytes.
std::vector<uint8_t> make_input(const MeasureParameter& parameter, InputSet set, const InputDraw& draw);

/// Whether NaN and infinity among the inputs give defined outputs whatever the schedule: no reductions, no loops.
bool defined_for_non_finite(const Workload& workload);

}  // namespace tensmith
