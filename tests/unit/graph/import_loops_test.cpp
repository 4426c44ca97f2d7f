/// Loops of known length, and models whose shapes depend on the values of inputs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "graph/import/specialize.h"
#include "tests/unit/graph/onnx_builder.h"

namespace tensmith::graph {
namespace {

using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;

RefTensor vector_of(const Doubles& values) {
  RefTensor t = make_ref_tensor(kFloat32, {static_cast<int64_t>(values.size())});
  t.f = values;
  return t;
}

/// The id of the UserError that import throws, or nothing.
std::string import_error(const OnnxBuilder& builder) {
  try {
    builder.import_model();
  } catch (const UserError& error) {
    return error.id();
  }
  return "";
}

void declare(onnx::ValueInfoProto& info, const std::string& name, int dtype, const Ints& shape) {
  OnnxBuilder::set_type(info, name, dtype, shape);
}

/// A body `v = v + step` that also gives each v; goes on while iteration < `last`.
onnx::GraphProto counting_body(int64_t last) {
  onnx::GraphProto body;
  body.set_name("body");
  declare(*body.add_input(), "i", onnx::TensorProto::INT64, {});
  declare(*body.add_input(), "go", onnx::TensorProto::BOOL, {});
  declare(*body.add_input(), "v", onnx::TensorProto::FLOAT, {2});
  auto& limit = OnnxBuilder::add_node(body, "Constant", {}, {"limit"});
  set(limit, "value_int", last);
  OnnxBuilder::add_node(body, "Less", {"i", "limit"}, {"again"});
  OnnxBuilder::add_node(body, "Add", {"v", "step"}, {"next"});
  OnnxBuilder::add_node(body, "Identity", {"next"}, {"row"});
  for (const char* name : {"again", "next", "row"}) body.add_output()->set_name(name);
  return body;
}

void set_body(onnx::NodeProto& node, const onnx::GraphProto& body) {
  auto& a = attribute(node, "body");
  a.set_type(onnx::AttributeProto::GRAPH);
  *a.mutable_g() = body;
}

TEST(ImportLoops, ALoopOfKnownLengthIsUnrolled) {
  OnnxBuilder b(16);
  b.input("x", {2});
  b.input("step", {2});
  b.ints("count", {}, {3});
  set_body(b.node("Loop", {"count", "", "x"}, {"last", "rows"}), counting_body(100));
  b.output("last");
  b.output("rows");
  const auto out = run(b, {vector_of({1, 2}), vector_of({10, 20})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].f, (Doubles{31, 62}));
  EXPECT_EQ(out[1].shape, (Ints{3, 2}));
  EXPECT_EQ(out[1].f, (Doubles{11, 22, 21, 42, 31, 62}));
}

TEST(ImportLoops, TheConditionOfTheBodyEndsTheLoop) {
  OnnxBuilder b(16);
  b.input("x", {2});
  b.input("step", {2});
  // No count: the condition alone decides; it is false for the first time in turn 1.
  set_body(b.node("Loop", {"", "", "x"}, {"last", "rows"}), counting_body(1));
  b.output("last");
  b.output("rows");
  const auto out = run(b, {vector_of({1, 2}), vector_of({10, 20})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].f, (Doubles{21, 42}));
  EXPECT_EQ(out[1].shape, (Ints{2, 2}));
}

TEST(ImportLoops, EndlessAndUnknownLoopsAreRefused) {
  for (const bool endless : {true, false}) {
    OnnxBuilder b(16);
    b.input("x", {2});
    b.input("step", {2});
    if (!endless) b.input("count", {}, onnx::TensorProto::INT64);
    set_body(b.node("Loop", {endless ? "" : "count", "", "x"}, {"last", "rows"}), counting_body(1'000'000'000));
    b.output("last");
    const ImportResult result = b.import_model();
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.unsupported.rows[0].id, "unsupported-control-flow") << to_string(result.unsupported);
  }
}

/// Loops of `turns` turns behind one another.
OnnxBuilder chain_of_loops(int loops, int64_t turns) {
  OnnxBuilder b(16);
  b.input("x0", {2});
  b.input("step", {2});
  b.ints("count", {}, {turns});
  for (int k = 0; k < loops; ++k)
    set_body(b.node("Loop", {"count", "", "x" + std::to_string(k)}, {"x" + std::to_string(k + 1), ""}),
             counting_body(1'000'000));
  b.output("x" + std::to_string(loops));
  return b;
}

TEST(ImportLoops, AllLoopsOfAModelShareOneBudget) {
  ImportOptions options;
  options.limits.unrolled_nodes = 300;
  EXPECT_TRUE(chain_of_loops(3, 5).import_model(options).ok());
  const ImportResult result = chain_of_loops(40, 5).import_model(options);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.unsupported.rows[0].id, "unsupported-control-flow");
  EXPECT_LT(result.graph.num_nodes(), 500);
  // By default, a file of many long loops does not become millions of nodes either.
  const ImportResult many = chain_of_loops(200, 1'000).import_model();
  EXPECT_FALSE(many.ok());
  EXPECT_LT(many.graph.num_nodes(), 60'000);
}

TEST(ImportLoops, UnrollingThatFailsLeavesNoNodes) {
  OnnxBuilder b(16);
  b.input("x", {2});
  b.input("step", {2});
  set_body(b.node("Loop", {"", "", "x"}, {"last", "rows"}), counting_body(1'000'000'000));
  b.output("last");
  const ImportResult result = b.import_model();
  ASSERT_FALSE(result.ok());
  EXPECT_LT(result.graph.num_nodes(), 10);
}

TEST(ImportLoops, WhatATurnWorksOnMustBeGiven) {
  OnnxBuilder loop(16);
  loop.input("step", {2});
  loop.ints("count", {}, {3});
  set_body(loop.node("Loop", {"count", "", ""}, {"last", "rows"}), counting_body(100));
  loop.output("last");
  EXPECT_EQ(import_error(loop), "bad-arity");

  for (const auto& [inputs, scans, id] : {std::tuple{std::vector<std::string>{"x", ""}, int64_t{1}, "bad-arity"},
                                          {{"", "x"}, int64_t{1}, "bad-arity"},
                                          {{"x"}, int64_t{1}, "bad-arity"},
                                          {{"x", "x"}, INT64_MIN, "bad-attribute"},
                                          {{"x", "x"}, INT64_MAX, "bad-attribute"}}) {
    OnnxBuilder b(16);
    b.input("x", {2});
    onnx::GraphProto body;
    body.set_name("body");
    for (const char* name : {"s", "e"}) declare(*body.add_input(), name, onnx::TensorProto::FLOAT, {2});
    OnnxBuilder::add_node(body, "Identity", {"s"}, {"out"});
    body.add_output()->set_name("out");
    auto& scan = b.node("Scan", inputs, {"total"});
    set_body(scan, body);
    set(scan, "num_scan_inputs", scans);
    b.output("total");
    EXPECT_EQ(import_error(b), id) << scans;
  }
}

TEST(ImportLoops, ScanRunsAlongAxesInBothDirections) {
  for (const int64_t backward : {0, 1}) {
    OnnxBuilder b(16);
    b.input("state", {2});
    b.input("x", {2, 3});
    onnx::GraphProto body;
    body.set_name("body");
    declare(*body.add_input(), "s", onnx::TensorProto::FLOAT, {2});
    declare(*body.add_input(), "column", onnx::TensorProto::FLOAT, {2});
    OnnxBuilder::add_node(body, "Add", {"s", "column"}, {"sum"});
    OnnxBuilder::add_node(body, "Identity", {"sum"}, {"out"});
    for (const char* name : {"sum", "out"}) body.add_output()->set_name(name);
    auto& scan = b.node("Scan", {"state", "x"}, {"total", "sums"});
    set_body(scan, body);
    set(scan, "num_scan_inputs", int64_t{1});
    set(scan, "scan_input_axes", Ints{1});
    set(scan, "scan_input_directions", Ints{backward});
    set(scan, "scan_output_axes", Ints{-1});
    set(scan, "scan_output_directions", Ints{backward});
    b.output("total");
    b.output("sums");
    RefTensor x = make_ref_tensor(kFloat32, {2, 3});
    x.f = {1, 2, 3, 10, 20, 30};
    const auto out = run(b, {vector_of({100, 200}), x});
    ASSERT_EQ(out.size(), 2u);
    EXPECT_EQ(out[0].f, (Doubles{106, 260}));
    EXPECT_EQ(out[1].shape, (Ints{2, 3}));
    EXPECT_EQ(out[1].f, backward ? (Doubles{106, 105, 103, 260, 250, 230}) : (Doubles{101, 103, 106, 210, 230, 260}));
  }
}

class Specialize : public testing::Test {
 protected:
  std::string save(const OnnxBuilder& builder) {
    const std::string path = testing::TempDir() + "specialize_" + std::to_string(getpid()) + ".onnx";
    std::ofstream(path, std::ios::binary) << builder.bytes();
    return path;
  }
  static Constant numbers(const Ints& values) {
    return Constant::from_ints(kInt64, {static_cast<int64_t>(values.size())}, values);
  }
};

TEST_F(Specialize, FixesOnlyWhatDecidesShapes) {
  OnnxBuilder b;
  b.input("x", {2, 6});
  b.input("shape", {2}, onnx::TensorProto::INT64);
  b.input("shift", {2}, onnx::TensorProto::INT64);
  b.node("Reshape", {"x", "shape"}, {"rows"});
  b.node("Cast", {"shift"}, {"as_float"}).add_attribute()->CopyFrom([] {
    onnx::AttributeProto to;
    to.set_name("to");
    to.set_type(onnx::AttributeProto::INT);
    to.set_i(onnx::TensorProto::FLOAT);
    return to;
  }());
  b.node("Reshape", {"as_float", "column"}, {"shifts"});
  b.ints("column", {2}, {1, 2});
  b.node("Concat", {"rows", "shifts"}, {"y"}).add_attribute()->CopyFrom([] {
    onnx::AttributeProto axis;
    axis.set_name("axis");
    axis.set_type(onnx::AttributeProto::INT);
    axis.set_i(0);
    return axis;
  }());
  b.output("y");
  const std::string path = save(b);
  EXPECT_FALSE(has_known_shapes(import_onnx(path)));
  const auto special = specialize_shapes(path, {}, {{"shape", numbers({6, 2})}, {"shift", numbers({3, 4})}});
  ASSERT_TRUE(special.has_value());
  EXPECT_EQ(special->fixed, std::vector<std::string>{"shape"});
  EXPECT_EQ(special->import.graph.inputs.size(), 2u);
  EXPECT_EQ(to_string(special->import.graph.type(special->import.graph.outputs[0])), "f32[7, 2]");
}

TEST_F(Specialize, DoesNotFixDataWhoseValuesDecideTheSizeOfTheResult) {
  OnnxBuilder b;
  b.input("x", {4}, onnx::TensorProto::INT64);
  b.node("NonZero", {"x"}, {"where"});
  b.output("where");
  EXPECT_FALSE(specialize_shapes(save(b), {}, {{"x", numbers({1, 0, 2, 0})}}).has_value());
}

}  // namespace
}  // namespace tensmith::graph
