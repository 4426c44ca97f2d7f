/// What was measured, kept in a file: parts go on where they stopped, and searches that come by the same candidate get
/// the same time.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "autotune/space/decisions.h"
#include "runtime/base/result.h"

namespace tensmith::bench {

/// What is known of a schedule of a task.
struct KnownCost {
  Decisions decisions;
  std::string origin;          ///< draw, search, space
  double ratio = 0;            ///< its time to the default's in a search's short windows; infinite: failed; 0: unknown
  std::vector<double> finals;  ///< the same, of thorough comparisons, in the order of their rounds
};

/// JSON lines: one for each measurement, `{"task", "op", "schedule", "decisions", "origin", "ratio"}` or `{"task",
/// "schedule", "final"}`; null for a candidate that failed. Lines that do not read are passed over. What another
/// version measured is valid as long as the default schedule is the same, which the task's key tells.
class CostStore {
 public:
  /// Nothing is kept when the path is empty. Errors: cannot-write.
  static Result<CostStore> open(const std::string& path);

  using Costs = std::map<std::string, KnownCost>;  ///< by key of the schedule
  Costs& of(const std::string& task) { return known_[task]; }
  void add(const std::string& task, const std::string& op, const std::string& schedule, const KnownCost& cost);
  void add_final(const std::string& task, const std::string& schedule, double ratio);

 private:
  std::ofstream file_;
  std::map<std::string, Costs> known_;
};

}  // namespace tensmith::bench
