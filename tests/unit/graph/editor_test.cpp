#include <gtest/gtest.h>

#include "graph/op_def.h"

namespace tensmith::graph {
namespace {

TensorType type(DType dtype, std::vector<Expr> shape) { return {dtype, std::move(shape), {}}; }

TEST(Editor, KeepsUsesAndTypes) {
  Graph graph;
  GraphEditor edit(graph);
  const Value x = edit.add_input("x", type(kFloat32, {2, 3}));
  const Value y = edit.add_input("y", type(kFloat32, {3}));
  const NodeId add = edit.add("Add", {x, y}, {}, "sum");
  edit.set_outputs({{add, 0}}, {"out"});
  EXPECT_EQ(to_string(graph.type({add, 0})), "f32[2, 3]");
  ASSERT_EQ(graph.uses(x).size(), 1u);
  EXPECT_EQ(graph.uses(x)[0].node, add);
  EXPECT_EQ(graph.uses({add, 0})[0].node, -1);
  EXPECT_TRUE(verify(graph).ok());

  const NodeId relu = edit.add("Relu", {x});
  edit.set_input(add, 0, {relu, 0});
  EXPECT_EQ(graph.uses(x).size(), 1u);
  EXPECT_EQ(graph.uses(x)[0].node, relu);
  edit.replace_uses({add, 0}, {relu, 0});
  EXPECT_EQ(graph.outputs[0], (Value{relu, 0}));
  EXPECT_TRUE(graph.uses({add, 0}).empty());
  EXPECT_EQ(edit.erase_dead(), 1);
  EXPECT_FALSE(graph.alive(add));
  EXPECT_EQ(graph.num_nodes(), 3);
  EXPECT_TRUE(verify(graph).ok()) << verify(graph).failure().message;
}

TEST(Editor, RefusesWrongTypesNamingNodeAndInput) {
  Graph graph;
  GraphEditor edit(graph);
  const Value x = edit.add_input("x", type(kFloat32, {2, 3}));
  const Value i = edit.add_input("i", type(kInt64, {2, 3}));
  try {
    edit.add("Add", {x, i}, {}, "sum");
    FAIL() << "types differ";
  } catch (const Error& error) {
    EXPECT_EQ(error.id(), "dtype-mismatch");
    EXPECT_NE(error.message().find("node 'sum' (Add): input 1 (B)"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("expected f32"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("got i64"), std::string::npos) << error.message();
  }
  // The refused node left nothing behind.
  EXPECT_EQ(graph.num_nodes(), 2);
  EXPECT_TRUE(graph.uses(x).empty());
  EXPECT_TRUE(verify(graph).ok());
}

TEST(Editor, RefusesUnknownAndMistypedAttributes) {
  Graph graph;
  GraphEditor edit(graph);
  const Value x = edit.add_input("x", type(kFloat32, {2, 3}));
  const auto id_of = [&](const char* attr, AttrValue value) {
    AttrMap attrs;
    attrs.set(attr, std::move(value));
    const auto added = edit.try_add(*find_op("Softmax"), {x}, attrs);
    return added ? std::string("ok") : added.failure().id;
  };
  EXPECT_EQ(id_of("axis", int64_t{1}), "ok");
  EXPECT_EQ(id_of("axes", int64_t{1}), "bad-attribute");
  EXPECT_EQ(id_of("axis", 1.0), "bad-attribute");
  EXPECT_EQ(id_of("axis", int64_t{7}), "axis-out-of-range");
}

TEST(Editor, RefusesWrongNumberOfInputs) {
  Graph graph;
  GraphEditor edit(graph);
  const Value x = edit.add_input("x", type(kFloat32, {2}));
  EXPECT_EQ(edit.try_add(*find_op("Add"), {x}).failure().id, "bad-arity");
  EXPECT_EQ(edit.try_add(*find_op("Relu"), {x, x}).failure().id, "bad-arity");
  EXPECT_EQ(edit.try_add(*find_op("Relu"), {Value{}}).failure().id, "bad-arity");
}

TEST(Editor, NamesStayUnique) {
  Graph graph;
  GraphEditor edit(graph);
  const Value x = edit.add_input("x", type(kFloat32, {2}));
  const Value a = {edit.add("Relu", {x}, {}, "n"), 0}, b = {edit.add("Relu", {x}, {}, "n"), 0};
  EXPECT_EQ(graph.value_name(a), "n");
  EXPECT_NE(graph.value_name(b), "n");
  edit.set_output_name(b, "n");
  EXPECT_NE(graph.value_name(b), "n");
  edit.set_outputs({a, b}, {"a", "b"});
  EXPECT_TRUE(verify(graph).ok());
}

TEST(Editor, ChangesSpreadToConsumers) {
  Graph graph;
  GraphEditor edit(graph);
  const Value x = edit.add_input("x", type(kFloat32, {2, 3}));
  AttrMap perm;
  perm.set("perm", std::vector<int64_t>{0, 1});
  const NodeId transpose = edit.add("Transpose", {x}, perm);
  const NodeId relu = edit.add("Relu", {{transpose, 0}});
  EXPECT_EQ(to_string(graph.type({relu, 0})), "f32[2, 3]");
  edit.set_attr(transpose, "perm", std::vector<int64_t>{1, 0});
  EXPECT_EQ(to_string(graph.type({relu, 0})), "f32[3, 2]");
}

TEST(Editor, BindsSymbolicDims) {
  Graph graph;
  GraphEditor edit(graph);
  const Var n = edit.dim("n"), s = edit.dim("s");
  const Value x = edit.add_input("x", type(kFloat32, {n, s, 4}));
  const Value y = edit.add_input("y", type(kFloat32, {n, s, 4}));
  const Value sum = {edit.add("Add", {x, y}), 0};
  edit.set_outputs({sum}, {"sum"});
  EXPECT_EQ(to_string(graph.type(sum)), "f32[n, s, 4]");
  EXPECT_FALSE(graph.type(sum).is_static());
  edit.bind_dims({{"s", 7}});
  EXPECT_EQ(to_string(graph.type(sum)), "f32[n, 7, 4]");
  ASSERT_EQ(graph.dims.size(), 1u);
  edit.bind_dims({{"n", 2}});
  EXPECT_EQ(graph.type(sum).static_shape(), (std::vector<int64_t>{2, 7, 4}));
  EXPECT_TRUE(verify(graph).ok());
  try {
    edit.bind_dims({{"batch", 1}});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.id(), "unknown-dim");
  }
}

TEST(Editor, ReplaceOfAnotherTypeIsOurFault) {
  Graph graph;
  GraphEditor edit(graph);
  const Value x = edit.add_input("x", type(kFloat32, {2})), y = edit.add_input("y", type(kFloat32, {3}));
  edit.set_outputs({x}, {"x"});
  EXPECT_THROW(edit.replace_uses(x, y), InternalError);
}

TEST(Graph, CloneIsDeepAndOrderIsStable) {
  Graph graph;
  GraphEditor edit(graph);
  const Value x = edit.add_input("x", type(kFloat32, {2}));
  const Value a = {edit.add("Relu", {x}), 0};
  const Value b = {edit.add("Neg", {a}), 0};
  edit.set_outputs({b}, {"b"});
  // An input that is newer than its reader comes first all the same.
  const Value late = {edit.add("Abs", {x}), 0};
  edit.set_input(b.node, 0, late);
  EXPECT_EQ(graph.topological_order(), (std::vector<NodeId>{x.node, a.node, late.node, b.node}));
  const Graph copy = graph.clone();
  const std::string before = to_string(copy);
  edit.set_input(b.node, 0, a);
  edit.erase_dead();
  EXPECT_EQ(to_string(copy), before);
  EXPECT_TRUE(verify(copy).ok());
  EXPECT_NE(to_string(graph), before);
}

TEST(Types, DimsAreComparedByMeaning) {
  const Var s("s"), t("t");
  EXPECT_TRUE(same_dim(s + 1, 1 + Expr(s)));
  EXPECT_TRUE(same_dim((s + 2) * 3, 3 * Expr(s) + 6));
  EXPECT_TRUE(same_dim(floor_div(s * 4, 4), s));
  EXPECT_FALSE(same_dim(s, t));
  EXPECT_FALSE(same_dim(s, 3));
  EXPECT_EQ(to_string(TensorType{kFloat32, {1, s, floor_div(s + 1, 2), (s - 1) * 2}, {}}),
            "f32[1, s, floor_div(s + 1, 2), (s - 1) * 2]");
}

}  // namespace
}  // namespace tensmith::graph
