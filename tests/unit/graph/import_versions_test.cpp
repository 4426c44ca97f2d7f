/// Older and foreign forms of operators: what they meant then must be what the graph computes.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/graph/onnx_builder.h"

namespace tensmith::graph {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

RefTensor iota(std::vector<int64_t> shape, double start = 0, double step = 1) {
  RefTensor t = make_ref_tensor(kFloat32, std::move(shape));
  for (size_t k = 0; k < t.f.size(); ++k) t.f[k] = start + step * static_cast<double>(k);
  return t;
}

TEST(ImportVersions, SoftmaxBefore13TakesAllDimsFromTheAxis) {
  OnnxBuilder b(11);
  b.input("x", {2, 2, 3});
  b.node("Softmax", {"x"}, {"default"});
  set(b.node("Softmax", {"x"}, {"last"}), "axis", int64_t{-1});
  b.output("default");
  b.output("last");
  const auto out = run(b, {iota({2, 2, 3})});
  ASSERT_EQ(out.size(), 2u);
  double sum = 0, last = 0;
  for (int k = 0; k < 6; ++k) sum += std::exp(k);
  for (int k = 0; k < 3; ++k) last += std::exp(k);
  EXPECT_EQ(out[0].shape, (Ints{2, 2, 3}));
  EXPECT_NEAR(out[0].f[5], std::exp(5) / sum, 1e-6);
  EXPECT_NEAR(out[1].f[2], std::exp(2) / last, 1e-6);
}

TEST(ImportVersions, SoftmaxSince13TakesTheLastAxis) {
  OnnxBuilder b(13);
  b.input("x", {2, 2, 3});
  b.node("Softmax", {"x"}, {"y"});
  b.output("y");
  const auto out = run(b, {iota({2, 2, 3})});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_NEAR(out[0].f[2], std::exp(2) / (1 + std::exp(1) + std::exp(2)), 1e-6);
}

TEST(ImportVersions, AttributesThatBecameInputs) {
  OnnxBuilder b(9);
  b.input("x", {1, 4, 6});
  set(b.node("Squeeze", {"x"}, {"squeezed"}), "axes", Ints{0});
  set(b.node("Unsqueeze", {"squeezed"}, {"unsqueezed"}), "axes", Ints{2});
  auto& slice = set(b.node("Slice", {"squeezed"}, {"sliced"}), "starts", Ints{1, 2});
  set(set(slice, "ends", Ints{3, 100}), "axes", Ints{0, 1});
  set(set(b.node("Clip", {"squeezed"}, {"clipped"}), "min", 2.0f), "max", 5.0f);
  auto& pad = set(b.node("Pad", {"sliced"}, {"padded"}), "pads", Ints{0, 1, 0, 0});
  set(pad, "value", 9.0f);
  set(set(b.node("ReduceSum", {"squeezed"}, {"summed"}), "axes", Ints{1}), "keepdims", int64_t{0});
  set(b.node("TopK", {"squeezed"}, {"top", "where"}), "k", int64_t{2});
  for (const char* name : {"unsqueezed", "sliced", "clipped", "padded", "summed", "top", "where"}) b.output(name);
  const auto out = run(b, {iota({1, 4, 6})});
  ASSERT_EQ(out.size(), 7u);
  EXPECT_EQ(out[0].shape, (Ints{4, 6, 1}));
  EXPECT_EQ(out[1].shape, (Ints{2, 4}));
  EXPECT_EQ(out[1].f[0], 8);
  EXPECT_EQ(out[2].f[0], 2);
  EXPECT_EQ(out[2].f[23], 5);
  EXPECT_EQ(out[3].shape, (Ints{2, 5}));
  EXPECT_EQ(out[3].f[0], 9);
  EXPECT_EQ(out[3].f[1], 8);
  EXPECT_EQ(out[4].f, (std::vector<double>{15, 51, 87, 123}));
  EXPECT_EQ(out[5].f, (std::vector<double>{5, 4, 11, 10, 17, 16, 23, 22}));
  EXPECT_EQ(out[6].i[0], 5);
}

TEST(ImportVersions, OperandsBefore7StandAtAnAxis) {
  OnnxBuilder b(6);
  b.input("x", {2, 3, 2});
  b.input("channel", {3});
  b.floats("slope", {3}, {1, 2, 3});
  auto& add = set(b.node("Add", {"x", "channel"}, {"sum"}), "broadcast", int64_t{1});
  set(add, "axis", int64_t{1});
  set(b.node("Mul", {"x", "last"}, {"product"}), "broadcast", int64_t{1});
  b.floats("last", {2}, {1, -1});
  b.node("PRelu", {"x", "slope"}, {"sloped"});
  set(b.node("Dropout", {"x"}, {"same"}), "is_test", int64_t{1});
  for (const char* name : {"sum", "product", "sloped", "same"}) b.output(name);
  const auto out = run(b, {iota({2, 3, 2}, -6), iota({3}, 10, 10)});
  ASSERT_EQ(out.size(), 4u);
  EXPECT_EQ(out[0].f, (std::vector<double>{4, 5, 16, 17, 28, 29, 10, 11, 22, 23, 34, 35}));
  EXPECT_EQ(out[1].f, (std::vector<double>{-6, 5, -4, 3, -2, 1, 0, -1, 2, -3, 4, -5}));
  EXPECT_EQ(out[2].f, (std::vector<double>{-6, -5, -8, -6, -6, -3, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(out[3].f, iota({2, 3, 2}, -6).f);
}

TEST(ImportVersions, TheOldestForms) {
  OnnxBuilder b(1);
  b.input("x", {2, 3});
  set(set(b.node("Reshape", {"x"}, {"flat"}), "shape", Ints{6}), "consumed_inputs", Ints{0});
  set(b.node("Relu", {"x"}, {"positive"}), "consumed_inputs", Ints{0});
  b.node("Concat", {"x", "positive"}, {"wide"});
  for (const char* name : {"flat", "wide"}) b.output(name);
  const auto out = run(b, {iota({2, 3}, -1)});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].shape, (Ints{6}));
  EXPECT_EQ(out[1].shape, (Ints{2, 6}));
  EXPECT_EQ(out[1].f, (std::vector<double>{-1, 0, 1, 0, 0, 1, 2, 3, 4, 2, 3, 4}));
}

TEST(ImportVersions, ClassicalOperators) {
  OnnxBuilder b(15);
  b.import("ai.onnx.ml", 3);
  b.input("x", {2, 3});
  auto& scaler = set(b.node("Scaler", {"x"}, {"scaled"}, "ai.onnx.ml"), "offset", Floats{1, 2, 3});
  set(scaler, "scale", Floats{1, 2, 0.5f});
  set(b.node("Binarizer", {"x"}, {"bits"}, "ai.onnx.ml"), "threshold", 2.0f);
  b.ints("columns", {1, 2}, {2, 0});
  b.node("ArrayFeatureExtractor", {"x", "columns"}, {"picked"}, "ai.onnx.ml");
  set(b.node("Normalizer", {"x"}, {"unit"}, "ai.onnx.ml"), "norm", std::string("L1"));
  for (const char* name : {"scaled", "bits", "picked", "unit"}) b.output(name);
  const auto out = run(b, {iota({2, 3})});
  ASSERT_EQ(out.size(), 4u);
  EXPECT_EQ(out[0].f, (std::vector<double>{-1, -2, -0.5, 2, 4, 1}));
  EXPECT_EQ(out[1].f, (std::vector<double>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(out[2].f, (std::vector<double>{2, 0, 5, 3}));
  EXPECT_NEAR(out[3].f[1], 1.0 / 3, 1e-6);
  EXPECT_NEAR(out[3].f[3], 3.0 / 12, 1e-6);
}

/// What ONNX Runtime 1.32 gives for these rows.
TEST(ImportVersions, NormalizerKeepsTheSignOfTheLargestElement) {
  const std::vector<double> rows{1, -4, 2, -1, -4, -2, 0, 0, 0, -3, 4, 0, -3, 0, -1};
  const std::vector<std::pair<std::string, std::vector<double>>> expected{
      {"MAX", {0.5, -2, 1, 1, 4, 2, 0, 0, 0, -0.75, 1, 0, -3, 0, -1}},
      {"L1",
       {1.0 / 7, -4.0 / 7, 2.0 / 7, -1.0 / 7, -4.0 / 7, -2.0 / 7, 0, 0, 0, -3.0 / 7, 4.0 / 7, 0, -0.75, 0, -0.25}},
      {"L2",
       {0.2182179, -0.8728716, 0.4364358, -0.2182179, -0.8728716, -0.4364358, 0, 0, 0, -0.6, 0.8, 0, -0.9486833, 0,
        -0.3162278}}};
  for (const auto& [norm, wanted] : expected) {
    OnnxBuilder b(15);
    b.import("ai.onnx.ml", 3);
    b.input("x", {5, 3});
    set(b.node("Normalizer", {"x"}, {"y"}, "ai.onnx.ml"), "norm", norm);
    b.output("y");
    RefTensor x = make_ref_tensor(kFloat32, {5, 3});
    x.f = rows;
    const auto out = run(b, {x});
    ASSERT_EQ(out.size(), 1u);
    for (size_t k = 0; k < rows.size(); ++k) EXPECT_NEAR(out[0].f[k], wanted[k], 1e-6) << norm << " " << k;
  }
}

TEST(ImportVersions, NormalizerOfAnotherNormIsRefusedByName) {
  OnnxBuilder b(15);
  b.import("ai.onnx.ml", 3);
  b.input("x", {2, 3});
  set(b.node("Normalizer", {"x"}, {"y"}, "ai.onnx.ml"), "norm", std::string("L3"));
  b.output("y");
  const ImportResult result = b.import_model();
  ASSERT_EQ(result.unsupported.rows.size(), 1u);
  EXPECT_EQ(result.unsupported.rows[0].id, "unsupported-attribute");
  EXPECT_NE(to_string(result.unsupported).find("L3"), std::string::npos);
}

TEST(ImportVersions, PlacesOfTheSecondOperandOutOfRangeAreRefused) {
  for (const int64_t axis : {INT64_MIN, int64_t{-1}, int64_t{3}, INT64_MAX}) {
    OnnxBuilder b(6);
    b.input("a", {2, 3, 4});
    b.input("b", {3});
    set(set(b.node("Add", {"a", "b"}, {"y"}), "broadcast", int64_t{1}), "axis", axis);
    b.output("y");
    const ImportResult result = b.import_model();
    ASSERT_EQ(result.unsupported.rows.size(), 1u) << axis;
    EXPECT_EQ(result.unsupported.rows[0].id, "axis-out-of-range") << axis;
  }
}

TEST(ImportVersions, LstmWithWeightsInEightBits) {
  OnnxBuilder b(15);
  b.import("com.microsoft", 1);
  b.input("x", {2, 1, 2});
  const auto bytes = [&](const std::string& name, const Ints& shape, const std::vector<int>& values) {
    auto* t = b.graph().add_initializer();
    t->set_name(name);
    t->set_data_type(onnx::TensorProto::INT8);
    for (int64_t dim : shape) t->add_dims(dim);
    for (int value : values) t->add_int32_data(value);
  };
  // One unit: gates i, o, f, c from two inputs; 3 is the zero point.
  bytes("w", {1, 2, 4}, {13, 3, 3, 23, 3, 13, 3, 3});
  bytes("r", {1, 1, 4}, {0, 5, 0, 0});
  b.floats("scale", {1}, {0.1f});
  bytes("zero", {1}, {3});
  bytes("none", {1}, {0});
  b.node("DynamicQuantizeLSTM", {"x", "w", "r", "", "", "", "", "", "scale", "zero", "scale", "none"}, {"y", "h", "c"},
         "com.microsoft");
  set(*b.graph().mutable_node(0), "hidden_size", int64_t{1});
  b.output("y");
  const auto out = run(b, {iota({2, 1, 2}, 1)});
  ASSERT_EQ(out.size(), 1u);
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  // x = (1, 2), then (3, 4); weights of input 0: i 1, c 2; of input 1: o 1; recurrent: o 0.5.
  const double c0 = sigmoid(1) * std::tanh(2), h0 = sigmoid(2) * std::tanh(c0);
  const double c1 = sigmoid(0) * c0 + sigmoid(3) * std::tanh(6), h1 = sigmoid(4 + 0.5 * h0) * std::tanh(c1);
  EXPECT_NEAR(out[0].f[0], h0, 1e-6);
  EXPECT_NEAR(out[0].f[1], h1, 1e-6);
}

TEST(ImportVersions, DropoutAndBatchNormalizationForInference) {
  OnnxBuilder b(7);
  b.input("x", {1, 2, 1, 2});
  set(b.node("Dropout", {"x"}, {"d", "mask"}), "ratio", 0.3f);
  for (const char* name : {"scale", "bias", "mean", "var"}) b.floats(name, {2}, {1, 4});
  auto& norm = set(b.node("BatchNormalization", {"d", "scale", "bias", "mean", "var"}, {"y", "a", "b", "c", "e"}),
                   "epsilon", 0.0f);
  set(set(norm, "spatial", int64_t{1}), "momentum", 0.5f);
  b.output("y");
  const auto out = run(b, {iota({1, 2, 1, 2})});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].f, (std::vector<double>{0, 1, 0, 2}));
}

TEST(ImportVersions, SplitByNumberOfOutputs) {
  OnnxBuilder b(11);
  b.input("x", {6});
  b.node("Split", {"x"}, {"a", "b", "c"});
  set(b.node("Split", {"x"}, {"d", "e"}), "split", Ints{4, 2});
  for (const char* name : {"a", "b", "c", "d", "e"}) b.output(name);
  const auto out = run(b, {iota({6})});
  ASSERT_EQ(out.size(), 5u);
  EXPECT_EQ(out[1].f, (std::vector<double>{2, 3}));
  EXPECT_EQ(out[3].f, (std::vector<double>{0, 1, 2, 3}));
  EXPECT_EQ(out[4].f, (std::vector<double>{4, 5}));
}

TEST(ImportVersions, UpsampleAndTheFirstResize) {
  {
    OnnxBuilder b(9);
    b.input("x", {1, 1, 1, 3});
    b.floats("scales", {4}, {1, 1, 2, 2});
    b.node("Upsample", {"x", "scales"}, {"y"});
    b.output("y");
    const auto out = run(b, {iota({1, 1, 1, 3})});
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].f, (std::vector<double>{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2}));
  }
  OnnxBuilder b(10);
  b.input("x", {1, 1, 2, 4});
  b.floats("scales", {4}, {1, 1, 0.6f, 0.6f});
  b.node("Resize", {"x", "scales"}, {"y"});
  b.output("y");
  const auto out = run(b, {iota({1, 1, 2, 4}, 1)});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].shape, (Ints{1, 1, 1, 2}));
  EXPECT_EQ(out[0].f, (std::vector<double>{1, 3}));  // test_resize_downsample_scales_nearest of ONNX 1.5
}

