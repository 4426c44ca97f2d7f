#include "tensor/workload.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tensor/parse.h"
#include "tensor/print.h"
#include "tests/support/golden.h"
#include "tests/support/round_trip.h"
#include "tests/support/workloads.h"

namespace tensmith {
namespace {

std::vector<InterpValue> run(const WorkloadCase& c, std::vector<InterpValue>& inputs) {
  std::vector<InterpValue> outputs = zero_outputs(c.workload, c.dims);
  std::vector<InterpValue*> buffers;
  for (InterpValue& value : inputs) buffers.push_back(&value);
  for (InterpValue& value : outputs) buffers.push_back(&value);
  const Result<void> ran = interpret(reference_loops(c.workload), buffers, c.dims);
  EXPECT_TRUE(ran.ok()) << c.name << ": " << ran.failure().message;
  return outputs;
}

TEST(ReferenceLoops, GiveWhatPlainLoopsGive) {
  for (const WorkloadCase& c : workload_cases()) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      std::vector<InterpValue> inputs = random_inputs(c.workload, c.dims, seed);
      const std::vector<InterpValue> outputs = run(c, inputs), expected = c.expected(inputs);
      ASSERT_EQ(outputs.size(), expected.size()) << c.name;
      // Both in double, in nearly the same order.
      for (size_t k = 0; k < outputs.size(); ++k) expect_close(outputs[k], expected[k], 1e-12, c.name);
    }
  }
}

TEST(ReferenceLoops, TextsRoundTrip) {
  for (const WorkloadCase& c : workload_cases()) expect_round_trip(reference_loops(c.workload));
}

TEST(WorkloadText, ReadsBackWithEqualTextAndMeaning) {
  for (const WorkloadCase& c : workload_cases()) {
    const std::string text = to_text(c.workload);
    const Result<Workload> read = parse_workload(text);
    ASSERT_TRUE(read.ok()) << read.failure().message << "\n" << text;
    EXPECT_EQ(to_text(read.value()), text);
    ASSERT_EQ(read->stages.size(), c.workload.stages.size());
    for (size_t k = 0; k < read->stages.size(); ++k) {
      EXPECT_EQ(read->stages[k]->name, c.workload.stages[k]->name);
      EXPECT_EQ(read->stages[k]->producers.size(), c.workload.stages[k]->producers.size());
    }
    std::vector<InterpValue> inputs = random_inputs(c.workload, c.dims, 1);
    const std::vector<InterpValue> expected = c.expected(inputs);
    std::vector<InterpValue> outputs = run({c.name, read.value(), c.dims, {}}, inputs);
    for (size_t k = 0; k < outputs.size(); ++k) expect_close(outputs[k], expected[k], 1e-12, c.name);
  }
}

TEST(WorkloadText, BadTextIsNamedByPlaceAndReason) {
  const auto message = [](const std::string& text) {
    const Result<Workload> read = parse_workload(text);
    return read.ok() ? std::string("read") : read.failure().id + " " + read.failure().message;
  };
  EXPECT_EQ(message("workload w(X) -> Y {\n  X: f32[4] = input\n}\n"),
            "parse-error line 1, column 18: expected a tensor of the workload, got 'Y'");
  EXPECT_EQ(message("workload w(X) -> Y {\n  X: f32[4] = input\n  Y: f32[4] = compute {\n    for i0 in 4\n"
                    "    value X[i0], X[i0]\n  }\n}\n"),
            "parse-error line 5, column 18: expected no further value, got one");
  EXPECT_EQ(message("workload w(X) -> Y {\n  X: f32[4] = input\n  Y: f32[4] = compute {\n    for i0 in 4\n"
                    "    value Y[i0]\n  }\n}\n"),
            "parse-error line 5, column 11: expected a variable or buffer in scope, got 'Y'");
  EXPECT_EQ(message("workload w() -> X {\n  X: f32[4] = input\n}\n"),
            "parse-error line 4, column 1: expected 'X' among the inputs, got it only as a stage");
  // Cut off anywhere: refused, never a crash.
  const std::string whole = to_text(layer_norm_workload(4, 16));
  for (size_t size = 0; size + 2 < whole.size(); ++size)
    EXPECT_FALSE(parse_workload(whole.substr(0, size)).ok()) << size;
}

TEST(ReferenceLoops, Golden) {
  expect_golden("tensor/dense_loops.txt", to_string(reference_loops(dense_workload(Var("M"), 3072, 768))));
  expect_golden("tensor/conv_loops.txt", to_string(reference_loops(conv_workload({1, 64, 56, 56, 64, 3, 1, 1}))));
  expect_golden("tensor/layer_norm_loops.txt", to_string(reference_loops(layer_norm_workload(Var("N"), 768))));
  expect_golden("tensor/int8_product_loops.txt", to_string(reference_loops(int8_product_workload(16, 64, 256))));
}

TEST(ReferenceLoops, ArgMaxKeepsTheFirstAndNanWins) {
  const WorkloadCase c = {"arg max", arg_max_workload(3, 4), {}, {}};
  const double nan = std::nan("");
  std::vector<InterpValue> inputs = {{kFloat32, {1, 5, 5, 2, 3, nan, 9, nan, -1, -1, -1, -1}, {}}};
  const std::vector<InterpValue> outputs = run(c, inputs);
  EXPECT_EQ(outputs[1].i, (std::vector<int64_t>{1, 1, 0}));
}

