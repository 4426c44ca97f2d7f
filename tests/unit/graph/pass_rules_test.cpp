/// Every rule of every table: what it makes of an example, and that the result computes the same.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <sstream>

#include "graph/interpret.h"
#include "graph/passes/algebra.h"
#include "graph/passes/cancel_transpose_reshape.h"
#include "graph/passes/canonicalize.h"
#include "graph/passes/fold_batch_norm.h"
#include "graph/passes/merge_products.h"
#include "graph/passes/recompose.h"
#include "graph/passes/written_number.h"
#include "runtime/base/files.h"

namespace tensmith::graph {
namespace {

/// An example of tests/unit/graph/rules/: statements before and after; `%out` is the output.
struct Example {
  std::string rule, before, after;  ///< after: empty when the rule must not apply
};

/// Blocks of the form `== rule`, statements, `-->`, statements or `does not apply`.
std::vector<Example> examples_of(const std::string& name) {
  const auto text = read_file(std::string(TS_SOURCE_DIR) + "/tests/unit/graph/rules/" + name + ".txt");
  EXPECT_TRUE(text.ok()) << name;
  std::vector<Example> examples;
  std::istringstream lines(text ? *text : "");
  bool before = true;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("== ")) {
      examples.push_back({line.substr(3), "", ""});
      before = true;
    } else if (line == "-->") {
      before = false;
    } else if (line.starts_with("%")) {
      (before ? examples.back().before : examples.back().after) += line + "\n";
    } else {
      EXPECT_TRUE(line.empty() || line[0] == '#' || line == "does not apply") << name << ": " << line;
    }
  }
  return examples;
}

std::string indented(const std::string& statements) {
  std::string text;
  for (size_t start = 0; start < statements.size();) {
    const size_t end = statements.find('\n', start);
    text += "  " + statements.substr(start, end - start) + "\n";
    start = end + 1;
  }
  return text;
}

Graph parsed(const std::string& statements) {
  const std::string dims = statements.find("[n,") != std::string::npos ? "  dims n\n" : "";
  auto graph = parse_graph("graph \"\" {\n" + dims + indented(statements) + "  return %out as \"out\"\n}");
  EXPECT_TRUE(graph.ok()) << (graph ? "" : graph.failure().message) << "\n" << statements;
  return graph ? std::move(graph).value() : Graph();
}

/// The statements of a graph, without the frame and the output.
std::string statements_of(const Graph& graph) {
  const std::string text = to_string(graph);
  std::string out;
  for (size_t start = 0; start < text.size();) {
    const size_t end = text.find('\n', start);
    const std::string line = text.substr(start, end - start);
    if (line.starts_with("  %")) out += line.substr(2) + "\n";
    start = end + 1;
  }
  return out;
}

