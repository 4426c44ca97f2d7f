// Shape arithmetic over symbolic dims, the index expressions of operators that move elements, and decompositions.
#include <gtest/gtest.h>

#include "graph/dim_facts.h"
#include "graph/interpret.h"
#include "graph/ops/dim_product.h"
#include "graph/ops/reshape_index.h"
#include "graph/ops/resize_axis.h"
#include "graph/passes/decompose.h"
#include "tensor/equal_hash.h"
#include "tensor/print.h"
#include "tensor/walk.h"

namespace tensmith::graph {
namespace {

/// A graph under construction with short ways to add nodes.
class Builder {
 public:
  Var dim(const std::string& name) { return edit_.dim(name); }
  Value input(const std::string& name, DType dtype, std::vector<Expr> shape) {
    return edit_.add_input(name, {dtype, std::move(shape), {}});
  }
  Value ints(const std::vector<int64_t>& values) {
    return edit_.add_constant(Constant::from_ints(kInt64, {static_cast<int64_t>(values.size())}, values));
  }
  Value scalar(int64_t value) { return edit_.add_constant(Constant::from_ints(kInt64, {}, std::span(&value, 1))); }
  Value node(const std::string& op, std::vector<Value> inputs, AttrMap attrs = {}, int output = 0, int outputs = -1) {
    return {edit_.add(op, std::move(inputs), std::move(attrs), {}, outputs), output};
  }
  std::string type(Value v) const { return to_string(graph_.type(v)); }
  std::string elements(Value v) const {
    std::string text;
    for (const Expr& element : graph_.type(v).value) text += (text.empty() ? "" : ", ") + dim_to_string(element);
    return text;
  }
  Result<void> supports(Value v) const {
    const Node& node = graph_.node(v.node);
    InferContext context{node, {}, {}, static_cast<int>(node.types.size())};
    for (const Value& input : node.inputs) {
      context.inputs.push_back(input.given() ? &graph_.type(input) : nullptr);
      context.constants.push_back(input.given() ? graph_.constant(input) : nullptr);
    }
    return node.op->supports ? node.op->supports(context) : Result<void>();
  }
  static AttrMap attrs(std::initializer_list<std::pair<const char*, AttrValue>> list) {
    AttrMap map;
    for (const auto& [name, value] : list) map.set(name, value);
    return map;
  }

