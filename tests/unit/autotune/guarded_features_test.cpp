// Lowering that goes astray while candidates are ranked costs that candidate alone.
#include "autotune/search/guarded_features.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

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
      guarded_features(schedules.size(), [&](size_t k) { return features_of(schedules[k], request); });
  for (size_t k = 0; k < schedules.size(); ++k) EXPECT_EQ(features[k], features_of(schedules[k], request));
  EXPECT_TRUE(guarded_features(0, row).empty());
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
  const auto rows = guarded_features(16, astray, {0.5, 256});
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  for (size_t k = 0; k < rows.size(); ++k) {
    const bool is_astray = k == 2 || k == 5 || k == 6 || k == 9 || k == 11 || k == 12;
    ASSERT_EQ(rows[k].has_value(), !is_astray) << k;
    if (!is_astray) {
      EXPECT_EQ(*rows[k], row(k));
    }
  }
}

}  // namespace
}  // namespace tensmith
