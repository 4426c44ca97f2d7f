// Convolutions of unusual forms by default: right, and in register tiles rather than one result after the other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "apps/driver/compile.h"
#include "apps/driver/export.h"
#include "graph/interpret.h"
#include "runtime/base/rng.h"

namespace tensmith {
namespace {

struct Form {
  const char* name;
  const char* op;
  std::vector<int64_t> x, w;
  int64_t stride = 1, pad = 0, group = 1;
  int level = 2;
};

std::vector<double> values(const std::vector<int64_t>& shape, uint64_t seed) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  Rng rng(seed);
  std::vector<double> result(static_cast<size_t>(count));
  for (double& v : result) v = static_cast<float>(rng.uniform(-1, 1));
  return result;
}

graph::Graph graph_of(const Form& form) {
  graph::Graph graph;
  graph::GraphEditor edit(graph);
  const size_t rank = form.x.size() - 2;
  graph::AttrMap attrs;
  attrs.set("strides", std::vector<int64_t>(rank, form.stride));
  attrs.set("pads", std::vector<int64_t>(2 * rank, form.pad));
  attrs.set("group", form.group);
  const graph::Value x = edit.add_input("x", graph::static_type(kFloat32, form.x));
  const graph::Value w = edit.add_constant(graph::Constant::from_floats(kFloat32, form.w, values(form.w, 2)), "w");
  const graph::Value y{edit.add(form.op, {x, w}, std::move(attrs), "y"), 0};
  edit.set_outputs({{edit.add("Relu", {y}, {}, "relu"), 0}}, {"y"});
  return graph;
}

CompiledProgram program_of(const Form& form, const char* target) {
  graph::Graph graph = graph_of(form);
  CompileOptions options;
  options.target = Target::parse(target).value();
  options.threads = 1;
  options.opt_level = form.level;
  return compile_graph(graph, options);
}

const std::vector<Form>& forms() {
  static const std::vector<Form> all = {
      {"groups_of_4", "Conv", {1, 32, 9, 10}, {32, 4, 3, 3}, 1, 1, 8},
      {"groups_of_8", "Conv", {1, 32, 9, 10}, {32, 8, 3, 3}, 2, 1, 4},
      {"groups_of_16", "Conv", {2, 48, 7, 7}, {48, 16, 3, 3}, 1, 1, 3},
      {"groups_of_20", "Conv", {1, 60, 6, 9}, {60, 20, 1, 1}, 1, 0, 3},
      {"groups_of_24", "Conv", {1, 72, 8, 8}, {72, 24, 3, 3}, 1, 1, 3},
      {"groups_of_40", "Conv", {1, 80, 7, 8}, {80, 40, 3, 3}, 2, 1, 2},
      {"groups_of_168", "Conv", {1, 30, 5, 5}, {336, 15, 1, 1}, 1, 0, 2},
      {"more_results_a_group", "Conv", {1, 8, 9, 9}, {64, 2, 3, 3}, 1, 1, 4},
      {"grouped_planes", "Conv", {1, 12, 9, 40}, {24, 4, 3, 3}, 1, 1, 3, 1},
      {"grouped_line", "Conv", {1, 24, 70}, {48, 8, 5}, 2, 2, 3},
      {"twelve_results", "Conv", {1, 20, 9, 10}, {12, 20, 3, 3}, 1, 1},
      {"twenty_seven_results", "Conv", {1, 20, 9, 10}, {27, 20, 3, 3}, 1, 1},
      {"planes", "Conv", {1, 20, 9, 37}, {21, 20, 3, 3}, 1, 1, 1, 1},
      {"planes_stride_2", "Conv", {2, 20, 9, 70}, {21, 20, 3, 3}, 2, 1, 1, 1},
      {"planes_stride_3", "Conv", {1, 20, 9, 101}, {21, 20, 1, 1}, 3, 0, 1, 1},
      {"few_results_stride_2", "Conv", {1, 40, 15, 70}, {3, 40, 5, 5}, 2, 2},
      {"transposed_2x2", "ConvTranspose", {1, 20, 7, 9}, {20, 24, 2, 2}, 2, 0},
      {"transposed_4x4", "ConvTranspose", {1, 20, 7, 9}, {20, 24, 4, 4}, 2, 1},
      {"transposed_3x3", "ConvTranspose", {1, 20, 7, 9}, {20, 17, 3, 3}, 2, 1},
      {"transposed_to_3", "ConvTranspose", {1, 20, 8, 8}, {20, 3, 4, 4}, 2, 1},
      {"transposed_line", "ConvTranspose", {1, 20, 30}, {20, 10, 16}, 8, 4},
  };
  return all;
}

TEST(ConvForms, AreRight) {
  for (const Form& form : forms()) {
    const graph::Graph graph = graph_of(form);
    graph::RefTensor x;
    x.dtype = kFloat32;
    x.shape = form.x;
    x.f = values(form.x, 1);
    const std::vector<double> want = graph::interpret(graph, {x}).value()[0].f;
    const auto program = std::make_shared<CompiledProgram>(program_of(form, "host"));
    Instance instance = load_program(program).create({}).value();
    std::vector<HostTensor> inputs;
    inputs.emplace_back(form.x, kFloat32);
    for (int64_t k = 0; k < inputs[0].size(); ++k) inputs[0].set(k, x.f[static_cast<size_t>(k)]);
    const std::vector<HostTensor> outputs = instance.run(inputs).value();
    ASSERT_EQ(static_cast<size_t>(outputs[0].size()), want.size()) << form.name;
    for (size_t k = 0; k < want.size(); ++k)
      ASSERT_NEAR(outputs[0].get(static_cast<int64_t>(k)), want[k], 2e-4) << form.name << ", element " << k;
  }
}

TEST(ConvForms, AreRegisterTiles) {
  for (const char* target : {"sapphirerapids", "aarch64"})
    for (const Form& form : forms()) {
      const CompiledProgram program = program_of(form, target);
      const bool tiled = std::any_of(program.kernels.begin(), program.kernels.end(), [](const CompiledKernel& kernel) {
        return kernel.explanation.find("accumulators") != std::string::npos;
      });
      EXPECT_TRUE(tiled) << form.name << " for " << target;
      for (const CompiledKernel& kernel : program.kernels)
        EXPECT_EQ(kernel.explanation.find("serial reduction"), std::string::npos)
            << form.name << " for " << target << ": " << kernel.explanation;
    }
}

}  // namespace
}  // namespace tensmith
