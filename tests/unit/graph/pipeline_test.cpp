#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "graph/constant_math.h"
#include "graph/interpret.h"
#include "graph/passes/cse.h"
#include "graph/passes/fold.h"
#include "graph/passes/fold_native.h"
#include "graph/pipeline.h"
#include "runtime/base/files.h"

namespace tensmith::graph {
namespace {

Graph parsed(const std::string& text) {
  auto graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << (graph ? "" : graph.failure().message);
  return std::move(graph).value();
}

std::string folded(const std::string& text, const PassOptions& options = {}) {
  Graph graph = parsed(text);
  GraphEditor edit(graph);
  fold(edit, options);
  const auto ok = verify(graph);
  EXPECT_TRUE(ok.ok()) << ok.failure().message;
  return to_string(graph);
}

TEST(Fold, ComputesConstantsAndSizes) {
  EXPECT_EQ(folded(R"(graph "" {
  %x: f32[2, 3] = input
  %a = f32[2] {1.0, 2.0}
  %b = f32[] {10.0}
  %c: f32[2] = Add(%a, %b)
  %s: i64[2] = Shape(%x)
  %n: i64[] = Size(%x)
  return %c as "c"
  return %s as "s"
  return %n as "n"
})"),
            R"(graph "" {
  %x: f32[2, 3] = input
  %c = f32[2] {11.0, 12.0}
  %s = i64[2] {2, 3}
  %n = i64[] {6}
  return %c as "c"
  return %s as "s"
  return %n as "n"
}
)");
}

TEST(Fold, LeavesWhatIsTooLarge) {
  const std::string text = R"(graph "" {
  %a = f32[2] {1.0, 2.0}
  %s = i64[3] {1000, 1000, 2}
  %c: f32[1000, 1000, 2] = Expand(%a, %s)
  return %c as "c"
}
)";
  EXPECT_EQ(folded(text), text);
  PassOptions tiny;
  tiny.constant_limit_bytes = 4;  // small tensors whose elements the type rules follow are made all the same
  const std::string pair = R"(graph "" {
  %a = f32[2] {1.0, 2.0}
  %s = i64[1] {50}
  %c: f32[100] = Tile(%a, %s)
  return %c as "c"
}
)";
  EXPECT_EQ(folded(pair, tiny), pair);
  EXPECT_NE(folded(pair), pair);
}

TEST(Fold, MovesWeightsOfAnyTypeAndRank) {
  // 2 x 3 x 4 x 5 values in every order of axes, against index arithmetic.
  std::vector<int64_t> values(120);
  for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<int64_t>(k);
  for (DType dtype : {kInt8, kInt16, kInt32, kInt64}) {
    const Constant c = Constant::from_ints(dtype, {2, 3, 4, 5}, values);
    std::vector<int64_t> perm = {0, 1, 2, 3};
    do {
      const Constant t = transpose(c, perm);
      const std::vector<int64_t> strides = {60, 20, 5, 1};
      int64_t flat = 0;
      for (int64_t a = 0; a < t.shape()[0]; ++a)
        for (int64_t b = 0; b < t.shape()[1]; ++b)
          for (int64_t d = 0; d < t.shape()[2]; ++d)
            for (int64_t e = 0; e < t.shape()[3]; ++e, ++flat)
              ASSERT_EQ(t.int_at(flat),
                        a * strides[perm[0]] + b * strides[perm[1]] + d * strides[perm[2]] + e * strides[perm[3]]);
    } while (std::next_permutation(perm.begin(), perm.end()));
  }
}

TEST(Fold, NativeConversionsAreThoseOfTheInterpreter) {
  const std::string text = R"(graph "" {
  %i = i8[2, 3] {-128, 127, 0, 5, -5, 1}
  %u = u8[2, 3] {255, 0, 128, 5, 7, 1}
  %h = f16[3] {0.1, 65504.0, -inf}
  %s = f32[3] {0.1, 0.3, 1e-05}
  %z = i8[3] {-128, 3, 0}
  %k = f32[] {0.7}
  %q = u8[] {128}
  %a: f32[2, 3] = DequantizeLinear(%i, %s, %z) {axis = 1}
  %b: f32[2, 3] = DequantizeLinear(%u, %k, %q)
  %c: f32[3] = Cast(%h) {to = f32}
  %d: bf16[3] = Cast(%s) {to = bf16}
  %e: f32[2, 3] = Cast(%i) {to = f32}
  %m: f32[2, 3] = Mul(%a, %s)
  %w = f32[2, 1, 1] {3.3, -7.7}
  %n: f32[2, 2, 3] = Add(%a, %w)
  %o: f32[2, 2, 3] = Div(%w, %b)
  %p: f32[2, 3] = Sub(%k, %a)
  return %m as "m"
  return %n as "n"
  return %o as "o"
  return %p as "p"
  return %a as "a"
  return %b as "b"
  return %c as "c"
  return %d as "d"
  return %e as "e"
})";
  Graph graph = parsed(text);
  std::map<Value, Constant> known;
  for (NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (const Constant* constant = graph.constant({id, 0})) {
      known[{id, 0}] = *constant;
      continue;
    }
    std::vector<const Constant*> constants;
    std::vector<RefTensor> tensors;
    tensors.reserve(node.inputs.size());
    std::vector<const RefTensor*> inputs;
    for (const Value& input : node.inputs) {
      constants.push_back(&known.at(input));
      tensors.push_back(to_ref_tensor(*constants.back()));
      inputs.push_back(&tensors.back());
    }
    const auto native = fold_natively(node, constants);
    ASSERT_TRUE(native.has_value()) << node.name;
    known[{id, 0}] = *native;
    EXPECT_EQ(digest(*native), digest(to_constant((*interpret_node(node, inputs))[0]))) << node.name;
  }
}