TEST(ReferenceLoops, ReductionOverNothingGivesTheStart) {
  const Tensor bias = placeholder("bias", {3}, kFloat32), x = placeholder("x", {0, 3}, kFloat32);
  Reduction reduction{
      {0}, [&](const Indices& i, const Indices& r) { return std::vector<Expr>{x(r[0], i[0])}; }, sum_reducer(kFloat32)};
  reduction.initial = [&](const Indices& i) { return std::vector<Expr>{bias(i[0])}; };
  const WorkloadCase c = {"empty", make_workload("empty", {bias, x}, reduce_multi("y", {3}, reduction)), {}, {}};
  std::vector<InterpValue> inputs = {{kFloat32, {1, 2, 3}, {}}, {kFloat32, {}, {}}};
  EXPECT_EQ(run(c, inputs)[0].f, (std::vector<double>{1, 2, 3}));
}

TEST(ReferenceLoops, ReductionWithoutAxisTakesItsOneValue) {
  const Tensor x = placeholder("x", {3}, kFloat32);
  const Tensor y =
      reduce("y", {3}, {}, sum_reducer(kFloat32), [&](const Indices& i, const Indices&) { return x(i[0]) * 2; });
  const WorkloadCase c = {"no axis", make_workload("no_axis", {x}, {y}), {}, {}};
  std::vector<InterpValue> inputs = {{kFloat32, {1, 2, 3}, {}}};
  EXPECT_EQ(run(c, inputs)[0].f, (std::vector<double>{2, 4, 6}));
}

TEST(ReferenceLoops, OutputsMayBeSharedRepeatedOrInputs) {
  const Tensor x = placeholder("x", {2, 2}, kInt32);
  const Tensor y = compute("y", {2, 2}, [&](const Indices& i) { return x(i) + 1; });
  const Tensor z = compute("z", {}, [&](const Indices&) { return y(0, 1) * y(1, 0); });
  const WorkloadCase c = {"shared", make_workload("shared", {x}, {y, z, y, x}), {}, {}};
  std::vector<InterpValue> inputs = {{kInt32, {}, {1, 2, 3, 4}}};
  const std::vector<InterpValue> outputs = run(c, inputs);
  EXPECT_EQ(outputs[0].i, (std::vector<int64_t>{2, 3, 4, 5}));
  EXPECT_EQ(outputs[1].i, (std::vector<int64_t>{12}));
  EXPECT_EQ(outputs[2].i, outputs[0].i);
  EXPECT_EQ(outputs[3].i, inputs[0].i);
}

TEST(ReferenceLoops, ImperativeStagesAreInlined) {
  const Tensor x = placeholder("x", {5}, kInt32);
  const Tensor doubled = compute("d", {5}, [&](const Indices& i) { return x(i) * 2; });
  const std::vector<Tensor> scan = imperative("scan", {doubled}, {{5}}, {kInt32}, [&](const std::vector<Buffer>& out) {
    const Var i("i");
    return Block::make(
        {Store::make(out[0], {0}, doubled(0)),
         For::make(i, 1, 4, ForKind::kSerial, Store::make(out[0], {i}, load(out[0], {Expr(i) - 1}) + doubled(i)))});
  });
  const Tensor y = compute("y", {5}, [&](const Indices& i) { return scan[0](i) - 1; });
  const WorkloadCase c = {"scan", make_workload("scan", {x}, {y}), {}, {}};
  std::vector<InterpValue> inputs = {{kInt32, {}, {1, 2, 3, 4, 5}}};
  EXPECT_EQ(run(c, inputs)[0].i, (std::vector<int64_t>{1, 5, 11, 19, 29}));
  expect_golden("tensor/scan_workload.txt", to_text(c.workload));
}

TEST(WorkloadText, Golden) {
  expect_golden("tensor/dense_workload.txt", to_text(dense_workload(Var("M"), 3072, 768)));
  expect_golden("tensor/conv_workload.txt", to_text(conv_workload({1, 64, 56, 56, 64, 3, 1, 1})));
  expect_golden("tensor/arg_max_workload.txt", to_text(arg_max_workload(4, 1000)));
  expect_golden("tensor/int8_product_workload.txt", to_text(int8_product_workload(16, 64, 256)));
}

TEST(WorkloadText, EqualForEqualWorkloadsAlone) {
  EXPECT_EQ(to_text(dense_workload(Var("M"), 8, 4)), to_text(dense_workload(Var("M"), 8, 4)));
  std::set<std::string> texts;
  size_t count = 0;
  const auto add = [&](const Workload& workload) {
    texts.insert(to_text(workload));
    ++count;
  };
  for (const WorkloadCase& c : workload_cases()) add(c.workload);
  add(dense_workload(7, 19, 24));
  // What only a flag or a clause tells apart.
  const auto variant = [&](bool is_constant, bool where, bool initial, const Reducer& reducer, DType type) {
    const Tensor x = placeholder("x", {4, 4}, type, is_constant);
    Reduction reduction{
        {4}, [&](const Indices& i, const Indices& r) { return std::vector<Expr>{x(i[0], r[0])}; }, reducer};
    if (where) reduction.where = [](const Indices& i, const Indices& r) { return r[0] <= i[0]; };
    if (initial) reduction.initial = [&](const Indices&) { return std::vector<Expr>{make_const(type, 1)}; };
    add(make_workload("v", {x}, reduce_multi("y", {4}, reduction)));
  };
  variant(false, false, false, sum_reducer(kFloat32), kFloat32);
  variant(true, false, false, sum_reducer(kFloat32), kFloat32);
  variant(false, true, false, sum_reducer(kFloat32), kFloat32);
  variant(false, false, true, sum_reducer(kFloat32), kFloat32);
  variant(false, false, false, prod_reducer(kFloat32), kFloat32);
  variant(false, false, false, sum_reducer(kInt32), kInt32);
  Reducer other_identity = sum_reducer(kFloat32);
  other_identity.identity = {make_const(kFloat32, -0.0)};
  variant(false, false, false, other_identity, kFloat32);
  EXPECT_EQ(texts.size(), count);
}

}  // namespace
}  // namespace tensmith
