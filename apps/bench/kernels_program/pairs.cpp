#include "apps/bench/kernels_program/pairs.h"

#include <algorithm>
#include <vector>

#include "autotune/measure/work_timer.h"

namespace tensmith::bench {

Timing time_beside(const std::function<void()>& call, int threads, const Yardstick& yardstick, int windows) {
  double once = 1e30;
  for (int k = 0; k < 3; ++k) {
    const WorkTimer timer(threads);
    call();
    once = std::min(once, timer.us() * 1e-3);
  }
  constexpr double kWindowMs = 0.5;
  const int turns = std::max(1, static_cast<int>(kWindowMs / std::max(1e-4, once)));
  // Short, so that the clock is still the one that the kernel left: it wanders by a tenth within milliseconds.
  const double window_s = std::min(once * turns, 1.0) * 1e-3;
  Timing timing{1e30, 0};
  std::vector<double> units;
  double before = yardstick ? yardstick(window_s) : 0;
  for (int w = 0; w < windows; ++w) {
    call();  // what the yardstick or others put into the caches goes
    const WorkTimer timer(threads);
    for (int t = 0; t < turns; ++t) call();
    const double ms = timer.us() * 1e-3 / turns;
    timing.ms = std::min(timing.ms, ms);
    if (!yardstick) continue;
    const double after = yardstick(window_s);
    units.push_back(ms * 1e-3 * (before + after) / 2);
    before = after;
  }
  if (!units.empty()) {
    std::nth_element(units.begin(), units.begin() + windows / 2, units.end());
    timing.units = units[windows / 2];
  }
  return timing;
}

}  // namespace tensmith::bench
