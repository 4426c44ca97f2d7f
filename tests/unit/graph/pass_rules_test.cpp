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
#include "graph/passes/recompose.h"
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

}  // namespace
}  // namespace tensmith::graph
