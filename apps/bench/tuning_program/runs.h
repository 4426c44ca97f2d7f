/// Searches that are watched: what was tried in which order, and what it cost.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "autotune/measure/session.h"
#include "autotune/search/task_search.h"
#include "autotune/search/tuner.h"
#include "runtime/base/json.h"

namespace tensmith::bench {

/// The kernel of the operator that has most to do, as `tune --op` would see it. Errors: bad-op and those of compiling.
TuningTask task_of_op(const std::string& op, int threads);

/// Options of the session: worker of the program beside this one.
SessionOptions session_options();

/// Costs of the candidates of one task. Each schedule is measured once, whoever asks, so that searches which find the
/// same candidate get the same time.
class CostTable {
 public:
  CostTable(MeasureSession& session, int task) : session_(&session), task_(task) {}
  /// In the order of the candidates. Units: microseconds, infinite for what failed.
  std::vector<double> costs(const std::vector<const Candidate*>& candidates);
  /// Replaces what was measured by a better measurement.
  void correct(const Candidate& candidate, double cost_us);
  int64_t measured() const { return measured_; }
  int64_t failed() const { return failed_; }

 private:
  MeasureSession* session_;
  int task_;
  std::map<std::string, double> known_;
  int64_t measured_ = 0, failed_ = 0;
};

/// A trial of a search.
struct Trial {
  std::shared_ptr<const Candidate> candidate;
  std::string origin;
  double cost_us = 0;
};

/// Lets a search make up to `trials` trials in batches of 8, one of them proposed before the costs of the one before
/// are told, which is what a tuning run does. `until` may end it after a batch.
std::vector<Trial> run_search(TaskSearch& search, int64_t trials, CostTable& table,
                              const std::function<bool(const std::vector<Trial>&)>& until = {});

/// What a tuning run that ended after the first `count` trials would compare thoroughly in the end: up to three, none
/// more than 3 % slower than the best. Empty when none of them is valid.
std::vector<std::shared_ptr<const Candidate>> best_of(const std::vector<Trial>& trials, size_t count);

}  // namespace tensmith::bench
