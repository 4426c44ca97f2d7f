#include <gtest/gtest.h>

#include "graph/op_def.h"

namespace tensmith::graph {
namespace {

std::string reprinted(const std::string& text, const ConstantTable& table = {}) {
  const auto graph = parse_graph(text, table);
  if (!graph) return graph.failure().message;
  const auto ok = verify(*graph);
  return ok ? to_string(*graph) : ok.failure().message;
}

TEST(Text, RoundTrips) {
  const std::string text = R"(graph "main" {
  dims n, "odd name"
  %x: f32[n, "odd name", 4] = input
  %"a b\"c": f32[4] = input "node of another name"
  %w = f32[4] {1.0, -0.5, inf, nan}
  %axes = i64[1] {-1}
  %y: f32[n, "odd name", 4] = Add(%x, %w)
  %/enc/y.1: f32[n, "odd name", 4] = Mul(%y, %"a b\"c") "mul"
  %m: f32[n, "odd name", 1] = ReduceMean(%/enc/y.1, %axes) {keepdims = 1}
  return %m as "out"
  return %y as "with \x01 and \n"
}
)";
  EXPECT_EQ(reprinted(text), text);
}

TEST(Text, PrintsEveryKindOfAttribute) {
  const std::string text = R"(graph "" {
  %x: f32[2, 3] = input
  %y: i32[2, 3] = Cast(%x) {to = i32}
  %z: f32[3, 2] = Transpose(%x) {perm = [1, 0]} "t"
  %l: f32[2, 3] = LeakyRelu(%x) {alpha = 0.25}
  %g: f32[2, 3] = Gelu(%x) {approximate = "tanh"}
  return %y as "y"
  return %z as "z"
  return %l as "l"
  return %g as "g"
}
)";
  EXPECT_EQ(reprinted(text), text);
}

TEST(Text, LargeConstantsGoByDigestOrBase64) {
  Graph graph;
  GraphEditor edit(graph);
  std::vector<double> values(100);
  for (size_t k = 0; k < values.size(); ++k) values[k] = 0.37 * static_cast<double>(k) - 5;
  const Value c = edit.add_constant(Constant::from_floats(kFloat32, {10, 10}, values), "c");
  edit.set_outputs({c}, {"c"});
  const std::string text = to_string(graph);
  EXPECT_NE(text.find("%c = f32[10, 10] @"), std::string::npos) << text;
  EXPECT_EQ(parse_graph(text).failure().id, "parse-error");
  const ConstantTable table = large_constants(graph);
  ASSERT_EQ(table.size(), 1u);
  EXPECT_EQ(reprinted(text, table), text);
  const std::string full = to_string(graph, {.max_inline = 8, .all_content = true});
  EXPECT_NE(full.find("base64 \""), std::string::npos) << full;
  EXPECT_EQ(reprinted(full), text);
}

TEST(Text, DimExpressionsReadBack) {
  const std::string text = R"(graph "" {
  dims s
  %x: f32[floor_div(s + 3, 2), (s - 1) * 4, max(s, 7), select(lt(s, 4), s, 4)] = input
  return %x as "x"
}
)";
  EXPECT_EQ(reprinted(text), text);
}

struct BadText {
  const char* name;
  const char* text;
  const char* message;
};

TEST(Text, ErrorsNameThePlace) {
  const BadText cases[] = {
      {"not a graph", "model {}", "line 1, column 1: expected 'graph'"},
      {"unknown op", "graph \"\" {\n  %y: f32[] = Nope()\n}", "no operator 'Nope'"},
      {"undefined", "graph \"\" {\n  %y: f32[2] = Relu(%x)\n}", "value %x is not defined"},
      {"twice", "graph \"\" {\n  %x: f32[2] = input\n  %x: f32[2] = input\n}", "value %x is defined twice"},
      {"wrong type", "graph \"\" {\n  %x: f32[2] = input\n  %y: f32[3] = Relu(%x)\n}", "line 3, column"},
      {"wrong count", "graph \"\" {\n  %x = f32[2] {1.0}\n}", "expected 2 elements, got 1"},
      {"overflow", "graph \"\" {\n  %x = f32[4000000000, 4000000000, 4000000000] {1.0}\n}", "overflows"},
      {"negative", "graph \"\" {\n  %x = f32[-1] {}\n}", "overflows"},
      {"no digest", "graph \"\" {\n  %x = f32[2] @0123\n}", "not in the table"},
      {"cut", "graph \"\" {\n  %x: f32[2] = inp", "line 2"},
      {"bad dtype", "graph \"\" {\n  %x: f33[2] = input\n}", "expected an element type"},
      {"open string", "graph \"abc", "does not end"},
      {"behind", "graph \"\" {\n}\nmore", "expected the end"},
  };
  for (const BadText& bad : cases) {
    const auto graph = parse_graph(bad.text);
    ASSERT_FALSE(graph.ok()) << bad.name;
    EXPECT_EQ(graph.failure().id, "parse-error") << bad.name;
    EXPECT_NE(graph.failure().message.find(bad.message), std::string::npos)
        << bad.name << ": " << graph.failure().message;
  }
}

TEST(Text, NestingIsLimited) {
  std::string dims = "graph \"\" {\n  %x: f32[";
  for (int k = 0; k < 100000; ++k) dims += "(";
  EXPECT_FALSE(parse_graph(dims).ok());
}

}  // namespace
}  // namespace tensmith::graph
