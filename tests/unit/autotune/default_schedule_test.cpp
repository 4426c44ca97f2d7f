#include "autotune/default_schedule.h"

#include <gtest/gtest.h>

#include "autotune/register_tile.h"
#include "tests/support/workloads.h"
#include "tests/unit/schedule/check_schedule.h"

namespace tensmith {
namespace {

Target target_of(const char* text) {
  Result<Target> target = Target::parse(text);
  TS_CHECK(target.ok()) << text;
  return *target;
}

TEST(RegisterTile, FitsTheRegisters) {
  for (const char* name : {"x86-64-v2", "znver3", "znver4", "sapphirerapids", "aarch64"}) {
    const Target target = target_of(name);
    for (int64_t rows : {1, 2, 7, 56, 128})
      for (int64_t columns : {1, 5, 16, 24, 100, 768}) {
        TileProblem problem;
        problem.rows = rows;
        problem.columns = columns;
        problem.lanes = target.lanes(4);
        const RegisterTile tile = choose_register_tile(problem, target);
        EXPECT_GE(tile.rows, 1);
        EXPECT_LE(tile.rows, rows);
        EXPECT_LE(tile.rows * tile.vectors + tile.vectors + 1, target.vector_registers)
            << name << " " << rows << "x" << columns;
        EXPECT_LE(tile.efficiency, 1.0);
      }
  }
}

TEST(RegisterTile, LargeProductsComeNearThePeak) {
  // Sixteen registers hold at most 12 accumulators beside the vectors of a step: 6 x 2 or 4 x 3.
  TileProblem problem;
  problem.rows = 384;
  problem.columns = 768;
  problem.lanes = 8;
  const RegisterTile tile = choose_register_tile(problem, target_of("znver3"));
  EXPECT_EQ(tile.rows * tile.vectors, 12);
  EXPECT_GT(tile.efficiency, 0.9);
  problem.lanes = 16;
  EXPECT_GT(choose_register_tile(problem, target_of("sapphirerapids")).efficiency, 0.95);
}

TEST(RegisterTile, RowsThatShareCacheSetsStayFew) {
  TileProblem problem;
  problem.rows = 56;
  problem.columns = 256;
  problem.lanes = 16;
  problem.rows_conflict = true;
  EXPECT_LE(choose_register_tile(problem, target_of("znver4")).rows, 8);
}

struct Setting {
  const char* target;
  int threads;
};

class DefaultSchedule : public testing::TestWithParam<Setting> {};

TEST_P(DefaultSchedule, ComputesWhatTheWorkloadSays) {
  for (const WorkloadCase& c : workload_cases()) {
    ScheduleRequest request;
    request.target = target_of(GetParam().target);
    request.threads = GetParam().threads;
    const Schedule schedule = default_schedule(c.workload, request);
    const std::optional<std::string> wrong = difference(schedule, c.dims);
    EXPECT_FALSE(wrong.has_value()) << c.name << ": " << wrong.value_or("") << "\n" << schedule.to_string();
  }
}

TEST_P(DefaultSchedule, ChannelsLastConvolutions) {
  ScheduleRequest request;
  request.target = target_of(GetParam().target);
  request.threads = GetParam().threads;
  const Layout last = Layout::permuted({0, 2, 3, 1});
  for (const ConvShape& shape : {ConvShape{1, 3, 9, 11, 20, 3, 1, 1}, ConvShape{2, 17, 7, 7, 33, 1, 1, 0},
                                 ConvShape{1, 5, 15, 16, 8, 5, 2, 2}}) {
    request.input_layouts = {last, Layout()};
    request.output_layouts = {last};
    for (const Workload& workload : {conv_workload(shape), depthwise_workload(shape)}) {
      const Schedule schedule = default_schedule(workload, request);
      const std::optional<std::string> wrong = difference(schedule, {});
      EXPECT_FALSE(wrong.has_value()) << wrong.value_or("") << "\n" << schedule.to_string();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, DefaultSchedule,
                         testing::Values(Setting{"znver3", 1}, Setting{"znver3", 2}, Setting{"sapphirerapids", 1},
                                         Setting{"x86-64-v2", 1}),
                         [](const testing::TestParamInfo<Setting>& info) {
                           std::string name = info.param.target;
                           for (char& c : name)
                             if (c == '-') c = '_';
                           return name + "_" + std::to_string(info.param.threads);
                         });

TEST(DefaultSchedule, SameRequestSameSteps) {
  ScheduleRequest request;
  request.target = target_of("znver3");
  const Workload workload = dense_workload(37, 100, 64);
  EXPECT_EQ(default_schedule(workload, request).steps(), default_schedule(workload, request).steps());
}

}  // namespace
}  // namespace tensmith
