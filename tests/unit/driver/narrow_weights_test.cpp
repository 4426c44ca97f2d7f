// Products with weights in narrow types: right by their own kernels, which widen on the way.
#include <gtest/gtest.h>

#include <cmath>

#include "apps/driver/compile.h"
#include "apps/driver/export.h"
#include "graph/constant_math.h"
#include "graph/interpret.h"
#include "runtime/base/rng.h"

namespace tensmith {
namespace {

constexpr int64_t kSteps = 70, kColumns = 52;

/// Weights that `stored` holds: int8 and int16 times a number for each column.
graph::Constant weights_in(DType stored) {
  Rng rng(1);
  std::vector<double> values(static_cast<size_t>(kSteps * kColumns));
  for (double& v : values)
    v = !stored.is_integral() ? rng.uniform(-1, 1) : std::nearbyint(rng.uniform(stored == kInt8 ? -120 : -250, 120));
  if (stored == kBFloat16) values[3] = 0x1p-40;  // smaller than halves can be
  const graph::Constant exact = graph::Constant::from_floats(stored, {kSteps, kColumns}, values);
  return graph::map_elements(exact, kFloat32, [&](double x, int64_t k) {
    return stored.is_integral() ? x * static_cast<float>(0.001 + 0.0003 * static_cast<double>(k % kColumns)) : x;
  });
}

/// Two products of the same rows, which become one, and an epilogue.
graph::Graph graph_of(DType stored, int64_t rows) {
  graph::Graph graph;
  graph::GraphEditor edit(graph);
  const graph::Value x = edit.add_input("x", graph::static_type(kFloat32, {1, rows, kSteps}));
  const auto product = [&](const char* name, graph::Constant weights) {
    return graph::Value{edit.add("MatMul", {x, edit.add_constant(std::move(weights), name)}, {}, name), 0};
  };
  const graph::Value a = product("a", weights_in(stored));
  const graph::Value b =
      product("b", graph::map_elements(weights_in(stored), kFloat32, [](double w, int64_t) { return -2 * w; }));
  edit.set_outputs({{edit.add("Mul", {{edit.add("Relu", {a}, {}, "r"), 0}, b}, {}, "y"), 0}}, {"y"});
  return graph;
}

CompiledProgram program_of(const graph::Graph& graph, const std::string& target) {
  graph::Graph copy = graph.clone();
  CompileOptions options;
  options.target = Target::parse(target + ",l2=4K").value();  // all weights come from beyond it
  options.threads = 1;
  return compile_graph(copy, options);
}

TEST(NarrowWeights, GiveRightProducts) {
  for (const DType stored : {kInt8, kInt16, kFloat16, kBFloat16})
    for (const int64_t rows : {1, 4, 9, 16, 128}) {
      const graph::Graph graph = graph_of(stored, rows);
      Rng rng(2);
      graph::RefTensor x = graph::make_ref_tensor(kFloat32, {1, rows, kSteps});
      std::vector<HostTensor> inputs;
      inputs.emplace_back(x.shape, kFloat32);
      for (int64_t k = 0; k < x.num_elements(); ++k) {
        x.set(k, static_cast<float>(rng.uniform(-1, 1)));
        inputs[0].set(k, x.get(k));
      }
      const std::vector<double> want = graph::interpret(graph, {x}).value()[0].f;
      const auto program = std::make_shared<CompiledProgram>(program_of(graph, "host"));
      std::string said;
      for (const CompiledKernel& kernel : program->kernels) said += kernel.explanation;
      if (rows == 1 || rows == 128) {
        EXPECT_EQ(said.find("weights in ") != std::string::npos, rows == 1) << to_string(stored) << ": " << said;
      }
      Instance instance = load_program(program).create({}).value();
      const std::vector<HostTensor> outputs = instance.run(inputs).value();
      ASSERT_EQ(static_cast<size_t>(outputs[0].size()), want.size());
      for (size_t k = 0; k < want.size(); ++k)
        ASSERT_NEAR(outputs[0].get(static_cast<int64_t>(k)), want[k], 2e-5 * (1 + std::fabs(want[k])))
            << to_string(stored) << ", " << rows << " rows, element " << k;
    }
}

TEST(NarrowWeights, AreReadInRegisterTiles) {
  for (const char* target : {"sapphirerapids", "x86-64-v3"}) {
    const CompiledProgram program = program_of(graph_of(kInt8, 4), target);
    std::string said, text;
    for (const CompiledKernel& kernel : program.kernels) said += kernel.explanation;
    EXPECT_NE(said.find("accumulators"), std::string::npos) << target << ": " << said;
    EXPECT_NE(said.find("weights in i8"), std::string::npos) << target << ": " << said;
  }
}

}  // namespace
}  // namespace tensmith
