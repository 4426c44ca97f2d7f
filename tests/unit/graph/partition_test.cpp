/// What lies where: moves found from expressions, values in the memory of others, layouts, groups.
#include <gtest/gtest.h>

#include <ctime>

#include "graph/op_def.h"
#include "graph/partition/access.h"
#include "graph/partition/fuse.h"
#include "graph/partition/layouts.h"
#include "graph/partition/placement.h"
#include "graph/pipeline.h"

namespace tensmith::graph {
namespace {

Graph parsed(const std::string& text) {
  auto graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << (graph ? "" : graph.failure().message);
  return graph ? std::move(graph).value() : Graph();
}

/// The node whose first output has that name.
NodeId named(const Graph& graph, const std::string& name) {
  for (NodeId id : graph.topological_order())
    if (graph.node(id).output_names[0] == name) return id;
  ADD_FAILURE() << "no node " << name;
  return -1;
}

std::set<std::string> free_names(const Graph& graph, const PlacementPlan& plan) {
  std::set<std::string> names;
  for (NodeId id : plan.free) names.insert(graph.node(id).output_names[0]);
  return names;
}

TEST(Access, FindsWhatMovesAndWhatDoesNot) {
  const Graph graph = parsed(R"(graph "" {
  %x: f32[2, 3, 8] = input
  %y: f32[2, 5, 8] = input
  %b = i64[1] {1}
  %e = i64[1] {7}
  %a = i64[1] {2}
  %s = i64[1] {2}
  %n = i64[2] {6, 8}
  %t: f32[3, 2, 8] = Transpose(%x) {perm = [1, 0, 2]}
  %part: f32[2, 3, 6] = Slice(%x, %b, %e, %a)
  %step: f32[2, 3, 3] = Slice(%x, %b, %e, %a, %s)
  %flat: f32[6, 8] = Reshape(%x, %n)
  %join: f32[2, 8, 8] = Concat(%x, %y) {axis = 1}
  %sum: f32[2, 3, 8] = Add(%x, %x)
  return %t as "t"
  return %part as "part"
  return %step as "step"
  return %flat as "flat"
  return %join as "join"
  return %sum as "sum"
})");
  EXPECT_FALSE(moved_outputs(graph, named(graph, "sum")).has_value());
  const Strided rows = *strided(Layout(), {2, 3, 8});
  EXPECT_EQ(rows, (Strided{0, {24, 8, 1}}));
  const auto place = [&](const char* name) {
    const NodeId id = named(graph, name);
    const auto moved = moved_outputs(graph, id);
    EXPECT_TRUE(moved.has_value()) << name;
    return through((*moved)[0], rows, graph.node(id).types[0].static_shape());
  };
  EXPECT_EQ(*place("t"), (Strided{0, {8, 24, 1}}));
  EXPECT_EQ(layout_of(*place("t"), {3, 2, 8})->text(), "1,0,2");
  EXPECT_EQ(*place("part"), (Strided{1, {24, 8, 1}}));
  EXPECT_EQ(layout_of(*place("part"), {2, 3, 6})->text(), "0,1,2;halo 2:0+2");
  EXPECT_FALSE(layout_of(*place("step"), {2, 3, 3}).has_value()) << "no dim of every second element is contiguous";
  EXPECT_EQ(*place("flat"), (Strided{0, {8, 1}}));
  EXPECT_EQ(layout_of(*place("flat"), {6, 8})->text(), Layout().text());
  const auto join = moved_outputs(graph, named(graph, "join"));
  ASSERT_TRUE(join.has_value());
  ASSERT_EQ((*join)[0].pieces.size(), 2u);
  EXPECT_EQ((*join)[0].pieces[1].start, 3);
  EXPECT_EQ((*join)[0].pieces[1].extent, 5);
  EXPECT_EQ((*join)[0].pieces[1].axis, 1);
}

TEST(Access, BlockedLayoutsAreNoStrides) {
  EXPECT_FALSE(strided(Layout::blocked({0, 1, 2, 3}, 1, 16), {1, 32, 4, 4}).has_value());
  EXPECT_EQ(*strided(Layout::permuted({0, 2, 3, 1}), {1, 32, 4, 4}), (Strided{0, {512, 1, 128, 32}}));
}

/// Query, key and value of one product: splits, reshapes and transposes say only where elements lie.
constexpr const char* kAttention = R"(graph "" {
  %x: f32[1, 16, 24] = input
  %w: f32[24, 72] = input
  %k = i64[3] {24, 24, 24}
  %h = i64[4] {1, 16, 3, 8}
  %r = i64[3] {1, 16, 24}
  %y: f32[1, 16, 72] = MatMul(%x, %w)
  %q: f32[1, 16, 24], %key: f32[1, 16, 24], %v: f32[1, 16, 24] = Split(%y, %k) {axis = -1}
  %q4: f32[1, 16, 3, 8] = Reshape(%q, %h)
  %k4: f32[1, 16, 3, 8] = Reshape(%key, %h)
  %v4: f32[1, 16, 3, 8] = Reshape(%v, %h)
  %qt: f32[1, 3, 16, 8] = Transpose(%q4) {perm = [0, 2, 1, 3]}
  %kt: f32[1, 3, 8, 16] = Transpose(%k4) {perm = [0, 2, 3, 1]}
  %vt: f32[1, 3, 16, 8] = Transpose(%v4) {perm = [0, 2, 1, 3]}
  %s: f32[1, 3, 16, 16] = MatMul(%qt, %kt)
  %p: f32[1, 3, 16, 16] = Softmax(%s)
  %o: f32[1, 3, 16, 8] = MatMul(%p, %vt)
  %ot: f32[1, 16, 3, 8] = Transpose(%o) {perm = [0, 2, 1, 3]}
  %out: f32[1, 16, 24] = Reshape(%ot, %r)
  return %out as "out"
})";

