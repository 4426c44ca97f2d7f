#include "autotune/measure/yardstick.h"

#include <algorithm>

#include "autotune/measure/machine_work.h"
#include "autotune/measure/work_timer.h"
#include "runtime/base/quantile.h"

namespace tensmith {

namespace {

// Windows that are remembered, the share of them that may lie below the best, and how often that is looked up.
constexpr size_t kWindows = 256, kEvery = 8;
constexpr double kShare = 0.05;

struct Work {
  int64_t turns;
  int vector_bits;
};

int32_t part(void* closure, int64_t begin, int64_t end, int32_t) {
  const auto& work = *static_cast<const Work*>(closure);
  for (int64_t k = begin; k < end; ++k) run_fma_turns(work.vector_bits, work.turns);
  return 0;
}

}  // namespace

MeasureYardstick::MeasureYardstick(const Target& target, ThreadPool& pool) : pool_(pool), target_(target) {
  turns_ = 1000;
  double us = 1e30;
  for (int k = 0; k < 5; ++k) us = std::min(us, window_us());
  turns_ = std::max<int64_t>(100, static_cast<int64_t>(50.0 / us * static_cast<double>(turns_)));
  windows_us_.clear();
  next_ = 0;
  for (int k = 0; k < 24; ++k) window_us();
}

double MeasureYardstick::window_us() {
  Work work{turns_, target_.vector_bits};
  const WorkTimer timer(pool_.threads());
  if (pool_.threads() == 1) part(&work, 0, 1, 0);
  else pool_.parallel_for(part, &work, pool_.threads());
  const double us = timer.us();
  if (windows_us_.size() < kWindows) windows_us_.push_back(us);
  else windows_us_[next_ % kWindows] = us;
  if (++next_ % kEvery == 0 || windows_us_.size() < kEvery) {
    std::vector<double> sorted = windows_us_;
    std::sort(sorted.begin(), sorted.end());
    best_us_ = quantile(sorted, kShare);
  }
  return us;
}

MachinePeak MeasureYardstick::peak() {
  if (!peak_) {
    const int bits = target_.vector_bits;
    const auto gbs = [&](int64_t bytes) { return read_bandwidth(pool_, bits, bytes) * 1e-9; };
    peak_ = MachinePeak{0, gbs(target_.l2_bytes / 2), gbs(4 * target_.l2_bytes)};
  }
  const double flops = static_cast<double>(fma_turn_flops(target_.vector_bits) * turns_ * pool_.threads());
  peak_->gflops = std::max(peak_->gflops, flops / best_us_ * 1e-3);
  return *peak_;
}

}  // namespace tensmith
