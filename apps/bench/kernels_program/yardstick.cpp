#include "apps/bench/kernels_program/yardstick.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace tensmith::bench {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr int kWindows = 20;

#if defined(__x86_64__)
// Twelve accumulators hide a latency of four cycles on three ports; the compiler must not touch them, hence the
// assembly.
#define TS_FMA_YMM(n) "vfmadd231ps %%ymm0, %%ymm0, %%ymm" #n "\n\t"
#define TS_FMA_ZMM(n) "vfmadd231ps %%zmm0, %%zmm0, %%zmm" #n "\n\t"
#define TS_TWELVE(f) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12) f(13) f(14) f(15)
#define TS_CLOBBERS                                                                                                   \
  "xmm0", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc", \
      "memory"

void fma_ymm(int64_t turns) {
  asm volatile("vxorps %%ymm0, %%ymm0, %%ymm0\n\t1:\n\t" TS_TWELVE(TS_FMA_YMM) "decq %0\n\tjnz 1b\n\tvzeroupper"
               : "+r"(turns)::TS_CLOBBERS);
}
void fma_zmm(int64_t turns) {
  asm volatile("vpxorq %%zmm0, %%zmm0, %%zmm0\n\t1:\n\t" TS_TWELVE(TS_FMA_ZMM) "decq %0\n\tjnz 1b\n\tvzeroupper"
               : "+r"(turns)::TS_CLOBBERS);
}
#endif

}  // namespace

double peak_flops([[maybe_unused]] int vector_bits) {
#if defined(__x86_64__)
  constexpr int64_t kTurns = 200000;
  double best = 0;
  for (int window = 0; window < kWindows; ++window) {
    const auto start = Clock::now();
    vector_bits == 512 ? fma_zmm(kTurns) : fma_ymm(kTurns);
    best = std::max(best, 12.0 * kTurns * 2 * (vector_bits == 512 ? 16 : 8) / seconds_since(start));
  }
  return best;
#else
  return 0;
#endif
}

double clock_hz() {
#if defined(__x86_64__)
  double best = 0;
  for (int window = 0; window < kWindows; ++window) {
    int64_t turns = 300000;
    const double additions = 8.0 * static_cast<double>(turns);
    uint64_t x = 1;
    const auto start = Clock::now();
    asm volatile(
        "1:\n\taddq %1, %1\n\taddq %1, %1\n\taddq %1, %1\n\taddq %1, %1\n\taddq %1, %1\n\taddq %1, %1\n\taddq %1, "
        "%1\n\taddq %1, %1\n\tdecq %0\n\tjnz 1b"
        : "+r"(turns), "+r"(x)::"cc");
    best = std::max(best, additions / seconds_since(start));
  }
  return best;
#else
  return 0;
#endif
}

}  // namespace tensmith::bench
