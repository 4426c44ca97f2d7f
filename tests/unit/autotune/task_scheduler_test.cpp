#include <gtest/gtest.h>

#include "autotune/search/task_scheduler.h"

namespace tensmith {
namespace {

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

TEST(TaskScheduler, WhatTheMachineDoesNotAllowIsNotHopedFor) {
  TaskScheduler scheduler({{1, 1e6, "a"}, {1, 1e6, "b"}, {1, 1e6, "c"}});
  for (int k = 0; k < 3; ++k) scheduler.next();
  for (int k = 0; k < 3; ++k) scheduler.told(k, 100, 0);
  scheduler.bounded(0, 95);
  scheduler.bounded(1, 40);
  scheduler.bounded(2, 200);  // not a bound at all, as it turns out
  EXPECT_GT(scheduler.expected_gain(1), 5 * scheduler.expected_gain(0));
  EXPECT_GT(scheduler.expected_gain(0), scheduler.expected_gain(2));
  EXPECT_GT(scheduler.expected_gain(2), 0);
  EXPECT_EQ(scheduler.next(), 1);
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

}  // namespace
}  // namespace tensmith
