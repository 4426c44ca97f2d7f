/// Records of tuning as a page for people: curves, tables, a roofline. One file that needs no network.
#pragma once

#include <string>
#include <vector>

#include "autotune/records/record_file.h"

namespace tensmith {

/// What the page shows of a task.
struct TaskHistory {
  RecordKey key;
  RecordOrigin origin;
  std::string label;
  std::vector<const TuningRecord*> trials;  ///< in the order of their numbers; failures too
  const TuningRecord* taken = nullptr;      ///< what the compiler takes; null: the default
  double default_us = 0;                    ///< beside what is taken, or of its own trial; 0: unknown
  double flops = 0;                         ///< Units: operations a call; 0: the workload cannot be read
  double bytes = 0;                         ///< Units: bytes of inputs and outputs

  /// Units: microseconds of what the compiler takes, on the scale of `default_us`; 0: unknown.
  double best_us() const { return taken ? taken->time_us() : default_us; }
  /// The default's time to the taken one's, both of one record; 0: unknown.
  double gain() const { return taken ? taken->gain() : default_us > 0 ? 1 : 0; }
  bool is_confirmed() const { return taken && taken->standing == RecordStanding::kWinner; }
  /// What the machine could do in the run of the record; 0: unknown.
  RecordPeak peak;
};

/// Records by task, those with the most time to gain first. The pointers live as long as `records`.
std::vector<TaskHistory> task_histories(const std::vector<TuningRecord>& records);

/// Units: floating-point operations of one evaluation of a workload: those in its expressions, once for each point of
/// their axes. Symbolic extents count as 1.
double flops_of_workload(const Workload& workload);

/// The whole page. `title` is text, not markup.
std::string tuning_report_html(const std::string& title, const std::vector<TuningRecord>& records,
                               const std::vector<BadLine>& bad);

}  // namespace tensmith