std::vector<RefTensor> random_inputs(const Graph& graph) {
  std::mt19937 random(7);
  std::vector<RefTensor> inputs;
  for (NodeId id : graph.inputs) {
    const TensorType& type = graph.node(id).types[0];
    std::vector<int64_t> shape;
    for (const Expr& dim : type.shape) shape.push_back(dim.as<IntImm>() ? dim.as<IntImm>()->value : 5);
    RefTensor tensor = make_ref_tensor(type.dtype, shape);
    for (int64_t k = 0; k < tensor.num_elements(); ++k)
      tensor.set(k, type.dtype.is_float() ? std::uniform_real_distribution<double>(-4, 4)(random)
                                          : static_cast<double>(random() % 2));
    round_to_dtype(tensor);
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

void check(std::span<const Rule> rules, const std::string& file) {
  std::set<std::string> covered;
  for (const Example& example : examples_of(file)) {
    SCOPED_TRACE(example.rule + ": " + example.before);
    covered.insert(example.rule);
    const auto rule = std::find_if(rules.begin(), rules.end(), [&](const Rule& r) { return r.name == example.rule; });
    ASSERT_NE(rule, rules.end());
    Graph graph = parsed(example.before);
    if (graph.outputs.empty()) continue;
    const Graph original = graph.clone();
    GraphEditor edit(graph);
    const int changes = apply_rules(edit, std::span(&*rule, 1));
    edit.erase_dead();
    const auto ok = verify(graph);
    ASSERT_TRUE(ok.ok()) << ok.failure().message;
    EXPECT_EQ(changes > 0, !example.after.empty());
    EXPECT_EQ(statements_of(graph), example.after.empty() ? statements_of(original) : example.after);
    const std::vector<RefTensor> inputs = random_inputs(original);
    const auto expected = interpret(original, inputs), got = interpret(graph, inputs);
    ASSERT_TRUE(expected.ok()) << expected.failure().message;
    ASSERT_TRUE(got.ok()) << got.failure().message;
    ASSERT_EQ((*got)[0].shape, (*expected)[0].shape);
    for (int64_t k = 0; k < (*got)[0].num_elements(); ++k) {
      const double want = (*expected)[0].get(k), have = (*got)[0].get(k);
      if (std::isnan(want) && std::isnan(have)) continue;
      ASSERT_NEAR(have, want, 2e-6 * (1 + std::fabs(want))) << k;
    }
  }
  for (const Rule& rule : rules) {
    EXPECT_TRUE(covered.count(rule.name)) << "rule " << rule.name << " has no example";
    EXPECT_NE(std::string_view(rule.doc), "") << rule.name;
  }
}

TEST(PassRules, Canonicalize) { check(canonicalize_rules(), "canonicalize"); }
TEST(PassRules, Algebra) { check(algebra_rules(), "algebra"); }
TEST(PassRules, FoldBatchNorm) { check(fold_batch_norm_rules(), "fold_batch_norm"); }
TEST(PassRules, CancelTransposeReshape) { check(cancel_transpose_reshape_rules(), "cancel_transpose_reshape"); }
TEST(PassRules, Recompose) { check(recompose_rules(), "recompose"); }
TEST(PassRules, FoldScale) { check(fold_scale_rules(), "fold_scale"); }

TEST(WrittenNumber, IsTheExactOneOrAUsualRoundingOfIt) {
  const double root = std::sqrt(2.0), factor = std::sqrt(2 / M_PI);
  for (const auto& [value, exact] : std::vector<std::pair<double, double>>{{1.4142135f, root},
                                                                           {1.41421356, root},
                                                                           {1.41421f, root},
                                                                           {1.4142f, root},
                                                                           {1 / 1.4142f, 1 / root},
                                                                           {0.70710677f, 1 / root},
                                                                           {0.7071f, 1 / root},
                                                                           {0.7978846f, factor},
                                                                           {0.7978845608, factor},
                                                                           {0.79788f, factor},
                                                                           {0.044715f, 0.044715},
                                                                           {0.1666667f, 1.0 / 6},
                                                                           {0.16666667f, 1.0 / 6},
                                                                           {1 / 6.0, 1.0 / 6},
                                                                           {0.5, 0.5},
                                                                           {-1.4142f, -root}})
    EXPECT_TRUE(is_written_as(value, exact, kFloat32)) << value;
  for (const auto& [value, exact] : std::vector<std::pair<double, double>>{{1.4135f, root},
                                                                           {1.4143f, root},
                                                                           {1.41422f, root},
                                                                           {1.414f, root},
                                                                           {1.4142123f, root},
                                                                           {0.7072f, 1 / root},
                                                                           {0.798f, factor},
                                                                           {0.0447f, 0.044715},
                                                                           {0.1665f, 1.0 / 6},
                                                                           {0.5001f, 0.5},
                                                                           {1.0005f, 1},
                                                                           {0, root}})
    EXPECT_FALSE(is_written_as(value, exact, kFloat32)) << value;
  EXPECT_TRUE(is_written_as(1.4140625, root, kFloat16));  // the nearest number of that type
  EXPECT_FALSE(is_written_as(1.4140625, root, kFloat32));
  EXPECT_FALSE(is_written_as(1.4111328, root, kFloat16));
}

/// A graph before and after the pass over all products; both compute the same.
void check_merge(const std::string& before, const std::string& after) {
  Graph graph = parsed(before);
  ASSERT_FALSE(graph.outputs.empty());
  const Graph original = graph.clone();
  GraphEditor edit(graph);
  EXPECT_EQ(merge_products(edit, {}) > 0, before != after);
  edit.erase_dead();
  ASSERT_TRUE(verify(graph).ok());
  EXPECT_EQ(statements_of(graph), after);
  const std::vector<RefTensor> inputs = random_inputs(original);
  const auto expected = interpret(original, inputs), got = interpret(graph, inputs);
  ASSERT_TRUE(expected.ok() && got.ok());
  for (int64_t k = 0; k < (*expected)[0].num_elements(); ++k)
    EXPECT_NEAR((*got)[0].get(k), (*expected)[0].get(k), 1e-5) << k;
}

TEST(MergeProducts, MatMulsWithBiases) {
  check_merge(R"(%x: f32[2, 2] = input
%a = f32[2, 2] {1.0, 2.0, 3.0, 4.0}
%b = f32[2, 1] {5.0, 6.0}
%c = f32[2] {7.0, 8.0}
%d = f32[1] {9.0}
%p: f32[2, 2] = MatMul(%x, %a)
%q: f32[2, 1] = MatMul(%x, %b)
%r: f32[2, 2] = Add(%p, %c)
%s: f32[2, 1] = Add(%q, %d)
%out: f32[2, 2] = Mul(%r, %s)
)",
              R"(%x: f32[2, 2] = input
%p.weights = f32[2, 3] {1.0, 2.0, 5.0, 3.0, 4.0, 6.0}
%p_1: f32[2, 3] = MatMul(%x, %p.weights) "p"
%p.bias = f32[3] {7.0, 8.0, 9.0}
%p_2: f32[2, 3] = Add(%p_1, %p.bias) "p"
%p.ints = i64[2] {2, 1}
%p.parts: f32[2, 2], %p.parts.1: f32[2, 1] = Split(%p_2, %p.ints) {axis = 1}
%out: f32[2, 2] = Mul(%p.parts, %p.parts.1)
)");
}

TEST(MergeProducts, LeavesProductsWithAndWithoutBiasApartAndSharedWeights) {
  const std::string text = R"(%x: f32[2, 2] = input
%a = f32[2, 2] {1.0, 2.0, 3.0, 4.0}
%p: f32[2, 2] = MatMul(%x, %a)
%q: f32[2, 2] = MatMul(%p, %a)
%b = f32[2, 2] {5.0, 6.0, 7.0, 8.0}
%r: f32[2, 2] = MatMul(%x, %b)
%c = f32[2] {1.0, 2.0}
%s: f32[2, 2] = Add(%r, %c)
%out: f32[2, 2] = Mul(%q, %s)
)";
  check_merge(text, text);
}