TEST(ImportVersions, ScatterIsScatterElements) {
  OnnxBuilder b(9);
  b.input("x", {3});
  b.ints("at", {1}, {1});
  b.floats("u", {1}, {7});
  b.node("Scatter", {"x", "at", "u"}, {"y"});
  b.output("y");
  const auto out = run(b, {iota({3})});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].f, (std::vector<double>{0, 7, 2}));
}

TEST(ImportVersions, GroupNormalization18ScalesByGroup) {
  OnnxBuilder b(18);
  b.input("x", {1, 4, 2});
  b.floats("scale", {2}, {1, 10});
  b.floats("bias", {2}, {0, 100});
  set(set(b.node("GroupNormalization", {"x", "scale", "bias"}, {"y"}), "num_groups", int64_t{2}), "epsilon", 0.0f);
  b.output("y");
  const auto out = run(b, {iota({1, 4, 2})});
  ASSERT_EQ(out.size(), 1u);
  const double first = -1.5 / std::sqrt(1.25);
  EXPECT_NEAR(out[0].f[0], first, 1e-5);
  EXPECT_NEAR(out[0].f[4], 10 * first + 100, 1e-4);
}

TEST(ImportVersions, CastTakesNumbersAndNames) {
  OnnxBuilder b(13);
  b.input("x", {2});
  set(b.node("Cast", {"x"}, {"i"}), "to", int64_t{onnx::TensorProto::INT32});
  set(b.node("Cast", {"x"}, {"l"}), "to", std::string("INT64"));
  b.output("i");
  b.output("l");
  const auto out = run(b, {iota({2}, 1.5)});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].dtype, kInt32);
  EXPECT_EQ(out[1].dtype, kInt64);
  EXPECT_EQ(out[1].i, (Ints{1, 2}));
}

