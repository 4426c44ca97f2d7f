/// A task of the table: its space, and the costs of its candidates, measured once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/bench/tuning_program/cost_store.h"
#include "autotune/measure/session.h"
#include "autotune/search/tuner.h"
#include "autotune/space/space.h"

namespace tensmith::bench {

/// The kernel of the operator that has most to do, as `tune --op` would see it. Errors: bad-op and those of compiling.
TuningTask task_of_op(const std::string& op, int threads);

/// Options of the session: worker of the program beside this one.
SessionOptions session_options();

/// Workers start when something has to be measured that the store does not know. Costs are times to the default's, so
/// that those of two days compare.
class BenchTask {
 public:
  /// `name`: the operator, maybe with `@THREADS` behind it. The store outlives it.
  BenchTask(const std::string& name, int threads, CostStore& store);

  const std::string op;
  const TuningTask task;
  const Space space;
  const std::shared_ptr<const Candidate> usual;  ///< the default

  /// In the order of the candidates; infinite for what failed. `origin`: kept in the store.
  std::vector<double> costs(const std::vector<const Candidate*>& candidates, const std::string& origin);
  /// Of one that was measured.
  double cost(const Candidate& candidate) const;

  /// Sees to it that each of the candidates has taken part in `rounds` thorough comparisons, with all windows and the
  /// third set of inputs. In each round the best one is the incumbent beside which all others and the default are
  /// measured; a candidate's ratio is its own to the incumbent by the default's to the incumbent.
  void compare(const std::vector<const Candidate*>& candidates, int rounds);
  /// The ratios of the comparisons.
  const std::vector<double>& finals(const Candidate& candidate) const;
  /// How far the default is from itself where it is measured beside itself; 1 at best.
  double default_to_itself();

  /// All that the store knows of the task.
  const CostStore::Costs& known() const { return *known_; }
  /// A candidate of the store made anew; null when its decisions lead to another schedule today.
  std::shared_ptr<const Candidate> remake(const std::string& key, const KnownCost& cost) const;
  int64_t measured() const { return measured_; }
  int64_t failed() const { return failed_; }

  static std::string key_of(const Candidate& candidate);

 private:
  void start();
  MeasureResult measure_now(const Candidate& candidate, bool as_incumbent);

  CostStore& store_;
  std::string key_;
  CostStore::Costs* known_;
  std::unique_ptr<MeasureSession> session_;
  int number_ = -1;
  double default_us_ = 0;
  int64_t measured_ = 0, failed_ = 0;
};

/// Median of all but the first `skipped` values; infinite when there are none.
double median_of(const std::vector<double>& values, size_t skipped = 0);

}  // namespace tensmith::bench
