/// Layouts, values in the memory of others and results over operands: the whole program computes the same.
#include <gtest/gtest.h>

#include <cmath>

#include "apps/driver/compile.h"
#include "apps/driver/export.h"
#include "autotune/default_schedule.h"
#include "codegen/artifact.h"
#include "graph/interpret.h"
#include "graph/op_def.h"
#include "runtime/base/config.h"
#include "runtime/base/rng.h"
#include "schedule/lower/in_place.h"

namespace tensmith {
namespace {

/// Builds graphs with random weights.
class Net {
 public:
  Net() : edit_(graph), rng_(11) {}

  graph::Value input(std::vector<int64_t> shape) { return edit_.add_input("x", graph::static_type(kFloat32, shape)); }
  graph::Value weights(std::vector<int64_t> shape) {
    int64_t count = 1;
    for (int64_t extent : shape) count *= extent;
    std::vector<double> values(static_cast<size_t>(count));
    for (double& v : values) v = rng_.uniform(0, 1) - 0.5;
    return edit_.add_constant(graph::Constant::from_floats(kFloat32, shape, values));
  }
  graph::Value constant(const graph::Constant& constant) { return edit_.add_constant(constant); }
  graph::Value ints(std::vector<int64_t> values) {
    return edit_.add_constant(graph::Constant::from_ints(kInt64, {static_cast<int64_t>(values.size())}, values));
  }
  graph::Value add(const char* op, std::vector<graph::Value> inputs, graph::AttrMap attrs = {}) {
    return {edit_.add(op, std::move(inputs), std::move(attrs)), 0};
  }
  std::vector<graph::Value> split(graph::Value v, int64_t axis, std::vector<int64_t> sizes) {
    graph::AttrMap attrs;
    attrs.set("axis", axis);
    const int count = static_cast<int>(sizes.size());
    const graph::NodeId id = edit_.add("Split", {v, ints(sizes)}, attrs, "", count);
    std::vector<graph::Value> parts;
    for (int k = 0; k < count; ++k) parts.push_back({id, k});
    return parts;
  }
  graph::Value conv(graph::Value x, int64_t from, int64_t to, int64_t kernel, int64_t group = 1, int64_t stride = 1) {
    graph::AttrMap attrs;
    attrs.set("pads", std::vector<int64_t>(4, kernel / 2));
    attrs.set("group", group);
    attrs.set("strides", std::vector<int64_t>{stride, stride});
    return add("Conv", {x, weights({to, from / group, kernel, kernel}), weights({to})}, attrs);
  }
  graph::Value concat(std::vector<graph::Value> parts, int64_t axis) {
    graph::AttrMap attrs;
    attrs.set("axis", axis);
    return add("Concat", std::move(parts), attrs);
  }
  graph::Value transpose(graph::Value v, std::vector<int64_t> perm) {
    graph::AttrMap attrs;
    attrs.set("perm", std::move(perm));
    return add("Transpose", {v}, attrs);
  }
  void output(graph::Value v) { edit_.set_outputs({v}, {"y"}); }

  graph::Graph graph;

