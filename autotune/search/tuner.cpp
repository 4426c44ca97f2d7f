#include "autotune/search/tuner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <utility>

namespace tensmith {

namespace {

using Clock = std::chrono::steady_clock;
constexpr double kNever = std::numeric_limits<double>::infinity();
// A batch is proposed while the one before is measured.
constexpr size_t kBatchesUnderWay = 2;
// First candidates that come from other runs.
constexpr size_t kCarried = 5;
// Winners that fail their last test before a task falls back to its default.
constexpr int kWinnersTried = 3;
// Candidates that the search saw so near to its best may well be better: its times are short, and of many the luckiest
// one is in front.
constexpr double kNearBest = 1.03;
// What a winner has to gain on the default; less is noise.
constexpr double kBeyondNoise = 1.01;
// Of a limited time, what is left for comparing winners: a second or two a task, but no more than that share.
constexpr double kSettleSeconds = 1.5, kSettleShare = 0.2;

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
    default_is_known_.assign(tasks_.size(), false);
    for (size_t t = 0; t < tasks_.size(); ++t) {
      TaskProgress& progress = report_.tasks[t];
      progress.default_us = progress.best_us = kNever;
      searches_.emplace_back(Space(tasks_[t].workload, tasks_[t].request), options_.strategy, options_.seed, scorer_);
      searches_.back().suggest(carried_over(searches_.back().space(), options_.known_good, kCarried));
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
    bool is_kept_already = false;  ///< the store has it; it was measured again
    bool is_filed = false;         ///< saved and told
  };
  struct Batch {
    int task = -1;
    std::vector<Trial> trials;
    bool done() const {
      for (const Trial& trial : trials)
        if (!trial.outcome || !(trial.is_from_store || trial.is_filed)) return false;
      return true;
    }
  };

  static bool is_default_trial(const Trial& trial) { return std::string_view(trial.proposal.origin) == "default"; }

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

  /// What the machine could not do faster, by what it did beside the default: its FMAs or its reads from L2.
  static double least_us(const TuningTask& task, const TrialOutcome& beside) {
    const double compute = beside.peak_gflops > 0 ? task.flops / beside.peak_gflops * 1e-3 : 0;
    const double traffic = beside.peak_cache_gbs > 0 ? task.bytes / beside.peak_cache_gbs * 1e-3 : 0;
    return std::max(compute, traffic);
  }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool out_of_time() const { return options_.seconds > 0 && seconds() >= options_.seconds; }
  /// What is left is for the winners.
  bool explored_enough() const {
    const double settling =
        std::min(kSettleShare * options_.seconds, kSettleSeconds * static_cast<double>(tasks_.size()));
    return options_.seconds > 0 && seconds() >= options_.seconds - settling;
  }
  bool interrupted() const { return options_.interrupted && options_.interrupted->load(); }
  int64_t trials_left() const {
    return options_.trials > 0 ? options_.trials - report_.trials : std::numeric_limits<int64_t>::max();
  }

  /// Asks for a batch and hands it over. Returns false when there is nothing more to do.
  bool begin_batch() {
    while (true) {
      if (interrupted()) return stop(StopReason::kInterrupted);
      if (explored_enough()) return stop(StopReason::kTime);
      if (trials_left() <= 0) return stop(StopReason::kTrials);
      const int task = scheduler_.next();
      if (task < 0) return stop(StopReason::kNothingToGain);
      TaskSearch& search = searches_[static_cast<size_t>(task)];
      // The first batch of several tasks is the default alone: it tells which of them are worth more.
      const bool is_first = tasks_.size() > 1 && search.proposed() == 0;
      const int wanted = is_first ? 1 : batch_size(search.proposed(), options_.batch);
      const auto count = static_cast<int>(std::min<int64_t>(wanted, trials_left()));
      if (search.proposed() == 1 && tasks_.size() > 1) carry_over_to(search);
      std::vector<Proposal> proposals = search.propose(count);
      if (proposals.empty()) {
        scheduler_.retire(task);
        report_.tasks[static_cast<size_t>(task)].why_stopped = StopReason::kSpaceExhausted;
        continue;
      }
      Batch batch{task, {}};
      for (Proposal& proposal : proposals) {
        Trial trial{report_.trials++, std::move(proposal), {}, false};
        std::optional<TrialOutcome> known = store_.find(task, *trial.proposal.candidate);
        const bool is_default = is_default_trial(trial);
        // The default is what costs of this run and of earlier ones are compared by: it is measured anew.
        if (known && !is_default) {
          trial.outcome = std::move(*known);
          trial.is_from_store = true;
        } else {
          trial.is_kept_already = known && known->ok();
          under_way_[trial.number] = task;
          measurer_.submit(task, trial.number, trial.proposal.candidate->schedule, false, /*as_incumbent=*/is_default);
          ++report_.measured;
        }
        batch.trials.push_back(std::move(trial));
      }
      batches_.push_back(std::move(batch));
      return true;
    }
  }

