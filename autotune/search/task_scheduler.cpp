#include "autotune/search/task_scheduler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tensmith {

namespace {

// How much the past counts against the outlook, over how many batches, and how far from its kin a task may believe
// itself to be.
constexpr double kPast = 0.2, kKin = 2;
constexpr size_t kWindow = 3;
// What a kernel at its bound may still gain, of its time: bounds are no exact science.
constexpr double kBeyondBound = 0.03;
// Batches without a gain after which a task is left alone, and the share of the whole model's time below which what a
// batch promises is not worth it.
constexpr int kIdleBatches = 10;
constexpr double kWorthIt = 2e-4;
// A task of so small a share of the model's time is left at its default.
constexpr double kNegligible = 1e-3;

}  // namespace

TaskScheduler::TaskScheduler(std::vector<ScheduledTask> tasks) : tasks_(std::move(tasks)), states_(tasks_.size()) {}

double TaskScheduler::speed_of_kin(const std::string& kin) const {
  double best = 0;
  for (size_t t = 0; t < tasks_.size(); ++t)
    if (tasks_[t].kin == kin && !states_[t].best_us.empty() && std::isfinite(states_[t].best_us.back()))
      best = std::max(best, tasks_[t].flops / (states_[t].best_us.back() * 1e-6));
  return best;
}

double TaskScheduler::expected_gain(int task) const {
  const State& s = states_[static_cast<size_t>(task)];
  const ScheduledTask& t = tasks_[static_cast<size_t>(task)];
  if (s.best_us.empty()) return std::numeric_limits<double>::infinity();
  const double now = s.best_us.back();
  // Nothing valid yet: as good as anything once, then less and less.
  if (!std::isfinite(now)) return total_us() / (1.0 + s.batches);
  const size_t back = std::min(kWindow, s.best_us.size() - 1);
  const double then = s.best_us[s.best_us.size() - 1 - back];
  const double past = back && std::isfinite(then) ? (then - now) / static_cast<double>(back) : 0;
  double outlook = now / static_cast<double>(s.batches + s.idle);
  if (const double speed = speed_of_kin(t.kin); speed > 0 && t.flops > 0)
    outlook = std::max(outlook / (1 + s.idle), std::min(outlook, now - kKin * t.flops / speed * 1e6));
  if (s.least_us > 0) outlook = std::min(outlook, std::max(kBeyondBound * now, now - s.least_us));
  return t.weight * (kPast * past + (1 - kPast) * std::max(0.0, outlook) / static_cast<double>(s.batches));
}

double TaskScheduler::total_us() const {
  double total = 0;
  for (size_t t = 0; t < tasks_.size(); ++t)
    if (!states_[t].best_us.empty() && std::isfinite(states_[t].best_us.back()))
      total += tasks_[t].weight * states_[t].best_us.back();
  return total;
}

int TaskScheduler::next() {
  // A task that has not had its first batch goes first; one whose first is under way waits for it.
  int best = -1;
  std::pair<bool, double> best_gain{false, -1};
  for (size_t t = 0; t < tasks_.size(); ++t) {
    const State& s = states_[t];
    if (s.is_retired) continue;
    const bool fresh = s.batches == 0;
    const double gain = fresh               ? tasks_[t].weight * tasks_[t].flops
                        : s.best_us.empty() ? 0
                                            : expected_gain(static_cast<int>(t));
    if (std::pair(fresh, gain) > best_gain) {
      best = static_cast<int>(t);
      best_gain = {fresh, gain};
    }
  }
  if (best >= 0) ++states_[static_cast<size_t>(best)].batches;
  return best;
}

void TaskScheduler::told(int task, double best_us, int idle_batches) {
  State& s = states_[static_cast<size_t>(task)];
  s.best_us.push_back(best_us);
  s.idle = idle_batches;
  if (idle_batches >= kIdleBatches) s.is_retired = true;
  const double total = total_us();
  const bool all_known =
      std::all_of(states_.begin(), states_.end(), [](const State& t) { return !t.best_us.empty() || t.is_retired; });
  for (size_t t = 0; all_known && t < tasks_.size(); ++t)
    if (!states_[t].best_us.empty() && tasks_[t].weight * states_[t].best_us.back() < kNegligible * total)
      states_[t].is_retired = true;
  if (idle_batches > 2 && total > 0 && expected_gain(task) < kWorthIt * total) s.is_retired = true;
}

void TaskScheduler::retire(int task) { states_[static_cast<size_t>(task)].is_retired = true; }

}  // namespace tensmith
