#include "autotune/search/tuner.h"

#include <chrono>
#include <cmath>
#include <deque>
#include <limits>
#include <map>

namespace tensmith {

namespace {

using Clock = std::chrono::steady_clock;
constexpr double kNever = std::numeric_limits<double>::infinity();
// A batch is proposed while the one before is measured.
constexpr size_t kBatchesUnderWay = 2;
// Winners that fail their last test before a task falls back to its default.
constexpr int kWinnersTried = 3;
// Candidates that the search saw so near to its best may well be better: its times are short, and of many the luckiest
// one is in front.
constexpr double kNearBest = 1.03;
// What a winner has to gain on the default; less is noise.
constexpr double kBeyondNoise = 1.01;

class Run {
 public:
  Run(const std::vector<TuningTask>& tasks, const TunerOptions& options, TrialMeasurer& measurer, TrialStore& store,
      const TunerListener& listener)
      : tasks_(tasks),
        options_(options),
        measurer_(measurer),
        store_(store),
        listener_(listener),
        scorer_(options.scorer ? *options.scorer : prior_),
        scheduler_(scheduled(tasks)) {}

  TuningReport run() {
    report_.tasks.resize(tasks_.size());
    for (size_t t = 0; t < tasks_.size(); ++t) {
      TaskProgress& progress = report_.tasks[t];
      progress.default_us = progress.best_us = kNever;
      searches_.emplace_back(Space(tasks_[t].workload, tasks_[t].request), options_.strategy, options_.seed, scorer_);
      if (const Result<void> ok = measurer_.add_task(tasks_[t]); !ok) {
        progress.failure = ok.failure().message;
        progress.why_stopped = StopReason::kFailed;
        scheduler_.retire(static_cast<int>(t));
      }
    }
    explore();
    if (report_.why_stopped != StopReason::kFailed) settle_winners();
    report_.elapsed_s = seconds();
    return report_;
  }

 private:
  struct Trial {
    int64_t number = 0;
    Proposal proposal;
    std::optional<TrialOutcome> outcome;
    bool is_from_store = false;
  };
  struct Batch {
    int task = -1;
    std::vector<Trial> trials;
    bool done() const {
      for (const Trial& trial : trials)
        if (!trial.outcome) return false;
      return true;
    }
  };

  static std::vector<ScheduledTask> scheduled(const std::vector<TuningTask>& tasks) {
    std::vector<ScheduledTask> list;
    for (const TuningTask& task : tasks) {
      // Tasks of as many stages and reductions and about as much work.
      std::string kin;
      for (const Stage& stage : task.workload.stages) kin += stage->reducer ? "r" : "e";
      kin += std::to_string(static_cast<int>(std::log(std::max(1.0, task.flops)) / std::log(1.618)));
      list.push_back({task.weight, task.flops, kin});
    }
    return list;
  }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool out_of_time() const { return options_.seconds > 0 && seconds() >= options_.seconds; }
  bool interrupted() const { return options_.interrupted && options_.interrupted->load(); }
  int64_t trials_left() const {
    return options_.trials > 0 ? options_.trials - report_.trials : std::numeric_limits<int64_t>::max();
  }

  /// Asks for a batch and hands it over. Returns false when there is nothing more to do.
  bool begin_batch() {
    while (true) {
      if (interrupted()) return stop(StopReason::kInterrupted);
      if (out_of_time()) return stop(StopReason::kTime);
      if (trials_left() <= 0) return stop(StopReason::kTrials);
      const int task = scheduler_.next();
      if (task < 0) return stop(StopReason::kNothingToGain);
      TaskSearch& search = searches_[static_cast<size_t>(task)];
      // The first batch of several tasks is the default alone: it tells which of them are worth more.
      const int batch_size = tasks_.size() > 1 && search.proposed() == 0 ? 1 : options_.batch;
      const auto count = static_cast<int>(std::min<int64_t>(batch_size, trials_left()));
      std::vector<Proposal> proposals = search.propose(count);
      if (proposals.empty()) {
        scheduler_.retire(task);
        report_.tasks[static_cast<size_t>(task)].why_stopped = StopReason::kSpaceExhausted;
        continue;
      }
      Batch batch{task, {}};
      for (Proposal& proposal : proposals) {
        Trial trial{report_.trials++, std::move(proposal), {}, false};
        if (std::optional<TrialOutcome> known = store_.find(task, *trial.proposal.candidate)) {
          trial.outcome = std::move(*known);
          trial.is_from_store = true;
        } else {
          under_way_[trial.number] = task;
          measurer_.submit(task, trial.number, trial.proposal.candidate->schedule, false, false);
          ++report_.measured;
        }
        batch.trials.push_back(std::move(trial));
      }
      batches_.push_back(std::move(batch));
      return true;
    }
  }

