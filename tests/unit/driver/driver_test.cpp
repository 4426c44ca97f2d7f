#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>

#include "apps/driver/compile.h"
#include "apps/driver/export.h"
#include "apps/driver/pack.h"
#include "graph/partition/memory_plan.h"
#include "runtime/base/files.h"
#include "runtime/base/rng.h"
#include "runtime/manifest.h"

namespace tensmith {
namespace {

/// x[1,3,9,9] -> Conv 3x3 (8) -> Relu -> GlobalAveragePool -> Flatten -> Gemm (5) -> Softmax.
graph::Graph small_net() {
  graph::Graph g;
  graph::GraphEditor edit(g);
  Rng rng(7);
  const auto weights = [&](std::vector<int64_t> shape) {
    int64_t count = 1;
    for (int64_t extent : shape) count *= extent;
    std::vector<double> values(count);
    for (double& v : values) v = rng.uniform(0, 1) - 0.5;
    return edit.add_constant(graph::Constant::from_floats(kFloat32, shape, values));
  };
  const graph::Value x = edit.add_input("x", graph::static_type(kFloat32, {1, 3, 9, 9}));
  graph::AttrMap conv;
  conv.set("pads", std::vector<int64_t>{1, 1, 1, 1});
  const auto add = [&](const char* op, std::vector<graph::Value> inputs, graph::AttrMap attrs = {}) {
    return graph::Value{edit.add(op, std::move(inputs), std::move(attrs)), 0};
  };
  graph::Value v = add("Conv", {x, weights({8, 3, 3, 3}), weights({8})}, conv);
  v = add("Relu", {v});
  v = add("GlobalAveragePool", {v});
  v = add("Flatten", {v});
  v = add("Gemm", {v, weights({8, 5}), weights({5})});
  v = add("Softmax", {v});
  edit.set_outputs({v}, {"y"});
  return g;
}

std::vector<float> run(const Module& module, int threads) {
  InstanceOptions options;
  options.threads = threads;
  Instance instance = module.create(options).value();
  std::vector<HostTensor> inputs;
  inputs.emplace_back(std::vector<int64_t>{1, 3, 9, 9}, kFloat32);
  for (int64_t k = 0; k < inputs[0].size(); ++k) inputs[0].set(k, std::sin(0.3 * static_cast<double>(k)));
  std::vector<HostTensor> outputs = instance.run(inputs).value();
  const auto data = outputs[0].data<float>();
  return {data.begin(), data.end()};
}

std::vector<float> compile_and_run(int level, int threads) {
  graph::Graph g = small_net();
  CompileOptions options;
  options.opt_level = level;
  options.threads = threads;
  return run(load_program(std::make_shared<CompiledProgram>(compile_graph(g, options))), threads);
}

TEST(Driver, AllLevelsAndThreadsAgree) {
  const std::vector<float> plain = compile_and_run(0, 1);
  double sum = 0;
  for (float v : plain) sum += v;
  EXPECT_NEAR(sum, 1, 1e-6);
  for (int level : {1, 2, 3})
    for (int threads : {1, 2}) {
      const std::vector<float> other = compile_and_run(level, threads);
      for (size_t k = 0; k < plain.size(); ++k)
        EXPECT_NEAR(other[k], plain[k], 1e-6) << "-O" << level << " element " << k;
    }
}

TEST(Driver, NoKernelNeedsPlainLoops) {
  graph::Graph g = small_net();
  const CompiledProgram program = compile_graph(g, {});
  for (const CompiledKernel& kernel : program.kernels)
    EXPECT_FALSE(kernel.is_plain) << kernel.name << ": " << kernel.explanation;
}

TEST(Export, SameInputGivesTheSameBytes) {
  TempDir folder;
  std::string first;
  for (int turn = 0; turn < 2; ++turn) {
    graph::Graph g = small_net();
    CompileOptions options;
    const std::string path = folder.file("libsmall.so");
    options.prefix = prefix_for(path);
    export_program(compile_graph(g, options), {path, WeightsHome::kEmbed});
    const std::string bytes = *read_file(path);
    if (turn == 0) first = bytes;
    else EXPECT_EQ(first, bytes);
  }
}

/// Builds a C program by gcc alone and gives its exit status.
int build_and_run(const TempDir& folder, const std::string& source, const std::string& flags) {
  std::ofstream(folder.file("main.c")) << source;
  const std::string dir = folder.path();
  const std::string build = "gcc -std=c99 -Wall -Wextra -Werror -I" + dir + " " + folder.file("main.c") + " -o " +
                            folder.file("main") + " -L" + dir + " " + flags + " -Wl,-rpath," + dir;
  if (std::system(build.c_str()) != 0) return -1;
  return std::system(folder.file("main").c_str());
}

void export_as(const TempDir& folder, const std::string& file, WeightsHome weights) {
  graph::Graph g = small_net();
  CompileOptions options;
  options.prefix = prefix_for(file);
  export_program(compile_graph(g, options), {folder.file(file), weights});
}

constexpr const char* kMain = R"(#include <stdio.h>
#include "small.h"
int main(void) {
  static float x[243], y[5];
  tensmith_instance* instance = 0;
  float sum = 0;
  int k;
  if (small_create(0, &instance) != 0) return 1;
  if (small_run(instance, x, y) != 0) { puts(small_last_error(instance)); return 2; }
  for (k = 0; k < 5; ++k) sum += y[k];
  small_destroy(instance);
  return sum > 0.999f && sum < 1.001f ? 0 : 3;
}
)";

TEST(Export, SharedLibraryRunsFromC) {
  TempDir folder;
  export_as(folder, "libsmall.so", WeightsHome::kEmbed);
  EXPECT_EQ(build_and_run(folder, kMain, "-lsmall"), 0);
}

TEST(Export, WeightsInAFile) {
  TempDir folder;
  export_as(folder, "libsmall.so", WeightsHome::kFile);
  EXPECT_EQ(build_and_run(folder, kMain, "-lsmall"), 0);
}

TEST(Export, TheManifestHoldsTheDigestsOfItsFiles) {
  TempDir folder;
  for (const WeightsHome home : {WeightsHome::kFile, WeightsHome::kEmbed}) {
    export_as(folder, "libsmall.so", home);
    const Json manifest = read_manifest(folder.file("libsmall.json")).value();
    EXPECT_EQ(manifest["files"].size(), home == WeightsHome::kFile ? 3u : 2u);
    for (const Json& entry : manifest["files"])
      EXPECT_TRUE(check_against_manifest(folder.file(entry["name"].get<std::string>()), manifest).value());
  }
}

TEST(Export, TheLastUseOfWeightsGivesTheSameFiles) {
  TempDir folder;
  for (const char* file : {"libsmall.so", "small.o", "small.a"})
    for (const WeightsHome home : {WeightsHome::kFile, WeightsHome::kEmbed}) {
      export_as(folder, file, home);
      const std::string kept = *read_file(folder.file(file));
      graph::Graph g = small_net();
      CompileOptions options;
      options.prefix = prefix_for(file);
      CompiledProgram program = compile_graph(g, options);
      export_last(program, {folder.file(file), home});
      EXPECT_EQ(*read_file(folder.file(file)), kept);
      EXPECT_EQ(program.weights, nullptr);
    }
}

TEST(ProgramWeights, PiecesAndMemoryHoldTheSame) {
  const auto constant = [](std::vector<int64_t> shape, double first) {
    std::vector<double> values;
    for (int64_t k = 0, count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()); k < count;
         ++k)
      values.push_back(first + static_cast<double>(k));
    return graph::Constant::from_floats(kFloat32, shape, values);
  };
  const Layout turned = Layout::permuted({1, 0});
  const std::vector<ProgramWeights::Piece> pieces = {{constant({5}, 1), {}, 0},
                                                     {constant({3, 7}, 50), turned, 64},
                                                     {constant({2000}, 100), Layout::row_major(1), 9000}};
  const ProgramWeights weights(pieces, 20480);
  const auto all = [](const ProgramWeights& from) {
    std::vector<uint8_t> bytes;
    from.for_each([&](std::span<const uint8_t> piece) { bytes.insert(bytes.end(), piece.begin(), piece.end()); });
    return bytes;
  };
  const std::vector<uint8_t> before = all(weights), packed(weights.bytes().begin(), weights.bytes().end());
  ASSERT_EQ(before.size(), 20480u);
  EXPECT_EQ(before, packed);
  EXPECT_EQ(all(weights), packed);
  for (const bool is_packed : {false, true}) {
    ProgramWeights last(pieces, 20480);
    if (is_packed) last.bytes();
    std::vector<uint8_t> given;
    last.for_each_at_last(
        [&](std::span<const uint8_t> piece) { given.insert(given.end(), piece.begin(), piece.end()); });
    EXPECT_EQ(given, packed);
    EXPECT_THROW(all(last), InternalError);
  }
  const auto at = [&](size_t offset) {
    float value;
    std::memcpy(&value, packed.data() + offset, sizeof value);
    return value;
  };
  EXPECT_EQ(at(4), 2);
  EXPECT_EQ(at(64 + 4), 57) << "the second row's first element comes second";
  EXPECT_EQ(at(9000), 100);
  EXPECT_EQ(at(5000), 0);
}

