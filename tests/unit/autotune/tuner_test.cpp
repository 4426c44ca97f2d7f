#include "autotune/search/tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <map>
#include <thread>

#include "autotune/default_schedule.h"
#include "tests/support/workloads.h"

namespace tensmith {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

ScheduleRequest request_of(int threads = 1) {
  ScheduleRequest request;
  request.target = Target::parse("sapphirerapids").value();
  request.threads = threads;
  return request;
}

Workload relu_workload(int64_t n) {
  const Tensor x = placeholder("X", {n}, kFloat32);
  const Tensor y = compute("Y", {n}, [&](const Indices& i) { return max(x(i[0]), FloatImm::make(kFloat32, 0.0)); });
  return make_workload("relu", {x}, {y});
}

TuningTask task_of(Workload workload, double weight = 1, double flops = 1e6) {
  TuningTask task{std::move(workload), request_of(), "task", weight, flops, 0, 0, false, true};
  return task;
}

/// Answers at once, in an order of its own.
class StubMeasurer : public TrialMeasurer {
 public:
  std::function<TrialOutcome(int task, const Schedule&, bool thorough)> answer;
  std::vector<std::string> measured;  ///< schedules, in order
  int64_t limit = INT64_MAX;          ///< trials after which the process "dies"
  struct Died {};

  Result<void> add_task(const TuningTask&) override { return {}; }
  void submit(int task, int64_t trial, const Schedule& schedule, bool thorough, bool) override {
    if (static_cast<int64_t>(measured.size()) >= limit) throw Died();
    measured.push_back(schedule.to_string());
    waiting_.push_back({trial, answer(task, schedule, thorough)});
  }
  std::optional<Finished> wait(double) override {
    if (waiting_.empty()) return {};
    const size_t at = (turn_++ * 7) % waiting_.size();
    Finished finished = waiting_[at];
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at));
    return finished;
  }
  void cancel() override {}

 private:
  std::deque<Finished> waiting_;
  size_t turn_ = 0;
};

class MemoryStore : public TrialStore {
 public:
  std::map<std::string, TrialOutcome> kept;
  std::map<std::string, TrialOutcome> compared;
  std::map<int, std::string> winners;
  std::map<int, TrialOutcome> winning;
  std::optional<Failure> refuse;

  std::optional<TrialOutcome> find(int task, const Candidate& candidate) override {
    const auto it = kept.find(std::to_string(task) + candidate.schedule.to_string());
    if (it == kept.end()) return {};
    return it->second;
  }
  Result<void> save(int task, int64_t, const Candidate& candidate, const TrialOutcome& outcome) override {
    if (refuse) return *refuse;
    kept[std::to_string(task) + candidate.schedule.to_string()] = outcome;
    return {};
  }
  Result<void> save_compared(int, const Candidate& candidate, const TrialOutcome& outcome) override {
    compared[candidate.schedule.to_string()] = outcome;
    return {};
  }
  Result<void> save_winner(int task, const Candidate& candidate, const TrialOutcome& outcome) override {
    winners[task] = candidate.schedule.to_string();
    winning[task] = outcome;
    return {};
  }
};

/// A made-up cost by what a measurer sees of a schedule: its steps.
double cost_of(const Schedule& schedule) {
  double cost = 100;
  const std::string text = schedule.to_string();
  for (size_t at = 0; (at = text.find("factor=", at)) != std::string::npos; at += 7) {
    const double factor = std::atof(text.c_str() + at + 7);
    cost *= 1 + 0.1 * std::abs(std::log2(factor / 6));
  }
  return cost * (1 + 0.01 * static_cast<double>(text.size() % 7));
}

TrialOutcome valid(double cost) {
  TrialOutcome outcome;
  outcome.cost_us = cost;
  outcome.times_us = {cost};
  outcome.ratio_high = 0.9;  // beyond doubt, where the costs say so
  return outcome;
}
TrialOutcome failed(const char* kind) {
  TrialOutcome outcome;
  outcome.cost_us = kNever;
  outcome.error = kind;
  return outcome;
}

struct RunOf {
  TuningReport report;
  std::vector<std::string> measured;
  std::map<int, std::string> winners;
};
RunOf run_of(const std::vector<TuningTask>& tasks, MemoryStore& store, int64_t trials, int64_t dies_after = INT64_MAX) {
  StubMeasurer measurer;
  measurer.limit = dies_after;
  measurer.answer = [&](int, const Schedule& schedule, bool) {
    const double cost = cost_of(schedule);
    return std::fmod(cost, 11) < 1 ? failed("crashed") : valid(cost);
  };
  TunerOptions options;
  options.trials = trials;
  options.seed = 5;
  RunOf run;
  try {
    run.report = tune(tasks, options, measurer, store);
  } catch (const StubMeasurer::Died&) {
  }
  run.measured = measurer.measured;
  run.winners = store.winners;
  return run;
}

