/// Work that always takes the same number of cycles, to see what a machine does beside a measurement.
#pragma once

#include "runtime/thread_pool.h"

namespace tensmith {

/// A short loop of independent vector FMAs, on every thread of a pool. What else runs on the machine, and a clock that
/// falls, show in its time. Threads: one at a time.
class MeasureYardstick {
 public:
  /// Finds how many turns fill about 50 microseconds, and the best time on a first look.
  MeasureYardstick(int vector_bits, ThreadPool& pool);
  /// Units: microseconds that the work takes now.
  double window_us();
  /// Units: microseconds; the best so far.
  double best_us() const { return best_us_; }

 private:
  ThreadPool& pool_;
  bool wide_;
  int64_t turns_ = 1;
  double best_us_ = 0;
};

}  // namespace tensmith