  Graph graph_;
  GraphEditor edit_{graph_};
};

AttrValue list(std::vector<int64_t> values) { return AttrValue(std::move(values)); }

TEST(ShapeOps, HeadsAreSplitByAShapeThatIsComputed) {
  Builder b;
  const Value x = b.input("x", kFloat32, {b.dim("batch"), b.dim("seq"), 768});
  const Value shape = b.node("Shape", {x});
  EXPECT_EQ(b.elements(shape), "batch, seq, 768");
  const Value batch = b.node("Unsqueeze", {b.node("Gather", {shape, b.scalar(0)}), b.ints({0})});
  const Value seq = b.node("Slice", {shape, b.ints({1}), b.ints({-1})});
  const Value head = b.node("Div", {b.node("Gather", {shape, b.scalar(-1)}), b.scalar(12)});
  const Value wanted = b.node("Concat", {batch, seq, b.ints({12}), b.node("Unsqueeze", {head, b.ints({0})})},
                              Builder::attrs({{"axis", int64_t{0}}}));
  EXPECT_EQ(b.elements(wanted), "batch, seq, 12, 64");
  const Value heads = b.node("Reshape", {x, wanted});
  EXPECT_EQ(b.type(heads), "f32[batch, seq, 12, 64]");
  EXPECT_TRUE(b.supports(heads).ok());
  const Value turned = b.node("Transpose", {heads}, Builder::attrs({{"perm", list({0, 2, 1, 3})}}));
  const Value flat = b.node("Reshape", {turned, b.ints({0, 0, -1})});
  EXPECT_EQ(b.type(flat), "f32[batch, 12, seq * 64]");
}

TEST(ShapeOps, WildDimsCancelSymbols) {
  Builder b;
  const Var n = b.dim("n"), s = b.dim("s");
  const Value x = b.input("x", kFloat32, {n, s, 12, 64});
  EXPECT_EQ(b.type(b.node("Reshape", {x, b.ints({0, 0, -1})})), "f32[n, s, 768]");
  EXPECT_EQ(b.type(b.node("Reshape", {x, b.ints({-1, 768})})), "f32[s * n, 768]");
  EXPECT_EQ(b.type(b.node("Reshape", {x, b.ints({-1, 12, 64})})), "f32[s * n, 12, 64]");
  EXPECT_EQ(b.type(b.node("Flatten", {x}, Builder::attrs({{"axis", int64_t{2}}}))), "f32[s * n, 768]");
  // A fixed size in the place of a symbol may differ at run time.
  const Value fixed = b.node("Reshape", {x, b.ints({1, 17, 12, 64})});
  ASSERT_FALSE(b.supports(fixed).ok());
  EXPECT_EQ(b.supports(fixed).failure().id, "dynamic-shape");
}

TEST(ShapeOps, SlicesOfSymbolicAxes) {
  Builder b;
  const Value x = b.input("x", kFloat32, {b.dim("n"), 8});
  const auto slice = [&](int64_t start, int64_t end, int64_t step) {
    return b.type(b.node("Slice", {x, b.ints({start}), b.ints({end}), b.ints({0}), b.ints({step})}));
  };
  EXPECT_EQ(slice(0, INT64_MAX, 1), "f32[n, 8]");
  EXPECT_EQ(slice(-1, INT64_MIN, -1), "f32[n, 8]");
  EXPECT_EQ(slice(0, 5, 1), "f32[min(n, 5), 8]");
  EXPECT_EQ(slice(1, INT64_MAX, 1), "f32[max(n, 1) - 1, 8]");
  EXPECT_EQ(slice(0, INT64_MAX, 2), "f32[floor_div(n + 1, 2), 8]");
  // Ends that are computed from dims.
  const Value rows = b.node("Gather", {b.node("Shape", {x}), b.ints({0})});
  const Value half = b.node("Div", {rows, b.ints({2})});
  EXPECT_EQ(b.type(b.node("Slice", {x, b.ints({0}), half, b.ints({0})})), "f32[floor_div(n, 2), 8]");
}

TEST(ShapeOps, PadsWrittenAsAMatrixAreUnderstood) {
  // What PyTorch writes for F.pad(x, (1, 2, 3, 4)).
  Builder b;
  const Value x = b.input("x", kFloat32, {1, 3, b.dim("h"), b.dim("w")});
  const Value zeros =
      b.node("ConstantOfShape", {b.ints({4})},
             Builder::attrs({{"value", AttrValue(Constant::from_ints(kInt64, {1}, std::vector<int64_t>{0}))}}));
  const Value all = b.node("Concat", {b.ints({1, 2, 3, 4}), zeros}, Builder::attrs({{"axis", int64_t{0}}}));
  const Value pairs = b.node("Reshape", {all, b.ints({-1, 2})});
  const Value reversed = b.node("Slice", {pairs, b.ints({-1}), b.ints({INT64_MIN + 1}), b.ints({0}), b.ints({-1})});
  const Value pads = b.node("Reshape", {b.node("Transpose", {reversed}), b.ints({-1})});
  EXPECT_EQ(b.elements(pads), "0, 0, 3, 1, 0, 0, 4, 2");
  EXPECT_EQ(b.type(b.node("Pad", {x, pads})), "f32[1, 3, h + 7, w + 3]");
}

TEST(ShapeOps, ExpandWithMinusOneReplacedBySelect) {
  // What PyTorch writes for x.expand(-1, n, -1): Where(shape == -1, 1, shape).
  Builder b;
  const Var n = b.dim("n");
  const Value x = b.input("x", kFloat32, {2, 1, 5}), like = b.input("like", kFloat32, {n});
  const Value shape =
      b.node("Concat", {b.ints({-1}), b.node("Shape", {like}), b.ints({-1})}, Builder::attrs({{"axis", int64_t{0}}}));
  const Value ones =
      b.node("ConstantOfShape", {b.ints({3})},
             Builder::attrs({{"value", AttrValue(Constant::from_ints(kInt64, {1}, std::vector<int64_t>{1}))}}));
  const Value minus = b.node("Mul", {ones, b.ints({-1})});
  const Value chosen = b.node("Where", {b.node("Equal", {shape, minus}), ones, shape});
  EXPECT_EQ(b.elements(chosen), "1, n, 1");
  EXPECT_EQ(b.type(b.node("Expand", {x, chosen})), "f32[2, n, 5]");
}

TEST(ShapeOps, RangesAndRepeatsOverSymbols) {
  Builder b;
  const Var n = b.dim("n"), m = b.dim("m");
  const Value x = b.input("x", kFloat32, {n, m});
  const Value rows = b.node("Gather", {b.node("Shape", {x}), b.scalar(0)});
  EXPECT_EQ(b.type(b.node("Range", {b.scalar(0), rows, b.scalar(1)})), "i64[n]");
  EXPECT_EQ(b.type(b.node("Range", {rows, b.scalar(0), b.scalar(-2)})), "i64[floor_div(n + 1, 2)]");
  EXPECT_EQ(b.type(b.node("Tile", {x, b.ints({2, 3})})), "f32[n * 2, m * 3]");
  EXPECT_EQ(b.type(b.node("ConstantOfShape", {b.node("Shape", {x})})), "f32[n, m]");
  const Value mask = b.node("Size", {x});
  EXPECT_EQ(b.elements(mask), "m * n");
  const Value doubled = b.node("Concat", {x, x}, Builder::attrs({{"axis", int64_t{1}}}));
  EXPECT_EQ(b.type(doubled), "f32[n, m * 2]");
  EXPECT_EQ(b.type(b.node("Split", {doubled}, Builder::attrs({{"axis", int64_t{1}}}), 1, 2)), "f32[n, m]");
}

TEST(ShapeOps, ScatterIntoAKnownVector) {
  Builder b;
  const Value x = b.input("x", kFloat32, {b.dim("n"), 3});
  const Value shape = b.node("Shape", {x});
  const Value index = b.edit_.add_constant(Constant::from_ints(kInt64, {1, 1}, std::vector<int64_t>{1}));
  EXPECT_EQ(b.elements(b.node("ScatterND", {shape, index, b.ints({-1})})), "n, -1");
  EXPECT_EQ(b.elements(b.node("ScatterElements", {shape, b.ints({-1}), b.ints({7})})), "n, 7");
}

TEST(ShapeOps, WhatOnlyTheDataDecidesIsRefusedByName) {
  Builder b;
  const Value x = b.input("x", kFloat32, {4, 5}), shape = b.input("shape", kInt64, {2}), k = b.input("k", kInt64, {1});
  for (const Value v : {b.node("Reshape", {x, shape}), b.node("NonZero", {x}), b.node("TopK", {x, k}),
                        b.node("Expand", {x, shape}), b.node("Tile", {x, shape})}) {
    const auto supported = b.supports(v);
    ASSERT_FALSE(supported.ok()) << b.type(v);
    EXPECT_EQ(supported.failure().id, "dynamic-shape");
  }
  // A refresh keeps the variables that stand for unknown dims.
  const Value found = b.node("NonZero", {x});
  const std::string before = b.type(found);
  b.edit_.refresh_types(found.node);
  EXPECT_EQ(b.type(found), before);
}

/// The index expression of a reshape, simplified, with `to`'s indices called a, b, c, ...
std::string reshape_text(const std::vector<Expr>& from, const std::vector<Expr>& to) {
  Indices index;
  Facts facts;
  for (size_t k = 0; k < to.size(); ++k) {
    const Var var(std::string(1, static_cast<char>('a' + k)));
    facts.set_range(var, 0, to[k]);
    index.push_back(var);
  }
  std::string text;
  for (const Expr& e : ops::reshape_index(from, to, index))
    text += (text.empty() ? "" : ", ") + to_string(simplify(e, facts));
  return text;
}

TEST(ReshapeIndex, TouchesOnlyTheDimsThatChange) {
  const Var n("n"), s("s");
  EXPECT_EQ(reshape_text({n, s, 768}, {n, s, 12, 64}), "a, b, c * 64 + d");
  EXPECT_EQ(reshape_text({n, s, 12, 64}, {n, s, 768}), "a, b, c // 64, c % 64");
  EXPECT_EQ(reshape_text({n, s, 768}, {n * s, 768}), "a // s, a % s, b");
  EXPECT_EQ(reshape_text({1, 64, 7, 7}, {1, 3136}), "0, b // 49, b // 7 % 7, b % 7");
  EXPECT_EQ(reshape_text({2, 1, 3}, {2, 3}), "a, 0, b");
  EXPECT_EQ(reshape_text({4, 6, 5}, {6, 4, 5}), "(a * 4 + b) // 6, (a * 4 + b) % 6, c");
  EXPECT_EQ(reshape_text({}, {1, 1}), "");
  EXPECT_EQ(reshape_text({n, 2, 3, 4}, {n, 6, 2, 2}), "a, b // 3, b % 3, c * 2 + d");
}

TEST(DimProduct, DividesAndComparesWithSymbols) {
  const Var n("n"), s("s");
  const auto product = [](std::vector<Expr> dims) { return ops::dim_product(dims); };
  EXPECT_EQ(dim_to_string(ops::quotient(product({n, s, 768}), product({n, 64}))), "12 * s");
  EXPECT_EQ(dim_to_string(ops::quotient(product({s * 2, 3}), product({s, 2}))), "3");
  EXPECT_EQ(dim_to_string(simplify_dim(ops::quotient(product({n}), product({4})))), "floor_div(n, 4)");
  EXPECT_TRUE(ops::same_product(product({n, s, 12, 64}), product({768, s, n})));
  EXPECT_TRUE(ops::same_product(product({n * 2 + 2}), product({2, n + 1})));
  EXPECT_FALSE(ops::same_product(product({n, 2}), product({n, 3})));
  EXPECT_FALSE(ops::same_product(product({n}), product({s})));
}

TEST(ResizeAxis, RatiosAreTheSimplestOfTheirFloat) {
  const auto text = [](double scale) {
    const auto ratio = ops::as_ratio(static_cast<float>(scale));
    return ratio ? std::to_string(ratio->num) + "/" + std::to_string(ratio->den) : "none";
  };
  EXPECT_EQ(text(2), "2/1");
  EXPECT_EQ(text(0.6), "3/5");
  EXPECT_EQ(text(1.0 / 3), "1/3");
  EXPECT_EQ(text(0.8), "4/5");
  EXPECT_EQ(text(7.0 / 224), "1/32");
  EXPECT_EQ(text(-1), "none");
}

TEST(ResizeAxis, NearestOfWholeFactorsIsADivision) {
  const Var o("o");
  const auto text = [&](ops::Coordinates coordinates, ops::Nearest rounding, int64_t in, int64_t out) {
    return to_string(ops::nearest_element({0, in, out, {}, {}, {}, coordinates}, o, rounding));
  };
  EXPECT_EQ(text(ops::Coordinates::kAsymmetric, ops::Nearest::kFloor, 40, 80), "o // 2");
  EXPECT_EQ(text(ops::Coordinates::kHalfPixel, ops::Nearest::kRoundPreferFloor, 40, 80), "o // 2");
  EXPECT_EQ(text(ops::Coordinates::kHalfPixel, ops::Nearest::kRoundPreferCeil, 13, 39), "o // 3");
  EXPECT_EQ(text(ops::Coordinates::kAsymmetric, ops::Nearest::kFloor, 80, 40), "o * 2");
}

RefTensor random(DType dtype, std::vector<int64_t> shape, uint64_t seed) {
  RefTensor tensor = make_ref_tensor(dtype, std::move(shape));
  for (int64_t k = 0; k < tensor.num_elements(); ++k) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    tensor.set(k, static_cast<double>(seed >> 40) / (1 << 23) - 1);
  }
  return tensor;
}

/// Runs the graph before and after decomposition.
void expect_same_when_decomposed(Builder& b, const std::vector<RefTensor>& inputs, const std::string& op) {
  const auto want = interpret(b.graph_, inputs);
  ASSERT_TRUE(want.ok()) << want.failure().message;
  EXPECT_GT(decompose(b.edit_, {}), 0);
  ASSERT_TRUE(verify(b.graph_).ok());
  for (NodeId id : b.graph_.topological_order()) EXPECT_NE(b.graph_.node(id).op->name, op);
  const auto got = interpret(b.graph_, inputs);
  ASSERT_TRUE(got.ok()) << got.failure().message;
  ASSERT_EQ(got->size(), want->size());
  for (size_t k = 0; k < want->size(); ++k) {
    ASSERT_EQ((*got)[k].shape, (*want)[k].shape);
    for (int64_t e = 0; e < (*want)[k].num_elements(); ++e)
      ASSERT_NEAR((*got)[k].get(e), (*want)[k].get(e), 1e-5) << "output " << k << " element " << e;
  }
}

TEST(Decompose, RecurrentLayersAreAProductAndSteps) {
  struct Case {
    const char* op;
    int64_t gates;
    const char* direction;
    int64_t layout, linear;
  };
  for (const Case& c :
       {Case{"LSTM", 4, "forward", 0, 0}, Case{"LSTM", 4, "bidirectional", 1, 0}, Case{"GRU", 3, "reverse", 0, 1},
        Case{"GRU", 3, "bidirectional", 0, 0}, Case{"RNN", 1, "reverse", 1, 0}}) {
    SCOPED_TRACE(std::string(c.op) + " " + c.direction);
    const int64_t steps = 4, batch = 3, size = 5, hidden = 6,
                  directions = std::string(c.direction) == "bidirectional" ? 2 : 1;
    Builder b;
    const std::vector<int64_t> x =
        c.layout ? std::vector<int64_t>{batch, steps, size} : std::vector<int64_t>{steps, batch, size};
    const std::vector<int64_t> state =
        c.layout ? std::vector<int64_t>{batch, directions, hidden} : std::vector<int64_t>{directions, batch, hidden};
    const std::vector<RefTensor> data{random(kFloat32, x, 1), random(kFloat32, {directions, c.gates * hidden, size}, 2),
                                      random(kFloat32, {directions, c.gates * hidden, hidden}, 3),
                                      random(kFloat32, {directions, 2 * c.gates * hidden}, 4),
                                      random(kFloat32, state, 5)};
    std::vector<Value> inputs;
    for (size_t k = 0; k < data.size(); ++k)
      inputs.push_back(b.input("x" + std::to_string(k), kFloat32, {data[k].shape.begin(), data[k].shape.end()}));
    inputs.insert(inputs.begin() + 4, Value{});
    AttrMap attrs =
        Builder::attrs({{"hidden_size", hidden}, {"direction", std::string(c.direction)}, {"layout", c.layout}});
    if (c.linear) attrs.set("linear_before_reset", int64_t{1});
    const Value y = b.node(c.op, inputs, attrs, 0, 2);
    b.edit_.set_outputs({y, {y.node, 1}}, {"y", "h"});
    expect_same_when_decomposed(b, data, c.op);
  }
}

TEST(Decompose, CompressIsAGather) {
  Builder b;
  const Value x = b.input("x", kFloat32, {3, 4});
  const Value condition = b.edit_.add_constant(Constant::from_ints(kBool, {4}, std::vector<int64_t>{0, 1, 0, 1}));
  b.edit_.set_outputs(
      {b.node("Compress", {x, condition}, Builder::attrs({{"axis", int64_t{1}}})), b.node("Compress", {x, condition})},
      {"columns", "flat"});
  expect_same_when_decomposed(b, {random(kFloat32, {3, 4}, 1)}, "Compress");
}

TEST(Decompose, NGramsAreCountedThenWeighted) {
  for (const char* mode : {"TF", "IDF", "TFIDF"}) {
    SCOPED_TRACE(mode);
    Builder b;
    const Value x = b.input("x", kInt32, {2, 6});
    AttrMap attrs = Builder::attrs({{"mode", std::string(mode)},
                                    {"max_skip_count", int64_t{2}},
                                    {"min_gram_length", int64_t{1}},
                                    {"max_gram_length", int64_t{2}},
                                    {"ngram_counts", list({0, 2})},
                                    {"ngram_indexes", list({3, 0, 1})},
                                    {"pool_int64s", list({3, 7, 5, 6})},
                                    {"weights", AttrValue(std::vector<double>{2, 3, 0.5})}});
    b.edit_.set_outputs({b.node("TfIdfVectorizer", {x}, attrs)}, {"y"});
    RefTensor words = make_ref_tensor(kInt32, {2, 6});
    words.i = {1, 1, 3, 3, 5, 7, 5, 6, 7, 5, 6, 6};
    expect_same_when_decomposed(b, {words}, "TfIdfVectorizer");
  }
}

}  // namespace
}  // namespace tensmith::graph
