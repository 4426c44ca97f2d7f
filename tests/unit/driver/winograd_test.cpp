// What Winograd tiles cost in precision: compiled float32 convolutions over many channels against sums in float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "apps/driver/compile.h"
#include "apps/driver/export.h"
#include "graph/op_def.h"
#include "graph/ops/winograd.h"
#include "runtime/base/rng.h"

namespace tensmith {
namespace {

constexpr int64_t kChannels = 512, kOuts = 64, kSize = 28;

std::vector<double> values(int64_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<double> result(static_cast<size_t>(count));
  for (double& v : result) v = static_cast<float>(rng.uniform(-1, 1));
  return result;
}

/// 3x3, padded by 1, in float64.
std::vector<double> exact(const std::vector<double>& x, const std::vector<double>& w) {
  std::vector<double> y(static_cast<size_t>(kOuts * kSize * kSize));
  for (int64_t o = 0; o < kOuts; ++o)
    for (int64_t c = 0; c < kChannels; ++c)
      for (int64_t tap = 0; tap < 9; ++tap) {
        const double weight = w[static_cast<size_t>((o * kChannels + c) * 9 + tap)];
        const int64_t down = tap / 3 - 1, right = tap % 3 - 1;
        for (int64_t i = std::max<int64_t>(0, -down); i < std::min(kSize, kSize - down); ++i)
          for (int64_t j = std::max<int64_t>(0, -right); j < std::min(kSize, kSize - right); ++j)
            y[static_cast<size_t>((o * kSize + i) * kSize + j)] +=
                weight * x[static_cast<size_t>((c * kSize + i + down) * kSize + j + right)];
      }
  return y;
}

struct Error {
  double largest = 0, mean_square = 0;
};

/// Of the compiled convolution in tiles of that many results a side; 0: the direct sum.
Error error(const std::vector<double>& x, const std::vector<double>& w, const std::vector<double>& right, int tile) {
  graph::Graph graph;
  graph::GraphEditor edit(graph);
  const graph::Value input = edit.add_input("x", graph::static_type(kFloat32, {1, kChannels, kSize, kSize}));
  const graph::Constant weights = graph::Constant::from_floats(kFloat32, {kOuts, kChannels, 3, 3}, w);
  graph::AttrMap attrs;
  attrs.set("pads", std::vector<int64_t>{1, 1, 1, 1});
  const char* op = tile ? "WinogradConv" : "Conv";
  if (tile) attrs.set("tile", int64_t{tile});
  const graph::Value constant =
      edit.add_constant(tile ? winograd_weights(weights, graph::winograd(tile)) : weights, "w");
  edit.set_outputs({{edit.add(op, {input, constant}, std::move(attrs)), 0}}, {"y"});
  CompileOptions options;
  options.target = Target::parse("host").value();
  options.threads = 1;
  const auto program = std::make_shared<CompiledProgram>(compile_graph(graph, options));
  EXPECT_TRUE(std::any_of(program->kernels.begin(), program->kernels.end(), [&](const auto& kernel) {
    return kernel.ops.at(0) == op;
  })) << op;
  Instance instance = load_program(program).create({}).value();
  std::vector<HostTensor> inputs;
  inputs.emplace_back(std::vector<int64_t>{1, kChannels, kSize, kSize}, kFloat32);
  for (int64_t k = 0; k < inputs[0].size(); ++k) inputs[0].set(k, x[static_cast<size_t>(k)]);
  const std::vector<HostTensor> outputs = instance.run(inputs).value();
  Error e;
  for (size_t k = 0; k < right.size(); ++k) {
    const double off = std::fabs(outputs[0].get(static_cast<int64_t>(k)) - right[k]);
    e.largest = std::max(e.largest, off);
    e.mean_square += off * off / static_cast<double>(right.size());
  }
  return e;
}

TEST(WinogradTest, ErrsAtMostEightTimesAsMuchAsTheDirectSum) {
  const std::vector<double> x = values(kChannels * kSize * kSize, 1), w = values(kOuts * kChannels * 9, 2);
  const std::vector<double> right = exact(x, w);
  const Error direct = error(x, w, right, 0);
  EXPECT_GT(direct.largest, 0);
  for (const int tile : {2, 4}) {
    const Error tiled = error(x, w, right, tile);
    std::printf("tiles of %d: largest error %.2f times that of the direct sum, root of the mean square %.2f times\n",
                tile, tiled.largest / direct.largest, std::sqrt(tiled.mean_square / direct.mean_square));
    EXPECT_LE(tiled.largest, 8 * direct.largest);
    EXPECT_LE(std::sqrt(tiled.mean_square), 8 * std::sqrt(direct.mean_square));
  }
}

}  // namespace
}  // namespace tensmith