TEST(Tuner, SpendsItsTrialsAndFindsBetterThanTheDefault) {
  const std::vector<TuningTask> tasks{task_of(dense_workload(64, 96, 80), 3), task_of(softmax_workload(64, 50))};
  MemoryStore store;
  const RunOf run = run_of(tasks, store, 96);
  EXPECT_EQ(run.report.trials, 96);
  EXPECT_EQ(run.report.why_stopped, StopReason::kTrials);
  EXPECT_EQ(store.kept.size(), 96u);
  int64_t failures = 0;
  for (const TaskProgress& progress : run.report.tasks) {
    EXPECT_GE(progress.trials, 16);
    EXPECT_LE(progress.best_us, progress.default_us);
    failures += progress.failures;
  }
  EXPECT_GT(failures, 0);
  EXPECT_FALSE(run.report.tasks[0].is_winner_default);
  EXPECT_GT(run.report.tasks[0].winner_ratio, 1.05);
}

TEST(Tuner, ABrokenRunGoesOnAsIfItHadNotBeen) {
  const std::vector<TuningTask> tasks{task_of(dense_workload(64, 96, 80), 3), task_of(softmax_workload(64, 50))};
  MemoryStore whole_store;
  const RunOf whole = run_of(tasks, whole_store, 64);
  for (const int64_t dies_after : {1, 9, 40}) {
    MemoryStore store;
    const RunOf broken = run_of(tasks, store, 64, dies_after);
    EXPECT_EQ(broken.measured.size(), static_cast<size_t>(dies_after));
    const auto kept_before = store.kept;
    const size_t kept = kept_before.size();
    EXPECT_LE(kept, static_cast<size_t>(dies_after));
    const RunOf resumed = run_of(tasks, store, 64);
    EXPECT_EQ(resumed.winners, whole.winners) << dies_after;
    EXPECT_EQ(store.kept.size(), whole_store.kept.size());
    // All but the defaults, which are measured anew.
    int64_t from_store = 0, defaults = 0;
    for (size_t t = 0; t < tasks.size(); ++t) {
      from_store += resumed.report.tasks[t].from_store;
      const std::string usual = default_schedule(tasks[t].workload, tasks[t].request).to_string();
      defaults += static_cast<int64_t>(kept_before.count(std::to_string(t) + usual));
    }
    EXPECT_EQ(from_store, static_cast<int64_t>(kept) - defaults) << dies_after;
  }
}

RunOf resumed_at(const std::vector<TuningTask>& tasks, MemoryStore& store, double clock, std::vector<double>* costs) {
  StubMeasurer measurer;
  measurer.answer = [&](int, const Schedule& schedule, bool) { return valid(clock * cost_of(schedule)); };
  TunerOptions options;
  options.trials = 40;
  options.seed = 5;
  RunOf run;
  run.report =
      tune(tasks, options, measurer, store, [&](const TunerProgress& now) { costs->push_back(now.outcome->cost_us); });
  run.measured = measurer.measured;
  run.winners = store.winners;
  return run;
}

TEST(Tuner, AResumedRunMeasuresTheDefaultFirstAndPutsOldCostsOnItsScale) {
  const std::vector<TuningTask> tasks{task_of(dense_workload(64, 96, 80))};
  const std::string usual = default_schedule(tasks[0].workload, tasks[0].request).to_string();
  MemoryStore store;
  std::vector<double> then, now;
  const RunOf first = resumed_at(tasks, store, 1, &then);
  // The clock fell by a third since.
  const RunOf second = resumed_at(tasks, store, 1.5, &now);
  EXPECT_EQ(second.report.measured, 1);
  ASSERT_FALSE(second.measured.empty());
  EXPECT_EQ(second.measured[0], usual);
  EXPECT_EQ(second.report.tasks[0].from_store, 39);
  std::sort(then.begin(), then.end());
  std::sort(now.begin(), now.end());
  ASSERT_EQ(then.size(), now.size());
  for (size_t k = 0; k < then.size(); ++k) EXPECT_NEAR(now[k], 1.5 * then[k], 1e-9 * then[k]);
  EXPECT_EQ(second.winners, first.winners);
  EXPECT_NEAR(second.report.tasks[0].winner_ratio, first.report.tasks[0].winner_ratio, 1e-9);
  // What was kept before stays on the scale of its own run.
  for (const auto& [text, outcome] : store.kept)
    EXPECT_EQ(outcome.default_us, cost_of(default_schedule(tasks[0].workload, tasks[0].request)));
}

