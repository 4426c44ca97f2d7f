// Which schedules hold up in runs of the whole model, and that records tell of it so that the compiler follows.
#include "apps/driver/in_model.h"

#include <gtest/gtest.h>

#include "apps/driver/compile.h"
#include "apps/driver/export.h"
#include "apps/driver/op_graph.h"

namespace tensmith {
namespace {

TuningRecord record_of(const std::string& step, double us, double default_us, RecordStanding standing) {
  TuningRecord record;
  record.key.workload = "w";
  record.steps = {Step{step, {}}};
  record.times_us = {us * 0.99, us, us * 1.01};
  record.default_us = default_us;
  record.standing = standing;
  return record;
}

/// `kernel_us` of one kernel by program, the same in each round but for a disturbance of all programs.
std::vector<InModelTimes> times_of(const std::vector<double>& us) {
  std::vector<InModelTimes> times(us.size());
  for (size_t p = 0; p < us.size(); ++p) {
    times[p].kernel_us.resize(1);
    for (int round = 0; round < 20; ++round) {
      const double load = 1 + 0.3 * (round % 3);
      times[p].kernel_us[0].push_back(us[p] * load);
      times[p].whole_us.push_back(2 * us[p] * load);
    }
  }
  return times;
}

std::vector<const TuningRecord*> pointers(const std::vector<TuningRecord>& records) {
  std::vector<const TuningRecord*> list;
  for (const TuningRecord& record : records) list.push_back(&record);
  return list;
}

TEST(InModel, RivalsAreWhatAComparisonFoundBetter) {
  const std::vector<TuningRecord> records = {
      record_of("default", 10, 10, RecordStanding::kTrial), record_of("lucky", 6, 10, RecordStanding::kTrial),
      record_of("a", 9, 10, RecordStanding::kCompared),     record_of("b", 8, 10, RecordStanding::kWinner),
      record_of("slow", 11, 10, RecordStanding::kCompared), record_of("c", 8.5, 10, RecordStanding::kCompared)};
  const auto rivals = rivals_of_default(pointers(records), 3);
  ASSERT_EQ(rivals.size(), 3u);
  EXPECT_EQ(rivals[0], &records[3]);
  EXPECT_EQ(rivals[1], &records[5]);
  EXPECT_EQ(rivals[2], &records[2]);
  EXPECT_EQ(rivals_of_default(pointers(records), 1).size(), 1u);
  // What an interrupted run left unconfirmed is what the compiler would take.
  const std::vector<TuningRecord> trials = {record_of("default", 10, 10, RecordStanding::kTrial),
                                            record_of("x", 7, 10, RecordStanding::kTrial)};
  ASSERT_EQ(rivals_of_default(pointers(trials), 3).size(), 1u);
  EXPECT_EQ(rivals_of_default(pointers(trials), 3)[0], &trials[1]);
}

TEST(InModel, TheVerdictIsWhatTheCompilerTakesNext) {
  const std::vector<TuningRecord> file = {
      record_of("default", 10, 10, RecordStanding::kTrial), record_of("default", 10, 10, RecordStanding::kWinner),
      record_of("a", 9, 10, RecordStanding::kCompared), record_of("b", 8, 10, RecordStanding::kWinner)};
  const auto rivals = rivals_of_default(pointers(file), 3);
  struct Case {
    std::vector<double> us;  // of the default, b, a
    const char* taken;
    double ratio;
  };
  // Alone b was best; in the model it is, a is, neither is, and the gain is next to nothing.
  for (const Case& c : {Case{{20, 17, 18}, "b", 20.0 / 17}, Case{{20, 21, 19}, "a", 20.0 / 19},
                        Case{{20, 20.5, 20.1}, "default", 1}, Case{{20, 19.99, 21}, "b", 20 / 19.99}}) {
    const std::vector<InModelTimes> times = times_of(c.us);
    const InModelVerdict verdict = judge_in_model(times, 0, 2);
    EXPECT_EQ(verdict.ratios.size(), 2u);
    std::vector<TuningRecord> all = file;
    for (TuningRecord& record : verdict_records(verdict, rivals, file[0], times, 0, 4))
      all.push_back(std::move(record));
    const TuningRecord* taken = record_to_take(pointers(all));
    ASSERT_NE(taken, nullptr);
    EXPECT_EQ(taken->steps[0].primitive, c.taken);
    EXPECT_EQ(taken->standing, RecordStanding::kWinner);
    EXPECT_NEAR(taken->gain(), c.ratio, 1e-9);
    // Of a call, of which there are four.
    EXPECT_NEAR(taken->time_us() * 4, c.us[0] * 1.3 / c.ratio, 0.2);
  }
}

TEST(InModel, NoiseMakesNoWinner) {
  std::vector<InModelTimes> times = times_of({20, 20, 20});
  // The same work, a little up and down; the middle of the pairs lies above 1 by chance.
  for (size_t round = 0; round < times[1].kernel_us[0].size(); ++round) {
    times[1].kernel_us[0][round] *= round % 2 ? 1.04 : 0.95;
    times[2].kernel_us[0][round] *= round % 5 < 3 ? 0.999 : 1.001;
  }
  EXPECT_EQ(judge_in_model(times, 0, 2).taken, 0u);
}

TEST(InModel, ProgramsTakeTurnsAndCallsAreTimedByKernel) {
  CompileOptions options;
  options.threads = 1;
  graph::Graph graph = graph_of_op("layer_norm:16x64").value();
  const auto program = std::make_shared<const CompiledProgram>(compile_graph(graph, options));
  const Module module = load_program(program);
  InstanceOptions one;
  one.threads = 1;
  std::vector<InModelSide> sides;
  for (int k = 0; k < 2; ++k) {
    Instance instance = module.create(one).value();
    std::vector<HostTensor> inputs;
    for (const PortSpec& port : program->inputs) inputs.emplace_back(port.shape, port.dtype);
    std::vector<HostTensor> outputs = instance.run(inputs).value();
    sides.push_back({program.get(), std::move(instance), std::move(inputs), std::move(outputs)});
  }
  InModelLimits limits;
  limits.seconds = 0;
  limits.min_rounds = limits.max_rounds = 7;
  const std::vector<InModelTimes> times = time_in_model(sides, limits).value();
  ASSERT_EQ(times.size(), 2u);
  for (const InModelTimes& side : times) {
    ASSERT_EQ(side.whole_us.size(), 7u);
    ASSERT_EQ(side.kernel_us.size(), program->kernels.size());
    for (size_t round = 0; round < 7; ++round) {
      double sum = 0;
      for (const std::vector<double>& kernel : side.kernel_us) sum += kernel.at(round);
      EXPECT_GT(sum, 0);
      EXPECT_LE(sum, side.whole_us[round]);
    }
  }
  limits.time_calls = false;
  EXPECT_TRUE(time_in_model(sides, limits).value()[0].kernel_us.empty());
  // Who has enough is heard behind every turn and gets the rounds that all programs had.
  size_t turns = 0;
  limits.time_calls = true;
  limits.go_on = [&](size_t rounds, double) {
    EXPECT_EQ(rounds, (turns + 1) / 2);
    return ++turns < 6;
  };
  const std::vector<InModelTimes> some = time_in_model(sides, limits).value();
  EXPECT_EQ(turns, 6u);
  for (const InModelTimes& side : some) {
    EXPECT_EQ(side.whole_us.size(), 3u);
    for (const std::vector<double>& kernel : side.kernel_us) EXPECT_EQ(kernel.size(), 3u);
  }
}

}  // namespace
}  // namespace tensmith
