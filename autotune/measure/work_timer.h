/// The clock that kernels are timed with.
#pragma once

#include <time.h>

namespace tensmith {

/// Time that work took since construction: of one thread the processor time, which does not run on while the system
/// gives the core to somebody else; of several threads the time of day, since waiting for each other is part of it.
class WorkTimer {
 public:
  explicit WorkTimer(int threads) : clock_(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC) {
    clock_gettime(clock_, &start_);
  }
  /// Units: microseconds.
  double us() const {
    timespec now{};
    clock_gettime(clock_, &now);
    return static_cast<double>(now.tv_sec - start_.tv_sec) * 1e6 +
           static_cast<double>(now.tv_nsec - start_.tv_nsec) * 1e-3;
  }

 private:
  clockid_t clock_;
  timespec start_{};
};

}  // namespace tensmith
