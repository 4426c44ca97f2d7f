/// Which task of a model is worth the next trials.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tensmith {

/// What the scheduler has to know of a task.
struct ScheduledTask {
  double weight = 1;  ///< calls in a run of the model
  double flops = 0;   ///< Units: operations a call
  std::string kin;    ///< tasks of one kin reach about the same speed
};

/// Gives the next batch of trials to the task that promises most for the whole model: by what its last batches gained,
/// by what is left if gains shrink as one over the number of batches, by the speed that its kin reached and by what the
/// machine allows at all. Source: the gradient scheduler of Ansor (OSDI 2020), section 6, but for the last. The same
/// history gives the same choices.
class TaskScheduler {
 public:
  explicit TaskScheduler(std::vector<ScheduledTask> tasks);

  /// The task for the next batch; -1 when no task is left. Every task gets one batch first, those with the most work in
  /// front.
  int next();
  /// A batch of the task came back. Units: microseconds of its best candidate, infinite while it has none.
  void told(int task, double best_us, int idle_batches);
  /// No schedule of the task can be faster than that, as far as is known. Units: microseconds.
  void bounded(int task, double least_us) { states_[static_cast<size_t>(task)].least_us = least_us; }
  /// No more can be tried.
  void retire(int task);
  bool retired(int task) const { return states_[static_cast<size_t>(task)].is_retired; }

  /// Units: microseconds of the whole model that a batch for the task is expected to gain; infinite before its first.
  double expected_gain(int task) const;
  /// Units: microseconds; the best of all tasks times their weights.
  double total_us() const;

 private:
  struct State {
    std::vector<double> best_us;  ///< after each batch
    double least_us = 0;          ///< 0: unknown
    int batches = 0;              ///< given
    int idle = 0;
    bool is_retired = false;
  };
  /// Units: operations a second that the fastest of the kin reached.
  double speed_of_kin(const std::string& kin) const;

  std::vector<ScheduledTask> tasks_;
  std::vector<State> states_;
};

}  // namespace tensmith
