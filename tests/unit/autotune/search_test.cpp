#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "autotune/cost_model/ranking.h"
#include "autotune/schedule_rules.h"
#include "autotune/search/model_scorer.h"
#include "autotune/search/task_search.h"
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

TEST(TaskSearch, AsksForHalfABatchWhileResultsTellMost) {
  EXPECT_EQ(batch_size(0, 8), 4);
  EXPECT_EQ(batch_size(31, 8), 4);
  EXPECT_EQ(batch_size(32, 8), 8);
  EXPECT_EQ(batch_size(0, 1), 1);
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

// A schedule takes some 20 KB; thousands of trials may not keep theirs.
TEST(TaskSearch, RemembersOnlyTheBest) {
  PriorScorer scorer;
  TaskSearch search(Space(dense_workload(100, 120, 96), request_of()), SearchStrategy::kEvolve, 1, scorer);
  std::vector<std::weak_ptr<const Candidate>> all;
  for (int round = 0; round < 20; ++round)
    for (const Proposal& proposal : search.propose(8)) {
      all.push_back(proposal.candidate);
      search.tell(proposal, made_up_cost(*proposal.candidate));
    }
  ASSERT_EQ(all.size(), 160u);
  const auto alive = std::count_if(all.begin(), all.end(), [](const auto& candidate) { return !candidate.expired(); });
  EXPECT_LE(alive, 16);
  EXPECT_EQ(search.best_few(3).size(), 3u);
}

TEST(ModelScorer, WhatOtherTasksTaughtCountsFromTheFirstTrialOn) {
  std::vector<CostSample> known;
  for (const int64_t size : {64, 96, 128}) {
    const Space space(dense_workload(size, 96, 80), request_of());
    Rng rng(1);
    for (int k = 0; k < 24; ++k) {
      const Candidate candidate = sample(space, rng, Draw::kUniform).value();
      known.push_back(cost_sample(candidate.schedule, space.request(), made_up_cost(candidate)).value());
    }
  }
  const Space space(dense_workload(48, 70, 33), request_of());
  Rng rng(5);
  std::vector<Candidate> fresh;
  for (int k = 0; k < 40; ++k) fresh.push_back(sample(space, rng, Draw::kUniform).value());
  std::vector<const Candidate*> pointers;
  for (const Candidate& candidate : fresh) pointers.push_back(&candidate);
  ModelScorer cold(make_cost_model("blend", 1).value()), warm(make_cost_model("blend", 1).value());
  warm.prime(known);
  const auto accuracy = [&](ModelScorer& scorer) {
    RankedTask task{"", {}, {}};
    for (const double score : scorer.score(space, pointers, {})) task.scores.push_back(-score);
    for (const Candidate& candidate : fresh) task.us.push_back(made_up_cost(candidate));
    return pairwise_accuracy(task);
  };
  // The made-up machine is nothing like the analytic model's.
  EXPECT_GT(accuracy(warm), accuracy(cold) + 0.05);
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
  const std::vector<double> scores = scorer.score(space, pointers, {});
  double right = 0, pairs = 0;
  for (size_t a = 0; a < fresh.size(); ++a)
    for (size_t b = 0; b < a; ++b) {
      if (cost_of(fresh[a]) == cost_of(fresh[b])) continue;
      ++pairs;
      right += (scores[a] < scores[b]) == (cost_of(fresh[a]) < cost_of(fresh[b]));
    }
  EXPECT_GT(right / pairs, 0.85);
}

}  // namespace
}  // namespace tensmith
