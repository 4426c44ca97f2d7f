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
  EXPECT_GT(tile.efficiency, 0.85);
  problem.lanes = 16;
  EXPECT_GT(choose_register_tile(problem, target_of("sapphirerapids")).efficiency, 0.88);
  // Vectors that come from L2 again for each row tile cost a little.
  problem.steps = 4096;
  EXPECT_LT(choose_register_tile(problem, target_of("sapphirerapids")).efficiency, 0.92);
}

TEST(RegisterTile, RowsComeOutEven) {
  // 128 rows are nine tiles of 13 and one of 11; tiles of 14 would leave two rows, which wait for the FMA latency.
  TileProblem problem;
  problem.rows = 128;
  problem.columns = 768;
  problem.lanes = 16;
  problem.steps = 768;
  const RegisterTile tile = choose_register_tile(problem, target_of("sapphirerapids"));
  EXPECT_EQ(tile.rows, 13);
  EXPECT_EQ(tile.vectors, 2);
}

TEST(RegisterTile, FewRowsReadTheVectorsOnce) {
  TileProblem problem;
  problem.rows = 8;
  problem.columns = 768;
  problem.lanes = 16;
  problem.steps = 768;
  EXPECT_EQ(choose_register_tile(problem, target_of("sapphirerapids")).rows, 8);
}

// Two filters over short lines of pixels: so many lines that additions do not wait for each other. Each line reads
// vectors of its own.
TEST(RegisterTile, LinesOfPixelsHideTheLatency) {
  TileProblem problem;
  problem.rows = 2 * 20;
  problem.row_multiple = problem.line_rows = 2;
  problem.columns = 16;
  problem.lanes = 16;
  problem.steps = 200;
  const RegisterTile tile = choose_register_tile(problem, target_of("sapphirerapids"));
  EXPECT_GE(tile.rows, 8);
  EXPECT_EQ(tile.rows % 2, 0);
}

TEST(RegisterTile, TilesOfRowsAreEven) {
  TileProblem problem;
  problem.columns = 768;
  problem.lanes = 16;
  problem.steps = 768;
  for (const int64_t rows : {16, 20, 24}) {
    problem.rows = rows;
    EXPECT_EQ(choose_register_tile(problem, target_of("sapphirerapids")).rows, rows / 2);
  }
}

TEST(RegisterTile, DepthwiseLeavesRoomForWeightsAndSharedInputs) {
  TileProblem problem;
  problem.rows = 28;
  problem.columns = 192;
  problem.row_loads = 0;
  problem.element_loads = 0.4;
  problem.shared_rows = 2;
  problem.steps = 9;
  for (const char* name : {"sapphirerapids", "znver3"}) {
    const Target target = target_of(name);
    problem.lanes = target.lanes(4);
    const RegisterTile tile = choose_register_tile(problem, target);
    EXPECT_LE(2 * tile.rows * tile.vectors + 2, target.vector_registers) << name;
    EXPECT_GE(tile.rows * tile.vectors, 4) << name;
  }
}

