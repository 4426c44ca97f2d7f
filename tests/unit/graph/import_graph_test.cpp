/// Structure of models: dims, functions, reports, everything that is wrong.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "graph/interpret.h"
#include "tests/unit/graph/onnx_builder.h"

namespace tensmith::graph {
namespace {

using Ints = std::vector<int64_t>;

TEST(ImportGraph, OpenDimsByNameAndPlace) {
  OnnxBuilder b;
  auto& x = b.input("x", {-1, -1, 4});
  x.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param("batch");
  auto& y = b.input("y", {-1, -1, 4});
  y.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param("batch");
  y.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(1)->set_dim_param("?");
  b.output("x");
  b.output("y");
  const auto types = [&](std::map<std::string, int64_t> dims) {
    const ImportResult result = b.import_model({.dims = std::move(dims), .limits = {}});
    return to_string(result.graph.type(result.graph.outputs[0])) + " " +
           to_string(result.graph.type(result.graph.outputs[1]));
  };
  EXPECT_EQ(types({}), "f32[batch, x.1, 4] f32[batch, y.1, 4]");
  EXPECT_EQ(types({{"batch", 2}, {"y.1", 3}}), "f32[2, x.1, 4] f32[2, 3, 4]");
  EXPECT_EQ(types({{"x.0", 5}}), "f32[5, x.1, 4] f32[batch, y.1, 4]");
  try {
    types({{"batsch", 2}});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.id(), "unknown-dim");
    EXPECT_NE(error.message().find("batch, x.1, y.1"), std::string::npos) << error.message();
  }
}

TEST(ImportGraph, OrderOfNodesDoesNotMatterAndNamesAreKept) {
  OnnxBuilder b;
  b.input("x", {2});
  b.node("Neg", {"h"}, {"y"});
  b.node("Relu", {"x"}, {"h"});
  b.output("y");
  const ImportResult result = b.import_model();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(to_string(result.graph), R"(graph "test" {
  %x: f32[2] = input
  %h: f32[2] = Relu(%x) "Relu_h"
  %y: f32[2] = Neg(%h) "Neg_y"
  return %y as "y"
}
)");
}

TEST(ImportGraph, InputsThatAreInitializersAreConstants) {
  OnnxBuilder b;
  b.input("x", {2});
  b.input("w", {2});
  b.floats("w", {2}, {1, 2});
  b.node("Add", {"x", "w"}, {"y"});
  b.output("y");
  const ImportResult result = b.import_model();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.graph.inputs.size(), 1u);
}

TEST(ImportGraph, WrongDeclaredShapesAreWarnings) {
  OnnxBuilder b;
  b.input("x", {2, 3});
  b.node("Relu", {"x"}, {"y"});
  b.output("y", {3, 2}, onnx::TensorProto::FLOAT);
  const ImportResult result = b.import_model();
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result.warnings.size(), 1u);
  EXPECT_EQ(result.warnings[0], "value 'y': the model declares f32[3, 2], its operators give f32[2, 3]");
}

TEST(ImportGraph, ReportListsEverythingAtOnce) {
  OnnxBuilder b(17);
  b.import("my.domain", 3);
  b.input("x", {2});
  b.node("Magic", {"x"}, {"a"});
  b.node("Magic", {"a"}, {"b"});
  b.node("Custom", {"b"}, {"c"}, "my.domain");
  b.node("Relu", {"c"}, {"d"});
  b.node("Foreign", {"d"}, {"e"}, "not.imported");
  set(b.node("Relu", {"x"}, {"f"}), "alpha", 1.0f);
  b.output("e");
  b.output("f");
  ImportResult result = b.import_model();
  EXPECT_FALSE(result.ok());
  ASSERT_EQ(result.unsupported.rows.size(), 4u) << to_string(result.unsupported);
  EXPECT_EQ(result.unsupported.rows[0].op, "Magic");
  EXPECT_EQ(result.unsupported.rows[0].count, 2);
  EXPECT_EQ(result.unsupported.rows[0].first_node, "Magic_a");
  EXPECT_EQ(result.unsupported.rows[0].version, 17);
  EXPECT_EQ(result.unsupported.rows[1].domain, "my.domain");
  EXPECT_EQ(result.unsupported.rows[1].version, 3);
  EXPECT_EQ(result.unsupported.rows[2].id, "unsupported-domain");
  EXPECT_EQ(result.unsupported.rows[3].id, "unsupported-attribute");
  try {
    std::move(result).take();
    FAIL();
  } catch (const UnsupportedError& error) {
    EXPECT_EQ(error.id(), "unsupported-model");
  }
}