 private:
  graph::GraphEditor edit_;
  Rng rng_;
};

/// A transformer block's attention: query, key and value of one operand, heads of odd sizes.
graph::Graph attention_net() {
  Net net;
  constexpr int64_t kTokens = 19, kHeads = 3, kSize = 10, kWidth = kHeads * kSize;
  const graph::Value x = net.input({1, kTokens, kWidth});
  const auto head = [&](std::vector<int64_t> perm) {
    const graph::Value y =
        net.add("Add", {net.add("MatMul", {x, net.weights({kWidth, kWidth})}), net.weights({kWidth})});
    return net.transpose(net.add("Reshape", {y, net.ints({1, kTokens, kHeads, kSize})}), std::move(perm));
  };
  graph::Value q = head({0, 2, 1, 3}), k = head({0, 2, 3, 1}), v = head({0, 2, 1, 3});
  q = net.add("Mul", {q, net.weights({})});
  graph::Value y = net.add("MatMul", {net.add("Softmax", {net.add("MatMul", {q, k})}), v});
  y = net.add("Reshape", {net.transpose(y, {0, 2, 1, 3}), net.ints({1, kTokens, kWidth})});
  y = net.add("MatMul", {y, net.weights({kWidth, kWidth})});
  net.output(net.add("Add", {y, x}));
  return std::move(net.graph);
}

/// Three channels first, then channels that fill no block, depthwise, a residual, joins of joins, parts.
graph::Graph conv_net() {
  Net net;
  graph::Value x = net.input({2, 3, 13, 11});
  graph::Value a = net.add("Relu", {net.conv(x, 3, 20, 3, 1, 2)});
  graph::Value b = net.add("Relu", {net.conv(a, 20, 20, 3, 20)});
  graph::Value c = net.add("Relu", {net.add("Add", {net.conv(b, 20, 20, 1), a})});
  graph::Value d = net.conv(c, 20, 9, 1), e = net.conv(net.concat({c, d}, 1), 29, 7, 3);
  graph::Value all = net.concat({c, d, e}, 1);
  const std::vector<graph::Value> parts = net.split(net.add("Relu", {all}), 1, {10, 26});
  graph::Value y = net.add("Mul", {net.conv(parts[0], 10, 26, 1), parts[1]});
  y = net.add("Mul", {y, net.add("Sigmoid", {net.add("GlobalAveragePool", {y})})});
  graph::AttrMap pool;
  pool.set("kernel_shape", std::vector<int64_t>{2, 2});
  y = net.add("MaxPool", {y}, pool);
  net.output(net.add("MatMul", {net.add("Flatten", {y}), net.weights({26 * 6 * 5, 4})}));
  return std::move(net.graph);
}

std::vector<float> run(const CompiledProgram& program, int threads) {
  const Module module = load_program(std::make_shared<CompiledProgram>(program));
  InstanceOptions options;
  options.threads = threads;
  Instance instance = module.create(options).value();
  std::vector<HostTensor> inputs;
  inputs.emplace_back(program.inputs[0].shape, kFloat32);
  for (int64_t k = 0; k < inputs[0].size(); ++k) inputs[0].set(k, std::sin(0.37 * static_cast<double>(k)));
  // Twice: what a run leaves in the arena must not matter to the next.
  instance.run(inputs).value();
  const std::vector<HostTensor> outputs = instance.run(inputs).value();
  const auto data = outputs[0].data<float>();
  return {data.begin(), data.end()};
}

std::vector<double> reference(const graph::Graph& graph) {
  const std::vector<int64_t> shape = graph.node(graph.inputs[0]).types[0].static_shape();
  graph::RefTensor x = graph::make_ref_tensor(kFloat32, shape);
  for (int64_t k = 0; k < x.num_elements(); ++k) x.set(k, static_cast<float>(std::sin(0.37 * static_cast<double>(k))));
  return graph::interpret(graph, {x}).value()[0].f;
}

/// Restores the process's switches.
class Switched {
 public:
  explicit Switched(const std::string& layouts) : before_(*config()) {
    Config changed = before_;
    changed.layouts = layouts;
    set_config(changed);
  }
  ~Switched() { set_config(before_); }