  bool stop(StopReason reason) {
    report_.why_stopped = reason;
    return false;
  }

  /// Waits for an outcome and files it. Returns false when the store refuses it.
  bool take_one() {
    const std::optional<TrialMeasurer::Finished> finished = measurer_.wait(0.2);
    if (!finished) return true;
    const int task = under_way_.at(finished->trial);
    under_way_.erase(finished->trial);
    for (Batch& batch : batches_)
      for (Trial& trial : batch.trials) {
        if (trial.number != finished->trial) continue;
        trial.outcome = finished->outcome;
        if (!note_accident(task, *trial.outcome)) return false;
        if (trial.outcome->is_kept)
          if (!save(store_.save(task, trial.number, *trial.proposal.candidate, *trial.outcome))) return false;
        tell_listener(task, trial);
      }
    return true;
  }

  void tell_listener(int task, const Trial& trial) {
    TaskProgress& progress = report_.tasks[static_cast<size_t>(task)];
    ++progress.trials;
    progress.from_store += trial.is_from_store;
    progress.failures += !trial.outcome->ok() && trial.outcome->is_kept;
    if (trial.outcome->ok()) {
      if (std::string_view(trial.proposal.origin) == "default") progress.default_us = trial.outcome->cost_us;
      progress.best_us = std::min(progress.best_us, trial.outcome->cost_us);
    }
    if (!listener_) return;
    TunerProgress now;
    now.task = task;
    now.trial = trial.number;
    now.origin = trial.proposal.origin;
    now.outcome = &*trial.outcome;
    now.tasks = &report_.tasks;
    now.trials = report_.trials;
    now.elapsed_s = seconds();
    for (size_t t = 0; t < tasks_.size(); ++t) {
      if (!std::isfinite(report_.tasks[t].default_us)) continue;
      now.model_default_us += tasks_[t].weight * report_.tasks[t].default_us;
      now.model_best_us += tasks_[t].weight * report_.tasks[t].best_us;
    }
    listener_(now);
  }

  void explore() {
    bool more = true, cancelled = false;
    while (true) {
      while (more && batches_.size() < kBatchesUnderWay) more = begin_batch();
      if (batches_.empty()) break;
      if (!cancelled && (interrupted() || out_of_time())) {
        stop(interrupted() ? StopReason::kInterrupted : StopReason::kTime);
        measurer_.cancel();
        cancelled = true;
        more = false;
      }
      if (!batches_.front().done()) {
        if (!take_one()) {
          measurer_.cancel();
          return;
        }
        continue;
      }
      const Batch batch = std::move(batches_.front());
      batches_.pop_front();
      TaskSearch& search = searches_[static_cast<size_t>(batch.task)];
      for (const Trial& trial : batch.trials) {
        if (trial.is_from_store) tell_listener(batch.task, trial);
        if (trial.outcome->is_kept) search.tell(trial.proposal, trial.outcome->ok() ? trial.outcome->cost_us : kNever);
      }
      scheduler_.told(batch.task, search.best_us(), search.idle_rounds());
    }
    for (size_t t = 0; t < tasks_.size(); ++t) {
      TaskProgress& progress = report_.tasks[t];
      if (!progress.failure.empty() || progress.why_stopped == StopReason::kSpaceExhausted) continue;
      progress.why_stopped = scheduler_.retired(static_cast<int>(t)) ? StopReason::kNothingToGain : report_.why_stopped;
    }
  }

  /// Measures one schedule and nothing beside it.
  TrialOutcome measure_now(int task, const Candidate& candidate, bool as_incumbent) {
    const int64_t number = --private_number_;
    measurer_.submit(task, number, candidate.schedule, /*thorough=*/true, as_incumbent);
    while (true)
      if (std::optional<TrialMeasurer::Finished> finished = measurer_.wait(0.5))
        if (finished->trial == number) return std::move(finished->outcome);
  }