TEST(ImportGraph, DeclaredTypesLetTheReportGoOn) {
  OnnxBuilder b(17);
  b.input("x", {2});
  b.node("Magic", {"x"}, {"a"});
  set(b.node("Cast", {"a"}, {"y"}), "to", int64_t{17});  // float8
  b.output("y");
  OnnxBuilder::set_type(*b.graph().add_value_info(), "a", onnx::TensorProto::FLOAT, {2});
  const ImportResult result = b.import_model();
  ASSERT_EQ(result.unsupported.rows.size(), 2u) << to_string(result.unsupported);
  EXPECT_EQ(result.unsupported.rows[1].id, "unsupported-dtype");
  EXPECT_NE(result.unsupported.rows[1].why.find("float8e4m3fn"), std::string::npos);
}

/// A function `twice(x) {alpha}` = LeakyRelu(x, alpha) + LeakyRelu(x, alpha) in domain "f".
onnx::FunctionProto& add_function(OnnxBuilder& b) {
  b.import("f", 1);
  auto* function = b.model().add_functions();
  function->set_domain("f");
  function->set_name("twice");
  function->add_input("in");
  function->add_output("out");
  function->add_attribute("alpha");
  auto* opset = function->add_opset_import();
  opset->set_version(13);
  auto* leaky = function->add_node();
  OnnxBuilder::fill(*leaky, "LeakyRelu", {"in"}, {"h"});
  auto& reference = attribute(*leaky, "alpha");
  reference.set_ref_attr_name("alpha");
  reference.set_type(onnx::AttributeProto::FLOAT);
  OnnxBuilder::fill(*function->add_node(), "Add", {"h", "h"}, {"out"});
  return *function;
}

TEST(ImportGraph, FunctionsAreInlined) {
  OnnxBuilder b;
  add_function(b);
  b.input("h", {1});  // the same name as a value inside
  set(b.node("twice", {"h"}, {"y"}, "f"), "alpha", 0.5f);
  b.node("twice", {"y"}, {"z"}, "f");  // alpha falls back to LeakyRelu's own default
  b.output("z");
  const ImportResult result = b.import_model();
  ASSERT_TRUE(result.ok()) << to_string(result.unsupported);
  EXPECT_TRUE(verify(result.graph).ok());
  const auto out = interpret(result.graph, {{kFloat32, {1}, {-1}, {}}});
  ASSERT_TRUE(out.ok());
  EXPECT_NEAR((*out)[0].f[0], -0.02, 1e-7);
}

TEST(ImportGraph, FunctionsMayPassInputsThroughAndNest) {
  OnnxBuilder b;
  add_function(b);
  auto* outer = b.model().add_functions();
  outer->set_domain("f");
  outer->set_name("outer");
  outer->add_input("a");
  outer->add_output("b");
  outer->add_output("a");
  auto* opset = outer->add_opset_import();
  opset->set_domain("f");
  opset->set_version(1);
  OnnxBuilder::fill(*outer->add_node(), "twice", {"a"}, {"b"}, "f");
  b.input("x", {1});
  b.node("outer", {"x"}, {"y", "same"}, "f");
  b.output("y");
  b.output("same");
  // The passing Identity is of the default domain, which the function's imports do not name.
  auto* standard = outer->add_opset_import();
  standard->set_version(13);
  const ImportResult result = b.import_model();
  ASSERT_TRUE(result.ok()) << to_string(result.unsupported);
  const auto out = interpret(result.graph, {{kFloat32, {1}, {3}, {}}});
  ASSERT_TRUE(out.ok());
  EXPECT_EQ((*out)[0].f[0], 6);
  EXPECT_EQ((*out)[1].f[0], 3);
}