TEST(RegisterTile, RowsThatShareCacheSetsStayFew) {
  TileProblem problem;
  problem.rows = 56;
  problem.columns = 256;
  problem.lanes = 16;
  problem.rows_conflict = true;
  EXPECT_LE(choose_register_tile(problem, target_of("znver4")).rows, 8);
  EXPECT_LE(choose_register_tile(problem, target_of("sapphirerapids")).rows, 8);
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

TEST_P(DefaultSchedule, LongSumsComeInPieces) {
  ScheduleRequest request;
  request.target = target_of(GetParam().target);
  request.threads = GetParam().threads;
  for (const auto& [depth, pieces] : {std::pair<int64_t, bool>{256, false}, {576, true}, {1024, true}, {3072, true}}) {
    const Tensor a = placeholder("A", {7, depth}, kFloat32), b = placeholder("B", {depth, 40}, kFloat32, true);
    const Tensor c =
        sum("C", {7, 40}, {depth}, [&](const Indices& i, const Indices& r) { return a(i[0], r[0]) * b(r[0], i[1]); });
    const Schedule schedule = default_schedule(make_workload("product", {a, b}, {c}), request);
    EXPECT_EQ(schedule.to_string().find("key=piece") != std::string::npos, pieces) << schedule.to_string();
    const std::optional<std::string> wrong = difference(schedule, {});
    EXPECT_FALSE(wrong.has_value()) << wrong.value_or("") << "\n" << schedule.to_string();
  }
}

TEST_P(DefaultSchedule, BlockedChannels) {
  ScheduleRequest request;
  request.target = target_of(GetParam().target);
  request.threads = GetParam().threads;
  const int lanes = request.target.lanes(4);
  const Layout blocks = Layout::blocked({0, 1, 2, 3}, 1, lanes);
  for (const ConvShape& shape :
       {ConvShape{1, 2 * lanes, 9, 11, 3 * lanes, 3, 1, 1}, ConvShape{1, 3 * lanes, 7, 7, 2 * lanes, 1, 1, 0},
        ConvShape{1, 20, 8, 7, 24, 3, 2, 1}}) {
    request.input_layouts = {blocks, Layout()};
    request.output_layouts = {blocks};
    for (const Workload& workload : {conv_workload(shape), depthwise_workload(shape)}) {
      const Schedule schedule = default_schedule(workload, request);
      const std::optional<std::string> wrong = difference(schedule, {});
      EXPECT_FALSE(wrong.has_value()) << wrong.value_or("") << "\n" << schedule.to_string();
    }
    // Weights are packed in the order of the walk: one block of channels after the other.
    const std::string steps = default_schedule(conv_workload(shape), request).to_string();
    EXPECT_EQ(steps.find("split stage=Y_acc loop=r0 factor=" + std::to_string(lanes)) != std::string::npos,
              shape.c % lanes == 0)
        << steps;
  }
}

TEST_P(DefaultSchedule, SmallCachesMakeBlocksOfRowsAndColumns) {
  ScheduleRequest request;
  request.target = target_of(GetParam().target);
  request.target.l1_bytes = 2 << 10;
  request.target.l2_bytes = 32 << 10;
  request.threads = GetParam().threads;
  const Layout last = Layout::permuted({0, 2, 3, 1});
  request.input_layouts = {last, Layout()};
  request.output_layouts = {last};
  bool chunks = false;
  for (const ConvShape& shape : {ConvShape{1, 64, 7, 7, 20, 3, 1, 1}, ConvShape{1, 40, 5, 6, 40, 3, 1, 1}})
    for (const Workload& workload : {conv_workload(shape), depthwise_workload(shape)}) {
      std::string why;
      const Schedule schedule = default_schedule(workload, request, &why);
      chunks |= why.find("columns at a time") != std::string::npos;
      const std::optional<std::string> wrong = difference(schedule, {});
      EXPECT_FALSE(wrong.has_value()) << wrong.value_or("") << "\n" << schedule.to_string();
    }
  EXPECT_TRUE(chunks);
  // Rows in blocks, each of which passes over all vectors.
  request.input_layouts = request.output_layouts = {};
  request.target.l2_bytes = 64 << 10;
  const Schedule product = default_schedule(dense_workload(200, 256, 48), request);
  EXPECT_NE(product.to_string().find("outer=i0.o.b"), std::string::npos) << product.to_string();
  const std::optional<std::string> wrong = difference(product, {});
  EXPECT_FALSE(wrong.has_value()) << wrong.value_or("") << "\n" << product.to_string();
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

// One output channel has no vectors of its own: the input channels of a place are what lanes run over.
TEST_P(DefaultSchedule, OneOutputChannel) {
  ScheduleRequest request;
  request.target = target_of(GetParam().target);
  request.threads = GetParam().threads;
  const Layout last = Layout::permuted({0, 2, 3, 1});
  request.input_layouts = {last, Layout()};
  for (const ConvShape& shape : {ConvShape{1, 32, 6, 7, 1, 5, 1, 2}, ConvShape{1, 19, 5, 9, 1, 3, 2, 1}}) {
    std::string why;
    const Schedule schedule = default_schedule(conv_workload(shape), request, &why);
    EXPECT_NE(why.find("lanes"), std::string::npos) << why;
    const std::optional<std::string> wrong = difference(schedule, {});
    EXPECT_FALSE(wrong.has_value()) << wrong.value_or("") << "\n" << schedule.to_string();
  }
}

// Row-major images in, channels-last ones out: turned as a whole before the taps, which then run in vectors of
// channels.
TEST_P(DefaultSchedule, DepthwiseTapsOverRowMajorImages) {
  ScheduleRequest request;
  request.target = target_of(GetParam().target);
  request.threads = GetParam().threads;
  request.output_layouts = {Layout::permuted({0, 2, 3, 1})};
  for (const ConvShape& shape : {ConvShape{1, 32, 12, 9, 32, 3, 1, 1}, ConvShape{2, 19, 7, 8, 19, 3, 2, 1},
                                 ConvShape{1, 17, 6, 11, 17, 5, 1, 2}}) {
    std::string why;
    const Schedule schedule = default_schedule(depthwise_workload(shape), request, &why);
    EXPECT_NE(why.find("_turned"), std::string::npos) << why;
    EXPECT_NE(why.find("tile "), std::string::npos) << why;
    const std::optional<std::string> wrong = difference(schedule, {});
    EXPECT_FALSE(wrong.has_value()) << wrong.value_or("") << "\n" << schedule.to_string();
  }
  // Nothing is read twice: turning would cost as much as the work.
  std::string why;
  (void)default_schedule(depthwise_workload(ConvShape{1, 32, 12, 8, 32, 2, 2, 0}), request, &why);
  EXPECT_EQ(why.find("_turned"), std::string::npos) << why;
}

// Channels of the result share the pixels, rows of pixels would read them again for each channel.
TEST_P(DefaultSchedule, PointsOverPlanesHaveRowsOfChannels) {
  ScheduleRequest request;
  request.target = target_of(GetParam().target);
  request.threads = GetParam().threads;
  const Schedule schedule = default_schedule(conv_workload(ConvShape{1, 24, 9, 32, 12, 1, 1, 0}), request);
  const std::optional<std::string> wrong = difference(schedule, {});
  EXPECT_FALSE(wrong.has_value()) << wrong.value_or("") << "\n" << schedule.to_string();
  EXPECT_NE(schedule.to_string().find("rows=i1 "), std::string::npos) << schedule.to_string();
}

// Planes with few filters: a tile takes several lines of pixels. In strides, and one channel a result, pixels are
// picked out of whole vectors.
TEST_P(DefaultSchedule, FewFiltersOverPlanes) {
  ScheduleRequest request;
  request.target = target_of(GetParam().target);
  request.threads = GetParam().threads;
  for (const ConvShape& shape : {ConvShape{1, 6, 13, 17, 3, 3, 1, 0}, ConvShape{2, 5, 15, 12, 2, 3, 2, 0},
                                 ConvShape{1, 9, 31, 35, 4, 5, 3, 0}}) {
    std::string why;
    const Schedule schedule = default_schedule(conv_workload(shape), request, &why);
    const std::optional<std::string> wrong = difference(schedule, {});
    EXPECT_FALSE(wrong.has_value()) << wrong.value_or("") << "\n" << schedule.to_string();
    // Of shorter vectors a line gives enough by itself.
    if (request.target.vector_bits == 512) {
      EXPECT_NE(schedule.to_string().find("rows=i2,i1"), std::string::npos) << why << schedule.to_string();
    }
  }
  for (const ConvShape& shape : {ConvShape{1, 6, 15, 21, 6, 3, 2, 1}, ConvShape{2, 3, 19, 26, 3, 5, 3, 2}}) {
    std::string why;
    const Schedule schedule = default_schedule(depthwise_workload(shape), request, &why);
    EXPECT_NE(why.find("tile "), std::string::npos) << why;
    const std::optional<std::string> wrong = difference(schedule, {});
    EXPECT_FALSE(wrong.has_value()) << wrong.value_or("") << "\n" << schedule.to_string();
  }
}

// A row of 75 KB between the stages of a softmax lies on the stack of the thread.
TEST(DefaultSchedule, LongRowsOnTheStack) {
  ScheduleRequest request;
  request.target = Target::host();
  request.threads = 2;
  RunOptions run;
  run.code = true;
  const Schedule schedule = default_schedule(softmax_workload(3, 18710), request);
  const std::optional<std::string> wrong = difference(schedule, {}, run);
  EXPECT_FALSE(wrong.has_value()) << wrong.value_or("") << "\n" << schedule.to_string();
}

TEST(DefaultSchedule, SameRequestSameSteps) {
  ScheduleRequest request;
  request.target = target_of("znver3");
  const Workload workload = dense_workload(37, 100, 64);
  EXPECT_EQ(default_schedule(workload, request).steps(), default_schedule(workload, request).steps());
}

// Each squaring doubles what its reader would hold if all were put into it: scheduling such a chain once did not end.
TEST(DefaultSchedule, ChainsOfSquaresStaySmall) {
  const Tensor x = placeholder("X", {4, 8}, kFloat32);
  Tensor v = x;
  for (int k = 0; k < 24; ++k) {
    const Tensor before = v;
    v = compute("S" + std::to_string(k), {4, 8}, [&](const Indices& i) { return before(i) * before(i); });
  }
  const Tensor y = sum("Y", {4}, {8}, [&](const Indices& i, const Indices& r) { return v(i[0], r[0]); });
  ScheduleRequest request;
  request.target = Target::parse("x86-64-v3").value();
  const Schedule schedule = default_schedule(make_workload("squares", {x}, {y}), request);
  EXPECT_EQ(difference(schedule, {}).value_or(""), "");
}

}  // namespace
}  // namespace tensmith