  /// The default of each task against what was found, thoroughly; the better one is the winner.
  void settle_winners() {
    for (size_t t = 0; t < tasks_.size(); ++t) {
      if (interrupted()) {
        stop(StopReason::kInterrupted);
        return;
      }
      const int task = static_cast<int>(t);
      TaskProgress& progress = report_.tasks[t];
      const std::shared_ptr<const Candidate> usual = searches_[t].default_candidate();
      const std::vector<std::shared_ptr<const Candidate>> best = searches_[t].best_few(kWinnersTried);
      if (!usual || best.empty() || best.front() == usual) continue;
      const TrialOutcome of_default = measure_now(task, *usual, /*as_incumbent=*/true);
      std::shared_ptr<const Candidate> winner = usual;
      TrialOutcome outcome = of_default;
      const size_t near_best = searches_[t].best_few(kWinnersTried, kNearBest).size();
      bool any_valid = false;
      for (size_t k = 0; k < best.size() && (k < near_best || !any_valid); ++k) {
        const auto& candidate = best[k];
        if (candidate == usual) continue;
        TrialOutcome of_candidate = measure_now(task, *candidate, /*as_incumbent=*/false);
        if (!of_candidate.ok()) {
          if (of_candidate.is_kept && !save(store_.save(task, -1, *candidate, of_candidate))) return;
          continue;
        }
        any_valid = true;
        const double ratio = of_default.ok() ? of_default.cost_us / of_candidate.cost_us : kBeyondNoise;
        if (ratio < kBeyondNoise || of_candidate.ratio_high <= 0 || of_candidate.ratio_high >= 1 ||
            ratio <= progress.winner_ratio)
          continue;
        winner = candidate;
        outcome = std::move(of_candidate);
        progress.is_winner_default = false;
        progress.winner_ratio = ratio;
      }
      if (outcome.ok() && !save(store_.save_winner(task, *winner, outcome))) return;
    }
  }

  /// Trials that end for reasons outside of them: one task's, which is left alone from then on, or everybody's, which
  /// ends the run. Returns false then.
  bool note_accident(int task, const TrialOutcome& outcome) {
    constexpr int kEndOfPatience = 24;
    accidents_ = outcome.is_kept || outcome.error == "cancelled" ? 0 : accidents_ + 1;
    if (outcome.error == "task-failed") {
      accidents_ = 0;
      scheduler_.retire(task);
      TaskProgress& progress = report_.tasks[static_cast<size_t>(task)];
      progress.failure = outcome.error_text;
      progress.why_stopped = StopReason::kFailed;
    }
    if (accidents_ < kEndOfPatience) return true;
    report_.failure_id = "measuring-failed";
    report_.failure = "tune: expected workers that answer, got none for " + std::to_string(accidents_) +
                      " trials, the last time: " + outcome.error_text;
    return stop(StopReason::kFailed);
  }

  bool save(const Result<void>& saved) {
    if (saved) return true;
    report_.failure_id = saved.failure().id;
    report_.failure = saved.failure().message;
    return stop(StopReason::kFailed);
  }

  const std::vector<TuningTask>& tasks_;
  const TunerOptions& options_;
  TrialMeasurer& measurer_;
  TrialStore& store_;
  const TunerListener& listener_;
  PriorScorer prior_;
  CandidateScorer& scorer_;
  TaskScheduler scheduler_;
  std::deque<TaskSearch> searches_;
  std::deque<Batch> batches_;
  std::map<int64_t, int> under_way_;  ///< trial to task
  int64_t private_number_ = 0;
  int accidents_ = 0;  ///< in a row
  TuningReport report_;
  const Clock::time_point start_ = Clock::now();
};

}  // namespace

const char* to_string(StopReason reason) {
  switch (reason) {
    case StopReason::kTrials: return "trials spent";
    case StopReason::kTime: return "time over";
    case StopReason::kInterrupted: return "interrupted";
    case StopReason::kNothingToGain: return "nothing to gain";
    case StopReason::kSpaceExhausted: return "all tried";
    case StopReason::kFailed: return "failed";
  }
  return "";
}

TuningReport tune(const std::vector<TuningTask>& tasks, const TunerOptions& options, TrialMeasurer& measurer,
                  TrialStore& store, const TunerListener& listener) {
  return Run(tasks, options, measurer, store, listener).run();
}

}  // namespace tensmith
