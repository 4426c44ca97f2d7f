#include "autotune/measure/yardstick.h"

#include <algorithm>
#include <atomic>

#include "autotune/measure/work_timer.h"

namespace tensmith {

namespace {

// Twelve chains fill two ports with a latency of four cycles and more.
constexpr int kChains = 12;

#define TS_CHAINS(f) f(a) f(b) f(c) f(d) f(e) f(g) f(h) f(i) f(j) f(k) f(l) f(m)
#define TS_DECLARE(x) Vector x = step;
// Each turn is done, in a register.
#define TS_TURN(x)       \
  x = x * factor + step; \
  asm volatile("" : "+v"(x));
#define TS_TOTAL(x) total += x[0];

template <typename Vector>
[[gnu::always_inline]] inline float chains(int64_t turns) {
  const Vector factor = Vector{} + 0.5F, step = Vector{} + 0.25F;
  TS_CHAINS(TS_DECLARE)
  for (int64_t t = 0; t < turns; ++t) {
    TS_CHAINS(TS_TURN)
  }
  float total = 0;
  TS_CHAINS(TS_TOTAL)
  return total;
}

#if defined(__x86_64__)
typedef float Wide __attribute__((vector_size(64)));
typedef float Half __attribute__((vector_size(32)));
[[gnu::noinline, gnu::target("avx512f,fma")]] float run_wide(int64_t turns) { return chains<Wide>(turns); }
[[gnu::noinline, gnu::target("avx2,fma")]] float run_half(int64_t turns) { return chains<Half>(turns); }
float run_turns(int64_t turns, bool wide) {
  if (wide && __builtin_cpu_supports("avx512f")) return run_wide(turns);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return run_half(turns);
  double total = 1;
  for (int64_t t = 0; t < turns * kChains; ++t) {
    total = total * 0.5 + 0.25;
    asm volatile("" : "+x"(total));
  }
  return static_cast<float>(total);
}
#else
float run_turns(int64_t turns, bool) {
  double total = 1;
  for (int64_t t = 0; t < turns * kChains; ++t) {
    total = total * 0.5 + 0.25;
    asm volatile("" : "+w"(total));
  }
  return static_cast<float>(total);
}
#endif

struct Work {
  int64_t turns;
  bool wide;
  std::atomic<float> sink{0};
};

int32_t part(void* closure, int64_t begin, int64_t end, int32_t) {
  auto& work = *static_cast<Work*>(closure);
  for (int64_t k = begin; k < end; ++k) work.sink = run_turns(work.turns, work.wide);
  return 0;
}

}  // namespace

MeasureYardstick::MeasureYardstick(int vector_bits, ThreadPool& pool) : pool_(pool), wide_(vector_bits >= 512) {
  turns_ = 1000;
  double us = 1e30;
  for (int k = 0; k < 5; ++k) us = std::min(us, window_us());
  turns_ = std::max<int64_t>(100, static_cast<int64_t>(50.0 / us * static_cast<double>(turns_)));
  best_us_ = 0;
  for (int k = 0; k < 20; ++k) window_us();
}

double MeasureYardstick::window_us() {
  Work work{turns_, wide_};
  const WorkTimer timer(pool_.threads());
  if (pool_.threads() == 1) part(&work, 0, 1, 0);
  else pool_.parallel_for(part, &work, pool_.threads());
  const double us = timer.us();
  if (best_us_ == 0 || us < best_us_) best_us_ = us;
  return us;
}

}  // namespace tensmith