TEST(Placement, AttentionReadsItsOperandsWhereTheyLie) {
  const Graph graph = parsed(kAttention);
  const PlacementPlan plan = place_values(graph, {});
  EXPECT_EQ(free_names(graph, plan), (std::set<std::string>{"q", "q4", "k4", "v4", "qt", "kt", "vt", "ot"}));
  const Value y{named(graph, "y"), 0};
  const Placement& keys = plan.places.at({named(graph, "kt"), 0});
  EXPECT_EQ(keys.base, y);
  EXPECT_EQ(keys.offset, 24);
  EXPECT_EQ(*strided(keys.layout, {1, 3, 8, 16}), (Strided{0, {keys.layout.dims().empty() ? 0 : 72 * 16, 8, 1, 72}}));
}

TEST(Placement, ElementwiseReadersWantRows) {
  const Graph graph = parsed(R"(graph "" {
  %x: f32[4, 6] = input
  %t: f32[6, 4] = Transpose(%x)
  %y: f32[6, 4] = Relu(%t)
  return %y as "y"
})");
  std::string why;
  const PlacementPlan plan = place_values(graph, {}, &why);
  EXPECT_TRUE(plan.free.empty());
  EXPECT_NE(why.find("wants rows"), std::string::npos) << why;
}

TEST(Placement, NothingReachesBeyondTheCallersMemory) {
  const Graph graph = parsed(R"(graph "" {
  %x: f32[4, 6] = input
  %n = i64[2] {2, 4}
  %a: f32[4, 2], %b: f32[4, 4] = Split(%x, %n) {axis = 1}
  %m: f32[2] = input
  %e: f32[4, 2] = Exp(%a)
  %f: f32[4, 4] = Tanh(%b)
  return %e as "e"
  return %f as "f"
})");
  std::string why;
  EXPECT_TRUE(place_values(graph, {}, &why).free.empty());
  EXPECT_NE(why.find("beyond the caller's memory"), std::string::npos) << why;
  // The same parts of a value in the arena: the padding behind the last row is slack.
  const PlacementPlan plan = place_values(parsed(kAttention), {});
  EXPECT_GT(plan.slack, 0);
}