TEST(Cse, MergesEqualNodesAndConstants) {
  Graph graph = parsed(R"(graph "" {
  %x: f32[2] = input
  %a = f32[] {2.0}
  %b = f32[] {2.0}
  %c = f32[] {-2.0}
  %p: f32[2] = Mul(%x, %a)
  %q: f32[2] = Mul(%x, %b)
  %r: f32[2] = Mul(%x, %c)
  %l: f32[2] = LeakyRelu(%p) {alpha = 0.5}
  %m: f32[2] = LeakyRelu(%q) {alpha = 0.25}
  %s: f32[2] = Sum(%p, %q, %r, %l, %m)
  return %s as "s"
})");
  GraphEditor edit(graph);
  EXPECT_EQ(eliminate_common(edit, {}), 2);
  EXPECT_TRUE(verify(graph).ok());
  EXPECT_EQ(to_string(graph), R"(graph "" {
  %x: f32[2] = input
  %a = f32[] {2.0}
  %c = f32[] {-2.0}
  %p: f32[2] = Mul(%x, %a)
  %r: f32[2] = Mul(%x, %c)
  %l: f32[2] = LeakyRelu(%p) {alpha = 0.5}
  %m: f32[2] = LeakyRelu(%p) {alpha = 0.25}
  %s: f32[2] = Sum(%p, %p, %r, %l, %m)
  return %s as "s"
}
)");
}

constexpr const char* kExported = R"(graph "" {
  %x: f32[2, 3] = input
  %g = f32[3] {1.0, 2.0, 3.0}
  %two = f32[] {2.0}
  %k = f32[] {1e-05}
  %i = i64[1] {-1}
  %m: f32[2, 1] = ReduceMean(%x, %i)
  %d: f32[2, 3] = Sub(%x, %m)
  %m2: f32[2, 1] = ReduceMean(%x, %i)
  %d2: f32[2, 3] = Sub(%x, %m2)
  %q: f32[2, 3] = Pow(%d2, %two)
  %v: f32[2, 1] = ReduceMean(%q, %i)
  %e: f32[2, 1] = Add(%v, %k)
  %s: f32[2, 1] = Sqrt(%e)
  %n: f32[2, 3] = Div(%d, %s)
  %p: f32[2, 3] = Mul(%g, %n)
  %t: f32[3, 2] = Transpose(%p)
  %u: f32[3, 2] = Relu(%t)
  %w: f32[2, 3] = Transpose(%u)
  return %w as "w"
})";

TEST(Pipeline, TakesExporterDebrisAway) {
  Graph graph = parsed(kExported);
  PipelineOptions options;
  options.verify_each = true;
  const auto records = optimize(graph, options);
  EXPECT_EQ(to_string(graph), R"(graph "" {
  %x: f32[2, 3] = input
  %g = f32[3] {1.0, 2.0, 3.0}
  %p: f32[2, 3] = LayerNormalization(%x, %g) {axis = 1, epsilon = 9.999999747378752e-06}
  %u_1: f32[2, 3] = Relu(%p) "u"
  return %u_1 as "w"
}
)");
  EXPECT_EQ(records.size(), graph_passes().size());
  EXPECT_NE(to_string(records).find("recompose"), std::string::npos);
}

TEST(Pipeline, SwitchesHold) {
  const auto nodes_with = [](const std::function<void(PipelineOptions&)>& change) {
    Graph graph = parsed(kExported);
    PipelineOptions options;
    options.verify_each = true;
    change(options);
    optimize(graph, options);
    return graph.num_nodes();
  };
  const int64_t all = nodes_with([](PipelineOptions&) {}),
                plain = nodes_with([](PipelineOptions&options) { options.level = 0; });
  EXPECT_GT(plain, all);
  EXPECT_EQ(nodes_with([](PipelineOptions& options) { options.pass_limit = 0; }), plain);
  EXPECT_GT(nodes_with([](PipelineOptions& options) { options.disabled = {"recompose"}; }), all);
  EXPECT_GT(nodes_with([](PipelineOptions& options) { options.stop_after = "canonicalize"; }), all);
  // Every prefix of the optional passes gives a graph that computes the same.
  Graph original = parsed(kExported);
  const std::vector<RefTensor> input = {{kFloat32, {2, 3}, {1, 5, -2, 0, 0.5, 7}, {}}};
  const auto expected = interpret(original, input);
  for (int64_t limit = 0; limit <= static_cast<int64_t>(graph_passes().size()); ++limit) {
    Graph graph = original.clone();
    PipelineOptions options;
    options.pass_limit = limit;
    options.verify_each = true;
    optimize(graph, options);
    const auto got = interpret(graph, input);
    ASSERT_TRUE(got.ok());
    for (size_t k = 0; k < 6; ++k) EXPECT_NEAR((*got)[0].f[k], (*expected)[0].f[k], 1e-5) << limit;
  }
}

TEST(Pipeline, TableIsWellFormed) {
  std::set<std::string> names;
  for (const GraphPass& pass : graph_passes()) {
    EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
    EXPECT_NE(std::string(pass.why_here), "");
    EXPECT_NE(std::string(pass.what), "");
  }
}

TEST(Pipeline, DumpsNumberedFilesAndRefusesUnknownNames) {
  TempDir dir;
  Config config;
  config.dump = dir.path();
  Graph graph = parsed(kExported);
  optimize(graph, pipeline_options(config));
  EXPECT_TRUE(read_file(dir.file("graph_01_canonicalize.txt")).ok());
  Config wrong;
  wrong.print_graph = "after:nonsense";
  EXPECT_THROW(pipeline_options(wrong), UserError);
}

}  // namespace
}  // namespace tensmith::graph