TEST(Export, TwoArchivesInOneProgram) {
  TempDir folder;
  export_as(folder, "libsmall.a", WeightsHome::kEmbed);
  export_as(folder, "libother.a", WeightsHome::kEmbed);
  std::string both = kMain;
  const std::string include = "#include \"small.h\"";
  both.replace(both.find(include), include.size(),
               include +
                   "\n#include \"other.h\"\nstatic int other_fails(void) { tensmith_instance* i = 0; int code = "
                   "other_create(0, &i); other_destroy(i); return code; }");
  const std::string create = "  if (small_create";
  both.replace(both.find(create), create.size(), "  if (other_fails()) return 4;\n" + create);
  EXPECT_EQ(build_and_run(folder, both, "-lsmall -lother -lpthread -lm"), 0);
}

TEST(Pack, BlocksPermutesAndPadsWithZeros) {
  std::vector<double> values(6);
  for (int k = 0; k < 6; ++k) values[k] = k + 1;
  const graph::Constant constant = graph::Constant::from_floats(kFloat32, {2, 3}, values);
  const Layout layout = *Layout::parse("1/2,0,1%2", 2);
  ASSERT_EQ(packed_bytes(constant, layout), 8 * 4);
  std::vector<float> packed(8, -1);
  pack(constant, layout, reinterpret_cast<uint8_t*>(packed.data()));
  EXPECT_EQ(packed, (std::vector<float>{1, 2, 4, 5, 3, 0, 6, 0}));
}

