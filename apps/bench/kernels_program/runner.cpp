#include "apps/bench/kernels_program/runner.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "autotune/default_schedule.h"
#include "codegen/artifact.h"
#include "schedule/lower/lowering.h"

namespace tensmith::bench {

namespace {

/// Units: milliseconds of processor time that this process has used, which what else runs does not lengthen much.
double processor_ms() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

}  // namespace

Runner::Runner(const Item& item, const Target& target, int threads) : pool_(threads), context_(pool_.context()) {
  const double start = processor_ms();
  const ScheduleRequest request{target, threads, item.inputs, item.outputs};
  const LoweredKernel kernel = lower(default_schedule(item.workload, request, &explanation_));
  CodegenOptions options;
  const ObjectCode object = compile(LoopProgram{{kernel.function}}, target, options);
  module_ = std::make_unique<JitModule>(JitModule::load(std::span(&object, 1)));
  compile_ms_ = processor_ms() - start;
  function_ = module_->find(kernel.function.name);
  options.want_asm = true;
  assembly_ = compile(LoopProgram{{kernel.function}}, target, options).assembly;
  // Each buffer starts a page and a line behind the one before, as nothing in a program makes them collide in a cache.
  constexpr int64_t kPage = 4096, kHugeFrom = int64_t{4} << 20;
  std::vector<int64_t> starts, sizes;
  int64_t bytes = 0;
  for (const Buffer& buffer : kernel.function.buffers) {
    int64_t elements = 1;
    for (const Expr& extent : buffer->shape) {
      int64_t value = 1;
      TS_CHECK(as_const_int(extent, &value)) << buffer->name;
      elements *= value;
    }
    const auto& outputs = kernel.function.outputs;
    const bool written =
        std::any_of(outputs.begin(), outputs.end(), [&](const Buffer& output) { return output.same_as(buffer); });
    (written ? bytes_written_ : bytes_read_) += elements * 4;
    starts.push_back(bytes);
    sizes.push_back(elements);
    bytes += (elements * 4 + kPage - 1) / kPage * kPage + kPage + kBufferAlignment;
  }
  memory_ = HostMemory(std::max(bytes, kHugeFrom));
  for (size_t b = 0; b < starts.size(); ++b) {
    auto* at = reinterpret_cast<float*>(static_cast<char*>(memory_.data()) + starts[b]);
    for (int64_t k = 0; k < sizes[b]; ++k) at[k] = static_cast<float>(std::sin(0.37 * static_cast<double>(k % 1000)));
    pointers_.push_back(at);
  }
}

void Runner::run() {
  using P = void*;
  P* p = pointers_.data();
  const auto call = [&]<typename... T>(T... args) {
    reinterpret_cast<int32_t (*)(const tensmith_context*, T...)>(function_)(&context_, args...);
  };
  switch (pointers_.size()) {
    case 2: return call(p[0], p[1]);
    case 3: return call(p[0], p[1], p[2]);
    case 4: return call(p[0], p[1], p[2], p[3]);
    case 5: return call(p[0], p[1], p[2], p[3], p[4]);
    case 6: return call(p[0], p[1], p[2], p[3], p[4], p[5]);
    default: TS_UNREACHABLE() << pointers_.size();
  }
}

}  // namespace tensmith::bench
