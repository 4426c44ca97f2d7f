/// A tuning run: shares trials among tasks, measures, keeps what was found.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autotune/search/carry_over.h"
#include "autotune/search/task_scheduler.h"
#include "autotune/search/task_search.h"

namespace tensmith {

/// A kernel to be tuned and what it means for the model.
struct TuningTask {
  Workload workload;
  ScheduleRequest request;
  std::string label;       ///< for people: operators and sizes
  double weight = 1;       ///< calls in a run of the model
  double flops = 0;        ///< Units: operations a call
  double bytes = 0;        ///< Units: bytes read and written a call
  int64_t cold_bytes = 0;  ///< Units: bytes of weights of the model around it
  bool fast_math = false, contract_fma = true;
};

/// What became of a trial.
struct TrialOutcome {
  double cost_us = 0;            ///< of a call, comparable within the run; infinite when it failed
  std::vector<double> times_us;  ///< windows, on the same scale
  double ratio_high = 0;         ///< 95 % sure: its time to the incumbent's is at most that; 0: unknown
  double default_us = 0;         ///< of the task's default on the same scale; 0: unknown. The run fills it in
  double peak_gflops = 0;        ///< what the machine could do beside it; 0: unknown
  double peak_cache_gbs = 0, peak_memory_gbs = 0;
  std::string error;  ///< kind of failure, a word with dashes; empty when it is valid
  std::string error_text;
  bool is_kept = true;  ///< false: lost for reasons outside of the candidate; not to be recorded
  bool ok() const { return error.empty(); }
};

/// Who measures. Outcomes come in any order. Threads: one at a time.
class TrialMeasurer {
 public:
  virtual ~TrialMeasurer() = default;
  /// Numbers count up from 0. Errors: why the task cannot be measured.
  virtual Result<void> add_task(const TuningTask& task) = 0;
  /// `thorough`: with a third set of inputs and all windows. `as_incumbent`: what others are compared with from then
  /// on.
  virtual void submit(int task, int64_t trial, const Schedule& schedule, bool thorough, bool as_incumbent) = 0;
  struct Finished {
    int64_t trial;
    TrialOutcome outcome;
  };
  /// Null when the time is over. Units: seconds.
  virtual std::optional<Finished> wait(double seconds) = 0;
  /// Gives up what has not begun; it comes back as not kept.
  virtual void cancel() = 0;
  /// What the user has to know of how the task is checked, once an outcome of it came; empty: nothing.
  virtual std::string note(int) const { return {}; }
};

/// Where trials are kept. What it has is not measured again, so that a broken run goes on as if it had not been; but
/// the default is, since clocks differ between runs: old costs are scaled by what it takes now and took then.
class TrialStore {
 public:
  virtual ~TrialStore() = default;
  /// With the cost and `default_us` of the run that measured it.
  virtual std::optional<TrialOutcome> find(int task, const Candidate& candidate) = 0;
  /// Errors: cannot-write; the run ends then.
  virtual Result<void> save(int task, int64_t trial, const Candidate& candidate, const TrialOutcome& outcome) = 0;
  /// A valid candidate that was compared thoroughly with the default and is not the winner.
  virtual Result<void> save_compared(int, const Candidate&, const TrialOutcome&) { return {}; }
  /// The winner of the task (maybe the default), compared thoroughly.
  virtual Result<void> save_winner(int task, const Candidate& candidate, const TrialOutcome& outcome) = 0;
};

/// Why a task or a run got no more trials.
enum class StopReason : uint8_t { kTrials, kTime, kInterrupted, kNothingToGain, kSpaceExhausted, kFailed };
/// `trials spent`, `time over`, ...
const char* to_string(StopReason reason);

struct TunerOptions {
  int64_t trials = 0;  ///< of all tasks together, kept ones included; 0: no limit
  double seconds = 0;  ///< 0: no limit
  int batch = 8;  ///< trials a task gets at a time; half of that at first
  uint64_t seed = 0;
  SearchStrategy strategy = SearchStrategy::kEvolve;
  CandidateScorer* scorer = nullptr;  ///< outlives the run; null: PriorScorer
  /// What did well in other runs, for the first candidates of tasks that are like those. The same records give the same
  /// run.
  std::vector<KnownGood> known_good;
  const std::atomic<bool>* interrupted = nullptr;  ///< becomes true when the run is to end; may be null
  /// Told of each task whose winner is compared with its default in the end: the task, the how many-th of how many it
  /// is. May be empty.
  std::function<void(int task, size_t nth, size_t count)> on_comparison;
};

/// A task's state.
struct TaskProgress {
  int64_t trials = 0, failures = 0, from_store = 0;
  double default_us = 0, best_us = 0;  ///< infinite before they are known
  bool is_winner_default = true;       ///< after the run
  double winner_ratio = 1;             ///< the default's time to the winner's, compared thoroughly
  bool is_confirmed = false;           ///< the comparison took place, or nothing better than the default was found
  /// Where it stands in the model: the default's time to that of what is taken there, and the latter's; 0: not asked.
  double in_model_ratio = 0, in_model_us = 0;
  std::string note;     ///< TrialMeasurer::note
  std::string failure;  ///< the task cannot be measured: why
  StopReason why_stopped = StopReason::kNothingToGain;
};

/// What a listener gets after every trial.
struct TunerProgress {
  int task = -1;
  int64_t trial = 0;
  const char* origin = "";
  const TrialOutcome* outcome = nullptr;
  const std::vector<TaskProgress>* tasks = nullptr;
  int64_t trials = 0;
  double elapsed_s = 0;
  double model_default_us = 0, model_best_us = 0;  ///< sums over tasks by weight
};
using TunerListener = std::function<void(const TunerProgress&)>;

struct TuningReport {
  std::vector<TaskProgress> tasks;
  int64_t trials = 0, measured = 0;
  double elapsed_s = 0;
  StopReason why_stopped = StopReason::kNothingToGain;
  std::string failure_id, failure;  ///< kFailed: the store's, or measuring-failed
};

/// Runs until a limit is reached or nothing is to be gained, then compares each winner with its default, those with the
/// most to gain first; a limit of time holds for both together. When it is interrupted, or when the time is over before
/// a task's turn, what was found for it stays unconfirmed. Batches of trials overlap: while one is measured the next
/// one is found. Which candidates are tried depends on the seed and the costs alone, not on when outcomes come in.
TuningReport tune(const std::vector<TuningTask>& tasks, const TunerOptions& options, TrialMeasurer& measurer,
                  TrialStore& store, const TunerListener& listener = {});

}  // namespace tensmith