/// Adds `If(cond) { relu or neg of x }` with the branches in the given graph; gives the node.
onnx::NodeProto& add_if(onnx::GraphProto& graph, const std::string& condition, const std::string& x,
                        const std::string& y) {
  auto& node = OnnxBuilder::add_node(graph, "If", {condition}, {y});
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto& attr = attribute(node, branch);
    attr.set_type(onnx::AttributeProto::GRAPH);
    const std::string inner = y + "." + branch;
    OnnxBuilder::add_node(*attr.mutable_g(), std::string(branch) == "then_branch" ? "Relu" : "Neg", {x}, {inner});
    attr.mutable_g()->add_output()->set_name(inner);
  }
  return node;
}

TEST(ImportGraph, BranchesAreClosedGraphs) {
  OnnxBuilder b;
  b.input("x", {2});
  b.input("c", {}, onnx::TensorProto::BOOL);
  add_if(b.graph(), "c", "x", "y");
  b.output("y");
  ImportResult result = b.import_model();
  ASSERT_TRUE(result.ok()) << to_string(result.unsupported);
  ASSERT_TRUE(verify(result.graph).ok()) << verify(result.graph).failure().message;
  const std::string text = to_string(result.graph);
  EXPECT_NE(text.find("If(%c, %x) {captures = 1, else_branch = graph \"\" {"), std::string::npos) << text;
  const auto again = parse_graph(text);
  ASSERT_TRUE(again.ok()) << again.failure().message;
  EXPECT_EQ(to_string(*again), text);
  for (int64_t c : {0, 1}) {
    const auto out = interpret(result.graph, {{kFloat32, {2}, {-1, 2}, {}}, {kBool, {}, {}, {c}}});
    ASSERT_TRUE(out.ok()) << out.failure().message;
    EXPECT_EQ((*out)[0].f, c ? (std::vector<double>{0, 2}) : (std::vector<double>{1, -2}));
  }
}

TEST(ImportGraph, KnownConditionsTakeTheBranchInPlace) {
  OnnxBuilder b;
  b.input("x", {2, 1});
  b.ints("one", {}, {1});
  // The condition is computed from the shape, as exporters of squeeze do it.
  b.node("Shape", {"x"}, {"s"});
  b.node("Gather", {"s", "one"}, {"d"});
  b.node("Equal", {"d", "one"}, {"c"});
  add_if(b.graph(), "c", "x", "y");
  b.output("y");
  const ImportResult result = b.import_model();
  ASSERT_TRUE(result.ok()) << to_string(result.unsupported);
  EXPECT_NE(to_string(result.graph).find("Relu(%x)"), std::string::npos) << to_string(result.graph);
  EXPECT_EQ(to_string(result.graph).find("If("), std::string::npos) << to_string(result.graph);
}

TEST(ImportGraph, InputsMayBeFixedWhereTheyDecide) {
  OnnxBuilder b;
  b.input("x", {2, 3});
  b.input("c", {}, onnx::TensorProto::BOOL);
  auto& node = add_if(b.graph(), "c", "x", "y");
  // A branch that is wrong for these sizes: only the other one can be taken.
  auto& inner = *node.mutable_attribute(1)->mutable_g()->mutable_node(0);
  inner.set_op_type("MatMul");
  inner.add_input("x");
  b.output("y");
  const ImportResult open = b.import_model();
  ASSERT_EQ(open.unsupported.rows.size(), 1u);
  EXPECT_EQ(open.unsupported.rows[0].id, "unsupported-branch");
  ImportOptions options;
  options.constants["c"] = Constant::from_ints(kBool, {}, std::vector<int64_t>{1});
  const ImportResult fixed = b.import_model(options);
  ASSERT_TRUE(fixed.ok()) << to_string(fixed.unsupported);
  EXPECT_EQ(fixed.graph.inputs.size(), 1u);
  options.constants["d"] = options.constants["c"];
  EXPECT_THROW(b.import_model(options), UserError);
  options.constants.erase("d");
  options.constants["c"] = Constant::from_ints(kInt64, {}, std::vector<int64_t>{1});
  EXPECT_THROW(b.import_model(options), UserError);
}

