// What one task found starts the search of another one.
#include "autotune/search/carry_over.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "autotune/search/task_search.h"
#include "schedule/lower/lowering.h"
#include "tests/support/workloads.h"

namespace tensmith {
namespace {

ScheduleRequest request_of(int threads = 1) {
  ScheduleRequest request;
  request.target = Target::parse("sapphirerapids").value();
  request.threads = threads;
  return request;
}

/// A product whose stages and loops have names of their own.
Workload product(const std::string& name, int64_t m, int64_t n, int64_t k) {
  const Tensor a = placeholder(name + "_a", {m, k}, kFloat32), b = placeholder(name + "_b", {k, n}, kFloat32);
  const Tensor c = reduce(name, {m, n}, {k}, sum_reducer(kFloat32),
                          [&](const Indices& i, const Indices& r) { return a(i[0], r[0]) * b(r[0], i[1]); });
  return make_workload(name, {a, b}, {c});
}

Candidate default_of(const Space& space) {
  PreferredChooser preferred;
  return space.make(preferred).value();
}

/// Decisions of a random candidate that differ from the default's.
Decisions other_than_default(const Space& space, uint64_t seed) {
  Rng rng(seed);
  const Candidate usual = default_of(space);
  while (true)
    if (const Result<Candidate> other = mutate(space, usual, rng, 2);
        other && other->schedule.to_string() != usual.schedule.to_string())
      return other->decisions;
}

TEST(CarryOver, DistancesFollowExtentsAndThreads) {
  const Workload a = dense_workload(64, 96, 80);
  EXPECT_DOUBLE_EQ(task_distance(a, 1, a, 1), 0);
  EXPECT_DOUBLE_EQ(task_distance(a, 1, dense_workload(128, 96, 80), 1), 1);
  EXPECT_DOUBLE_EQ(task_distance(a, 1, dense_workload(64, 96, 20), 1), 2);
  EXPECT_GT(task_distance(a, 1, a, 2), 0);
  EXPECT_TRUE(std::isinf(task_distance(a, 1, softmax_workload(64, 50), 1)));
}

TEST(CarryOver, NamesAreThoseOfTheOtherTask) {
  const Space first(product("first", 64, 96, 80), request_of()), second(product("second", 70, 130, 33), request_of());
  const Decisions good = other_than_default(first, 3);
  const std::vector<Decisions> carried =
      carried_over(second, std::vector<KnownGood>{{first.workload(), first.request(), good, 1.5}}, 8);
  ASSERT_FALSE(carried.empty());
  EXPECT_EQ(carried.back().size(), good.size());
  for (const Decisions& decisions : carried)
    for (const auto& [name, value] : decisions.items()) EXPECT_EQ(name.rfind("second", 0), 0u) << name;
}

TEST(CarryOver, WhateverIsCarriedIsLegal) {
  const std::vector<Workload> workloads = {dense_workload(64, 96, 80), dense_workload(7, 1000, 33),
                                           dense_workload(1, 17, 2048), softmax_workload(64, 50),
                                           softmax_workload(3, 1009)};
  std::vector<KnownGood> known;
  for (const Workload& workload : workloads)
    for (uint64_t seed = 1; seed <= 6; ++seed)
      known.push_back({workload, request_of(), other_than_default(Space(workload, request_of()), seed),
                       1.0 + 0.1 * static_cast<double>(seed)});
  for (const Workload& workload : workloads)
    for (const int threads : {1, 2}) {
      const Space space(workload, request_of(threads));
      const std::vector<Decisions> carried = carried_over(space, known, 5);
      EXPECT_EQ(carried.size(), 5u);
      for (const Decisions& decisions : carried) {
        const Result<Candidate> candidate = replay_decisions(space, decisions);
        ASSERT_TRUE(candidate.ok()) << candidate.failure().message;
        EXPECT_NO_THROW(lower(candidate->schedule));
      }
    }
}

TEST(CarryOver, TheNearestTaskComesFirstAndWhatGainsNothingNot) {
  const Workload near = dense_workload(64, 96, 160), far = dense_workload(512, 96, 2000);
  const Space space(dense_workload(64, 96, 80), request_of());
  const Decisions its = other_than_default(Space(near, request_of()), 1);
  std::vector<KnownGood> known = {{far, request_of(), other_than_default(Space(far, request_of()), 2), 3.0},
                                  {near, request_of(), its, 1.2}};
  std::vector<Decisions> carried = carried_over(space, known, 2);
  ASSERT_EQ(carried.size(), 2u);
  // What differs from the default there may be all of it.
  EXPECT_TRUE(carried[0] == its || carried[1] == its) << to_string(carried[1]);
  known[0].gain = known[1].gain = 1;
  EXPECT_TRUE(carried_over(space, known, 5).empty());
}

TEST(CarryOver, SearchesBeginWithIt) {
  PriorScorer scorer;
  const Space space(dense_workload(64, 96, 80), request_of());
  const Decisions its = other_than_default(space, 4);
  TaskSearch search(space, SearchStrategy::kEvolve, 1, scorer);
  search.suggest({its, its, default_of(space).decisions});
  const std::vector<Proposal> first = search.propose(4);
  ASSERT_EQ(first.size(), 4u);
  EXPECT_STREQ(first[0].origin, "default");
  EXPECT_STREQ(first[1].origin, "carried");
  EXPECT_EQ(first[1].candidate->schedule.to_string(), replay_decisions(space, its)->schedule.to_string());
  // The same again and the default are passed over.
  EXPECT_STREQ(first[2].origin, "probe");
  // With the default alone in the first batch, it is in the second one.
  TaskSearch alone(space, SearchStrategy::kEvolve, 1, scorer);
  alone.suggest({its});
  EXPECT_EQ(alone.propose(1).size(), 1u);
  EXPECT_STREQ(alone.propose(2)[0].origin, "carried");
}

}  // namespace
}  // namespace tensmith
