/// Parts of graphs: cut out, reduced to a fault, written down, laid out and back.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "apps/driver/pack.h"
#include "apps/driver/reduce.h"
#include "apps/driver/reproducer.h"
#include "apps/driver/subgraph.h"
#include "graph/op_def.h"
#include "runtime/base/files.h"

namespace tensmith {
namespace {

/// x -> Neg -> Abs -> Exp -> Tanh -> Sqrt -> Floor -> y.
graph::Graph chain(std::vector<graph::Value>* values) {
  graph::Graph g;
  graph::GraphEditor edit(g);
  graph::Value v = edit.add_input("x", graph::static_type(kFloat32, {2, 3}));
  values->push_back(v);
  for (const char* op : {"Neg", "Abs", "Exp", "Tanh", "Sqrt", "Floor"}) {
    v = {edit.add(op, {v}), 0};
    values->push_back(v);
  }
  edit.set_outputs({v}, {"y"});
  return g;
}

std::vector<std::string> ops_of(const graph::Graph& g) {
  std::vector<std::string> names;
  for (graph::NodeId id : g.topological_order())
    if (g.node(id).op->name != "Input") names.push_back(g.node(id).op->name);
  return names;
}

TEST(Subgraph, KeepsNamesTypesAndOrder) {
  std::vector<graph::Value> values;
  const graph::Graph g = chain(&values);
  const graph::Graph part = cut_subgraph(g, {values[2].node, values[3].node}, {values[1]}, {values[3]}).value();
  EXPECT_EQ(ops_of(part), (std::vector<std::string>{"Abs", "Exp"}));
  EXPECT_EQ(part.value_name({part.inputs[0], 0}), g.value_name(values[1]));
  EXPECT_TRUE(graph::verify(part).ok());
}

TEST(Subgraph, RefusesValuesThatNobodyGives) {
  std::vector<graph::Value> values;
  const graph::Graph g = chain(&values);
  const Result<graph::Graph> part = cut_subgraph(g, {values[3].node}, {}, {values[3]});
  ASSERT_FALSE(part.ok());
  EXPECT_EQ(part.failure().id, "incomplete-subgraph");
}

TEST(Reduce, FindsTheNodesThatAFaultNeeds) {
  std::vector<graph::Value> values;
  const graph::Graph g = chain(&values);
  int trials = 0;
  const auto fails = [&](const graph::Graph& part) {
    ++trials;
    const std::vector<std::string> ops = ops_of(part);
    const auto has = [&](const char* op) { return std::find(ops.begin(), ops.end(), op) != ops.end(); };
    return has("Exp") && has("Tanh");
  };
  EXPECT_EQ(ops_of(reduce_graph(g, fails, 60)), (std::vector<std::string>{"Exp", "Tanh"}));
  EXPECT_LE(trials, 8);
}

TEST(Reduce, KeepsTheSameFailureNotOneLikeIt) {
  std::vector<graph::Value> values;
  const graph::Graph g = chain(&values);
  const std::string common(40, 'p');
  // Whoever has an Abs fails much like the whole, which fails by Tanh in the first place.
  const auto run = [&](const graph::Graph& part) {
    const std::vector<std::string> ops = ops_of(part);
    const auto has = [&](const char* op) { return std::find(ops.begin(), ops.end(), op) != ops.end(); };
    if (has("Tanh")) throw InternalError(common + "tanh");
    if (has("Abs")) throw InternalError(common + "abs");
    if (has("Floor")) throw UserError("bad-floor", common + "tanh");
  };
  EXPECT_EQ(ops_of(reduce_to_failure(g, run, common + "tanh", 60)), std::vector<std::string>{"Tanh"});
  EXPECT_EQ(ops_of(reduce_to_failure(g, run, common, 60)).size(), 6u);
}

TEST(Reduce, LeavesWhatDoesNotFailWhole) {
  std::vector<graph::Value> values;
  const graph::Graph g = chain(&values);
  EXPECT_EQ(ops_of(reduce_graph(
                       g, [](const graph::Graph&) { return false; }, 60))
                .size(),
            6u);
}

TEST(Reproducer, TextReadsBackAndLiesWhereAsked) {
  std::vector<graph::Value> values;
  const graph::Graph g = chain(&values);
  const std::string text = reproducer_graph(g);
  EXPECT_EQ(to_string(graph::parse_graph(text).value()), to_string(g));
  const TempDir folder;
  const std::string place = folder.file("deep/er");
  EXPECT_EQ(write_reproducer(place, {{"model.graph", text}}).value(), place);
  EXPECT_EQ(read_file(place + "/model.graph").value(), text);
  const std::string fresh = write_reproducer("", {{"error.txt", "x"}}).value();
  EXPECT_TRUE(std::filesystem::exists(fresh + "/error.txt"));
  std::filesystem::remove_all(fresh);
  std::ofstream(folder.file("file")) << "in the way";
  EXPECT_EQ(write_reproducer(folder.file("file/sub"), {{"a", "b"}}).failure().id, "cannot-write");
}

TEST(Pack, UnpackIsItsInverse) {
  const std::vector<int64_t> shape{2, 5, 3, 4};
  std::vector<double> content;
  for (int k = 0; k < 120; ++k) content.push_back(k);
  const graph::Constant constant = graph::Constant::from_floats(kFloat32, shape, content);
  for (const char* text : {"0,1,2,3", "0,2,3,1", "0,1/4,2,3,1%4", "1/2,0,3,2,1%2", "0,2,3,1;halo 2:1+1 3:2+0"}) {
    const Layout layout = Layout::parse(text, 4).value();
    std::vector<uint8_t> packed(static_cast<size_t>(packed_bytes(constant, layout)));
    pack(constant, layout, packed.data());
    std::vector<float> back(120, -1);
    unpack(packed.data(), layout, kFloat32, shape, reinterpret_cast<uint8_t*>(back.data()));
    for (int k = 0; k < 120; ++k) ASSERT_EQ(back[k], static_cast<float>(k)) << text << " element " << k;
  }
}

}  // namespace
}  // namespace tensmith
