#include "runtime/timer.h"

#include <time.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/quantile.h"

namespace tensmith {

int64_t now_ns() {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

Summary summarize(std::vector<double> samples) {
  Summary s;
  s.runs = static_cast<int64_t>(samples.size());
  if (samples.empty()) return s;
  std::sort(samples.begin(), samples.end());
  s.min = samples.front();
  s.max = samples.back();
  s.median = quantile(samples, 0.5);
  s.p90 = quantile(samples, 0.9);
  s.p99 = quantile(samples, 0.99);
  double sum = 0, squares = 0;
  for (double x : samples) sum += x;
  s.mean = sum / static_cast<double>(samples.size());
  for (double x : samples) squares += (x - s.mean) * (x - s.mean);
  if (samples.size() > 1) s.deviation = std::sqrt(squares / static_cast<double>(samples.size() - 1));
  return s;
}

std::vector<double> measure(const std::function<void()>& run, const MeasureOptions& options) {
  for (int i = 0; i < options.warmup; ++i) run();
  std::vector<double> samples;
  samples.reserve(1024);
  const Timer all;
  do {
    const Timer one;
    run();
    samples.push_back(one.ms());
    if (all.ms() > options.max_seconds * 1e3) break;
  } while (static_cast<int>(samples.size()) < options.max_runs &&
           (static_cast<int>(samples.size()) < options.min_runs || all.ms() < options.min_seconds * 1e3));
  return samples;
}

}  // namespace tensmith