TEST(Tuner, NoRecordIsWrittenBeforeTheDefaultIsKnown) {
  // The default's outcome comes last of its batch.
  class LastFirst : public StubMeasurer {
   public:
    std::optional<Finished> wait(double) override {
      if (pending.empty()) return {};
      Finished finished = pending.back();
      pending.pop_back();
      return finished;
    }
    void submit(int task, int64_t trial, const Schedule& schedule, bool thorough, bool) override {
      pending.push_back({trial, answer(task, schedule, thorough)});
    }
    std::vector<Finished> pending;
  } measurer;
  const std::vector<TuningTask> tasks{task_of(dense_workload(64, 96, 80))};
  measurer.answer = [](int, const Schedule& schedule, bool) { return valid(cost_of(schedule)); };
  MemoryStore store;
  TunerOptions options;
  options.trials = 16;
  double default_us = 0;
  const TuningReport report = tune(tasks, options, measurer, store, [&](const TunerProgress& now) {
    if (std::string_view(now.origin) == "default") default_us = now.outcome->cost_us;
    EXPECT_GT(default_us, 0) << now.trial;
  });
  EXPECT_EQ(report.trials, 16);
  EXPECT_EQ(store.kept.size(), 16u);
  for (const auto& [text, outcome] : store.kept) EXPECT_EQ(outcome.default_us, default_us);
}

TEST(Tuner, LosersOfTheComparisonAreKeptAsCompared) {
  const std::vector<TuningTask> tasks{task_of(dense_workload(64, 96, 80))};
  const std::string usual = default_schedule(tasks[0].workload, tasks[0].request).to_string();
  MemoryStore store;
  StubMeasurer measurer;
  measurer.answer = [&](int, const Schedule& schedule, bool thorough) {
    if (schedule.to_string() == usual) return valid(100);
    return valid(thorough ? 100.5 : 90 + 1e-6 * static_cast<double>(measurer.measured.size()));
  };
  TunerOptions options;
  options.trials = 24;
  const TuningReport report = tune(tasks, options, measurer, store);
  EXPECT_TRUE(report.tasks[0].is_winner_default);
  EXPECT_TRUE(report.tasks[0].is_confirmed);
  EXPECT_EQ(store.winners.at(0), usual);
  EXPECT_EQ(store.winning.at(0).default_us, store.winning.at(0).cost_us);
  EXPECT_EQ(store.compared.size(), 3u);
  for (const auto& [text, outcome] : store.compared) EXPECT_EQ(outcome.default_us, 100) << text;
}

TEST(Tuner, ALimitOfTimeHoldsForTheComparisonsTooAndTheLargestGainsComeFirst) {
  // Spaces so small that nearly all of the time is left for comparing, which would take four times as long.
  std::vector<TuningTask> tasks;
  std::vector<std::string> usual;
  for (int64_t k = 0; k < 12; ++k) {
    tasks.push_back(task_of(relu_workload(40 + k), k == 7 ? 100 : 1));
    usual.push_back(default_schedule(tasks.back().workload, tasks.back().request).to_string());
  }
  MemoryStore store;
  StubMeasurer measurer;
  measurer.answer = [&](int task, const Schedule& schedule, bool thorough) {
    if (thorough) std::this_thread::sleep_for(std::chrono::milliseconds(250));
    return valid(schedule.to_string() == usual[static_cast<size_t>(task)] ? 100 : 50);
  };
  TunerOptions options;
  options.seconds = 2;
  const TuningReport report = tune(tasks, options, measurer, store);
  // What is under way when the time is over still ends.
  EXPECT_LT(report.elapsed_s, options.seconds + 2.5);
  EXPECT_TRUE(report.tasks[7].is_confirmed);
  EXPECT_EQ(store.winners.count(7), 1u);
  const auto unconfirmed = std::count_if(report.tasks.begin(), report.tasks.end(),
                                         [](const TaskProgress& task) { return !task.is_confirmed; });
  EXPECT_GT(unconfirmed, 0);
  EXPECT_EQ(store.winners.size() + static_cast<size_t>(unconfirmed), tasks.size());
}

TEST(Tuner, WhatTheCheckHadToChangeIsTold) {
  class Noted : public StubMeasurer {
   public:
    std::string note(int task) const override { return task == 1 ? "edge values are replaced" : ""; }
  } measurer;
  measurer.answer = [](int, const Schedule& schedule, bool) { return valid(cost_of(schedule)); };
  const std::vector<TuningTask> tasks{task_of(relu_workload(40)), task_of(softmax_workload(64, 50))};
  MemoryStore store;
  TunerOptions options;
  options.trials = 8;
  const TuningReport report = tune(tasks, options, measurer, store);
  EXPECT_EQ(report.tasks[0].note, "");
  EXPECT_EQ(report.tasks[1].note, "edge values are replaced");
}

