/// Work that always takes the same number of cycles, to see what a machine does beside a measurement.
#pragma once

#include <optional>
#include <vector>

#include "runtime/base/target.h"
#include "runtime/thread_pool.h"

namespace tensmith {

/// What the threads of a pool can do together at most; 0: unknown.
struct MachinePeak {
  double gflops = 0;                     ///< Units: GFLOP/s, float32
  double cache_gbs = 0, memory_gbs = 0;  ///< Units: GB/s read from L2 and from behind it
};

/// A short loop of independent vector FMAs, on every thread of a pool. What else runs on the machine, and a clock that
/// falls, show in its time. Threads: one at a time.
class MeasureYardstick {
 public:
  /// Finds how many turns fill about 50 microseconds, and the best time on a first look.
  MeasureYardstick(const Target& target, ThreadPool& pool);
  /// Units: microseconds that the work takes now.
  double window_us();
  /// Units: microseconds; what hardly any of the latest windows went below. Not the least of them: clocks of the
  /// processor's time lie now and then, and beside a window a third too short every other one would look disturbed.
  double best_us() const { return best_us_; }
  /// By best_us, and by sweeps through memory at the first call. Cost: some ten milliseconds then.
  MachinePeak peak();

 private:
  ThreadPool& pool_;
  const Target target_;
  int64_t turns_ = 1;
  std::vector<double> windows_us_;  ///< the latest ones
  size_t next_ = 0;
  double best_us_ = 0;
  std::optional<MachinePeak> peak_;
};

}  // namespace tensmith
