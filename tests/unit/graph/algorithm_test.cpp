// Winograd tiles and the choice of them; weights that are too small to count.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "graph/interpret.h"
#include "graph/ops/winograd.h"
#include "graph/passes/choose_algorithm.h"
#include "graph/passes/flush_subnormals.h"

namespace tensmith::graph {
namespace {

std::vector<double> random_values(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> values(count);
  for (double& v : values) v = static_cast<float>(uniform(random));
  return values;
}

TEST(Winograd, FiltersALine) {
  for (int tile : {2, 4}) {
    const Winograd& t = winograd(tile);
    const std::vector<double> d = random_values(t.points, 1), w = random_values(kWinogradKernel, 2);
    for (int y = 0; y < tile; ++y) {
      double direct = 0, sum = 0;
      for (int k = 0; k < kWinogradKernel; ++k) direct += d[y + k] * w[k];
      for (int p = 0; p < t.points; ++p) {
        double left = 0, right = 0;
        for (int k = 0; k < t.points; ++k) left += t.input[p][k] * d[k];
        for (int k = 0; k < kWinogradKernel; ++k) right += t.weights[p][k] * w[k];
        sum += t.output[y][p] * left * right;
      }
      EXPECT_NEAR(sum, direct, 1e-12) << tile << " " << y;
    }
  }
}

/// A convolution of `channels` to `outs` with a bias, on `size` x `size`.
struct Conv {
  int64_t channels, outs, size;
  int64_t kernel = 3, stride = 1, group = 1;
  bool constant = true;
  bool output = false;
};

Graph conv_graph(const Conv& c) {
  Graph graph;
  GraphEditor edit(graph);
  const Value x = edit.add_input("x", static_type(kFloat32, {1, c.channels, c.size, c.size}));
  const std::vector<int64_t> shape{c.outs, c.channels / c.group, c.kernel, c.kernel};
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  const Value w = c.constant ? edit.add_constant(Constant::from_floats(kFloat32, shape, random_values(count, 3)), "w")
                             : edit.add_input("w", static_type(kFloat32, shape));
  const Value b = edit.add_constant(Constant::from_floats(kFloat32, {c.outs}, random_values(c.outs, 4)), "b");
  AttrMap attrs;
  attrs.set("pads", std::vector<int64_t>{1, 0, 1, 2});
  attrs.set("strides", std::vector<int64_t>{c.stride, c.stride});
  attrs.set("group", c.group);
  const Value conv{edit.add("Conv", {x, w, b}, std::move(attrs), "conv"), 0};
  // A reader that is not elementwise: what the caller sees is row-major.
  edit.set_outputs({c.output ? conv : Value{edit.add("GlobalMaxPool", {conv}, {}, "pool"), 0}}, {"y"});
  return graph;
}

PassOptions options_for(const char* target) {
  PassOptions options;
  options.target = Target::parse(target).value();
  return options;
}

int changes(const Conv& c, const PassOptions& options) {
  Graph graph = conv_graph(c);
  GraphEditor edit(graph);
  return choose_algorithm(edit, options);
}

TEST(ChooseAlgorithm, TilesGiveTheConvolution) {
  const Conv c{32, 48, 13};
  const Graph original = conv_graph(c);
  Graph graph = conv_graph(c);
  GraphEditor edit(graph);
  ASSERT_EQ(choose_algorithm(edit, options_for("znver4")), 1);
  ASSERT_TRUE(verify(graph).ok()) << verify(graph).failure().message;
  EXPECT_NE(to_string(graph).find("WinogradConv"), std::string::npos);
  RefTensor x = make_ref_tensor(kFloat32, {1, c.channels, c.size, c.size});
  x.f = random_values(x.f.size(), 5);
  const auto expected = interpret(original, {x}), got = interpret(graph, {x});
  ASSERT_TRUE(expected.ok() && got.ok());
  const RefTensor &want = expected.value()[0], &have = got.value()[0];
  ASSERT_EQ(have.shape, want.shape);
  for (size_t k = 0; k < want.f.size(); ++k) ASSERT_NEAR(have.f[k], want.f[k], 1e-4) << k;
}

TEST(ChooseAlgorithm, LeavesWhatTilesDoNotServe) {
  const PassOptions options = options_for("znver3");
  EXPECT_EQ(changes({64, 64, 28}, options), 1);
  EXPECT_EQ(changes({64, 64, 28, 5}, options), 0) << "5 x 5";
  EXPECT_EQ(changes({64, 64, 28, 3, 2}, options), 0) << "stride 2";
  EXPECT_EQ(changes({64, 64, 28, 3, 1, 4}, options), 0) << "groups";
  EXPECT_EQ(changes({3, 64, 28}, options), 0) << "fewer channels than lanes";
  EXPECT_EQ(changes({64, 64, 28, 3, 1, 1, false}, options), 0) << "weights that are not constant";
  EXPECT_EQ(changes({64, 64, 28, 3, 1, 1, true, true}, options), 0) << "an output, which is row-major";
  EXPECT_EQ(changes({64, 64, 28}, {}), 0) << "no target";
  PassOptions off = options;
  off.winograd = false;
  EXPECT_EQ(changes({64, 64, 28}, off), 0) << "switched off";
}

TEST(ChooseAlgorithm, GoesAnotherWayWhenToldTo) {
  PassOptions options = options_for("znver4");
  std::vector<ChoiceSite> asked;
  for (const auto& [way, changed] : {std::pair<size_t, int>{0, 0}, {1, 1}, {2, 1}}) {
    options.choose = [&](const ChoiceSite& site) {
      asked.push_back(site);
      return way;
    };
    EXPECT_EQ(changes({64, 64, 56}, options), changed) << way;
  }
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_EQ(asked[0].name, "algorithm of 3x3 convolutions 64 to 64 at 1x56x56");
  EXPECT_EQ(asked[0].ways, (std::vector<std::string>{"direct", "winograd-2", "winograd-4"}));
  EXPECT_EQ(asked[0].by_price, 2u);
  changes({64, 64, 28, 3, 2}, options);
  EXPECT_EQ(asked.size(), 3u) << "there is only one way";
}

TEST(ChooseAlgorithm, TellsWhatEachWayWouldCost) {
  PassOptions options = options_for("znver4");
  std::vector<std::string> lines;
  options.explain = [&](const std::string& line) { lines.push_back(line); };
  changes({64, 64, 56}, options);
  changes({512, 512, 4}, options);
  changes({64, 64, 28, 3, 2}, options);  // has one way only
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].rfind("conv: 64 channels to 64 at 56 x 56: by Winograd tiles of 4 x 4 ", 0), 0u) << lines[0];
  EXPECT_NE(lines[0].find(" million cycles of one core; directly "), std::string::npos) << lines[0];
  EXPECT_EQ(lines[1].rfind("conv: 512 channels to 512 at 4 x 4: directly ", 0), 0u) << lines[1];
}

