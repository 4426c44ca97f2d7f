#include <gtest/gtest.h>

#include <cmath>

#include "graph/interpret.h"

namespace tensmith::graph {
namespace {

Graph parsed(const std::string& text) {
  auto graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << (graph ? "" : graph.failure().message);
  return std::move(graph).value();
}

RefTensor floats(std::vector<int64_t> shape, std::vector<double> values) {
  return {kFloat32, std::move(shape), std::move(values), {}};
}

TEST(Interpret, RunsAGraphWithSymbolicDims) {
  const Graph graph = parsed(R"(graph "" {
  dims n
  %x: f32[n, 2] = input
  %w = f32[2, 3] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}
  %b = f32[3] {10.0, 20.0, 30.0}
  %y: f32[n, 3] = MatMul(%x, %w)
  %z: f32[n, 3] = Add(%y, %b)
  %r: f32[n, 3] = Relu(%z)
  return %r as "r"
})");
  const auto out = interpret(graph, {floats({2, 2}, {1, 0, -100, 1})});
  ASSERT_TRUE(out.ok()) << out.failure().message;
  ASSERT_EQ(out->size(), 1u);
  EXPECT_EQ((*out)[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ((*out)[0].f, (std::vector<double>{11, 22, 33, 0, 0, 0}));
}

TEST(Interpret, RoundsAfterEachOperatorUnlessToldOtherwise) {
  const Graph graph = parsed(R"(graph "" {
  %x: f32[1] = input
  %big = f32[] {16777216.0}
  %y: f32[1] = Add(%x, %big)
  %z: f32[1] = Sub(%y, %big)
  return %z as "z"
})");
  EXPECT_EQ((*interpret(graph, {floats({1}, {0.25})}))[0].f[0], 0.0);
  EXPECT_EQ((*interpret(graph, {floats({1}, {0.25})}, {.round_each = false}))[0].f[0], 0.25);
}

TEST(Interpret, TellsAboutEveryNode) {
  const Graph graph = parsed(R"(graph "" {
  %x: f32[1] = input
  %y: f32[1] = Relu(%x)
  %z: f32[1] = Neg(%y)
  return %z as "z"
  return %x as "same"
})");
  std::string seen;
  const auto out =
      interpret(graph, {floats({1}, {3})}, {.on_node = [&](const Node& node, const std::vector<RefTensor>& outputs) {
                  seen += node.op->name + "=" + std::to_string(outputs[0].f[0]) + ";";
                }});
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(seen, "Relu=3.000000;Neg=-3.000000;");
  EXPECT_EQ((*out)[1].f[0], 3.0);
}

TEST(Interpret, RefusesWrongInputs) {
  const Graph graph = parsed(R"(graph "" {
  dims n
  %x: f32[n, 2] = input
  %y: f32[n, 2] = input
  %z: f32[n, 2] = Add(%x, %y)
  return %z as "z"
})");
  EXPECT_EQ(interpret(graph, {floats({1, 2}, {1, 2})}).failure().id, "bad-input");
  EXPECT_EQ(interpret(graph, {floats({1, 2}, {1, 2}), floats({2}, {1, 2})}).failure().id, "bad-input");
  const auto differ = interpret(graph, {floats({1, 2}, {1, 2}), floats({2, 2}, {1, 2, 3, 4})});
  ASSERT_FALSE(differ.ok());
  EXPECT_NE(differ.failure().message.find("input y"), std::string::npos) << differ.failure().message;
}

/// The ways to run an operator must agree: its reference, its compute rule as loops, its decomposition.
TEST(Interpret, ComputeRulesRunWhereThereIsNoReference) {
  const OpDef* softmax = find_op("Softmax");
  ASSERT_NE(softmax, nullptr);
  OpDef without = *softmax;
  without.reference = nullptr;
  Graph graph;
  GraphEditor edit(graph);
  const Value x = edit.add_input("x", static_type(kFloat32, {2, 3}));
  const NodeId with_id = edit.add(*softmax, {x}), without_id = edit.add(without, {x});
  edit.set_outputs({{with_id, 0}, {without_id, 0}}, {"a", "b"});
  const auto out = interpret(graph, {floats({2, 3}, {1, 2, 3, -1, 0, 100})});
  ASSERT_TRUE(out.ok()) << out.failure().message;
  for (size_t k = 0; k < 6; ++k) EXPECT_NEAR((*out)[0].f[k], (*out)[1].f[k], 1e-6) << k;
  EXPECT_NEAR((*out)[0].f[2], 0.66524096, 1e-6);
}

}  // namespace
}  // namespace tensmith::graph
