// Transposed convolutions by phases, and padding apart from convolutions of planes: the same results from other graphs.
#include "graph/passes/split_phases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "graph/interpret.h"
#include "graph/passes/pad_planes.h"

namespace tensmith::graph {
namespace {

std::vector<double> random_values(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> values(static_cast<size_t>(count));
  for (double& v : values) v = static_cast<float>(uniform(random));
  return values;
}

int64_t product(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

struct Case {
  const char* name;
  std::vector<int64_t> x, w;
  std::vector<int64_t> strides, pads = {}, output_padding = {};
  int64_t group = 1;
  bool bias = false;
};

Graph graph_of(const char* op, const Case& c) {
  Graph graph;
  GraphEditor edit(graph);
  std::vector<Value> inputs{
      edit.add_input("x", static_type(kFloat32, c.x)),
      edit.add_constant(Constant::from_floats(kFloat32, c.w, random_values(product(c.w), 3)), "w")};
  const int64_t outs = op == std::string("Conv") ? c.w[0] : c.w[1] * c.group;
  if (c.bias) inputs.push_back(edit.add_constant(Constant::from_floats(kFloat32, {outs}, random_values(outs, 4)), "b"));
  AttrMap attrs;
  attrs.set("strides", c.strides);
  attrs.set("group", c.group);
  if (!c.pads.empty()) attrs.set("pads", c.pads);
  if (!c.output_padding.empty()) attrs.set("output_padding", c.output_padding);
  const Value y{edit.add(op, std::move(inputs), std::move(attrs), "y"), 0};
  edit.set_outputs({Value{edit.add("Relu", {y}, {}, "relu"), 0}}, {"y"});
  return graph;
}

std::vector<double> result_of(const Graph& graph, const Case& c) {
  RefTensor x;
  x.dtype = kFloat32;
  x.shape = c.x;
  x.f = random_values(product(c.x), 5);
  InterpretOptions options;
  options.round_each = false;
  auto results = interpret(graph, {x}, options);
  EXPECT_TRUE(results.ok()) << c.name;
  return results ? results.value()[0].f : std::vector<double>();
}

int count_of(const Graph& graph, const std::string& op) {
  int count = 0;
  for (const NodeId id : graph.topological_order()) count += graph.node(id).op->name == op;
  return count;
}

void expect_same(const std::vector<double>& got, const std::vector<double>& want, const char* name) {
  ASSERT_EQ(got.size(), want.size()) << name;
  for (size_t k = 0; k < got.size(); ++k) ASSERT_NEAR(got[k], want[k], 1e-9) << name << ", element " << k;
}

PassOptions for_target(const char* target) {
  PassOptions options;
  options.target = Target::parse(target).value();
  return options;
}

TEST(SplitPhases, KeepEveryResult) {
  const std::vector<Case> cases = {
      {"kernel as stride", {1, 3, 4, 5}, {3, 4, 2, 2}, {2, 2}, {}, {}, 1, true},
      {"overlapping", {2, 3, 4, 5}, {3, 20, 4, 4}, {2, 2}, {1, 1, 1, 1}},
      {"odd kernel", {1, 2, 4, 4}, {2, 17, 3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 1, true},
      {"few results in one", {1, 5, 4, 3}, {5, 2, 4, 4}, {2, 2}, {1, 1, 1, 1}},
      {"cut short", {1, 2, 5, 5}, {2, 3, 3, 3}, {2, 2}, {1, 0, 2, 1}},
      {"uneven strides", {1, 2, 3, 4}, {2, 3, 5, 4}, {3, 2}, {1, 0, 0, 1}, {1, 1}},
      {"groups", {1, 6, 3, 4}, {6, 5, 4, 2}, {2, 2}, {1, 0, 1, 0}, {}, 3, true},
      {"line of sound", {1, 4, 9}, {4, 3, 16}, {8}, {4, 4}},
      {"volume", {1, 2, 2, 3, 2}, {2, 3, 2, 3, 4}, {2, 1, 2}, {0, 1, 1, 0, 1, 1}},
      {"without stride", {1, 3, 5, 4}, {3, 4, 3, 3}, {1, 1}, {1, 1, 1, 1}},
  };
  for (const char* target : {"sapphirerapids", "x86-64-v3"})
    for (const Case& c : cases) {
      Graph graph = graph_of("ConvTranspose", c);
      const std::vector<double> before = result_of(graph, c);
      GraphEditor edit(graph);
      EXPECT_EQ(split_phases(edit, for_target(target)), 1) << c.name;
      EXPECT_EQ(count_of(graph, "ConvTranspose"), 0) << c.name;
      expect_same(result_of(graph, c), before, c.name);
      EXPECT_EQ(split_phases(edit, for_target(target)), 0) << c.name << ", a second time";
    }
}

TEST(SplitPhases, MultiplyNoInsertedZeros) {
  const auto convolutions = [](const Case& c) {
    Graph graph = graph_of("ConvTranspose", c);
    GraphEditor edit(graph);
    split_phases(edit, for_target("sapphirerapids"));
    int64_t taps = 0;
    for (const NodeId id : graph.topological_order())
      if (graph.node(id).op->name == "Conv") taps += product(graph.node(id).attrs.get_ints("kernel_shape"));
    return std::pair{count_of(graph, "Conv"), taps};
  };
  // One 1x1 convolution; one of each phase, whose taps are those of the kernel; one for all phases of few results.
  EXPECT_EQ(convolutions({"", {1, 8, 4, 4}, {8, 32, 2, 2}, {2, 2}}), (std::pair{1, int64_t{1}}));
  EXPECT_EQ(convolutions({"", {1, 8, 4, 4}, {8, 32, 3, 3}, {2, 2}, {1, 1, 1, 1}}), (std::pair{4, int64_t{9}}));
  EXPECT_EQ(convolutions({"", {1, 8, 4, 4}, {8, 3, 4, 4}, {2, 2}, {1, 1, 1, 1}}), (std::pair{1, int64_t{9}}));
}

TEST(SplitPhases, LeaveWhatTheyCannotSay) {
  const auto changes = [](const Case& c) {
    Graph graph = graph_of("ConvTranspose", c);
    GraphEditor edit(graph);
    return split_phases(edit, {});
  };
  EXPECT_EQ(changes({"places that nothing meets", {1, 2, 3, 3}, {2, 3, 1, 1}, {2, 2}}), 0);
  EXPECT_EQ(changes({"first inputs meet nothing", {1, 2, 5, 5}, {2, 3, 2, 2}, {2, 2}, {3, 3, 0, 0}}), 0);
}

TEST(PadPlanes, PadWhatTheCallerWantsInPlanes) {
  const Case c{"", {1, 5, 6, 7}, {3, 5, 3, 3}, {2, 1}, {1, 0, 2, 1}, {}, 1, true};
  Graph graph = graph_of("Conv", c);
  const std::vector<double> before = result_of(graph, c);
  GraphEditor edit(graph);
  EXPECT_EQ(pad_planes(edit, {}), 1);
  EXPECT_EQ(count_of(graph, "Pad"), 1);
  expect_same(result_of(graph, c), before, "padded");
  EXPECT_EQ(pad_planes(edit, {}), 0) << "a second time";
}

TEST(PadPlanes, LeaveOthers) {
  const auto changes = [](const Case& c) {
    Graph graph = graph_of("Conv", c);
    GraphEditor edit(graph);
    return pad_planes(edit, {});
  };
  EXPECT_EQ(changes({"rows are not padded", {1, 5, 6, 7}, {3, 5, 3, 1}, {1, 1}, {1, 0, 1, 0}}), 0);
  EXPECT_EQ(changes({"one plane", {1, 5, 6, 7}, {1, 5, 3, 3}, {1, 1}, {1, 1, 1, 1}}), 0);
  EXPECT_EQ(changes({"depthwise", {1, 5, 6, 7}, {5, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {}, 5}), 0);
}

}  // namespace
}  // namespace tensmith::graph
