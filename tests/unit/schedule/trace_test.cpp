// Schedules as documents.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "schedule/primitive_def.h"
#include "schedule/trace.h"
#include "tests/unit/schedule/random_schedules.h"

namespace tensmith {
namespace {

Schedule dense_schedule() {
  return make_schedule(
      dense_workload(7, 19, 23),
      {"transform_layout stage=B layout=\"1/16,0,1%16;halo 0:1+2\"", "split stage=R loop=i0 factor=6 outer=io inner=ii",
       "reorder stage=R loops=i1,io,ii", "compute_at stage=C consumer=R at=io"});
}

TEST(TraceTest, RoundTripsAsJson) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Rng rng(seed, "trace");
    const SizedWorkload sized = random_workload(rng);
    const Trace trace = trace_of(random_schedule(sized.workload, 12, rng));
    const std::string json = trace_to_json(trace);
    const Trace read = trace_from_json(json).value();
    EXPECT_EQ(read, trace);
    EXPECT_EQ(trace_to_json(read), json);
    EXPECT_EQ(replay(sized.workload, read).value().steps(), trace.steps);
  }
}

TEST(TraceTest, ReplayGivesTheSameLoops) {
  const Schedule schedule = dense_schedule();
  const Schedule again =
      replay(dense_workload(7, 19, 23), trace_from_json(trace_to_json(trace_of(schedule))).value()).value();
  EXPECT_EQ(lowered_text(again), lowered_text(schedule));
}

/// A tile, a mark and a place, all drawn.
void sample_all(Schedule& s) {
  s.sample_tile("C", "i1", {"a", "b", "c"}, 8);
  s.sample_categorical("C", "r0", "unroll", {1, 2, 4, 8}, {0, 1, 1, 1});
  s.sample_location("C", "R");
}

TEST(TraceTest, RandomDecisionsAreRecordedAndReplayed) {
  const Workload workload = dense_workload(7, 48, 23);
  std::set<std::string> different;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Schedule schedule(workload, seed), again(workload, seed);
    sample_all(schedule);
    sample_all(again);
    EXPECT_EQ(schedule.steps(), again.steps()) << "the same seed decides the same";
    different.insert(schedule.to_string());
    const std::vector<int64_t>& tile = schedule.steps()[0].numbers("decision");
    EXPECT_EQ(tile[0] * tile[1] * tile[2], 48);
    EXPECT_LE(tile[2], 8);
    EXPECT_NE(schedule.steps()[1].numbers("decision").at(0), 0) << "a value of weight 0 was drawn";
    // A replay has no seed: the decisions are those of the trace.
    const Schedule replayed = replay(workload, trace_from_json(trace_to_json(trace_of(schedule))).value()).value();
    EXPECT_EQ(replayed.steps(), schedule.steps());
    EXPECT_EQ(lowered_text(replayed), lowered_text(schedule));
  }
  EXPECT_GT(different.size(), 10u);
}

TEST(TraceTest, RefusedStepsDrawNothing) {
  const Workload workload = dense_workload(7, 48, 23);
  Schedule plain(workload, 3), tried(workload, 3);
  EXPECT_FALSE(tried.try_apply(parse_step("sample_tile stage=C loop=i1 names=i0,b").value()).ok());
  sample_all(plain);
  sample_all(tried);
  EXPECT_EQ(plain.steps(), tried.steps());
}

TEST(TraceTest, MutationChangesOneDecision) {
  Schedule schedule(dense_workload(7, 48, 23), 5);
  sample_all(schedule);
  schedule.unroll("C", "c");
  Rng rng(1, "mutate");
  std::set<std::string> changed;
  for (int k = 0; k < 40; ++k) {
    const Schedule other = mutate(schedule, rng).value();
    ASSERT_EQ(other.steps().size(), schedule.steps().size());
    int differences = 0;
    for (size_t s = 0; s < schedule.steps().size(); ++s)
      if (!(other.steps()[s] == schedule.steps()[s])) {
        ++differences;
        changed.insert(schedule.steps()[s].primitive);
      }
    EXPECT_EQ(differences, 1);
    EXPECT_TRUE(replay(schedule.workload(), trace_of(other)).ok());
  }
  EXPECT_EQ(changed.size(), 3u);
  const auto id_of = [&](const Schedule& s) { return mutate(s, rng).failure().id; };
  EXPECT_EQ(id_of(dense_schedule()), "no-decision");
  Schedule single(dense_workload(7, 19, 23));
  single.sample_categorical("C", "r0", "unroll", {4});
  EXPECT_EQ(id_of(single), "no-other-decision");
}

