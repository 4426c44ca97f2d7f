#include "autotune/measure/timing.h"

#include <algorithm>
#include <cmath>

#include "autotune/measure/work_timer.h"
#include "runtime/base/error.h"
#include "runtime/base/quantile.h"
#include "runtime/timer.h"

namespace tensmith {

namespace {

/// Units: microseconds a call.
double window(TimedKernel& kernel, const tensmith_context& context, int64_t calls) {
  int32_t code = 0;
  const WorkTimer timer(context.num_threads);
  for (int64_t k = 0; k < calls; ++k) code |= kernel.call(&context);
  const double us = timer.us() / static_cast<double>(calls);
  if (code != 0) throw DeviceError("kernel-error", "the kernel returned " + std::to_string(code));
  kernel.estimate_us = us;
  return us;
}

/// Calls that fill a window. The first look decides, so that windows stay comparable.
int64_t calls_for(TimedKernel& kernel, const tensmith_context& context, double window_ms) {
  // Twice: the first call meets cold code and, without cold weights, cold data.
  double us = window(kernel, context, 1);
  if (us < 1e3 * window_ms) us = std::min(us, window(kernel, context, 1));
  // A call shorter than the clock's grain says little: look again with more of them.
  if (us < 20) us = std::min(us, window(kernel, context, 16));
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(1e3 * window_ms / std::max(us, 1e-3))), 1, 1'000'000);
}

struct Round {
  double candidate = 0, incumbent = 0, yardstick = 0;
};

}  // namespace

MedianInterval median_interval(std::vector<double> samples) {
  MedianInterval interval;
  if (samples.empty()) return interval;
  std::sort(samples.begin(), samples.end());
  interval.median = quantile(samples, 0.5);
  const double n = static_cast<double>(samples.size());
  // Ranks of the sign test; fewer than six samples have no narrower interval than their range.
  const auto rank = static_cast<size_t>(std::max(0.0, std::floor(n / 2 - 0.98 * std::sqrt(n)) - 1));
  interval.low = samples[rank];
  interval.high = samples[samples.size() - 1 - rank];
  return interval;
}

TimingReport time_candidate(TimedKernel& candidate, TimedKernel* incumbent, const tensmith_context& context,
                            MeasureYardstick& yardstick, const TimingOptions& options, bool to_the_cap) {
  TimingReport report;
  const Timer timer;
  report.calls = calls_for(candidate, context, options.window_ms);
  const int64_t incumbent_calls = incumbent ? calls_for(*incumbent, context, options.window_ms) : 0;
  std::vector<Round> kept, slow;
  const auto decided = [&](const std::vector<Round>& rounds) {
    const auto n = static_cast<int>(rounds.size());
    if (n < options.min_windows || to_the_cap) return false;
    std::vector<double> values;
    for (const Round& r : rounds) values.push_back(incumbent ? r.candidate / r.incumbent : r.candidate);
    const MedianInterval i = median_interval(values);
    // Slower without doubt: its exact time matters to nobody. Faster: it may become the incumbent, so the interval has
    // to be narrow.
    if (incumbent && i.low > 1) return true;
    return i.high - i.median <= options.separation * i.median && i.median - i.low <= options.separation * i.median;
  };
  double before = yardstick.window_us();
  for (int round = 0; round < options.max_windows; ++round) {
    Round r;
    // Whoever runs second finds the clock as the first one left it: they take turns.
    const bool incumbent_first = round % 2 == 0;
    if (incumbent && incumbent_first) r.incumbent = window(*incumbent, context, incumbent_calls);
    r.candidate = window(candidate, context, report.calls);
    if (incumbent && !incumbent_first) r.incumbent = window(*incumbent, context, incumbent_calls);
    const double after = yardstick.window_us();
    r.yardstick = std::max(before, after);
    before = after;
    (r.yardstick > options.slow_yardstick * yardstick.best_us() ? slow : kept).push_back(r);
    // One slow window may be an interruption; two say it.
    if (incumbent && round == 1) {
      double least = 1e300, best = 1e300;
      for (const auto* list : {&kept, &slow})
        for (const Round& x : *list) {
          least = std::min(least, x.candidate);
          best = std::min(best, x.incumbent);
        }
      if (least > options.drop_ratio * best) {
        report.dropped = true;
        break;
      }
    }
    if (decided(kept)) break;
    if (round + 1 >= options.min_windows && timer.ms() > options.max_ms) break;
  }
  report.discarded = static_cast<int64_t>(slow.size());
  if (static_cast<int>(kept.size()) < std::min(options.min_windows, options.max_windows) &&
      (!report.dropped || kept.empty())) {
    report.disturbed = !slow.empty();
    report.discarded = 0;
    kept.insert(kept.end(), slow.begin(), slow.end());
  }
  std::vector<double> ratios;
  for (const Round& r : kept) {
    report.windows_us.push_back(r.candidate);
    report.yardstick_us.push_back(r.yardstick);
    if (!incumbent) continue;
    report.incumbent_us.push_back(r.incumbent);
    ratios.push_back(r.candidate / r.incumbent);
  }
  std::vector<double> sorted = report.windows_us;
  std::sort(sorted.begin(), sorted.end());
  report.min_us = sorted.front();
  report.median_us = quantile(sorted, 0.5);
  report.spread = (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / 2 / report.median_us;
  const MachinePeak peak = yardstick.peak();
  report.peak_gflops = peak.gflops;
  report.peak_cache_gbs = peak.cache_gbs;
  report.peak_memory_gbs = peak.memory_gbs;
  report.yardstick_ratio = median_interval(report.yardstick_us).median / yardstick.best_us();
  if (incumbent) {
    const MedianInterval i = median_interval(std::move(ratios));
    report.ratio = i.median;
    report.ratio_low = i.low;
    report.ratio_high = i.high;
  }
  return report;
}

}  // namespace tensmith