TEST(ImportVersions, OperatorsOfOnnxRuntime) {
  OnnxBuilder b(17);
  b.import("com.microsoft", 1);
  const std::string ms = "com.microsoft";
  b.input("x", {1, 2, 2});
  b.floats("bias", {2}, {0.5f, -0.5f});
  b.floats("one", {2}, {1, 1});
  b.node("BiasGelu", {"x", "bias"}, {"bg"}, ms);
  b.node("FastGelu", {"x", "bias"}, {"fg"}, ms);
  b.node("QuickGelu", {"x"}, {"qg"}, ms);
  set(set(b.node("FusedMatMul", {"x", "x"}, {"mm"}, ms), "transB", int64_t{1}), "alpha", 0.5f);
  set(b.node("SkipLayerNormalization", {"x", "x", "one", "bias"}, {"ln", "", "", "sum"}, ms), "epsilon", 0.0f);
  for (const char* name : {"bg", "fg", "qg", "mm", "ln", "sum"}) b.output(name);
  const auto out = run(b, {iota({1, 2, 2})});
  ASSERT_EQ(out.size(), 6u);
  const auto gelu = [](double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2))); };
  EXPECT_NEAR(out[0].f[0], gelu(0.5), 1e-6);
  EXPECT_NEAR(out[1].f[3], gelu(2.5), 1e-3);
  EXPECT_NEAR(out[2].f[2], 2 / (1 + std::exp(-1.702 * 2)), 1e-6);
  EXPECT_EQ(out[3].f, (std::vector<double>{0.5, 1.5, 1.5, 6.5}));
  EXPECT_NEAR(out[4].f[0], -1 + 0.5, 1e-5);
  EXPECT_EQ(out[5].f, (std::vector<double>{0, 2, 4, 6}));
}

}  // namespace
}  // namespace tensmith::graph