 private:
  Config before_;
};

CompiledProgram compiled(const graph::Graph& net, int level, int threads) {
  graph::Graph copy = net.clone();
  CompileOptions options;
  options.opt_level = level;
  options.threads = threads;
  return compile_graph(copy, options);
}

void check_all(const graph::Graph& net) {
  const std::vector<double> expected = reference(net);
  struct Way {
    const char* layouts;
    int level, threads;
  };
  for (const Way& way : {Way{"auto", 0, 1}, Way{"auto", 1, 2}, Way{"auto", 2, 1}, Way{"channels-last", 2, 2},
                         Way{"blocked", 2, 1}, Way{"blocked", 2, 2}}) {
    SCOPED_TRACE(std::string(way.layouts) + " -O" + std::to_string(way.level) + " threads " +
                 std::to_string(way.threads));
    const Switched switched(way.layouts);
    const CompiledProgram program = compiled(net, way.level, way.threads);
    for (const CompiledKernel& kernel : program.kernels)
      EXPECT_FALSE(kernel.is_plain) << kernel.name << ": " << kernel.explanation;
    const std::vector<float> got = run(program, way.threads);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t k = 0; k < got.size(); ++k) ASSERT_NEAR(got[k], expected[k], 2e-4 * (1 + std::fabs(expected[k]))) << k;
  }
}

TEST(Placement, AttentionComputesTheSame) { check_all(attention_net()); }
TEST(Placement, ConvolutionsComputeTheSame) { check_all(conv_net()); }

TEST(Placement, AttentionMovesOnlyItsResult) {
  const CompiledProgram program = compiled(attention_net(), 2, 1);
  // One product for query, key and value; attention; its heads brought side by side; the output with its residual.
  EXPECT_EQ(program.calls.size(), 4u);
  for (const CompiledKernel& kernel : program.kernels)
    EXPECT_EQ(kernel.name.find("transpose"), std::string::npos) << kernel.name;
}

TEST(InPlace, ResidualsAreWrittenOverTheirOperand) {
  Net net;
  const graph::Value x = net.input({1, 16, 8, 8});
  graph::Value a = net.add("Relu", {net.conv(x, 16, 16, 1)});
  for (int k = 0; k < 4; ++k) a = net.add("Relu", {net.add("Add", {net.conv(a, 16, 16, 1), a})});
  // The operand of the product is the residual itself: the last layer reads another value and may write over it.
  const graph::Value b = net.add("Relu", {net.conv(a, 16, 16, 1)});
  net.output(net.conv(net.add("Relu", {net.add("Add", {net.conv(b, 16, 16, 1), a})}), 16, 3, 1));
  const CompiledProgram program = compiled(net.graph, 2, 1);
  const int64_t bytes = 16 * 8 * 8 * 4;
  EXPECT_EQ(program.stats.arena_bytes, 2 * bytes);
  EXPECT_EQ(program.stats.arena_lower_bound, 2 * bytes);
  const std::vector<double> expected = reference(net.graph);
  const std::vector<float> got = run(program, 1);
  for (size_t k = 0; k < got.size(); ++k) ASSERT_NEAR(got[k], expected[k], 1e-4 * (1 + std::fabs(expected[k]))) << k;
}

Schedule scheduled(const Workload& workload) { return default_schedule(workload, {Target::host(), 1, {}, {}}); }

TEST(InPlace, OnlyWhereEachElementIsReadBeforeItIsWritten) {
  const Expr n(16), m(24);
  const Tensor x = placeholder("x", {n, m}, kFloat32), y = placeholder("y", {n, m}, kFloat32),
               row = placeholder("row", {m}, kFloat32);
  const auto pairs = [&](const Tensor& out) {
    return in_place_pairs(scheduled(make_workload("w", {x, y, row}, {out}))).size();
  };
  EXPECT_EQ(pairs(compute("sum", {n, m}, [&](const Indices& i) { return x(i[0], i[1]) + y(i[1] * 0 + i[0], i[1]); })),
            1u);
  EXPECT_EQ(pairs(compute("turned", {n, m}, [&](const Indices& i) { return x(i[0], Expr(23) - i[1]) + row(i[1]); })),
            0u);
  EXPECT_EQ(
      pairs(compute("neighbours", {n, m},
                    [&](const Indices& i) { return x(i[0], i[1]) + x(i[0], min(i[1] + 1, Expr(23))) + row(i[1]); })),
      0u);
  // A softmax reads the row again before it writes it, by stages of their own.
  const Tensor top =
      reduce("top", {n}, {m}, max_reducer(kFloat32), [&](const Indices& i, const Indices& r) { return x(i[0], r[0]); });
  EXPECT_EQ(pairs(compute("shifted", {n, m}, [&](const Indices& i) { return x(i[0], i[1]) - top(i[0]); })), 0u);
}

/// 1 x `width` of so many layers side by side, each by a kernel of its own, and their sum.
graph::Graph wide_sum(int operands) {
  Net net;
  const graph::Value x = net.input({1, 33});
  std::vector<graph::Value> parts;
  for (int k = 0; k < operands; ++k) parts.push_back(net.add("Softmax", {net.add("Mul", {x, net.weights({33})})}));
  net.output(net.add("Softmax", {net.add("Sum", parts)}));
  return std::move(net.graph);
}

TEST(InPlace, OnlyBuffersThatTheCodeGeneratorIsToldOf) {
  const auto sum_of = [](int operands) {
    std::vector<Tensor> inputs;
    for (int k = 0; k < operands; ++k)
      inputs.push_back(placeholder("x" + std::to_string(k), {Expr(4), Expr(24)}, kFloat32));
    const Tensor sum = compute("sum", {Expr(4), Expr(24)}, [&](const Indices& i) {
      Expr total = inputs[0](i[0], i[1]);
      for (size_t k = 1; k < inputs.size(); ++k) total = total + inputs[k](i[0], i[1]);
      return total;
    });
    return make_workload("w", inputs, {sum});
  };
  for (int operands : {2, 61, 62, 64, 70}) {
    const Schedule schedule = scheduled(sum_of(operands));
    const std::vector<InPlacePair> pairs = in_place_pairs(schedule);
    LoweredKernel kernel = lower(schedule);
    mark_in_place(kernel, pairs);
    EXPECT_EQ(pairs.size(), operands < 62 ? 1u : 0u) << operands;
    const auto mask = kernel.function.attrs.find(kMayOverlap);
    ASSERT_EQ(mask != kernel.function.attrs.end(), operands < 62) << operands;
    if (operands < 62) {
      EXPECT_EQ(mask->second, (int64_t{1} << pairs[0].input) | (int64_t{1} << operands)) << operands;
    }
  }
}

TEST(InPlace, SumsOfManyOperandsComputeTheSame) {
  for (int operands : {60, 64}) {
    const graph::Graph net = wide_sum(operands);
    const std::vector<double> expected = reference(net);
    const CompiledProgram program = compiled(net, 2, 1);
    int most = 0;
    for (const CompiledKernel& kernel : program.kernels) most = std::max(most, kernel.lowered.num_inputs);
    EXPECT_GE(most, operands - 1);
    const std::vector<float> got = run(program, 1);
    for (size_t k = 0; k < got.size(); ++k) ASSERT_NEAR(got[k], expected[k], 1e-5) << operands << " " << k;
  }
}

TEST(Weights, OneStorageInSeveralShapesIsPackedForEach) {
  Net net;
  const graph::Value x = net.input({7, 64});
  const graph::Constant w = *net.graph.constant(net.weights({64, 32}));
  // Both are blocked by the same text, and their bytes differ; the vector is shorter than what lies in its place.
  const graph::Value a = net.add("MatMul", {x, net.constant(w)});
  const graph::Value b = net.add("MatMul", {a, net.constant(w.with_shape({32, 64}))});
  const graph::Constant head(kFloat32, {16, 64}, std::make_shared<graph::Constant>(w), w.data());
  const graph::Value c = net.add("MatMul", {b, net.transpose(net.constant(head), {1, 0})});
  const graph::Constant rows(kFloat32, {16, 32}, std::make_shared<graph::Constant>(w), w.data());
  net.output(net.add("MatMul", {c, net.constant(rows)}));
  check_all(net.graph);
}

TEST(Weights, OneTextOfALayoutForTwoShapesIsTwoPackings) {
  // Enough rows that both products take their weights in blocks of the same width, which is all that the text says.
  Net net;
  const graph::Value x = net.input({256, 192});
  const graph::Constant w = *net.graph.constant(net.weights({192, 256}));
  const graph::Value a = net.add("MatMul", {x, net.constant(w)});
  net.output(net.add("MatMul", {a, net.constant(w.with_shape({256, 192}))}));
  const CompiledProgram program = compiled(net.graph, 2, 1);
  ASSERT_EQ(program.kernels.size(), 2u);
  const std::string text = program.kernels[0].lowered.input_layouts[1].text();
  ASSERT_EQ(program.kernels[1].lowered.input_layouts[1].text(), text);
  ASSERT_NE(text.find('/'), std::string::npos) << text;
  EXPECT_EQ(program.stats.weight_bytes, 2 * 192 * 256 * 4);
  check_all(net.graph);
}

TEST(Weights, AReshapedWeightIsAnotherWeight) {
  Net net;
  const graph::Value x = net.input({7, 64});
  const graph::Value w = net.weights({64, 32});
  const graph::Value a = net.add("MatMul", {x, w});
  net.output(net.add("MatMul", {a, net.add("Reshape", {w, net.ints({32, 64})})}));
  check_all(net.graph);
}

}  // namespace
}  // namespace tensmith
