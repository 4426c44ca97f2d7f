/// Schedules where they stand: in runs of the whole model, between its other kernels.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "apps/driver/program.h"
#include "autotune/records/record.h"
#include "autotune/records/record_index.h"
#include "autotune/search/tuner.h"
#include "runtime/module.h"

namespace tensmith {

/// A program with what it runs on. Programs that take turns come from one model.
struct InModelSide {
  const CompiledProgram* program = nullptr;
  Instance instance;
  std::vector<HostTensor> inputs, outputs;
};

/// Times of one program by round.
struct InModelTimes {
  std::vector<double> whole_us;                ///< of a run
  std::vector<std::vector<double>> kernel_us;  ///< by kernel: all its calls in a run; empty when calls were not timed
};

struct InModelLimits {
  double seconds = 4;  ///< once there are min_rounds
  int min_rounds = 15, max_rounds = 2000;
  double most_seconds = 0;  ///< after so long it ends below min_rounds too; 0: it does not
  bool time_calls = true;   ///< each call of a kernel, not only whole runs; costs a clock reading a call
  /// Asked behind every turn, with the rounds that are over and the seconds since the first; false ends it with those
  /// rounds. May be empty.
  std::function<bool(size_t rounds, double seconds)> go_on;
};

/// Runs the programs in turns, another one first each round. Of a turn the first run is not timed: it meets the caches
/// as the program before left them, which no deployed model does. All programs have as many rounds. Errors: those of
/// Instance::run_into.
Result<std::vector<InModelTimes>> time_in_model(std::span<InModelSide> sides, const InModelLimits& limits);

/// Of records for one key and origin in the order of their file, those whose schedules a comparison found better than
/// the default, best first, at most `count`; a trial that record_to_take would take counts as well.
std::vector<const TuningRecord*> rivals_of_default(const std::vector<const TuningRecord*>& records, size_t count);

/// What became of a task's schedules in the model.
struct InModelVerdict {
  size_t taken = 0;  ///< 0 the default, k the k-th rival
  /// Time of the default to each rival's in the same runs, median of rounds.
  std::vector<double> ratios;
};
/// The rival that gains most of those that gain beyond noise between their neighbours. `times`: of the default's
/// program, then of those with the first, second ... rivals.
InModelVerdict judge_in_model(const std::vector<InModelTimes>& times, size_t kernel, size_t rivals);

/// Times by round as a record keeps them: as many as show their spread.
std::vector<double> few_times(const std::vector<double>& us, double calls = 1);

/// The records that make a verdict known: the taken rival (or `usual`, a record of the default schedule) is the winner
/// with its time in the model, the other rivals are no more than compared. Empty without rivals.
std::vector<TuningRecord> verdict_records(const InModelVerdict& verdict, const std::vector<const TuningRecord*>& rivals,
                                          const TuningRecord& usual, const std::vector<InModelTimes>& times,
                                          size_t kernel, double calls);

}  // namespace tensmith