TEST(ImportGraph, DeepNestingIsLinearAndLimited) {
  const auto nested = [](int depth) {
    OnnxBuilder b;
    b.input("x", {2});
    b.input("c", {}, onnx::TensorProto::BOOL);
    onnx::GraphProto* graph = &b.graph();
    for (int k = 0; k < depth; ++k) {
      auto& node = add_if(*graph, "c", "x", "y" + std::to_string(k));
      if (k > 0) graph->mutable_output(0)->set_name("y" + std::to_string(k));
      graph = node.mutable_attribute(0)->mutable_g();
      graph->clear_node();
    }
    OnnxBuilder::add_node(*graph, "Relu", {"x"}, {graph->output(0).name()});
    b.output("y0");
    return b;
  };
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(nested(20).import_model().ok());
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 1.0);
  ImportOptions shallow;
  shallow.limits.nesting = 10;
  try {
    nested(20).import_model(shallow);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.id(), "too-deep");
  }
  try {
    nested(120).import_model();  // deeper than protobuf's own limit
    FAIL();
  } catch (const UserError& error) {
    EXPECT_TRUE(error.id() == "too-deep" || error.id() == "not-a-model") << error.id();
  }
}

/// What is wrong, and the id that says so.
struct Wrong {
  const char* id;
  std::function<void(OnnxBuilder&)> bend;
};

