/// Time measurement: a monotonic clock, statistics of samples, repeated runs.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace tensmith {

/// Units: nanoseconds of the monotonic clock.
int64_t now_ns();

/// Time since construction or the last restart.
class Timer {
 public:
  Timer() : start_(now_ns()) {}
  void restart() { start_ = now_ns(); }
  int64_t ns() const { return now_ns() - start_; }
  double us() const { return static_cast<double>(ns()) * 1e-3; }
  double ms() const { return static_cast<double>(ns()) * 1e-6; }

 private:
  int64_t start_;
};

/// Order statistics of samples, in the samples' unit.
struct Summary {
  int64_t runs = 0;
  double min = 0, median = 0, mean = 0, p90 = 0, p99 = 0, max = 0;
  double deviation = 0;  ///< Standard deviation, n - 1.
};
/// All zero for no samples. Percentiles interpolate linearly between ranks.
Summary summarize(std::vector<double> samples);

/// How `measure` repeats.
struct MeasureOptions {
  int warmup = 3;            ///< Runs that do not count.
  int min_runs = 10;         ///< Runs that count, at least...
  double min_seconds = 0.5;  ///< ...and until this time has passed,
  int max_runs = 100000;     ///< but never more than this.
  double max_seconds = 60;   ///< Ends early when the time is over, with at least one sample.
};
/// Times of single runs. Units: milliseconds.
std::vector<double> measure(const std::function<void()>& run, const MeasureOptions& options = {});

}  // namespace tensmith
