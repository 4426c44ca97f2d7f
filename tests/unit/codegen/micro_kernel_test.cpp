// The register tile: right, without spills, with full-width fused multiply-adds; its speed is printed.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "tests/unit/codegen/micro_kernel.h"
#include "tests/unit/codegen/run_code.h"

namespace tensmith {
namespace {

/// The loop with the most FMAs: its instructions, without labels and directives.
std::vector<std::string> hot_loop(const std::string& assembly) {
  std::vector<std::string> lines, best;
  size_t most = 0;
  for (size_t begin = 0; begin < assembly.size();) {
    const size_t end = std::min(assembly.find('\n', begin), assembly.size());
    lines.push_back(assembly.substr(begin, end - begin));
    begin = end + 1;
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    const size_t jump = lines[i].find("\tj");
    const size_t target = lines[i].find(".LBB");
    if (jump == std::string::npos || target == std::string::npos || lines[i].find("jmp") != std::string::npos) continue;
    const std::string label = lines[i].substr(target) + ":";
    for (size_t k = i; k-- > 0;) {
      if (lines[k].compare(0, label.size(), label) != 0) continue;
      std::vector<std::string> body;
      for (size_t line = k + 1; line <= i; ++line)
        if (!lines[line].empty() && lines[line][0] == '\t' && lines[line][1] != '.' && lines[line][1] != '#') body.push_back(lines[line]);
      const size_t fmas = std::count_if(body.begin(), body.end(), [](const std::string& s) { return s.find("vfmadd") != std::string::npos; });
      if (fmas > most) most = fmas, best = body;
      break;
    }
  }
  return best;
}

struct Tile {
  const char* target;
  int rows, vectors;
};

class MicroKernelCode : public testing::TestWithParam<Tile> {};
INSTANTIATE_TEST_SUITE_P(Tiles, MicroKernelCode,
                         testing::Values(Tile{"znver3", 6, 2}, Tile{"znver3", 4, 3}, Tile{"haswell", 6, 2}, Tile{"x86-64-v3", 6, 2},
                                         Tile{"znver4", 14, 2}, Tile{"znver4", 6, 4}, Tile{"znver4", 8, 3}, Tile{"znver4", 28, 1},
                                         Tile{"sapphirerapids", 14, 2}, Tile{"sapphirerapids", 6, 4}, Tile{"skylake-avx512", 14, 2},
                                         Tile{"icelake-server", 14, 2}, Tile{"x86-64-v4", 14, 2}),
                         [](const auto& info) {
                           return test_name(info.param.target) + "_" + std::to_string(info.param.rows) + "x" + std::to_string(info.param.vectors);
                         });

TEST_P(MicroKernelCode, HotLoopIsOnlyArithmetic) {
  const Target target = Target::parse(GetParam().target).value();
  CodegenOptions options;
  options.want_asm = true;
  const MicroKernel tile{GetParam().rows, GetParam().vectors, target.vector_bits / 32, 256};
  const std::vector<std::string> loop = hot_loop(compile({{make_micro_kernel(tile)}}, target, options).assembly);
  const std::string wide = target.vector_bits == 512 ? "zmm" : "ymm";
  int fmas = 0;
  for (const std::string& line : loop) {
    EXPECT_EQ(line.find("rsp"), std::string::npos) << "stack in the hot loop: " << line;
    EXPECT_EQ(line.find("rbp"), std::string::npos) << "stack in the hot loop: " << line;
    if (line.find("vfmadd") == std::string::npos) continue;
    ++fmas;
    EXPECT_NE(line.find(wide), std::string::npos) << "not full width: " << line;
  }
  EXPECT_EQ(fmas, tile.rows * tile.vectors);
  // One load per row and per column vector, counters and the jump; nothing else.
  EXPECT_LE(loop.size(), static_cast<size_t>(fmas + tile.rows + tile.vectors + 5));
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

#if defined(__x86_64__)
/// Units: FLOP/s of independent fused multiply-adds in assembly, the machine's peak.
__attribute__((target("avx512f"))) double peak_512() {
  constexpr int kTurns = 20000;
  const double start = now();
  asm volatile(
      "mov %0, %%ecx\n1:\n"
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n vfmadd231ps %%zmm30, %%zmm31, %%zmm\\r\n .endr\n"
      "dec %%ecx\n jnz 1b\n vzeroupper\n" ::"i"(kTurns)
      : "rcx", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
        "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23");
  return kTurns * 24.0 * 32 / (now() - start);
}
__attribute__((target("avx2"))) double peak_256() {
  constexpr int kTurns = 40000;
  const double start = now();
  asm volatile(
      "mov %0, %%ecx\n1:\n"
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11\n vfmadd231ps %%ymm14, %%ymm15, %%ymm\\r\n .endr\n"
      "dec %%ecx\n jnz 1b\n vzeroupper\n" ::"i"(kTurns)
      : "rcx", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11");
  return kTurns * 12.0 * 16 / (now() - start);
}
#endif

class MicroKernelRun : public testing::TestWithParam<Tile> {};
INSTANTIATE_TEST_SUITE_P(Tiles, MicroKernelRun,
                         testing::Values(Tile{"znver3", 6, 2}, Tile{"znver3", 4, 3}, Tile{"znver4", 14, 2}, Tile{"znver4", 8, 3}, Tile{"host", 6, 2},
                                         Tile{"host", 14, 2}, Tile{"x86-64", 4, 2}),
                         [](const auto& info) {
                           return test_name(info.param.target) + "_" + std::to_string(info.param.rows) + "x" + std::to_string(info.param.vectors);
                         });

TEST_P(MicroKernelRun, MatchesPlainLoopsAndPrintsItsSpeed) {
  const Target target = Target::parse(GetParam().target).value();
  if (target.missing_on_host()) GTEST_SKIP() << "this machine lacks " << target.missing_on_host();
  const MicroKernel tile{GetParam().rows, GetParam().vectors, target.vector_bits / 32, 256};
  const double start = now();
  const ObjectCode object = compile({{make_micro_kernel(tile)}}, target);
  const double compiled = now();
  const JitModule module = JitModule::load(std::span(&object, 1));
  const double loaded = now();
  auto* run = module.function<int32_t(const tensmith_context*, const float*, const float*, float*)>(tile.name());
  ASSERT_NE(run, nullptr);

  constexpr int kPanels = 8;
  const int columns = tile.columns();
  auto array = [](size_t count) {
    return std::unique_ptr<float, decltype(&std::free)>(static_cast<float*>(std::aligned_alloc(64, (count * 4 + 63) / 64 * 64)), &std::free);
  };
  auto a = array(tile.depth * tile.rows), b = array(tile.depth * columns * kPanels), c = array(tile.rows * columns);
  // Small integers: every order of summation is exact.
  for (int64_t i = 0; i < tile.depth * tile.rows; ++i) a.get()[i] = static_cast<float>(i % 7 - 3);
  for (int64_t i = 0; i < tile.depth * columns * kPanels; ++i) b.get()[i] = static_cast<float>(i % 5 - 2);
  std::fill_n(c.get(), tile.rows * columns, 1.0f);
  ASSERT_EQ(run(nullptr, a.get(), b.get(), c.get()), 0);
  for (int i = 0; i < tile.rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      double sum = 1;
      for (int64_t k = 0; k < tile.depth; ++k) sum += a.get()[k * tile.rows + i] * b.get()[k * columns + j];
      ASSERT_EQ(c.get()[i * columns + j], sum) << i << ", " << j;
    }
  }
#if defined(__x86_64__)
  if (target.vector_bits < 256) return;
  double best = 0, peak = 0;
  for (int window = 0; window < 12; ++window) {
    constexpr int kCalls = 24;
    const double begin = now();
    for (int n = 0; n < kCalls; ++n) run(nullptr, a.get(), b.get() + (n % kPanels) * tile.depth * columns, c.get());
    best = std::max(best, kCalls * 2.0 * tile.rows * columns * tile.depth / (now() - begin));
    peak = std::max(peak, target.vector_bits == 512 ? peak_512() : peak_256());
  }
  std::printf("%s on %s: %.1f of %.1f GFLOP/s = %.3f of peak (best of 12 windows); compile %.2f ms, load %.2f ms\n", tile.name().c_str(),
              GetParam().target, best / 1e9, peak / 1e9, best / peak, (compiled - start) * 1e3, (loaded - compiled) * 1e3);
#endif
}

}  // namespace
}  // namespace tensmith
