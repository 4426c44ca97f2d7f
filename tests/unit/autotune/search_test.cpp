#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>

#include "autotune/schedule_rules.h"
#include "autotune/search/model_scorer.h"
#include "autotune/search/tuner.h"
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

/// A made-up machine: numbers near `wanted` are fast, and words of one kind.
double made_up_cost(const Candidate& candidate, double wanted = 6) {
  double cost = 100;
  for (const auto& [name, value] : candidate.decisions.items()) {
    if (const auto* number = std::get_if<int64_t>(&value))
      cost *= 1 + 0.1 * std::abs(std::log2((static_cast<double>(*number) + 1) / wanted));
    else cost *= 1 + 0.02 * static_cast<double>(std::get<std::string>(value).size() % 5);
  }
  return cost;
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
  std::map<int, std::string> winners;
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
  Result<void> save_winner(int task, const Candidate& candidate, const TrialOutcome&) override {
    winners[task] = candidate.schedule.to_string();
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

TEST(TaskSearch, BeginsWithTheDefaultAndNeverRepeatsItself) {
  for (const char* strategy : {"evolve", "random", "grid", "anneal"}) {
    PriorScorer scorer;
    TaskSearch search(Space(dense_workload(64, 96, 80), request_of()), parse_search_strategy(strategy).value(), 1,
                      scorer);
    std::set<std::string> seen;
    bool first = true;
    for (int round = 0; round < 6; ++round)
      for (const Proposal& proposal : search.propose(8)) {
        const std::string text = proposal.candidate->schedule.to_string();
        if (first) {
          EXPECT_STREQ(proposal.origin, "default");
          EXPECT_EQ(text, default_schedule(dense_workload(64, 96, 80), request_of()).to_string());
        }
        first = false;
        EXPECT_TRUE(seen.insert(text).second) << strategy << ": " << text;
        search.tell(proposal, made_up_cost(*proposal.candidate));
      }
    EXPECT_GE(seen.size(), 30u) << strategy;
    EXPECT_LE(search.best_us(), search.default_us());
  }
}

TEST(TaskSearch, ToldTheSameProposesTheSame) {
  for (const char* strategy : {"evolve", "random", "anneal"}) {
    std::vector<std::string> runs[2];
    for (auto& run : runs) {
      PriorScorer scorer;
      TaskSearch search(Space(dense_workload(48, 70, 33), request_of()), parse_search_strategy(strategy).value(), 7,
                        scorer);
      for (int round = 0; round < 5; ++round)
        for (const Proposal& proposal : search.propose(5)) {
          run.push_back(proposal.candidate->schedule.to_string());
          search.tell(proposal, run.size() % 4 == 0 ? kNever : made_up_cost(*proposal.candidate));
        }
    }
    EXPECT_EQ(runs[0], runs[1]) << strategy;
  }
}

TEST(TaskSearch, SeesAWholeSmallSpaceAndStops) {
  PriorScorer scorer;
  const Space space(relu_workload(40), request_of());
  std::set<std::string> all;
  ASSERT_TRUE(enumerate(space, 4096, [&](const Candidate& candidate) {
    all.insert(candidate.schedule.to_string());
    return true;
  }));
  for (const char* strategy : {"evolve", "random", "grid"}) {
    TaskSearch search(space, parse_search_strategy(strategy).value(), 3, scorer);
    std::set<std::string> seen;
    while (!search.exhausted() && seen.size() <= all.size())
      for (const Proposal& proposal : search.propose(4)) {
        seen.insert(proposal.candidate->schedule.to_string());
        search.tell(proposal, made_up_cost(*proposal.candidate));
      }
    EXPECT_EQ(seen, all) << strategy;
  }
}

TEST(TaskSearch, SeesWhatDrawsHardlyEverComeBy) {
  // A chain of questions that ends at two answers of three: draws reach its end once in 59,049 times, and what lies
  // there is slow, so that nobody has children near it.
  constexpr int kLinks = 10;
  const auto declare = [](ScheduleDraft& draft) {
    for (int link = 0; link < kLinks; ++link) {
      const std::string what = "link" + std::to_string(link);
      const int64_t answer = draft.decide_number(
          std::move(Question("Y", what).offer(int64_t{1}).offer(int64_t{2}, 9).offer(int64_t{3}, 9)));
      if (answer == 1) return;
      const StageState& stage = draft.stage("Y");
      const std::string loop = stage.loops[stage.order[0]].name;
      draft.schedule.split("Y", loop, answer, what + ".o", what + ".i");
      if (answer == 3) return;
    }
  };
  const Space space(relu_workload(4096), request_of(), declare);
  std::set<std::string> all;
  ASSERT_TRUE(enumerate(space, 4096, [&](const Candidate& candidate) {
    all.insert(candidate.schedule.to_string());
    return true;
  }));
  ASSERT_EQ(all.size(), 2u * kLinks + 1);
  PriorScorer scorer;
  TaskSearch search(space, SearchStrategy::kEvolve, 1, scorer);
  std::set<std::string> seen;
  while (!search.exhausted() && seen.size() <= all.size())
    for (const Proposal& proposal : search.propose(8)) {
      seen.insert(proposal.candidate->schedule.to_string());
      search.tell(proposal, 1 + static_cast<double>(proposal.candidate->decisions.items().size()));
    }
  EXPECT_EQ(seen, all);
}

/// The cost of the best of `trials`, on a machine of which the rules know the half.
double best_after(const Space& space, const char* strategy, int trials, uint64_t seed) {
  PriorScorer scorer;
  TaskSearch search(space, parse_search_strategy(strategy).value(), seed, scorer);
  while (search.told() < trials) {
    const std::vector<Proposal> proposals = search.propose(std::min<int>(8, trials - static_cast<int>(search.told())));
    if (proposals.empty()) break;
    for (const Proposal& proposal : proposals)
      search.tell(proposal, made_up_cost(*proposal.candidate) * std::sqrt(prior_cost(*proposal.candidate)));
  }
  return search.best_us();
}

TEST(TaskSearch, EvolutionBeatsRandomDraws) {
  double product = 1;
  int count = 0;
  for (const Workload& workload : {dense_workload(100, 120, 96), softmax_workload(40, 77)}) {
    const Space space(workload, request_of());
    for (uint64_t seed = 0; seed < 3; ++seed) {
      product *= best_after(space, "random", 64, seed) / best_after(space, "evolve", 64, seed);
      ++count;
    }
  }
  EXPECT_GT(std::pow(product, 1.0 / count), 1.1);
}

TEST(ModelScorer, LearnsTheOrderOfWhatItIsTold) {
  const Space space(dense_workload(64, 96, 80), request_of());
  // On this machine few rows are fast, which no closed form says.
  const auto cost_of = [](const Candidate& candidate) {
    double cost = 50;
    for (const auto& [name, value] : candidate.decisions.items())
      if (name.find("tile.rows") != std::string::npos) cost *= 1 + static_cast<double>(std::get<int64_t>(value));
    return cost;
  };
  ModelScorer scorer(make_cost_model("blend", 1).value());
  EXPECT_EQ(scorer.pairwise_accuracy(), 0.5);
  Rng rng(4);
  for (int k = 0; k < 160; ++k) {
    const Candidate candidate = sample(space, rng, Draw::kUniform).value();
    scorer.learn(space, candidate, k % 10 == 9 ? kNever : cost_of(candidate));
  }
  EXPECT_GT(scorer.samples(), 120u);
  EXPECT_GT(scorer.pairwise_accuracy(), 0.7);
  std::vector<Candidate> fresh;
  for (int k = 0; k < 40; ++k) fresh.push_back(sample(space, rng, Draw::kUniform).value());
  std::vector<const Candidate*> pointers;
  for (const Candidate& candidate : fresh) pointers.push_back(&candidate);
  const std::vector<double> scores = scorer.score(space, pointers);
  double right = 0, pairs = 0;
  for (size_t a = 0; a < fresh.size(); ++a)
    for (size_t b = 0; b < a; ++b) {
      if (cost_of(fresh[a]) == cost_of(fresh[b])) continue;
      ++pairs;
      right += (scores[a] < scores[b]) == (cost_of(fresh[a]) < cost_of(fresh[b]));
    }
  EXPECT_GT(right / pairs, 0.85);
}

TEST(TaskScheduler, EveryTaskOnceThenWhereMostIsToBeGained) {
  TaskScheduler scheduler({{1, 1e6, "a"}, {10, 1e6, "b"}, {1, 5e7, "c"}});
  EXPECT_EQ(scheduler.next(), 2);
  EXPECT_EQ(scheduler.next(), 1);
  EXPECT_EQ(scheduler.next(), 0);
  scheduler.told(2, 100, 0);
  scheduler.told(1, 100, 0);
  scheduler.told(0, 100, 0);
  EXPECT_EQ(scheduler.total_us(), 1200);
  // Equal times, but one occurs ten times.
  EXPECT_EQ(scheduler.next(), 1);
  // It goes on as long as it gains, and not for ever when it does not.
  int rounds = 0;
  std::vector<int> given(3);
  while (rounds++ < 200) {
    const int task = scheduler.next();
    if (task < 0) break;
    ++given[static_cast<size_t>(task)];
    scheduler.told(task, 100, given[static_cast<size_t>(task)]);
  }
  EXPECT_LT(rounds, 200);
  EXPECT_GE(given[1], given[0]);
}

TEST(TaskScheduler, TasksThatHardlyCountAreLeftAtTheirDefaults) {
  TaskScheduler scheduler({{1, 1e6, "a"}, {1, 10, "b"}, {100, 10, "b"}});
  for (int k = 0; k < 3; ++k) scheduler.next();
  scheduler.told(1, 0.01, 0);
  scheduler.told(2, 0.01, 0);
  EXPECT_FALSE(scheduler.retired(1));
  scheduler.told(0, 500, 0);
  EXPECT_TRUE(scheduler.retired(1));
  EXPECT_FALSE(scheduler.retired(2));
  EXPECT_FALSE(scheduler.retired(0));
}

TEST(TaskScheduler, ATaskFarBehindItsKinIsBelievedToCatchUp) {
  TaskScheduler scheduler({{1, 1e6, "k"}, {1, 1e6, "k"}, {1, 1e6, "other"}});
  for (int k = 0; k < 3; ++k) scheduler.next();
  scheduler.told(0, 10, 0);
  scheduler.told(1, 100, 0);
  scheduler.told(2, 100, 3);
  EXPECT_GT(scheduler.expected_gain(1), scheduler.expected_gain(0));
  EXPECT_GT(scheduler.expected_gain(1), scheduler.expected_gain(2));
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
    const size_t kept = store.kept.size();
    EXPECT_LE(kept, static_cast<size_t>(dies_after));
    const RunOf resumed = run_of(tasks, store, 64);
    EXPECT_EQ(resumed.winners, whole.winners) << dies_after;
    EXPECT_EQ(store.kept.size(), whole_store.kept.size());
    int64_t from_store = 0;
    for (const TaskProgress& progress : resumed.report.tasks) from_store += progress.from_store;
    EXPECT_EQ(from_store, static_cast<int64_t>(kept)) << dies_after;
  }
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
    return valid(static_cast<double>(100 + calls));
  };
  TunerOptions options;
  options.interrupted = &interrupted;
  const TuningReport report = tune(tasks, options, measurer, store);
  EXPECT_EQ(report.why_stopped, StopReason::kInterrupted);
  EXPECT_LE(report.trials, 32);
  EXPECT_EQ(store.kept.size(), static_cast<size_t>(report.trials));
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
