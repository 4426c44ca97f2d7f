#include "autotune/search/decision_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "runtime/base/rng.h"

namespace tensmith {
namespace {

Decisions decisions_of(int64_t rows, int64_t vectors, const char* order) {
  Decisions d;
  d.set("C.rows", rows);
  d.set("C.vectors", vectors);
  d.set("C.order", std::string(order));
  return d;
}

/// A made-up machine: the cost model knows of rows, not that `inner` takes twice the time.
struct Point {
  Decisions decisions;
  double expected = 0, truth = 0;
};
std::vector<Point> points() {
  std::vector<Point> list;
  for (int64_t rows = 1; rows <= 14; ++rows)
    for (int64_t vectors = 1; vectors <= 4; ++vectors)
      for (const char* order : {"outer", "inner"}) {
        const double expected = 5 + 0.02 * static_cast<double>((rows - 6) * (rows - 6));
        const double truth = expected + (order[0] == 'i' ? 1 : 0) + 0.1 * std::abs(static_cast<double>(vectors - 3));
        list.push_back({decisions_of(rows, vectors, order), expected, truth});
      }
  return list;
}

TEST(DecisionModel, LearnsWhatTheCostModelDoesNotSee) {
  const std::vector<Point> all = points();
  Rng rng(1);
  std::vector<DecisionModel::Known> known;
  std::set<size_t> seen;
  while (seen.size() < 20) {
    const size_t k = rng.below(all.size());
    if (seen.insert(k).second) known.push_back({&all[k].decisions, all[k].expected, all[k].truth});
  }
  DecisionModel model;
  model.fit(known);
  std::vector<DecisionModel::Unknown> pool;
  for (const Point& p : all) pool.push_back({&p.decisions, p.expected});
  const std::vector<DecisionModel::Guess> guesses = model.guess(pool);
  double with = 0, without = 0, mean = 0;
  for (const Point& p : all) mean += (p.truth - p.expected) / static_cast<double>(all.size());
  for (size_t k = 0; k < all.size(); ++k) {
    if (seen.count(k)) {
      // How slow the slow ones are is of no interest.
      if (all[k].truth < 6) {
        EXPECT_NEAR(guesses[k].mean, all[k].truth, 0.12);
      } else {
        EXPECT_GT(guesses[k].mean, 5.8);
      }
      EXPECT_LT(guesses[k].deviation, 0.1);
      continue;
    }
    EXPECT_GT(guesses[k].deviation, 0.02);
    with += std::abs(guesses[k].mean - all[k].truth);
    without += std::abs(all[k].expected + mean - all[k].truth);
  }
  EXPECT_LT(with, 0.5 * without);
}

TEST(DecisionModel, FindsTheBestInFewMeasurements) {
  const std::vector<Point> all = points();
  double best = 1e300;
  for (const Point& p : all) best = std::min(best, p.truth);
  DecisionModel model;
  std::vector<DecisionModel::Known> known;
  std::vector<bool> is_seen(all.size(), false);
  double found = 1e300;
  for (int round = 0; round < 6; ++round) {
    std::vector<DecisionModel::Unknown> pool;
    std::vector<size_t> numbers;
    for (size_t k = 0; k < all.size(); ++k) {
      if (is_seen[k]) continue;
      pool.push_back({&all[k].decisions, all[k].expected});
      numbers.push_back(k);
    }
    model.fit(known);
    const std::vector<DecisionModel::Choice> chosen = model.choose(pool, 4);
    ASSERT_EQ(chosen.size(), 4u);
    for (const DecisionModel::Choice& choice : chosen) {
      const size_t k = numbers[choice.index];
      ASSERT_FALSE(is_seen[k]);
      is_seen[k] = true;
      known.push_back({&all[k].decisions, all[k].expected, all[k].truth});
      found = std::min(found, all[k].truth);
    }
  }
  EXPECT_NEAR(found, best, 1e-9);
}

TEST(DecisionModel, ABatchDoesNotHoldTheSameThingTwice) {
  // Twins of the best one beside something else that is hardly worse: both kinds belong into a batch of three.
  const Decisions good = decisions_of(6, 3, "outer"), twin = decisions_of(6, 3, "outer"),
                  other = decisions_of(12, 1, "inner");
  const std::vector<DecisionModel::Unknown> pool{{&good, 1.0}, {&twin, 1.0}, {&other, 1.1}};
  DecisionModel model;
  model.fit({});
  const std::vector<DecisionModel::Choice> chosen = model.choose(pool, 2);
  ASSERT_EQ(chosen.size(), 2u);
  EXPECT_EQ(chosen[0].index, 0u);
  EXPECT_EQ(chosen[1].index, 2u);
  // What is under way is not chosen again, and counts as such.
  const std::vector<DecisionModel::Choice> next = model.choose(pool, 1, 1);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].index, 2u);
}

TEST(DecisionModel, EmptyEqualAndExtremeTimesAreNoError) {
  DecisionModel model;
  model.fit({});
  EXPECT_TRUE(model.choose({}, 8).empty());
  const Decisions a = decisions_of(1, 1, "outer"), b = decisions_of(2, 1, "outer");
  model.fit(std::vector<DecisionModel::Known>{{&a, 3, 5}, {&a, 3, 5}, {&b, 900, 40}});
  const std::vector<DecisionModel::Unknown> pool{{&a, 3}, {&b, 996}};
  for (const DecisionModel::Guess& guess : model.guess(pool)) {
    EXPECT_TRUE(std::isfinite(guess.mean));
    EXPECT_TRUE(std::isfinite(guess.deviation));
  }
  EXPECT_EQ(model.choose(pool, 8).size(), 2u);
}

}  // namespace
}  // namespace tensmith
