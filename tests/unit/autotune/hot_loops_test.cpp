// The machine code of default schedules, judged without running it: full-width FMAs and no stack in the hot loops, for
// registers of both kinds.
#include <gtest/gtest.h>

#include "autotune/default_schedule.h"
#include "codegen/artifact.h"
#include "codegen/asm_guard.h"
#include "schedule/lower/lowering.h"
#include "tests/support/workloads.h"

namespace tensmith {
namespace {

struct Kernel {
  std::string name;
  Workload workload;
  std::vector<Layout> inputs, outputs;
  bool depthwise = false, widens = false;
};

std::vector<Kernel> kernels(int lanes) {
  std::vector<Kernel> all;
  const auto product = [&](int64_t m, int64_t n, int64_t k) {
    all.push_back({"product " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k),
                   dense_workload(m, n, k),
                   {},
                   {}});
  };
  product(8, 768, 768);
  product(128, 768, 768);
  product(128, 768, 3072);
  product(512, 1024, 1024);
  // With sixteen registers tiles have fewer rows, and weights that more of them meet are not left narrow.
  for (const DType stored : {kInt8, kInt16, kFloat16, kBFloat16})
    for (const int64_t rows : lanes > 8 ? std::vector<int64_t>{1, 4, 12} : std::vector<int64_t>{1, 4})
      all.push_back({"product of " + std::to_string(rows) + " rows, weights in " + to_string(stored),
                     narrow_dense_workload(rows, 768, 768, stored),
                     {},
                     {},
                     false,
                     true});
  for (const Layout& layout : {Layout::permuted({0, 2, 3, 1}), Layout::blocked({0, 1, 2, 3}, 1, lanes)}) {
    const auto conv = [&](const ConvShape& shape, bool depthwise) {
      const std::string name = std::string(depthwise ? "depthwise " : "convolution ") + std::to_string(shape.kernel) +
                               " @" + std::to_string(shape.h) + " stride " + std::to_string(shape.stride) + " in " +
                               layout.text();
      all.push_back({name,
                     depthwise ? depthwise_workload(shape) : conv_workload(shape),
                     {layout, Layout()},
                     {layout},
                     depthwise});
    };
    conv({1, 64, 56, 56, 64, 3, 1, 1}, false);
    conv({1, 256, 14, 14, 256, 3, 1, 1}, false);
    conv({1, 512, 7, 7, 512, 3, 1, 1}, false);
    conv({1, 128, 56, 56, 128, 3, 2, 1}, false);
    conv({1, 256, 14, 14, 1024, 1, 1, 0}, false);
    conv({1, 2048, 7, 7, 512, 1, 1, 0}, false);
    conv({1, 192, 28, 28, 192, 3, 1, 1}, true);
    conv({1, 96, 112, 112, 96, 3, 2, 1}, true);
  }
  return all;
}

class HotLoops : public testing::TestWithParam<const char*> {};

TEST_P(HotLoops, HoldFullVectorsAndNoStack) {
  const Result<Target> target = Target::parse(GetParam());
  ASSERT_TRUE(target.ok());
  for (const Kernel& kernel : kernels(target->lanes(4))) {
    const ScheduleRequest request{*target, 1, kernel.inputs, kernel.outputs};
    std::string why;
    const LoweredKernel lowered = lower(default_schedule(kernel.workload, request, &why));
    CodegenOptions options;
    options.want_asm = true;
    const std::string assembly = compile(LoopProgram{{lowered.function}}, *target, options).assembly;
    bool seen = false;
    for (const AsmFunction& function : inspect_assembly(assembly)) {
      if (!function.hot_loop() || function.hot_loop()->fmas == 0) continue;
      seen = true;
      AsmRequirements requirements;
      requirements.vector_bits = target->vector_bits;
      requirements.min_fma_share = 0.4;                      // a 6x16 tile of AVX2 has 12 of 25
      if (kernel.widens) requirements.min_fma_share = 0.25;  // of one row: extend, convert, multiply, ask ahead
      // Nine taps unrolled over two dimensions need more addresses than there are general registers; no vector spills.
      if (kernel.depthwise && target->vector_registers == 16) requirements.max_stack_references = 2;
      for (const std::string& problem : asm_problems(function, requirements))
        ADD_FAILURE() << kernel.name << ": " << problem << "\n" << why;
    }
    EXPECT_TRUE(seen) << kernel.name << ": no loop with FMAs\n" << assembly;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, HotLoops, testing::Values("x86-64-v3", "znver4", "sapphirerapids"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             if (c == '-') c = '_';
                           return name;
                         });

}  // namespace
}  // namespace tensmith