TEST(Tuner, AWinnerThatIsWrongInTheEndIsNone) {
  const std::vector<TuningTask> tasks{task_of(dense_workload(64, 96, 80))};
  const std::string usual = default_schedule(tasks[0].workload, tasks[0].request).to_string();
  MemoryStore store;
  StubMeasurer measurer;
  measurer.answer = [&](int, const Schedule& schedule, bool thorough) {
    if (thorough && schedule.to_string() != usual) return failed("wrong-result");
    return valid(cost_of(schedule));
  };
  TunerOptions options;
  options.trials = 64;
  const TuningReport report = tune(tasks, options, measurer, store);
  EXPECT_TRUE(report.tasks[0].is_winner_default);
  EXPECT_EQ(report.tasks[0].winner_ratio, 1);
  EXPECT_EQ(store.winners.at(0), usual);
  // What was found wrong is kept as wrong.
  EXPECT_EQ(std::count_if(store.kept.begin(), store.kept.end(),
                          [](const auto& entry) { return entry.second.error == "wrong-result"; }),
            3);
}

TEST(Tuner, TheWinnerIsTheBestOfThoseThatLookedAlike) {
  const std::vector<TuningTask> tasks{task_of(dense_workload(64, 96, 80))};
  const std::string usual = default_schedule(tasks[0].workload, tasks[0].request).to_string();
  MemoryStore store;
  StubMeasurer measurer;
  std::vector<std::string> finalists;
  measurer.answer = [&](int, const Schedule& schedule, bool thorough) {
    const std::string text = schedule.to_string();
    if (text == usual) return valid(100);
    // Looked at shortly all are alike; looked at thoroughly the luckiest one is slow and the next one fast.
    if (!thorough) return valid(90 + 1e-6 * static_cast<double>(measurer.measured.size()));
    finalists.push_back(text);
    return valid(finalists.size() == 1 ? 120 : finalists.size() == 2 ? 50 : 80);
  };
  TunerOptions options;
  options.trials = 24;
  const TuningReport report = tune(tasks, options, measurer, store);
  ASSERT_EQ(finalists.size(), 3u);
  EXPECT_FALSE(report.tasks[0].is_winner_default);
  EXPECT_EQ(report.tasks[0].winner_ratio, 2);
  EXPECT_EQ(store.winners.at(0), finalists[1]);
}

TEST(Tuner, WhereNothingLooksBetterTheDefaultIsTheWinner) {
  const std::vector<TuningTask> tasks{task_of(dense_workload(64, 96, 80))};
  const std::string usual = default_schedule(tasks[0].workload, tasks[0].request).to_string();
  MemoryStore store;
  StubMeasurer measurer;
  measurer.answer = [&](int, const Schedule& schedule, bool) { return valid(schedule.to_string() == usual ? 50 : 60); };
  TunerOptions options;
  options.trials = 16;
  const TuningReport report = tune(tasks, options, measurer, store);
  EXPECT_TRUE(report.tasks[0].is_confirmed);
  EXPECT_EQ(measurer.measured.size(), 16u) << "nothing to compare";
  EXPECT_EQ(store.winners.at(0), usual);
  EXPECT_EQ(store.winning.at(0).default_us, 50);
}

TEST(Tuner, NoValidCandidateEndsWithTheDefault) {
  const std::vector<TuningTask> tasks{task_of(relu_workload(40))};
  MemoryStore store;
  StubMeasurer measurer;
  measurer.answer = [](int, const Schedule&, bool) { return failed("run-timeout"); };
  const TuningReport report = tune(tasks, {}, measurer, store);
  EXPECT_EQ(report.tasks[0].failures, report.tasks[0].trials);
  EXPECT_EQ(report.tasks[0].why_stopped, StopReason::kSpaceExhausted);
  EXPECT_TRUE(std::isinf(report.tasks[0].best_us));
  EXPECT_TRUE(store.winners.empty());
}

TEST(Tuner, AFullDiskEndsTheRunWithItsReason) {
  const std::vector<TuningTask> tasks{task_of(dense_workload(64, 96, 80))};
  MemoryStore store;
  store.refuse = Failure{"cannot-write", "R.jsonl: no space left"};
  StubMeasurer measurer;
  measurer.answer = [](int, const Schedule&, bool) { return valid(1); };
  const TuningReport report = tune(tasks, {}, measurer, store);
  EXPECT_EQ(report.why_stopped, StopReason::kFailed);
  EXPECT_EQ(report.failure, "R.jsonl: no space left");
}

