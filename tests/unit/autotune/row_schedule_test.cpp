/// Kernels that reduce along rows: any length of a row, any number of rows.
#include <gtest/gtest.h>

#include "autotune/default_schedule.h"
#include "tests/support/workloads.h"
#include "tests/unit/schedule/check_schedule.h"

namespace tensmith {
namespace {

class RowSchedule : public testing::TestWithParam<const char*> {};

TEST_P(RowSchedule, RowsOfAnyLength) {
  ScheduleRequest request;
  request.target = Target::parse(GetParam()).value();
  for (const int threads : {1, 2}) {
    request.threads = threads;
    for (const int64_t rows : {1, 6, 7, 12, 13})
      for (const int64_t columns : {1, 2, 3, 5, 7, 12, 16, 17, 31, 64, 77, 100, 130}) {
        for (const Workload& workload : {softmax_workload(rows, columns), layer_norm_workload(rows, columns)}) {
          const Schedule schedule = default_schedule(workload, request);
          const std::optional<std::string> wrong = difference(schedule, {});
          EXPECT_FALSE(wrong.has_value()) << rows << " x " << columns << ": " << wrong.value_or("") << "\n"
                                          << schedule.to_string();
        }
      }
  }
}

TEST_P(RowSchedule, ShortRowsGoTogetherInVectors) {
  ScheduleRequest request;
  request.target = Target::parse(GetParam()).value();
  const std::string steps = default_schedule(softmax_workload(384, 128), request).to_string();
  EXPECT_NE(steps.find("split stage=Y loop=i0 factor=8"), std::string::npos) << steps;
  const auto together = [&](int64_t rows, int64_t columns) {
    const std::string text = default_schedule(softmax_workload(rows, columns), request).to_string();
    const std::string head = "split stage=Y loop=i0 factor=";
    const size_t at = text.find(head);
    return at == std::string::npos ? 1 : std::atoi(text.c_str() + at + head.size());
  };
  // As many as divide, if those are not much fewer; else some are left over.
  EXPECT_EQ(together(30, 128), 6);
  EXPECT_EQ(together(25, 128), 5);
  EXPECT_EQ(together(197, 128), 8);
  EXPECT_EQ(together(5, 128), 5);
  // Long rows leave L1 between one stage and the next.
  EXPECT_LE(together(64, 1024), 3);
  EXPECT_EQ(together(64, 8192), 1);
  // Less than a vector: masked lanes, not scalars.
  std::string why;
  default_schedule(softmax_workload(384, 7), request, &why);
  EXPECT_NE(why.find("row reduction in 1 x "), std::string::npos) << why;
}

// Partial sums of a few steps would leave most lanes empty.
TEST_P(RowSchedule, ShortReductionsHaveTheirResultsInLanes) {
  ScheduleRequest request;
  request.target = Target::parse(GetParam()).value();
  const auto sums = [](int64_t rows, int64_t steps, bool padded) {
    const Tensor x = placeholder("X", {rows, steps}, kFloat32);
    const auto value = [&](const Indices& i, const Indices& r) { return x(i[0], r[0]); };
    const Tensor y = padded ? reduce("Y", {rows}, {steps}, sum_reducer(kFloat32), value,
                                     [](const Indices& i, const Indices& r) { return i[0] + r[0] >= 1; })
                            : sum("Y", {rows}, {steps}, value);
    return make_workload("sums", {x}, {y});
  };
  const auto in_partials = [&](const Workload& workload) {
    const Schedule schedule = default_schedule(workload, request);
    EXPECT_FALSE(difference(schedule, {}).has_value());
    const std::string steps = schedule.to_string();
    EXPECT_NE(steps.find("vectorize"), std::string::npos) << steps;
    return steps.find("rfactor") != std::string::npos;
  };
  const int lanes = request.target.vector_bits / 32;
  EXPECT_EQ(in_partials(sums(100, 3, false)), 2 * 3 >= lanes);
  EXPECT_TRUE(in_partials(sums(100, 40, false)));
  // Where some lanes pass over a step, they are loaded one by one.
  EXPECT_TRUE(in_partials(sums(100, 3, true)));
}

INSTANTIATE_TEST_SUITE_P(Targets, RowSchedule, testing::Values("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace tensmith
