/// Times a kernel beside the incumbent and the yardstick.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "autotune/measure/limits.h"
#include "autotune/measure/loaded_kernel.h"
#include "autotune/measure/result.h"
#include "autotune/measure/yardstick.h"
#include "runtime/tensor.h"

namespace tensmith {

/// A kernel with memory to run on. Several sets of constants take turns when they are to be cold.
class TimedKernel {
 public:
  /// `argument_sets`: parameter lists, used in turn; at least one. What they point to outlives this.
  TimedKernel(const LoadedKernel& kernel, std::vector<std::vector<void*>> argument_sets)
      : kernel_(kernel), sets_(std::move(argument_sets)) {}

  int32_t call(const tensmith_context* context) {
    const int32_t code = kernel_.call(context, sets_[next_]);
    if (++next_ == sets_.size()) next_ = 0;
    return code;
  }
  /// Units: microseconds; an estimate for one call, from the last window. 0: never ran.
  double estimate_us = 0;
  size_t sets() const { return sets_.size(); }

 private:
  const LoadedKernel& kernel_;
  std::vector<std::vector<void*>> sets_;
  size_t next_ = 0;
};

/// The report for `candidate`; `incumbent` may be null. `to_the_cap`: windows until the cap, whatever the interval.
/// A kernel's code other than 0 throws DeviceError `kernel-error`.
TimingReport time_candidate(TimedKernel& candidate, TimedKernel* incumbent, const tensmith_context& context,
                            MeasureYardstick& yardstick, const TimingOptions& options, bool to_the_cap);

/// The median and a 95 % interval of it that assumes nothing of the distribution.
struct MedianInterval {
  double low = 0, median = 0, high = 0;
};
MedianInterval median_interval(std::vector<double> samples);

}  // namespace tensmith