/// Layers that each read all results before them, joined anew each time.
constexpr const char* kDense = R"(graph "" {
  %x: f32[1, 3, 6, 6] = input
  %w0: f32[5, 3, 1, 1] = input
  %w1: f32[7, 5, 1, 1] = input
  %w2: f32[4, 12, 1, 1] = input
  %w3: f32[2, 16, 1, 1] = input
  %a: f32[1, 5, 6, 6] = Conv(%x, %w0)
  %b: f32[1, 7, 6, 6] = Conv(%a, %w1)
  %ab: f32[1, 12, 6, 6] = Concat(%a, %b) {axis = 1}
  %rab: f32[1, 12, 6, 6] = Relu(%ab)
  %c: f32[1, 4, 6, 6] = Conv(%rab, %w2)
  %abc: f32[1, 16, 6, 6] = Concat(%a, %b, %c) {axis = 1}
  %y: f32[1, 2, 6, 6] = Conv(%abc, %w3)
  return %y as "y"
})";

TEST(Placement, JoinsOfTheSameValuesShareTheLargest) {
  const Graph graph = parsed(kDense);
  const LayoutMap layouts = choose_layouts(graph, *Target::parse("x86-64-v3"), LayoutChoice::kChannelsLast);
  const PlacementPlan plan = place_values(graph, layouts);
  EXPECT_EQ(free_names(graph, plan), (std::set<std::string>{"ab", "abc"}));
  const Value whole{named(graph, "abc"), 0};
  for (const char* part : {"a", "b", "c", "ab"}) EXPECT_EQ(plan.places.at({named(graph, part), 0}).base, whole) << part;
  EXPECT_EQ(plan.places.at({named(graph, "c"), 0}).offset, 12);
  EXPECT_EQ(plan.places.at({named(graph, "ab"), 0}).layout.text(), "0,2,3,1;halo 1:0+4");
}

TEST(Placement, BlockedJoinsAreCopied) {
  const Graph graph = parsed(kDense);
  const LayoutMap layouts = choose_layouts(graph, *Target::parse("x86-64-v3"), LayoutChoice::kBlocked);
  EXPECT_TRUE(place_values(graph, layouts).free.empty());
}

TEST(Placement, LeavesWhatTheCallerOwns) {
  const Graph graph = parsed(R"(graph "" {
  %x: f32[2, 3] = input
  %y: f32[2, 3] = input
  %j: f32[4, 3] = Concat(%x, %y) {axis = 0}
  %r: f32[4, 3] = Relu(%j)
  %n = i64[1] {12}
  %f: f32[12] = Reshape(%r, %n)
  return %f as "f"
})");
  EXPECT_TRUE(place_values(graph, {}).free.empty());
}

/// Swaps of the first two axes behind one another, the last axis never contiguous, and a reader that wants rows.
Graph swaps(int count) {
  Graph graph;
  GraphEditor edit(graph);
  Value v{edit.add("Abs", {edit.add_input("x", static_type(kFloat32, {2, 3, 4}))}), 0};
  const auto transpose = [&](std::vector<int64_t> perm) {
    AttrMap attrs;
    attrs.set("perm", std::move(perm));
    v = {edit.add("Transpose", {v}, attrs), 0};
  };
  transpose({2, 1, 0});
  for (int k = 0; k < count; ++k) transpose({1, 0, 2});
  edit.set_outputs({{edit.add("Softmax", {v}), 0}}, {"y"});
  return graph;
}

TEST(Placement, RefusalsAlongAChainTakeNoTurnEach) {
  for (int count : {3, 40, 20000}) {
    const Graph graph = swaps(count);
    const std::clock_t start = std::clock();
    EXPECT_TRUE(place_values(graph, {}).free.empty());
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    EXPECT_LT(seconds, 10) << count;  // on a quiet machine below 2 s
    std::printf("%d swaps: %.3f s\n", count, seconds);
  }
}

TEST(Layouts, EveryChoiceKeepsWhatTheCallerSeesInRows) {
  const Graph graph = parsed(kDense);
  for (LayoutChoice choice : {LayoutChoice::kPriced, LayoutChoice::kChannelsLast, LayoutChoice::kBlocked}) {
    std::string why;
    const LayoutMap layouts = choose_layouts(graph, *Target::parse("x86-64-v3"), choice, &why);
    EXPECT_FALSE(layouts.count({named(graph, "y"), 0}));
    EXPECT_TRUE(layouts.count({named(graph, "rab"), 0}));
    EXPECT_EQ(why.empty(), choice != LayoutChoice::kPriced);
  }
}