TEST(Tuner, WorkersThatNeverAnswerEndTheRunAndATaskWithoutReferenceOnlyItself) {
  const std::vector<TuningTask> tasks{task_of(dense_workload(64, 96, 80)), task_of(softmax_workload(64, 50))};
  const auto lost = [](const char* kind) {
    TrialOutcome outcome = failed(kind);
    outcome.error_text = "gone";
    outcome.is_kept = false;
    return outcome;
  };
  {
    MemoryStore store;
    StubMeasurer measurer;
    measurer.answer = [&](int, const Schedule&, bool) { return lost("worker-lost"); };
    const TuningReport report = tune(tasks, {}, measurer, store);
    EXPECT_EQ(report.why_stopped, StopReason::kFailed);
    EXPECT_EQ(report.failure_id, "measuring-failed");
    EXPECT_LT(report.trials, 60);
    EXPECT_TRUE(store.kept.empty());
  }
  MemoryStore store;
  StubMeasurer measurer;
  measurer.answer = [&](int task, const Schedule& schedule, bool) {
    return task == 1 ? lost("task-failed") : valid(cost_of(schedule));
  };
  TunerOptions options;
  options.trials = 64;
  const TuningReport report = tune(tasks, options, measurer, store);
  EXPECT_EQ(report.tasks[1].failure, "gone");
  EXPECT_LE(report.tasks[1].trials, 24);
  EXPECT_GT(report.tasks[0].trials, 30);
}

TEST(Tuner, AnInterruptEndsIt) {
  const std::vector<TuningTask> tasks{task_of(dense_workload(64, 96, 80))};
  MemoryStore store;
  StubMeasurer measurer;
  std::atomic<bool> interrupted{false};
  int64_t calls = 0;
  measurer.answer = [&](int, const Schedule&, bool) {
    if (++calls == 20) interrupted = true;
    return valid(static_cast<double>(200 - calls));
  };
  TunerOptions options;
  options.interrupted = &interrupted;
  const TuningReport report = tune(tasks, options, measurer, store);
  EXPECT_EQ(report.why_stopped, StopReason::kInterrupted);
  EXPECT_LE(report.trials, 32);
  EXPECT_EQ(store.kept.size(), static_cast<size_t>(report.trials));
  // Nothing was compared with the default in turns, so nothing is a winner.
  EXPECT_FALSE(report.tasks[0].is_confirmed);
  EXPECT_TRUE(store.winners.empty());
}

TEST(Tuner, AnInterruptionDuringTheLastComparisonIsSeen) {
  const std::vector<TuningTask> tasks{task_of(dense_workload(64, 96, 80))};
  MemoryStore store;
  StubMeasurer measurer;
  std::atomic<bool> interrupted{false};
  int64_t calls = 0;
  measurer.answer = [&](int, const Schedule&, bool) { return valid(static_cast<double>(200 - ++calls)); };
  TunerOptions options;
  options.trials = 16;
  options.interrupted = &interrupted;
  std::vector<std::string> told;
  options.on_comparison = [&](int task, size_t nth, size_t count) {
    told.push_back(std::to_string(task) + " " + std::to_string(nth) + "/" + std::to_string(count));
    interrupted = true;
  };
  const TuningReport report = tune(tasks, options, measurer, store);
  EXPECT_EQ(told, std::vector<std::string>{"0 1/1"});
  EXPECT_EQ(report.why_stopped, StopReason::kInterrupted);
  EXPECT_EQ(store.kept.size(), 16u);
}

TEST(Tuner, ATaskThatCannotBeMeasuredDoesNotStopTheOthers) {
  class Picky : public StubMeasurer {
   public:
    Result<void> add_task(const TuningTask& task) override {
      if (task.label == "bad") return Failure{"task-open-dims", "bad: sizes are open"};
      return {};
    }
  } measurer;
  measurer.answer = [](int task, const Schedule&, bool) {
    EXPECT_EQ(task, 1);
    return valid(5);
  };
  std::vector<TuningTask> tasks{task_of(dense_workload(64, 96, 80)), task_of(relu_workload(64))};
  tasks[0].label = "bad";
  MemoryStore store;
  const TuningReport report = tune(tasks, {}, measurer, store);
  EXPECT_EQ(report.tasks[0].failure, "bad: sizes are open");
  EXPECT_EQ(report.tasks[0].trials, 0);
  EXPECT_GT(report.tasks[1].trials, 0);
}

}  // namespace
}  // namespace tensmith