TEST(ImportGraph, EveryFaultHasItsError) {
  const Wrong cases[] = {
      {"unknown-input", [](OnnxBuilder& b) { b.graph().mutable_node(0)->set_input(0, "nope"); }},
      {"unknown-input", [](OnnxBuilder& b) { b.graph().mutable_output(0)->set_name("nope"); }},
      {"cyclic-graph", [](OnnxBuilder& b) { b.graph().mutable_node(0)->set_input(0, "y"); }},
      {"duplicate-name", [](OnnxBuilder& b) { b.graph().mutable_node(1)->set_output(0, "h"); }},
      {"duplicate-name", [](OnnxBuilder& b) { b.graph().mutable_node(1)->set_output(0, "x"); }},
      {"duplicate-name", [](OnnxBuilder& b) { b.graph().mutable_node(1)->set_output(0, "w"); }},
      {"duplicate-name", [](OnnxBuilder& b) { b.input("x", {1}); }},
      {"duplicate-name", [](OnnxBuilder& b) { b.floats("w", {1}, {1}); }},
      {"duplicate-name", [](OnnxBuilder& b) { b.output("y"); }},
      {"bad-opset", [](OnnxBuilder& b) { b.model().mutable_opset_import(0)->set_version(0); }},
      {"bad-opset", [](OnnxBuilder& b) { b.model().mutable_opset_import(0)->set_version(28); }},
      {"bad-opset", [](OnnxBuilder& b) { b.model().mutable_opset_import(0)->set_version(-1); }},
      {"bad-opset", [](OnnxBuilder& b) { b.model().clear_opset_import(); }},
      {"bad-ir-version", [](OnnxBuilder& b) { b.model().set_ir_version(2); }},
      {"bad-ir-version", [](OnnxBuilder& b) { b.model().clear_ir_version(); }},
      {"not-a-model", [](OnnxBuilder& b) { b.model().clear_graph(); }},
      {"not-a-model", [](OnnxBuilder& b) { b.graph().clear_output(); }},
      {"bad-shape", [](OnnxBuilder& b) { b.input("huge", {int64_t{1} << 41}); }},
      {"shape-mismatch",
       [](OnnxBuilder& b) {
         b.floats("v", {3}, {1, 2, 3}), b.graph().mutable_node(1)->set_input(1, "v");
       }},
      {"dtype-mismatch",
       [](OnnxBuilder& b) {
         b.ints("v", {2}, {1, 2}), b.graph().mutable_node(1)->set_input(1, "v");
       }},
      {"bad-arity", [](OnnxBuilder& b) { b.graph().mutable_node(1)->mutable_input()->RemoveLast(); }},
      {"bad-arity", [](OnnxBuilder& b) { b.graph().mutable_node(0)->clear_input(); }},
      {"bad-arity", [](OnnxBuilder& b) { b.graph().mutable_node(0)->add_input("x"); }},
      {"bad-arity", [](OnnxBuilder& b) { b.node("Resize", {}, {"r"}); }},
      {"bad-arity",
       [](OnnxBuilder& b) { b.model().mutable_opset_import(0)->set_version(11), b.node("Softmax", {}, {"r"}); }},
      {"bad-attribute", [](OnnxBuilder& b) { set(b.node("Softmax", {"x"}, {"s"}), "axis", 0.5f); }},
      {"bad-attribute",
       [](OnnxBuilder& b) { set(set(b.node("Softmax", {"x"}, {"s"}), "axis", int64_t{0}), "axis", int64_t{0}); }},
      {"axis-out-of-range", [](OnnxBuilder& b) { set(b.node("Softmax", {"x"}, {"s"}), "axis", int64_t{5}); }},
      {"bad-initializer", [](OnnxBuilder& b) { b.graph().mutable_initializer(0)->add_float_data(3); }},
      {"bad-initializer", [](OnnxBuilder& b) { b.graph().mutable_initializer(0)->clear_float_data(); }},
      {"bad-initializer", [](OnnxBuilder& b) { b.graph().mutable_initializer(0)->set_raw_data("12345678"); }},
      {"bad-initializer", [](OnnxBuilder& b) { b.graph().mutable_initializer(0)->add_int32_data(1); }},
      {"bad-initializer", [](OnnxBuilder& b) { b.graph().mutable_initializer(0)->set_dims(0, -2); }},
      {"bad-initializer", [](OnnxBuilder& b) { b.graph().mutable_initializer(0)->clear_data_type(); }},
      {"bad-initializer", [](OnnxBuilder& b) { b.graph().mutable_initializer(0)->mutable_segment(); }},
      {"bad-initializer",
       [](OnnxBuilder& b) {
         for (int k = 0; k < 3; ++k) b.graph().mutable_initializer(0)->add_dims(int64_t{1} << 40);
       }},
      {"too-large", [](OnnxBuilder& b) { b.graph().mutable_initializer(0)->set_dims(0, int64_t{1} << 40); }},
      {"external-data-outside",
       [](OnnxBuilder& b) {
         b.graph().mutable_initializer(0)->clear_float_data();
         b.graph().mutable_initializer(0)->set_data_location(onnx::TensorProto::EXTERNAL);
       }},
      {"recursive-function",
       [](OnnxBuilder& b) {
         OnnxBuilder::fill(*add_function(b).add_node(), "twice", {"in"}, {"loop"}, "f");
         b.node("twice", {"x"}, {"q"}, "f");
       }},
      {"bad-function",
       [](OnnxBuilder& b) {
         add_function(b);
         b.node("twice", {"x", "x"}, {"q"}, "f");
       }},
      {"duplicate-name",
       [](OnnxBuilder& b) {
         add_function(b);
         add_function(b);
       }},
  };
  for (const Wrong& wrong : cases) {
    OnnxBuilder b;
    b.input("x", {2});
    b.floats("w", {2}, {1, 2});
    b.node("Relu", {"x"}, {"h"});
    b.node("Add", {"h", "w"}, {"y"});
    b.output("y");
    ASSERT_TRUE(b.import_model().ok());
    wrong.bend(b);
    const auto index = std::to_string(&wrong - cases);
    try {
      const ImportResult result = b.import_model();
      ADD_FAILURE() << "case " << index << " (" << wrong.id << ") was accepted: " << to_string(result.graph)
                    << to_string(result.unsupported);
    } catch (const UserError& error) {
      EXPECT_EQ(error.id(), wrong.id) << "case " << index << ": " << error.message();
      EXPECT_NE(error.message().back(), '.') << error.message();
    }
  }
}

