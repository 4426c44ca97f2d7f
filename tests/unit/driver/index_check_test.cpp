// Index data outside its axis: the run ends with a positive code whose message names node and kernel.
#include <gtest/gtest.h>

#include "apps/driver/compile.h"
#include "apps/driver/export.h"
#include "apps/driver/index_check.h"
#include "codegen/jit.h"
#include "graph/op_def.h"

namespace tensmith {
namespace {

struct Case {
  std::string op;
  std::vector<int64_t> data, indices;
  std::vector<int64_t> good;  // numbers that are inside; the rest are zeros
  int64_t at, bad;            // a place and a number that is outside there
  std::vector<int64_t> updates = {};
  std::vector<int64_t> order = {};  // transposes the indices first
  const char* before = nullptr;     // an operator on the indices first
  DType dtype = kInt64;
  int64_t axis = 0;
};

Module compiled(const Case& c, int level) {
  graph::Graph g;
  graph::GraphEditor edit(g);
  std::vector<graph::Value> inputs{edit.add_input("x", graph::static_type(kFloat32, c.data)),
                                   edit.add_input("i", graph::static_type(c.dtype, c.indices))};
  if (!c.updates.empty()) inputs.push_back(edit.add_input("u", graph::static_type(kFloat32, c.updates)));
  if (c.before) inputs[1] = {edit.add(c.before, {inputs[1]}), 0};
  if (!c.order.empty()) {
    graph::AttrMap attrs;
    attrs.set("perm", c.order);
    inputs[1] = {edit.add("Transpose", {inputs[1]}, attrs), 0};
  }
  graph::AttrMap attrs;
  if (graph::find_op(c.op)->attrs[0].name == std::string("axis")) attrs.set("axis", c.axis);
  const graph::Value y{edit.add(c.op, inputs, attrs, "node_7"), 0};
  edit.set_outputs({y, {edit.add("Relu", {y}), 0}}, {"y", "z"});
  CompileOptions options;
  options.opt_level = level;
  return load_program(std::make_shared<CompiledProgram>(compile_graph(g, options)));
}

Result<std::vector<HostTensor>> run(const Module& module, const Case& c, bool good) {
  Instance instance = module.create({}).value();
  std::vector<HostTensor> inputs;
  inputs.emplace_back(c.data, kFloat32);
  for (int64_t k = 0; k < inputs[0].size(); ++k) inputs[0].set(k, static_cast<double>(k));
  inputs.emplace_back(c.indices, c.dtype);
  for (int64_t k = 0; k < inputs[1].size(); ++k)
    inputs[1].set(k, k < static_cast<int64_t>(c.good.size()) ? static_cast<double>(c.good[static_cast<size_t>(k)]) : 0);
  if (!good) inputs[1].set(c.at, static_cast<double>(c.bad));
  if (!c.updates.empty()) inputs.emplace_back(c.updates, kFloat32);
  return instance.run(inputs);
}

TEST(IndexCheckTest, OutOfRangeEndsTheRunWithItsMessage) {
  const std::vector<Case> cases = {
      {"Gather", {10, 4}, {2, 20}, {-10, 9}, 39, 10},  // in vectors
      {"Gather", {10, 4}, {2, 20}, {-10, 9}, 0, -11},  //
      {"Gather", {10, 4}, {2, 25}, {-10, 9}, 49, 10},  // behind the last vector
      {"Gather", {10, 4}, {3}, {-10, 9, 0}, 1, -11},   // few numbers
      {"Gather", {10, 4}, {}, {9}, 0, 10},             // one
      {"Gather", {4, 10}, {33}, {-10, 9}, 20, INT32_MIN, {}, {}, nullptr, kInt32, 1},
      {"Gather", {10, 4}, {16}, {-10, 9}, 5, INT64_MAX},
      {"Gather", {10, 4}, {16}, {-10, 9}, 5, INT64_MIN},
      {"Gather", {10, 4}, {2, 3}, {9, 9, 9}, 4, 10, {}, {}, "Abs"},  // computed on the way
      {"GatherElements", {10, 4}, {3, 4}, {-10, 9}, 7, 10},
      {"GatherElements", {10, 4}, {4, 3}, {-10, 9}, 7, 10, {}, {1, 0}},  // in another order
      {"GatherND", {10, 4, 3}, {6, 2}, {9, -4, -10, 3}, 3, 4},           // by position
      {"GatherND", {10, 4, 3}, {6, 2}, {9, -4, -10, 3}, 8, 10},
      {"GatherND", {10, 4, 3}, {5, 1}, {9, -10}, 4, 10},
      {"ScatterElements", {10, 4}, {3, 4}, {-10, 9}, 11, -11, {3, 4}},
      {"ScatterND", {10, 4, 3}, {6, 2}, {9, -4, -10, 3}, 9, -5, {6, 3}},
  };
  for (const Case& c : cases)
    for (int level : {0, 2}) {
      SCOPED_TRACE(c.op + " at " + std::to_string(c.at) + ": " + std::to_string(c.bad) + ", -O" +
                   std::to_string(level));
      const Module module = compiled(c, level);
      EXPECT_EQ(module.model().num_messages, 1);
      const auto right = run(module, c, /*good=*/true);
      ASSERT_TRUE(right.ok()) << right.failure().message;
      const auto wrong = run(module, c, /*good=*/false);
      ASSERT_FALSE(wrong.ok());
      EXPECT_EQ(wrong.failure().id, "run-failed");
      EXPECT_NE(wrong.failure().message.find("node node_7 (" + c.op + ", kernel k"), std::string::npos)
          << wrong.failure().message;
      EXPECT_NE(wrong.failure().message.find("input indices: expected indices from -10 to 9"), std::string::npos)
          << wrong.failure().message;
      EXPECT_TRUE(run(module, c, /*good=*/true).ok());  // the instance still serves
    }
}

TEST(IndexCheckTest, NumbersAreLookedOverOnceAndConstantsWhenCompiling) {
  graph::Graph g;
  graph::GraphEditor edit(g);
  const graph::Value x = edit.add_input("x", graph::static_type(kFloat32, {10, 4})),
                     z = edit.add_input("z", graph::static_type(kFloat32, {7, 4})),
                     i = edit.add_input("i", graph::static_type(kInt64, {5}));
  const auto gather = [&](graph::Value data, graph::Value at) {
    return graph::Value{edit.add("Gather", {data, at}), 0};
  };
  const graph::Value fixed =
      edit.add_constant(graph::Constant::from_ints(kInt64, {3}, std::vector<int64_t>{1, -10, 4}));
  edit.set_outputs({gather(x, i), gather({edit.add("Exp", {x}), 0}, i), gather(z, i), gather(x, fixed)},
                   {"a", "b", "c", "d"});
  CompileOptions options;
  options.opt_level = 1;
  graph::Graph copy = g.clone();
  EXPECT_EQ(compile_graph(copy, options).messages.size(), 2u);  // extents 10 and 7

  graph::Graph bad;
  graph::GraphEditor other(bad);
  const graph::Value data = other.add_input("x", graph::static_type(kFloat32, {3, 4})),
                     outside = other.add_constant(
                         graph::Constant::from_ints(kInt64, {1, 4}, std::vector<int64_t>{1, 2, 3, 0}));
  other.set_outputs({{other.add("GatherElements", {data, outside}), 0}}, {"y"});
  try {
    compile_graph(bad, options);
    FAIL() << "a constant index beyond its axis was accepted";
  } catch (const UserError& e) {
    EXPECT_EQ(e.id(), "index-out-of-range") << e.message();
  }
}

TEST(IndexCheckTest, FollowsLayoutsWithPadding) {
  // Blocks of 4 of an axis of 6: two numbers of padding in each second block are nobody's.
  IndexCheck check{"check", kInt32, {2, 6}, Layout::blocked({0, 1}, 1, 4), {5}, 3, "outside"};
  const std::vector<ObjectCode> objects{compile(LoopProgram{{index_check(check)}}, Target::host(), {})};
  const JitModule module = JitModule::load(objects);
  const auto function = reinterpret_cast<int32_t (*)(const void*, const int32_t*)>(module.find("check"));
  std::vector<int32_t> numbers(2 * 2 * 4, 99);
  for (int64_t a = 0; a < 2; ++a)
    for (int64_t b = 0; b < 6; ++b) numbers[static_cast<size_t>(a * 8 + b / 4 * 4 + b % 4)] = b % 2 ? 4 : -5;
  EXPECT_EQ(function(nullptr, numbers.data()), 0);
  numbers[8 + 4 + 1] = 5;
  EXPECT_EQ(function(nullptr, numbers.data()), 3);
}

}  // namespace
}  // namespace tensmith
