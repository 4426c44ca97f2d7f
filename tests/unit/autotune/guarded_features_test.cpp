// Lowering that goes astray while candidates are ranked costs that candidate alone.
#include "autotune/search/guarded_features.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "autotune/search/model_scorer.h"
#include "autotune/search/task_search.h"
#include "runtime/base/error.h"
#include "tests/support/workloads.h"

namespace tensmith {
namespace {

KernelFeatures row(size_t k) {
  KernelFeatures features;
  features.nests.assign(3 * k, static_cast<float>(k));
  features.kernel = {static_cast<float>(k), 0.5F};
  features.analytic_cycles = 1 + static_cast<double>(k);
  return features;
}

TEST(GuardedFeatures, AreThoseOfTheProcessItself) {
  ScheduleRequest request;
  request.target = Target::parse("sapphirerapids").value();
  request.threads = 1;
  std::vector<Schedule> schedules;
  for (const Workload& workload : {dense_workload(64, 96, 80), softmax_workload(64, 50), dense_workload(7, 9, 11)})
    schedules.push_back(default_schedule(workload, request));
  const auto features =
      guarded_features(schedules.size(), [&](size_t k) { return features_of(schedules[k], request); }).value();
  for (size_t k = 0; k < schedules.size(); ++k) EXPECT_EQ(features[k], features_of(schedules[k], request));
  EXPECT_TRUE(guarded_features(0, row)->empty());
}

TEST(GuardedFeatures, WhatGoesAstrayIsRefusedAndTheRestIsThere) {
  const auto astray = [](size_t k) {
    switch (k) {
      case 2: throw ScheduleError("bad-loop", "no such loop");
      case 5: std::raise(SIGSEGV); break;
      case 6: std::abort();
      case 9:
        for (;;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      case 11: {
        std::vector<std::vector<char>> all;
        for (;;) all.emplace_back(size_t{16} << 20, 'x');
      }
      case 12: _exit(0);
    }
    return row(k);
  };
  const auto start = std::chrono::steady_clock::now();
  const auto rows = guarded_features(16, astray, {0.5, 256}).value();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  for (size_t k = 0; k < rows.size(); ++k) {
    const bool is_astray = k == 2 || k == 5 || k == 6 || k == 9 || k == 11 || k == 12;
    ASSERT_EQ(rows[k].has_value(), !is_astray) << k;
    if (!is_astray) {
      EXPECT_EQ(*rows[k], row(k));
    }
  }
}

/// No file can be opened while it lives.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreFiles(const NoMoreFiles&) = delete;
  NoMoreFiles& operator=(const NoMoreFiles&) = delete;

 private:
  rlimit before_{};
};

TEST(GuardedFeatures, ASystemThatGivesNoProcessIsNamedAndTheSearchGoesOn) {
  ScheduleRequest request;
  request.target = Target::parse("sapphirerapids").value();
  request.threads = 1;
  ModelScorer scorer(make_cost_model("blend", 1).value());
  TaskSearch search(Space(dense_workload(64, 96, 80), request), SearchStrategy::kEvolve, 1, scorer);
  {
    const NoMoreFiles none;
    EXPECT_EQ(guarded_features(3, row).failure().id, "worker-start");
    const std::vector<Proposal> proposals = search.propose(8);
    ASSERT_EQ(proposals.size(), 8u);
    double us = 10;
    for (const Proposal& proposal : proposals) search.tell(proposal, us += 1);
    EXPECT_EQ(search.propose(8).size(), 8u);
    EXPECT_NE(scorer.note().find("passed over 2 times"), std::string::npos) << scorer.note();
  }
  EXPECT_EQ(search.propose(8).size(), 8u);
  EXPECT_NE(scorer.note().find("passed over 2 times"), std::string::npos) << scorer.note();
}

}  // namespace
}  // namespace tensmith