TEST(TraceTest, ReplaySaysWhyNot) {
  const Trace trace = trace_of(dense_schedule());
  const Result<Schedule> other = replay(dense_workload(9, 19, 23), trace);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.failure().id, "trace-workload");
  EXPECT_NE(other.failure().message.find("f32[7, 23]"), std::string::npos) << other.failure().message;
  EXPECT_TRUE(replay(dense_workload(9, 19, 23), trace, ReplayOn::kAnyWorkload).ok());
  const Result<Schedule> softmax = replay(softmax_workload(5, 13), trace, ReplayOn::kAnyWorkload);
  ASSERT_FALSE(softmax.ok());
  EXPECT_EQ(softmax.failure().id, "unknown-stage");
  EXPECT_NE(softmax.failure().message.find("step 1 of 4"), std::string::npos) << softmax.failure().message;
}

TEST(TraceTest, RefusesBadDocuments) {
  const auto id = [](const std::string& text) {
    return trace_from_json(text).ok() ? "ok" : trace_from_json(text).failure().id;
  };
  const std::string head = R"({"schema": "tensmith.schedule/1", "workload": "w", "steps": [)";
  EXPECT_EQ(id(head + "]}"), "ok");
  EXPECT_EQ(id("{"), "bad-json");
  EXPECT_EQ(id("[]"), "trace-schema");
  EXPECT_EQ(id(R"({"schema": "tensmith.schedule/2", "workload": "w", "steps": []})"), "trace-schema");
  EXPECT_EQ(id(R"({"schema": "tensmith.schedule/1", "steps": []})"), "bad-trace");
  EXPECT_EQ(id(head + "3]}"), "bad-trace");
  EXPECT_EQ(id(head + R"({"primitive": "splat", "args": {}}]})"), "bad-trace");
  EXPECT_EQ(id(head + R"({"primitive": "unroll", "args": {"stage": 3}}]})"), "bad-trace");
  EXPECT_EQ(id(head + R"({"primitive": "unroll", "args": {"stage": "C", "lop": "i"}}]})"), "bad-trace");
  EXPECT_EQ(id(head + R"({"primitive": "split", "args": {"factor": 1.5}}]})"), "bad-trace");
  EXPECT_EQ(id(head + R"({"primitive": "reorder", "args": {"loops": ["a", 1]}}]})"), "bad-trace");
}

TEST(TraceTest, DiffShowsSteps) {
  const Schedule one = dense_schedule();
  Schedule two(one.workload());
  for (size_t k = 0; k < one.steps().size(); ++k)
    if (k != 2) two.apply(one.steps()[k]);
  two.parallel("R", "io");
  EXPECT_EQ(trace_diff(trace_of(one), trace_of(one)), "");
  EXPECT_EQ(trace_diff(trace_of(one), trace_of(two)),
            "  transform_layout stage=B layout=\"1/16,0,1%16;halo 0:1+2\" output=0\n"
            "  split stage=R loop=i0 factor=6 outer=io inner=ii tail=peel\n"
            "- reorder stage=R loops=i1,io,ii\n"
            "  compute_at stage=C consumer=R at=io\n"
            "+ parallel stage=R loop=io\n");
  EXPECT_EQ(trace_diff(trace_of(Schedule(dense_workload(7, 19, 23))), trace_of(Schedule(dense_workload(8, 19, 23))))
                .substr(0, 20),
            "workloads differ in ");
}

TEST(TraceTest, PrintsCppThatCompiles) {
  std::string text = "#include \"schedule/schedule.h\"\n";
  for (const PrimitiveDef* def : all_primitives())
    for (size_t k = 0; k < def->samples.size(); ++k) {
      const PrimitiveSample& sample = def->samples[k];
      const Schedule schedule = make_schedule(sample_workload(sample.workload).workload, sample.steps);
      text += trace_to_cpp(trace_of(schedule), def->name + "_" + std::to_string(k));
    }
  Trace quoted;
  quoted.steps = {{"compute_inline",
                   {{"stage", std::string("a \"b\" \\ \n \x01"
                                          "7 ?\?/")}}}};
  text += trace_to_cpp(quoted, "quoted");
  EXPECT_NE(text.find("s.split(\"C\", \"i0\", 6, \"io\", \"ii\", tensmith::Tail::kPeel);"), std::string::npos) << text;
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("tensmith_trace_" + std::to_string(getpid()) + ".cpp");
  std::ofstream(path) << text;
  const int result =
      std::system(("g++ -std=c++20 -fsyntax-only -Wall -Wextra -Werror -I" TS_SOURCE_DIR " " + path.string()).c_str());
  std::filesystem::remove(path);
  EXPECT_EQ(result, 0) << text;
}

}  // namespace
}  // namespace tensmith
