#include "autotune/measure/machine_work.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "autotune/measure/work_timer.h"

namespace tensmith {

namespace {

constexpr int kWindows = 20;
constexpr int kChains = 12;

#if defined(__x86_64__)
// Twelve accumulators hide a latency of four cycles on three ports; the compiler must not touch them, hence the
// assembly. The factors are no zeros and change from one FMA to the next: units that multiply zeros draw less power,
// so the clock would be higher than beside a real kernel. Both products are small, so nothing overflows.
#define TS_FMA_YMM(n) "vfmadd231ps %%ymm" TS_FACTOR(n) ", %%ymm2, %%ymm" #n "\n\t"
#define TS_FMA_ZMM(n) "vfmadd231ps %%zmm" TS_FACTOR(n) ", %%zmm2, %%zmm" #n "\n\t"
#define TS_FACTOR(n) TS_FACTOR_##n
#define TS_FACTOR_4 "0"
#define TS_FACTOR_5 "1"
#define TS_FACTOR_6 "0"
#define TS_FACTOR_7 "1"
#define TS_FACTOR_8 "0"
#define TS_FACTOR_9 "1"
#define TS_FACTOR_10 "0"
#define TS_FACTOR_11 "1"
#define TS_FACTOR_12 "0"
#define TS_FACTOR_13 "1"
#define TS_FACTOR_14 "0"
#define TS_FACTOR_15 "1"
#define TS_TWELVE(f) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12) f(13) f(14) f(15)
#define TS_CLOBBERS                                                                                                    \
  "xmm0", "xmm1", "xmm2", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", \
      "xmm15", "cc", "memory"

// Sixteen values with all bits of the fraction in use, of both signs, below 2^-9 in size.
struct alignas(64) Factors {
  float a[16], b[16], c[16];
};
const Factors kFactors = [] {
  Factors f{};
  uint32_t state = 12345;
  for (float* at : {f.a, f.b, f.c})
    for (int k = 0; k < 16; ++k) {
      state = state * 1664525u + 1013904223u;
      at[k] = (static_cast<float>(state >> 8) / 8388608.0f - 1.0f) / 32.0f;
    }
  return f;
}();

void fma_ymm(int64_t turns) {
  asm volatile(
      "vmovaps (%1), %%ymm0\n\tvmovaps 64(%1), %%ymm1\n\tvmovaps 128(%1), %%ymm2\n\t"
      "1:\n\t" TS_TWELVE(TS_FMA_YMM) "decq %0\n\tjnz 1b\n\tvzeroupper"
      : "+r"(turns)
      : "r"(&kFactors)
      : TS_CLOBBERS);
}
void fma_zmm(int64_t turns) {
  asm volatile(
      "vmovaps (%1), %%zmm0\n\tvmovaps 64(%1), %%zmm1\n\tvmovaps 128(%1), %%zmm2\n\t"
      "1:\n\t" TS_TWELVE(TS_FMA_ZMM) "decq %0\n\tjnz 1b\n\tvzeroupper"
      : "+r"(turns)
      : "r"(&kFactors)
      : TS_CLOBBERS);
}

#define TS_FOUR(f) f(0, 4) f(64, 5) f(128, 6) f(192, 7)
#define TS_EIGHT(f) f(0, 4) f(32, 5) f(64, 6) f(96, 7) f(128, 8) f(160, 9) f(192, 10) f(224, 11)
#define TS_READ_ZMM(offset, n) "vmovups " #offset "(%0), %%zmm" #n "\n\t"
#define TS_READ_YMM(offset, n) "vmovups " #offset "(%0), %%ymm" #n "\n\t"
#define TS_WRITE_ZMM(offset, n) "vmovups %%zmm" #n ", " #offset "(%0)\n\t"
#define TS_WRITE_YMM(offset, n) "vmovups %%ymm" #n ", " #offset "(%0)\n\t"
#define TS_SWEEP(body)                                                               \
  asm volatile("1:\n\t" body "addq $256, %0\n\tsubq $256, %1\n\tjg 1b\n\tvzeroupper" \
               : "+r"(at), "+r"(bytes)::TS_CLOBBERS)

// Both in steps of 256 bytes.
void read_all(char* at, int64_t bytes, bool wide) {
  if (wide) TS_SWEEP(TS_FOUR(TS_READ_ZMM));
  else TS_SWEEP(TS_EIGHT(TS_READ_YMM));
}
void write_all(char* at, int64_t bytes, bool wide) {
  if (wide) TS_SWEEP(TS_FOUR(TS_WRITE_ZMM));
  else TS_SWEEP(TS_EIGHT(TS_WRITE_YMM));
}

LevelBandwidth bandwidth_of(std::vector<char>& memory, int64_t bytes, bool wide) {
  bytes = bytes / 256 * 256;
  memory.resize(std::max<size_t>(memory.size(), bytes + 64));
  char* at = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
  const auto turns = std::max<int64_t>(1, (int64_t{1} << 20) / bytes);
  LevelBandwidth best;
  const auto measure = [&](double& into, auto sweep) {
    const WorkTimer timer(1);
    for (int64_t t = 0; t < turns; ++t) sweep(at, bytes, wide);
    into = std::max(into, static_cast<double>(bytes * turns) / timer.us() * 1e6);
  };
  for (int window = 0; window < 3 * kWindows; ++window) {
    measure(best.read, read_all);
    measure(best.write, write_all);
  }
  return best;
}
#endif

}  // namespace

int64_t fma_turn_flops([[maybe_unused]] int vector_bits) {
#if defined(__x86_64__)
  return int64_t{kChains} * 2 * (vector_bits == 512 ? 16 : 8);
#else
  return 2;
#endif
}

void run_fma_turns([[maybe_unused]] int vector_bits, int64_t turns) {
#if defined(__x86_64__)
  vector_bits == 512 ? fma_zmm(turns) : fma_ymm(turns);
#else
  // No peak, but work that always takes the same number of cycles.
  volatile double sink = 0;
  double total = 1;
  for (int64_t t = 0; t < turns; ++t) total = total * 0.51 + 0.26;
  sink = total;
  static_cast<void>(sink);
#endif
}

double peak_flops_once([[maybe_unused]] int vector_bits, [[maybe_unused]] double seconds) {
#if defined(__x86_64__)
  // Twelve FMAs take six cycles where two issue a cycle, of some 0.3 ns.
  const auto turns = std::max<int64_t>(2000, static_cast<int64_t>(seconds / 1.8e-9));
  const WorkTimer timer(1);
  run_fma_turns(vector_bits, turns);
  return static_cast<double>(fma_turn_flops(vector_bits) * turns) / timer.us() * 1e6;
#else
  return 0;
#endif
}

double read_bandwidth([[maybe_unused]] ThreadPool& pool, [[maybe_unused]] int vector_bits,
                      [[maybe_unused]] int64_t bytes) {
#if defined(__x86_64__)
  struct Sweep {
    std::vector<std::vector<char>> memory;
    int64_t bytes = 0, turns = 1;
    bool wide = false;
  } sweep;
  sweep.bytes = std::max<int64_t>(256, bytes / 256 * 256);
  sweep.turns = std::max<int64_t>(1, (int64_t{1} << 20) / sweep.bytes);
  sweep.wide = vector_bits == 512;
  sweep.memory.resize(static_cast<size_t>(pool.threads()));
  const auto part = [](void* closure, int64_t begin, int64_t end, int32_t) -> int32_t {
    auto& work = *static_cast<Sweep*>(closure);
    for (int64_t k = begin; k < end; ++k) {
      std::vector<char>& memory = work.memory[static_cast<size_t>(k)];
      memory.resize(static_cast<size_t>(work.bytes) + 64, 1);
      char* at = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
      for (int64_t t = 0; t < work.turns; ++t) read_all(at, work.bytes, work.wide);
    }
    return 0;
  };
  double best = 0;
  for (int window = 0; window < kWindows; ++window) {
    const WorkTimer timer(pool.threads());
    if (pool.threads() == 1) part(&sweep, 0, 1, 0);
    else pool.parallel_for(part, &sweep, pool.threads());
    best = std::max(best, static_cast<double>(sweep.bytes * sweep.turns * pool.threads()) / timer.us() * 1e6);
  }
  return best;
#else
  return 0;
#endif
}

double peak_flops(int vector_bits) {
  double best = 0;
  for (int window = 0; window < kWindows; ++window) best = std::max(best, peak_flops_once(vector_bits, 4e-4));
  return best;
}

double clock_hz_once([[maybe_unused]] double seconds) {
#if defined(__x86_64__)
  // Eight additions take eight cycles, of some 0.3 ns.
  auto turns = std::max<int64_t>(2000, static_cast<int64_t>(seconds / 2.4e-9));
  const double additions = 8.0 * static_cast<double>(turns);
  uint64_t x = 1;
  const WorkTimer timer(1);
  asm volatile(
      "1:\n\taddq %1, %1\n\taddq %1, %1\n\taddq %1, %1\n\taddq %1, %1\n\taddq %1, %1\n\taddq %1, %1\n\taddq %1, "
      "%1\n\taddq %1, %1\n\tdecq %0\n\tjnz 1b"
      : "+r"(turns), "+r"(x)::"cc");
  return additions / timer.us() * 1e6;
#else
  return 0;
#endif
}

double clock_hz() {
  double best = 0;
  for (int window = 0; window < kWindows; ++window) best = std::max(best, clock_hz_once(7e-4));
  return best;
}

const LevelBandwidth& level_that_holds(const Bandwidths& bandwidths, const Target& target, int64_t bytes) {
  return bytes <= target.l1_bytes ? bandwidths.l1 : bytes <= target.l2_bytes ? bandwidths.l2 : bandwidths.l3;
}

Bandwidths measure_bandwidths([[maybe_unused]] const Target& target) {
#if defined(__x86_64__)
  std::vector<char> memory;
  const bool wide = target.vector_bits == 512;
  return {bandwidth_of(memory, target.l1_bytes / 2, wide), bandwidth_of(memory, target.l2_bytes / 2, wide),
          bandwidth_of(memory, 4 * target.l2_bytes, wide)};
#else
  return {};
#endif
}

}  // namespace tensmith
