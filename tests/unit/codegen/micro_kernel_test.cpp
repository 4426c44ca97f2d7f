// The register tile: right, without spills, with full-width fused multiply-adds; its speed is printed.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "codegen/asm_guard.h"
#include "codegen/disassemble.h"
#include "tests/unit/codegen/micro_kernel.h"
#include "tests/unit/codegen/run_code.h"

namespace tensmith {
namespace {

struct Tile {
  const char* target;
  int rows, vectors;
};

class MicroKernelCode : public testing::TestWithParam<Tile> {};
INSTANTIATE_TEST_SUITE_P(Tiles, MicroKernelCode,
                         testing::Values(Tile{"znver3", 6, 2}, Tile{"znver3", 4, 3}, Tile{"haswell", 6, 2},
                                         Tile{"x86-64-v3", 6, 2}, Tile{"znver4", 14, 2}, Tile{"znver4", 6, 4},
                                         Tile{"znver4", 8, 3}, Tile{"znver4", 28, 1}, Tile{"sapphirerapids", 14, 2},
                                         Tile{"sapphirerapids", 6, 4}, Tile{"skylake-avx512", 14, 2},
                                         Tile{"icelake-server", 14, 2}, Tile{"x86-64-v4", 14, 2}),
                         [](const auto& info) {
                           return test_name(info.param.target) + "_" + std::to_string(info.param.rows) + "x" +
                                  std::to_string(info.param.vectors);
                         });

TEST_P(MicroKernelCode, HotLoopIsOnlyArithmetic) {
  const Target target = Target::parse(GetParam().target).value();
  CodegenOptions options;
  options.want_asm = true;
  const MicroKernel tile{GetParam().rows, GetParam().vectors, target.vector_bits / 32, 256};
  const std::string text = compile({{make_micro_kernel(tile)}}, target, options).assembly;
  const std::vector<AsmFunction> functions = inspect_assembly(text);
  ASSERT_EQ(functions.size(), 1u);
  // 6x16 is 12 FMAs of 25 instructions.
  const AsmRequirements requirements{.vector_bits = target.vector_bits, .min_fma_share = 0.45};
  EXPECT_EQ(asm_problems(functions[0], requirements), std::vector<std::string>()) << text;
  const AsmLoop* loop = functions[0].hot_loop();
  ASSERT_NE(loop, nullptr);
  EXPECT_EQ(loop->fmas, tile.rows * tile.vectors);
  // One load per row and per column vector, counters and the jump; nothing else.
  EXPECT_LE(loop->instructions, loop->fmas + tile.rows + tile.vectors + 5) << text;
}

AsmFunction inspect(const LoopFunction& f, const Target& target) {
  CodegenOptions options;
  options.want_asm = true;
  return inspect_assembly(compile({{f}}, target, options).assembly).at(0);
}

TEST(DotKernelCode, HotLoopIsOnlyArithmetic) {
  for (const Tile& tile :
       {Tile{"znver4", 14, 2}, Tile{"sapphirerapids", 6, 4}, Tile{"cascadelake", 14, 2}, Tile{"alderlake", 6, 2}}) {
    const Target target = Target::parse(tile.target).value();
    const AsmFunction code =
        inspect(make_dot_kernel({tile.rows, tile.vectors, target.vector_bits / 32, 256}, kUInt8), target);
    EXPECT_EQ(asm_problems(code, {.vector_bits = target.vector_bits, .min_fma_share = 0.45}),
              std::vector<std::string>())
        << tile.target;
    EXPECT_EQ(code.hot_loop()->fmas, tile.rows * tile.vectors) << tile.target;
  }
  // Without dot products each column takes two registers, and so does each row: 4x16 is what 16 registers hold.
  const AsmFunction code = inspect(make_dot_kernel({4, 2, 8, 256}, kUInt8), Target::parse("znver3").value());
  EXPECT_EQ(code.hot_loop()->stack_references, 0);
  // Signed bytes on both sides cost a subtraction each, and two registers.
  const AsmFunction both = inspect(make_dot_kernel({8, 2, 16, 256}, kInt8), Target::parse("znver4").value());
  EXPECT_EQ(both.hot_loop()->stack_references, 0);
}

TEST(ConvKernelCode, HotLoopIsOnlyArithmetic) {
  for (const Tile& tile : {Tile{"znver4", 14, 2}, Tile{"znver4", 6, 4}, Tile{"sapphirerapids", 28, 1},
                           Tile{"znver3", 6, 2}, Tile{"haswell", 4, 3}}) {
    for (int kernel : {1, 3}) {
      const Target target = Target::parse(tile.target).value();
      const AsmFunction code =
          inspect(make_conv_kernel(tile.rows, tile.vectors, target.vector_bits / 32, kernel, 58, 4), target);
      EXPECT_EQ(asm_problems(code, {.vector_bits = target.vector_bits, .min_fma_share = 0.45}),
                std::vector<std::string>())
          << tile.target;
      EXPECT_EQ(code.hot_loop()->fmas, tile.rows * tile.vectors) << tile.target;
    }
  }
}

TEST(DotKernelRun, MatchesPlainLoops) {
  for (const char* name : {"x86-64", "x86-64-v3", "host"}) {
    const Target target = Target::parse(name).value();
    if (target.missing_on_host()) continue;
    for (DType left : {kUInt8, kInt8}) {
      const MicroKernel tile{4, 2, target.vector_bits / 32, 64};
      std::vector<int64_t> a, b;
      for (int64_t i = 0; i < tile.depth * tile.rows; ++i) a.push_back(i * 73 % 256);
      for (int64_t i = 0; i < tile.depth * tile.columns(); ++i) b.push_back(i * 37 % 256 - 128);
      InterpValue va = int_values(left, a), vb = int_values(kInt8, b),
                  vc = make_interp_value(kInt32, tile.rows * tile.columns());
      ASSERT_EQ(run_code(make_dot_kernel(tile, left), name, {&va, &vb, &vc}), 0);
      for (int i = 0; i < tile.rows; ++i) {
        for (int j = 0; j < tile.columns(); ++j) {
          int64_t sum = 0;
          for (int64_t k = 0; k < tile.depth; ++k)
            sum += va.i[(k / 4 * tile.rows + i) * 4 + k % 4] * vb.i[(k / 4 * tile.columns() + j) * 4 + k % 4];
          ASSERT_EQ(vc.i[i * tile.columns() + j], sum) << name << " " << to_string(left) << " at " << i << ", " << j;
        }
      }
    }
  }
}

TEST(Disassemble, ShowsTheSameLoopsAsAssembly) {
  // Both forms must lead to the same judgement: labels, branches, calls and functions of parallel bodies.
  Buffer x = make_buffer("x", kFloat32, {Expr(640)}), y = make_buffer("y", kFloat32, {Expr(640)});
  Var i("i"), j("j"), n("n");
  Expr at = i * 64 + j;
  Stmt inner = For::make(j, Expr(0), n, ForKind::kSerial,
                         Store::make(y, {at}, Call::make_extern(kFloat32, "expf", {load(x, {at})})));
  LoopFunction parallel{"parallel", {x, y}, {n}, {y}, For::make(i, Expr(0), Expr(10), ForKind::kParallel, inner), {}};
  for (const char* name : {"znver4", "znver3", "neoverse-n1"}) {
    const Target target = Target::parse(name).value();
    for (const LoopFunction& f : {make_micro_kernel({6, 2, target.vector_bits / 32, 256}),
                                  make_conv_kernel(6, 2, target.vector_bits / 32, 3, 58, 4), parallel}) {
      CodegenOptions options;
      options.want_asm = true;
      const ObjectCode object = compile({{f}}, target, options);
      const std::string text = disassemble(object, target);
      const std::vector<AsmFunction> want = inspect_assembly(object.assembly), got = inspect_assembly(text);
      ASSERT_EQ(got.size(), want.size()) << text;
      for (size_t k = 0; k < want.size(); ++k) {
        EXPECT_EQ(got[k].name, want[k].name);
        EXPECT_EQ(got[k].calls, want[k].calls) << text;
        ASSERT_EQ(got[k].loops.size(), want[k].loops.size()) << text;
        for (size_t l = 0; l < want[k].loops.size(); ++l) {
          const AsmLoop &a = got[k].loops[l], &b = want[k].loops[l];
          EXPECT_EQ(std::tuple(a.instructions, a.fmas, a.stack_references, a.calls, a.vector_bits),
                    std::tuple(b.instructions, b.fmas, b.stack_references, b.calls, b.vector_bits))
              << text << object.assembly;
        }
      }
    }
  }
  ObjectCode broken;
  broken.bytes.assign(64, 1);
  EXPECT_THROW(disassemble(broken, Target::host()), UserError);
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

#if defined(__x86_64__)
/// Units: FLOP/s of independent fused multiply-adds in assembly, the machine's peak.
__attribute__((target("avx512f"))) double peak_512() {
  constexpr int kTurns = 20000;
  const double start = now();
  asm volatile(
      "mov %0, %%ecx\n1:\n"
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n vfmadd231ps %%zmm30, %%zmm31, %%zmm\\r\n "
      ".endr\n"
      "dec %%ecx\n jnz 1b\n vzeroupper\n" ::"i"(kTurns)
      : "rcx", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
        "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23");
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
                         testing::Values(Tile{"znver3", 6, 2}, Tile{"znver3", 4, 3}, Tile{"znver4", 14, 2},
                                         Tile{"znver4", 8, 3}, Tile{"host", 6, 2}, Tile{"host", 14, 2},
                                         Tile{"x86-64", 4, 2}),
                         [](const auto& info) {
                           return test_name(info.param.target) + "_" + std::to_string(info.param.rows) + "x" +
                                  std::to_string(info.param.vectors);
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
    return std::unique_ptr<float, decltype(&std::free)>(
        static_cast<float*>(std::aligned_alloc(64, (count * 4 + 63) / 64 * 64)), &std::free);
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
  // Each window is compared with the peak measured just before it, since the clock changes with the machine's load; of
  // these ratios the median counts.
  std::vector<double> ratios;
  double best = 0;
  for (int window = 0; window < 61; ++window) {
    constexpr int kCalls = 24;
    const double peak = target.vector_bits == 512 ? peak_512() : peak_256();
    const double begin = now();
    for (int n = 0; n < kCalls; ++n) run(nullptr, a.get(), b.get() + (n % kPanels) * tile.depth * columns, c.get());
    const double rate = kCalls * 2.0 * tile.rows * columns * tile.depth / (now() - begin);
    best = std::max(best, rate);
    ratios.push_back(rate / peak);
  }
  std::sort(ratios.begin(), ratios.end());
  std::printf(
      "%s on %s: %.3f of peak (median of 61 windows, quartiles %.3f and %.3f), at most %.1f GFLOP/s; compile %.2f ms, "
      "load %.2f ms\n",
      tile.name().c_str(), GetParam().target, ratios[30], ratios[15], ratios[45], best / 1e9, (compiled - start) * 1e3,
      (loaded - compiled) * 1e3);
#endif
}

}  // namespace
}  // namespace tensmith