  /// What other tasks of this run found by now helps too.
  void carry_over_to(TaskSearch& search) const {
    std::vector<KnownGood> known = options_.known_good;
    for (size_t t = 0; t < tasks_.size(); ++t) {
      const std::shared_ptr<const Candidate> best = searches_[t].best();
      if (!best || &searches_[t] == &search) continue;
      known.push_back(
          {tasks_[t].workload, tasks_[t].request, best->decisions, searches_[t].default_us() / searches_[t].best_us()});
    }
    search.suggest(carried_over(search.space(), known, kCarried));
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
    Trial* trial = trial_of(finished->trial);
    TS_CHECK(trial != nullptr) << "an outcome for trial " << finished->trial << " of no batch";
    trial->outcome = finished->outcome;
    if (!note_accident(task, *trial->outcome)) return false;
    TaskProgress& progress = report_.tasks[static_cast<size_t>(task)];
    if (progress.note.empty()) progress.note = measurer_.note(task);
    // Each record has the default's time beside its own, so none is written before that is known.
    std::vector<int64_t>& early = early_[task];
    if (is_default_trial(*trial)) {
      if (trial->outcome->ok()) {
        progress.default_us = trial->outcome->default_us = trial->outcome->cost_us;
        of_defaults_[task] = *trial->outcome;
        scheduler_.bounded(task, least_us(tasks_[static_cast<size_t>(task)], *trial->outcome));
      }
      early.insert(early.begin(), trial->number);
      default_is_known_[static_cast<size_t>(task)] = true;
    } else {
      early.push_back(trial->number);
    }
    if (!default_is_known_[static_cast<size_t>(task)]) return true;
    for (const int64_t number : std::exchange(early, {}))
      if (!file(task, *trial_of(number))) return false;
    return true;
  }

  Trial* trial_of(int64_t number) {
    for (Batch& batch : batches_)
      for (Trial& trial : batch.trials)
        if (trial.number == number) return &trial;
    return nullptr;
  }

  bool file(int task, Trial& trial) {
    TrialOutcome& outcome = *trial.outcome;
    const double default_us = report_.tasks[static_cast<size_t>(task)].default_us;
    outcome.default_us = std::isfinite(default_us) ? default_us : 0;
    if (outcome.is_kept && !(trial.is_kept_already && outcome.ok()) &&
        !save(store_.save(task, trial.number, *trial.proposal.candidate, outcome)))
      return false;
    trial.is_filed = true;
    tell_listener(task, trial);
    return true;
  }

  /// What an earlier run measured, on this run's scale.
  void rescale(int task, TrialOutcome& outcome) const {
    const double now = report_.tasks[static_cast<size_t>(task)].default_us;
    if (!outcome.ok() || !(outcome.default_us > 0) || !std::isfinite(now)) return;
    const double scale = now / outcome.default_us;
    outcome.cost_us *= scale;
    for (double& time : outcome.times_us) time *= scale;
    outcome.default_us = now;
  }