TEST(MergeProducts, ConvolutionsOfOnePlaceWhereNoActivationFollows) {
  check_merge(R"(%x: f32[1, 2, 2] = input
%a = f32[1, 2, 1] {1.0, 2.0}
%b = f32[2, 2, 1] {3.0, 4.0, 5.0, 6.0}
%p: f32[1, 1, 2] = Conv(%x, %a)
%q: f32[1, 2, 2] = Conv(%x, %b)
%i: f32[1, 1, 1] = GlobalAveragePool(%p)
%j: f32[1, 2, 1] = GlobalAveragePool(%q)
%out: f32[1, 2, 1] = Mul(%i, %j)
)",
              R"(%x: f32[1, 2, 2] = input
%p.weights = f32[3, 2, 1] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}
%p_1: f32[1, 3, 2] = Conv(%x, %p.weights) "p"
%p.ints = i64[2] {1, 2}
%p.parts: f32[1, 1, 2], %p.parts.1: f32[1, 2, 2] = Split(%p_1, %p.ints) {axis = 1}
%i: f32[1, 1, 1] = GlobalAveragePool(%p.parts)
%j: f32[1, 2, 1] = GlobalAveragePool(%p.parts.1)
%out: f32[1, 2, 1] = Mul(%i, %j)
)");
}

}  // namespace
}  // namespace tensmith::graph