TEST(Fuse, ProducersThatServeOneReaderJoinIt) {
  const Graph graph = parsed(R"(graph "" {
  %x: f32[4, 6] = input
  %y: f32[4, 6] = input
  %a: f32[4, 6] = Exp(%x)
  %b: f32[4, 6] = Tanh(%y)
  %c: f32[4, 6] = Add(%a, %b)
  %m: f32[4, 6] = Softmax(%c)
  %d: f32[4, 6] = Add(%m, %y)
  return %d as "d"
})");
  std::string why;
  const std::vector<Group> groups = fuse(graph, {}, &why);
  ASSERT_EQ(groups.size(), 1u) << why;
  EXPECT_EQ(groups[0].nodes.size(), 5u);
}

TEST(Fuse, LargeProductsJoinTheWindowsThatReadThem) {
  // Expand, depthwise, project; the expanded image is read once, in windows, the depthwise one by whole rows.
  const Graph graph = parsed(R"(graph "" {
  %x: f32[1, 4, 32, 32] = input
  %w1: f32[24, 4, 1, 1] = input
  %w2: f32[24, 1, 3, 3] = input
  %w3: f32[8, 24, 1, 1] = input
  %e: f32[1, 24, 32, 32] = Conv(%x, %w1) {}
  %r: f32[1, 24, 32, 32] = Relu(%e)
  %d: f32[1, 24, 32, 32] = Conv(%r, %w2) {group = 24, pads = [1, 1, 1, 1]}
  %p: f32[1, 8, 32, 32] = Conv(%d, %w3) {}
  return %p as "p"
})");
  const auto sizes = [&](const FuseOptions& options) {
    std::string why;
    std::vector<size_t> sizes;
    for (const Group& group : fuse(graph, options, &why)) sizes.push_back(group.nodes.size());
    return sizes;
  };
  const int64_t bytes = 24 * 32 * 32 * 4;
  EXPECT_EQ(sizes({}), (std::vector<size_t>{2, 1, 1}));
  EXPECT_EQ(sizes({.near_bytes = bytes}), (std::vector<size_t>{3, 1}));
  EXPECT_EQ(sizes({.near_bytes = bytes + 1}), (std::vector<size_t>{2, 1, 1}));
}

TEST(Fuse, ProductsOnBothSidesOfASoftmaxJoinIt) {
  const auto sizes = [&](const char* text, int64_t near_bytes) {
    std::vector<size_t> sizes;
    for (const Group& group : fuse(parsed(text), {.near_bytes = near_bytes})) sizes.push_back(group.nodes.size());
    return sizes;
  };
  constexpr const char* kJoined = R"(graph "" {
  %q: f32[2, 3, 40, 8] = input
  %k: f32[2, 3, 8, 50] = input
  %v: f32[2, 3, 50, 8] = input
  %m: f32[50] = input
  %s: f32[2, 3, 40, 50] = MatMul(%q, %k)
  %t: f32[2, 3, 40, 50] = Add(%s, %m)
  %p: f32[2, 3, 40, 50] = Softmax(%t) {axis = -1}
  %o: f32[2, 3, 40, 8] = MatMul(%p, %v)
  return %o as "o"
})";
  // So many rows of 50 scores side by side, not fewer.
  EXPECT_EQ(sizes(kJoined, 32 * 50 * 4), (std::vector<size_t>{4}));
  EXPECT_EQ(sizes(kJoined, 32 * 50 * 4 - 1), (std::vector<size_t>{2, 1, 1}));
  // The weights of a second layer are more than a near cache keeps for all rows.
  EXPECT_EQ(sizes(R"(graph "" {
  %x: f32[40, 64] = input
  %w: f32[64, 64] = input
  %u: f32[64, 5000] = input
  %a: f32[40, 64] = MatMul(%x, %w)
  %p: f32[40, 64] = Softmax(%a) {axis = -1}
  %o: f32[40, 5000] = MatMul(%p, %u)
  return %o as "o"
})",
                  64 * 1024),
            (std::vector<size_t>{1, 1, 1}));
  // Each column of what the second product makes needs all rows of the first one's.
  EXPECT_EQ(sizes(R"(graph "" {
  %x: f32[40, 64] = input
  %w: f32[64, 40] = input
  %u: f32[8, 40] = input
  %a: f32[40, 40] = MatMul(%x, %w)
  %p: f32[40, 40] = Softmax(%a) {axis = -1}
  %o: f32[8, 40] = MatMul(%u, %p)
  return %o as "o"
})",
                  64 * 1024),
            (std::vector<size_t>{1, 1, 1}));
}