TEST(ChooseAlgorithm, WeighsWeightsAgainstWork) {
  const Target target = Target::parse("sapphirerapids").value();
  // Few tiles: transformed weights are four times as many bytes and used as often as the tiles are.
  const ConvSize deep{1, 512, 512, 4, 4, 4};
  EXPECT_GT(winograd_cycles(deep, 4, target), direct_cycles(deep, target));
  const ConvSize wide{1, 64, 64, 56, 56, 4};
  EXPECT_LT(winograd_cycles(wide, 4, target), direct_cycles(wide, target) / 1.5);
  EXPECT_LT(winograd_cycles(wide, 4, target), winograd_cycles(wide, 2, target));
}

/// What the pass makes of weights [2, 2] that a product reads.
std::vector<double> flushed(const std::vector<double>& weights) {
  Graph graph;
  GraphEditor edit(graph);
  const Value x = edit.add_input("x", static_type(kFloat32, {1, 2}));
  const Value w = edit.add_constant(Constant::from_floats(kFloat32, {2, 2}, weights), "w");
  const NodeId product = edit.add("MatMul", {x, w}, {}, "product");
  edit.set_outputs({{product, 0}}, {"y"});
  flush_subnormals(edit, {});
  EXPECT_TRUE(verify(graph).ok());
  const Constant* constant = graph.constant(graph.node(product).inputs[1]);
  std::vector<double> values;
  for (int64_t k = 0; k < constant->num_elements(); ++k) values.push_back(constant->float_at(k));
  return values;
}

TEST(FlushSubnormals, KeepsWhatCounts) {
  EXPECT_EQ(flushed({1, 1e-39, -1e-40, 2e-38}), (std::vector<double>{1, 0, -0.0, static_cast<float>(2e-38)}));
  EXPECT_TRUE(std::signbit(flushed({1, 1e-39, -1e-40, 2e-38})[2]));
  const std::vector<double> tiny{1e-39, 0, -1e-40, 1e-35};
  const std::vector<double> kept = flushed(tiny);
  for (size_t k = 0; k < tiny.size(); ++k) EXPECT_EQ(kept[k], static_cast<float>(tiny[k])) << "nothing large beside it";
}

}  // namespace
}  // namespace tensmith::graph
