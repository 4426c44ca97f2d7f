/// Copies where the caller's rows meet chains of operators with channels.
#include "graph/passes/separate_rows.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/text.h"

namespace tensmith::graph {
namespace {

PassOptions options() {
  PassOptions options;
  options.target = Target::parse("znver4").value();
  return options;
}

/// How many copies of each kind the pass puts into the graph.
std::pair<int, int> copies(const std::string& text) {
  auto parsed = parse_graph(text);
  EXPECT_TRUE(parsed.ok()) << (parsed ? "" : parsed.failure().message);
  if (!parsed) return {-1, -1};
  Graph graph = std::move(parsed).value();
  const std::vector<std::string> names = graph.output_names;
  GraphEditor edit(graph);
  const int changes = separate_rows(edit, options());
  EXPECT_EQ(graph.output_names, names);
  std::pair<int, int> found{0, 0};
  for (const NodeId id : graph.topological_order()) {
    found.first += graph.node(id).op->name == "ToChannels";
    found.second += graph.node(id).op->name == "ToRows";
  }
  EXPECT_EQ(changes > 0, found.first + found.second > 0);
  EXPECT_EQ(separate_rows(edit, options()), 0) << "a second time";
  return found;
}

TEST(SeparateRows, StandAroundALoneConvolution) {
  EXPECT_EQ(copies(R"(graph "" {
  %x: f32[1, 16, 8, 8] = input
  %w: f32[32, 16, 3, 3] = input
  %c: f32[1, 32, 6, 6] = Conv(%x, %w) {}
  %r: f32[1, 32, 6, 6] = Relu(%c)
  return %r as "r"
})"),
            (std::pair{1, 1}));
}

TEST(SeparateRows, ServeAllReadersOfAnInputByOneCopy) {
  EXPECT_EQ(copies(R"(graph "" {
  %x: f32[1, 16, 8, 8] = input
  %w: f32[32, 16, 1, 1] = input
  %a: f32[1, 32, 8, 8] = Conv(%x, %w) {}
  %b: f32[1, 32, 8, 8] = Conv(%x, %w) {}
  %s: f32[1, 32, 8, 8] = Add(%a, %b)
  %m: f32[1, 32, 4, 4] = MaxPool(%s) {kernel_shape = [2, 2], strides = [2, 2]}
  %g: f32[1, 32, 1, 1] = GlobalAveragePool(%m)
  return %m as "m"
  return %g as "g"
})"),
            (std::pair{1, 1}));
}

TEST(SeparateRows, TellTheOutputsOfANodeApart) {
  auto parsed = parse_graph(R"(graph "" {
  %x: f32[1, 32, 8, 8] = input
  %w: f32[32, 16, 1, 1] = input
  %n = i64[2] {16, 16}
  %p: f32[1, 16, 8, 8], %q: f32[1, 16, 8, 8] = Split(%x, %n) {axis = 1}
  %a: f32[1, 32, 8, 8] = Conv(%p, %w) {}
  %b: f32[1, 32, 8, 8] = Conv(%q, %w) {}
  return %a as "a"
  return %b as "b"
})");
  ASSERT_TRUE(parsed.ok()) << parsed.failure().message;
  Graph graph = std::move(parsed).value();
  GraphEditor edit(graph);
  separate_rows(edit, options());
  std::vector<int> outputs;
  for (const NodeId id : graph.topological_order())
    if (graph.node(id).op->name == "ToChannels") outputs.push_back(graph.node(id).inputs[0].output);
  std::sort(outputs.begin(), outputs.end());
  EXPECT_EQ(outputs, (std::vector<int>{0, 1}));
}

TEST(SeparateRows, LeavePlanesThatServeAsWell) {
  // A first layer's three planes, few results, one filter for each channel.
  EXPECT_EQ(copies(R"(graph "" {
  %x: f32[1, 3, 8, 8] = input
  %y: f32[1, 16, 8, 8] = input
  %v: f32[4, 16, 3, 3] = input
  %w: f32[16, 1, 3, 3] = input
  %few: f32[1, 4, 6, 6] = Conv(%y, %v) {}
  %deep: f32[1, 16, 6, 6] = Conv(%y, %w) {group = 16}
  %row: f32[1, 3, 8, 8] = Relu(%x)
  return %few as "few"
  return %deep as "deep"
  return %row as "row"
})"),
            (std::pair{0, 0}));
}

TEST(SeparateRows, LeavePlanesWithSeveralFiltersForEachChannel) {
  EXPECT_EQ(copies(R"(graph "" {
  %x: f32[1, 16, 8, 8] = input
  %w: f32[32, 1, 3, 3] = input
  %y: f32[1, 32, 6, 6] = Conv(%x, %w) {group = 16}
  return %y as "y"
})"),
            (std::pair{0, 0}));
}

TEST(SeparateRows, LeaveALone1x1ConvolutionOfFullLines) {
  // Lines of 16 pixels fill the lanes, lines of 18 do not.
  for (const auto& [width, copied] : {std::pair{16, 0}, std::pair{18, 1}}) {
    const std::string w = std::to_string(width);
    EXPECT_EQ(copies("graph \"\" {\n  %x: f32[1, 16, 8, " + w + "] = input\n  %w: f32[32, 16, 1, 1] = input\n" +
                     "  %y: f32[1, 32, 8, " + w + "] = Conv(%x, %w) {}\n  return %y as \"y\"\n}"),
              (std::pair{copied, copied}))
        << width;
  }
}

TEST(SeparateRows, CopyOnlyThePlacesThatPointsInStridesMeet) {
  auto parsed = parse_graph(R"(graph "" {
  %x: f32[1, 32, 9, 8] = input
  %w: f32[16, 32, 1, 1] = input
  %v: f32[16, 32, 3, 3] = input
  %a: f32[1, 16, 3, 4] = Conv(%x, %w) {strides = [3, 2]}
  %b: f32[1, 16, 3, 4] = Conv(%x, %w) {strides = [3, 2]}
  %c: f32[1, 16, 4, 3] = Conv(%x, %v) {strides = [2, 2]}
  return %a as "a"
  return %b as "b"
  return %c as "c"
})");
  ASSERT_TRUE(parsed.ok()) << parsed.failure().message;
  Graph graph = std::move(parsed).value();
  GraphEditor edit(graph);
  separate_rows(edit, options());
  std::vector<int64_t> copied;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (node.op->name == "ToChannels") copied.push_back(node.types[0].static_shape()[2]);
    if (node.op->name != "Conv") continue;
    const bool point = graph.type(node.inputs[1]).static_shape()[2] == 1;
    EXPECT_EQ(node.attrs.get_ints("strides"), (std::vector<int64_t>(2, point ? 1 : 2)));
  }
  std::sort(copied.begin(), copied.end());
  EXPECT_EQ(copied, (std::vector<int64_t>{3, 9}));
}

TEST(SeparateRows, LeaveWhatHasOnePlaceOrOneChannel) {
  EXPECT_EQ(copies(R"(graph "" {
  %x: f32[1, 16, 1, 1] = input
  %y: f32[1, 3, 8, 8] = input
  %w: f32[32, 16, 1, 1] = input
  %v: f32[16, 3, 3, 3] = input
  %u: f32[1, 16, 1, 1] = input
  %a: f32[1, 32, 1, 1] = Conv(%x, %w) {}
  %b: f32[1, 16, 6, 6] = Conv(%y, %v) {}
  %c: f32[1, 1, 6, 6] = Conv(%b, %u) {}
  return %a as "a"
  return %c as "c"
})"),
            (std::pair{0, 0}));
}

}  // namespace
}  // namespace tensmith::graph