TEST(ImportGraph, FunctionsThatCallTwiceAreLimited) {
  OnnxBuilder b;
  b.import("f", 1);
  for (int k = 0; k < 40; ++k) {
    auto* function = b.model().add_functions();
    function->set_domain("f");
    function->set_name("f" + std::to_string(k));
    function->add_input("x");
    function->add_output("z");
    function->add_opset_import()->set_version(13);
    auto* opset = function->add_opset_import();
    opset->set_domain("f");
    opset->set_version(1);
    const std::string next = "f" + std::to_string(k + 1);
    OnnxBuilder::fill(*function->add_node(), k < 39 ? next : "Relu", {"x"}, {"y"}, k < 39 ? "f" : "");
    OnnxBuilder::fill(*function->add_node(), k < 39 ? next : "Relu", {"y"}, {"z"}, k < 39 ? "f" : "");
  }
  b.input("x", {1});
  b.node("f0", {"x"}, {"y"}, "f");
  b.output("y");
  ImportOptions options;
  options.limits.nodes = 10000;
  try {
    b.import_model(options);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.id(), "too-many-nodes");
  }
}

TEST(ImportGraph, BytesThatAreNoModel) {
  const auto id_of = [](const std::string& bytes) -> std::string {
    try {
      import_onnx_bytes(bytes.data(), bytes.size());
      return "ok";
    } catch (const UserError& error) {
      return error.id();
    }
  };
  EXPECT_EQ(id_of(""), "not-a-model");
  EXPECT_EQ(id_of("hello, this is a text file\n"), "not-a-model");
  EXPECT_EQ(id_of("PK\x03\x04 a zip archive"), "not-a-model");
  EXPECT_EQ(id_of("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), "not-a-model");
  EXPECT_EQ(id_of(std::string(1000, '\xff')), "not-a-model");
  OnnxBuilder b;
  b.input("x", {2});
  b.node("Relu", {"x"}, {"y"});
  b.output("y");
  const std::string whole = b.bytes();
  EXPECT_EQ(id_of(whole), "ok");
  EXPECT_EQ(id_of(whole.substr(0, whole.size() - 3)), "truncated-model");
  EXPECT_THROW(import_onnx("/no/such/model.onnx"), UserError);
  EXPECT_THROW(import_onnx("/tmp"), UserError);
}

/// A model with something of everything, for damage.
std::string rich_model() {
  OnnxBuilder b;
  add_function(b);
  b.input("x", {2, -1});
  b.floats("w", {2, 1}, {1, 2});
  b.ints("shape", {1}, {-1});
  set(b.node("twice", {"x"}, {"t"}, "f"), "alpha", 0.5f);
  b.node("Add", {"t", "w"}, {"a"});
  b.node("Reshape", {"a", "shape"}, {"r"});
  set(b.node("Softmax", {"r"}, {"y"}), "axis", int64_t{-1});
  b.output("y", {2}, onnx::TensorProto::FLOAT);
  return b.bytes();
}

/// Damaged files give an error, a report or another model, and never anything worse.
void import_damaged(const std::string& bytes) {
  try {
    ImportResult result = import_onnx_bytes(bytes.data(), bytes.size());
    if (result.ok()) {
      const auto ok = verify(result.graph);
      EXPECT_TRUE(ok.ok()) << ok.failure().message;
    }
  } catch (const UserError& error) {
    EXPECT_FALSE(error.id().empty());
  } catch (const UnsupportedError& error) {
    EXPECT_FALSE(error.id().empty());
  }
}

TEST(ImportGraph, SurvivesEveryTruncation) {
  const std::string model = rich_model();
  for (size_t size = 0; size < model.size(); ++size) import_damaged(model.substr(0, size));
}

TEST(ImportGraph, SurvivesEveryFlippedBit) {
  const std::string model = rich_model();
  for (size_t bit = 0; bit < model.size() * 8; ++bit) {
    std::string damaged = model;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    import_damaged(damaged);
  }
}

}  // namespace
}  // namespace tensmith::graph