TEST(Fuse, WindowsDoNotJoinWindows) {
  const Graph graph = parsed(R"(graph "" {
  %x: f32[1, 24, 32, 32] = input
  %w: f32[24, 1, 3, 3] = input
  %d: f32[1, 24, 32, 32] = Conv(%x, %w) {group = 24, pads = [1, 1, 1, 1]}
  %p: f32[1, 24, 32, 32] = Conv(%d, %w) {group = 24, pads = [1, 1, 1, 1]}
  return %p as "p"
})");
  std::string why;
  EXPECT_EQ(fuse(graph, {.near_bytes = 4096}, &why).size(), 2u);
  EXPECT_NE(why.find("no longer than copying"), std::string::npos) << why;
}

TEST(Fuse, FreeNodesAreInNoGroupButKeepTheOrder) {
  const Graph graph = parsed(kAttention);
  const PlacementPlan plan = place_values(graph, {});
  const std::vector<Group> groups = fuse(graph, {true, plan.free});
  std::set<NodeId> seen;
  for (const Group& group : groups)
    for (NodeId id : group.nodes) {
      EXPECT_FALSE(plan.free.count(id));
      seen.insert(id);
    }
  EXPECT_TRUE(seen.count(named(graph, "out")));
  ASSERT_FALSE(groups.empty());
  EXPECT_EQ(groups.front().nodes[0], named(graph, "y"));
}

/// Chains, diamonds, products, joins: about 20,000 nodes.
Graph large_graph(int layers) {
  Graph graph;
  GraphEditor edit(graph);
  const auto add = [&](const char* op, std::vector<Value> inputs, AttrMap attrs = {}) {
    return Value{edit.add(op, std::move(inputs), std::move(attrs)), 0};
  };
  Value x = edit.add_input("x", static_type(kFloat32, {1, 8, 6, 6}));
  const Value mask = add("Tanh", {x});
  for (int k = 0; k < layers; ++k) {
    AttrMap axis, perm;
    axis.set("axis", int64_t{1});
    const Value bias = edit.add_constant(Constant::from_floats(kFloat32, {1}, std::vector<double>{0.5 + k}));
    const Value a = add("Relu", {add("Add", {x, bias})}), b = add("Exp", {x});
    const Value joined = add("Softmax", {add("Concat", {a, b}, axis)}, axis);
    const Value sizes = edit.add_constant(Constant::from_ints(kInt64, {2}, std::vector<int64_t>{8, 8}));
    const NodeId split = edit.add("Split", {joined, sizes}, axis, "", 2);
    x = add("Mul", {add("Add", {Value{split, 0}, Value{split, 1}}), mask});
    if (k % 4 == 0) x = add("Softmax", {x});
  }
  edit.set_outputs({x}, {"y"});
  return graph;
}

TEST(Pipeline, TwentyThousandNodesTakeSeconds) {
  Graph graph = large_graph(2000);
  ASSERT_GT(graph.num_nodes(), 20000);
  // Processor time: the machine may be busy with other things.
  const std::clock_t start = std::clock();
  const auto seconds = [&] { return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC; };
  const std::vector<PassRecord> records = optimize(graph);
  const double passes = seconds();
  const LayoutMap layouts = choose_layouts(graph, Target::host());
  const PlacementPlan plan = place_values(graph, layouts);
  const double placed = seconds();
  const std::vector<Group> groups = fuse(graph, {true, plan.free});
  EXPECT_GT(groups.size(), 4000u);
  // Generous: on a quiet machine it is well below 2 s.
  EXPECT_LT(seconds(), 10) << "passes " << passes << " s, placement until " << placed << " s\n" << to_string(records);
}

}  // namespace
}  // namespace tensmith::graph
