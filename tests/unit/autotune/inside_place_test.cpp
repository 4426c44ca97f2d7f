/// Products whose results are read in windows or by rows: computed row by row where they are needed.
#include "autotune/inside_place.h"

#include <gtest/gtest.h>

#include "autotune/space/space.h"
#include "tests/support/workloads.h"
#include "tests/unit/schedule/check_schedule.h"

namespace tensmith {
namespace {

/// A 1x1 convolution with relu from `c` to `o` channels and the largest value of each 3x3 window. Shapes: X [1, c, h,
/// w], Y [1, o, h / stride, w / stride] rounded up.
Workload product_and_pool(int64_t c, int64_t o, int64_t h, int64_t w, int64_t stride) {
  const Tensor x = placeholder("X", {1, c, h, w}, kFloat32), weights = placeholder("W", {o, c}, kFloat32, true);
  const Tensor product = sum("P", {1, o, h, w}, {c}, [&](const Indices& i, const Indices& r) {
    return x(i[0], r[0], i[2], i[3]) * weights(i[1], r[0]);
  });
  const Tensor e = compute("E", {1, o, h, w}, [&](const Indices& i) {
    return max(product(i[0], i[1], i[2], i[3]), make_const(kFloat32, 0));
  });
  const auto at = [&](const Indices& i, const Indices& r, int d) { return i[d] * stride + r[d - 2] - 1; };
  const Tensor y = reduce(
      "Y", {1, o, (h + stride - 1) / stride, (w + stride - 1) / stride}, {3, 3}, max_reducer(kFloat32),
      [&](const Indices& i, const Indices& r) { return e(i[0], i[1], at(i, r, 2), at(i, r, 3)); },
      [&](const Indices& i, const Indices& r) {
        return at(i, r, 2) >= 0 && at(i, r, 2) < h && at(i, r, 3) >= 0 && at(i, r, 3) < w;
      });
  return make_workload("product_and_pool", {x, weights}, {y});
}

struct Setting {
  const char* target;
  int threads;
};

class InsidePlaces : public testing::TestWithParam<Setting> {
 protected:
  ScheduleRequest request(const Layout& layout, size_t inputs) const {
    ScheduleRequest request;
    request.target = Target::parse(GetParam().target).value();
    request.threads = GetParam().threads;
    if (!layout.dims().empty()) {
      request.input_layouts.assign(inputs, Layout());
      request.input_layouts[0] = layout;
      request.output_layouts = {layout};
    }
    return request;
  }
};

TEST_P(InsidePlaces, ChainsOfWindowsAreRightInAnyLayout) {
  for (const auto& [c, expanded, o, h, w] : {std::array<int64_t, 5>{5, 20, 7, 13, 11}, {3, 32, 16, 9, 30}})
    for (const Layout& layout : {Layout(), Layout::permuted({1, 2, 0})}) {
      std::string why;
      const Schedule schedule =
          default_schedule(expand_depthwise_project_workload(c, expanded, o, h, w), request(layout, 4), &why);
      const std::optional<std::string> wrong = difference(schedule, {});
      EXPECT_FALSE(wrong.has_value()) << wrong.value_or("") << "\n" << why << schedule.to_string();
    }
}

TEST_P(InsidePlaces, RowsOfAProductRollUnderAPool) {
  const Layout last = Layout::permuted({0, 2, 3, 1});
  for (const int64_t stride : {1, 2})
    for (const auto& [h, w] : {std::array<int64_t, 2>{14, 14}, {9, 31}, {3, 2}}) {
      std::string why;
      const Schedule schedule = default_schedule(product_and_pool(5, 32, h, w, stride), request(last, 2), &why);
      const std::optional<std::string> wrong = difference(schedule, {});
      EXPECT_FALSE(wrong.has_value()) << wrong.value_or("") << "\n" << why << schedule.to_string();
      if (h < 9) continue;
      EXPECT_NE(why.find("E: computed at loop"), std::string::npos) << why;
      // The share of a thread may fit as it is.
      if (GetParam().threads > 1) continue;
      EXPECT_NE(schedule.to_string().find("rolling_buffer stage=E"), std::string::npos) << schedule.to_string();
    }
}

TEST_P(InsidePlaces, AttentionTakesRowsThroughBothProducts) {
  for (const auto& [batches, rows, places, depth, width] :
       {std::array<int64_t, 5>{3, 45, 70, 16, 32}, {2, 33, 1024, 4, 8}, {5, 16, 16, 8, 24}}) {
    std::string why;
    const Schedule schedule =
        default_schedule(attention_workload(batches, rows, places, depth, width), request({}, 4), &why);
    // Threads that share few rows would compute some of them twice.
    const bool placed = batches >= GetParam().threads;
    for (const char* stage : {"shares", "scores"})
      EXPECT_TRUE(!placed || why.find(std::string(stage) + ": computed at loop ") != std::string::npos) << why;
    const std::optional<std::string> wrong = difference(schedule, {});
    EXPECT_FALSE(wrong.has_value()) << wrong.value_or("") << "\n" << why << schedule.to_string();
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, InsidePlaces,
                         testing::Values(Setting{"znver3", 1}, Setting{"znver3", 3}, Setting{"sapphirerapids", 1},
                                         Setting{"sapphirerapids", 2}, Setting{"x86-64-v2", 1}, Setting{"aarch64", 1}),
                         [](const testing::TestParamInfo<Setting>& info) {
                           std::string name = std::string(info.param.target) + "_" + std::to_string(info.param.threads);
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(InsidePlace, NothingIsLikedThatDoesNotFitOrIsNoProduct) {
  const Workload workload = product_and_pool(5, 32, 14, 14, 1);
  ScheduleRequest request;
  request.target = Target::parse("sapphirerapids").value();
  const Layout last = Layout::permuted({0, 2, 3, 1});
  request.input_layouts = {last, Layout()};
  request.output_layouts = {last};
  request.target.l2_bytes = 4 << 10;  // three rows of 14 pixels of 32 channels are 5.4 KB
  std::string why;
  default_schedule(workload, request, &why);
  EXPECT_EQ(why.find("E: computed at loop"), std::string::npos) << why;
  // A row's maximum is no product: softmax stays as its own rule has it.
  std::string rows;
  request.input_layouts = request.output_layouts = {};
  default_schedule(softmax_workload(12, 64), request, &rows);
  EXPECT_EQ(rows.find("computed at loop"), std::string::npos) << rows;
}

// Compute locations are decisions: the search may leave the stage at root or put it elsewhere, and all of it is right.
TEST(InsidePlace, IsADecisionOfTheSpace) {
  const Layout last = Layout::permuted({0, 2, 3, 1});
  ScheduleRequest request;
  request.target = Target::parse("sapphirerapids").value();
  request.input_layouts = {last, Layout()};
  request.output_layouts = {last};
  const Space space(product_and_pool(5, 32, 9, 11, 1), request);
  size_t places = 0;
  for (const ChosenPoint& chosen : space_summary(space, 1).points)
    if (chosen.point.name() == "E.at") places = chosen.point.options.size();
  ASSERT_GE(places, 3u);
  Rng rng(3);
  for (int k = 0; k < 40; ++k) {
    const Result<Candidate> candidate = sample(space, rng, Draw::kUniform);
    ASSERT_TRUE(candidate.ok()) << candidate.failure().message;
    const std::optional<std::string> wrong = difference(candidate->schedule, {});
    EXPECT_FALSE(wrong.has_value()) << wrong.value_or("") << "\n" << candidate->schedule.to_string();
  }
}

// It was taken for something that moves along its first dim.
TEST(InsidePlace, ASingleValueCannotRoll) {
  const Tensor x = placeholder("X", {9}, kFloat32);
  const Tensor s = compute("S", {}, [&](const Indices&) { return x(Expr(3)) * make_const(kFloat32, 2); });
  const Tensor y = compute("Y", {9}, [&](const Indices& i) { return x(i[0]) + s(); });
  Schedule schedule(make_workload("value", {x}, {y}));
  schedule.compute_at("S", "Y", "i0");
  EXPECT_TRUE(can_lower(schedule));
  EXPECT_FALSE(can_roll(schedule, "S"));
}

}  // namespace
}  // namespace tensmith