TEST(Pack, AgreesWithTheLayoutsIndexMapping) {
  std::vector<double> values(5 * 7 * 3);
  for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<double>(k);
  const std::vector<int64_t> shape{5, 7, 3};
  const graph::Constant constant = graph::Constant::from_floats(kFloat32, shape, values);
  for (const char* text : {"0,1,2", "2,1,0", "1/4,2,0,1%4", "0/2,1/3,0%2,1%3,2", "1,0,2;halo 1:2+1"}) {
    const Layout layout = *Layout::parse(text, 3);
    std::vector<float> packed(packed_bytes(constant, layout) / 4);
    pack(constant, layout, reinterpret_cast<uint8_t*>(packed.data()));
    const std::vector<int64_t> physical = layout.physical_shape(shape);
    for (int64_t i = 0; i < 5; ++i)
      for (int64_t j = 0; j < 7; ++j)
        for (int64_t k = 0; k < 3; ++k) {
          int64_t at = 0;
          const std::vector<int64_t> place = layout.physical_index(std::vector<int64_t>{i, j, k});
          for (size_t d = 0; d < place.size(); ++d) at = at * physical[d] + place[d];
          EXPECT_EQ(packed[at], static_cast<float>((i * 7 + j) * 3 + k)) << text;
        }
  }
}

TEST(MemoryPlan, NoOverlapAmongTheLiving) {
  Rng rng(3);
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<graph::MemoryRequest> requests(1 + turn % 40);
    for (graph::MemoryRequest& r : requests) {
      r.bytes = static_cast<int64_t>(rng.uniform(0, 1) * 5000);
      r.first = static_cast<int>(rng.uniform(0, 1) * 30);
      r.last = r.first + static_cast<int>(rng.uniform(0, 1) * 8);
    }
    const graph::MemoryPlan plan = graph::plan_memory(requests);
    EXPECT_GE(plan.arena_bytes, plan.lower_bound);
    for (size_t a = 0; a < requests.size(); ++a) {
      EXPECT_EQ(plan.offsets[a] % 64, 0);
      EXPECT_LE(plan.offsets[a] + requests[a].bytes, plan.arena_bytes);
      for (size_t b = a + 1; b < requests.size(); ++b) {
        const bool together = requests[a].first <= requests[b].last && requests[b].first <= requests[a].last;
        const bool apart = plan.offsets[a] + requests[a].bytes <= plan.offsets[b] ||
                           plan.offsets[b] + requests[b].bytes <= plan.offsets[a];
        EXPECT_TRUE(!together || apart || requests[a].bytes == 0 || requests[b].bytes == 0);
      }
    }
  }
}

TEST(MemoryPlan, RefusesSizesThatOverflow) {
  EXPECT_THROW(graph::plan_memory({{INT64_MAX, 0, 1}, {INT64_MAX, 0, 1}}), UserError);
}

}  // namespace
}  // namespace tensmith