  void tell_listener(int task, const Trial& trial) {
    TaskProgress& progress = report_.tasks[static_cast<size_t>(task)];
    ++progress.trials;
    progress.from_store += trial.is_from_store;
    progress.failures += !trial.outcome->ok() && trial.outcome->is_kept;
    if (trial.outcome->ok()) {
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
      if (!cancelled && (interrupted() || explored_enough())) {
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
      Batch batch = std::move(batches_.front());
      batches_.pop_front();
      TaskSearch& search = searches_[static_cast<size_t>(batch.task)];
      for (Trial& trial : batch.trials) {
        if (trial.is_from_store) {
          rescale(batch.task, *trial.outcome);
          tell_listener(batch.task, trial);
        }
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
    bool cancelled = false;
    while (true) {
      if (std::optional<TrialMeasurer::Finished> finished = measurer_.wait(0.2))
        if (finished->trial == number) return std::move(finished->outcome);
      if (!cancelled && (interrupted() || out_of_time())) {
        measurer_.cancel();
        cancelled = true;
      }
    }
  }

  /// The default of each task against what was found, thoroughly; the better one is the winner.
  void settle_winners() {
    std::vector<size_t> order;
    for (size_t t = 0; t < tasks_.size(); ++t) {
      const std::shared_ptr<const Candidate> best = searches_[t].best();
      if (best && best != searches_[t].default_candidate()) {
        order.push_back(t);
        continue;
      }
      // Nothing looked better, so there is nothing to compare; that is a result too.
      report_.tasks[t].is_confirmed = true;
      const auto known = of_defaults_.find(static_cast<int>(t));
      if (known == of_defaults_.end() || interrupted()) continue;
      if (!save(store_.save_winner(static_cast<int>(t), *searches_[t].default_candidate(), known->second))) return;
    }
    const auto expected_gain = [&](size_t t) {
      const TaskProgress& progress = report_.tasks[t];
      return std::isfinite(progress.default_us) ? tasks_[t].weight * (progress.default_us - progress.best_us) : kNever;
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return expected_gain(a) > expected_gain(b); });
    for (size_t k = 0; k < order.size() && !interrupted(); ++k) {
      if (out_of_time()) return;
      if (options_.on_comparison) options_.on_comparison(static_cast<int>(order[k]), k + 1, order.size());
      if (!settle(static_cast<int>(order[k]))) return;
    }
    // Behind the last comparison too: what comes after the run is not wanted any more.
    if (interrupted()) stop(StopReason::kInterrupted);
  }

  /// Returns false when the store refuses something.
  bool settle(int task) {
    const auto t = static_cast<size_t>(task);
    TaskProgress& progress = report_.tasks[t];
    const std::shared_ptr<const Candidate> usual = searches_[t].default_candidate();
    const std::vector<std::shared_ptr<const Candidate>> best = searches_[t].best_few(kWinnersTried);
    TrialOutcome of_default = measure_now(task, *usual, /*as_incumbent=*/true);
    if (!of_default.is_kept) return true;
    of_default.default_us = of_default.ok() ? of_default.cost_us : 0;
    struct Compared {
      std::shared_ptr<const Candidate> candidate;
      TrialOutcome outcome;
    };
    std::vector<Compared> compared;
    if (of_default.ok()) compared.push_back({usual, of_default});
    std::optional<size_t> winner;
    if (of_default.ok()) winner = 0;
    const size_t near_best = searches_[t].best_few(kWinnersTried, kNearBest).size();
    bool any_valid = false;
    double winner_ratio = 1;
    for (size_t k = 0; k < best.size() && (k < near_best || !any_valid); ++k) {
      const auto& candidate = best[k];
      if (candidate == usual) continue;
      TrialOutcome of_candidate = measure_now(task, *candidate, /*as_incumbent=*/false);
      of_candidate.default_us = of_default.default_us;
      if (!of_candidate.ok()) {
        if (of_candidate.is_kept && !save(store_.save(task, -1, *candidate, of_candidate))) return false;
        continue;
      }
      any_valid = true;
      const double ratio = of_default.ok() ? of_default.cost_us / of_candidate.cost_us : kBeyondNoise;
      const bool is_better =
          ratio >= kBeyondNoise && of_candidate.ratio_high > 0 && of_candidate.ratio_high < 1 && ratio > winner_ratio;
      compared.push_back({candidate, std::move(of_candidate)});
      if (!is_better) continue;
      winner = compared.size() - 1;
      winner_ratio = ratio;
    }
    // Nobody was compared when the time was over or the user had enough: what was found stays as it is.
    if (!any_valid && (interrupted() || out_of_time())) return true;
    for (size_t k = 0; k < compared.size(); ++k)
      if (k != winner && compared[k].candidate != usual &&
          !save(store_.save_compared(task, *compared[k].candidate, compared[k].outcome)))
        return false;
    progress.is_confirmed = true;
    if (!winner) return true;
    progress.is_winner_default = compared[*winner].candidate == usual;
    progress.winner_ratio = winner_ratio;
    return save(store_.save_winner(task, *compared[*winner].candidate, compared[*winner].outcome));
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
  std::map<int64_t, int> under_way_;           ///< trial to task
  std::map<int, std::vector<int64_t>> early_;  ///< by task: trials whose outcomes came before the default's
  std::map<int, TrialOutcome> of_defaults_;    ///< by task, the valid ones
  std::vector<bool> default_is_known_;         ///< by task: how its default did, valid or not
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
