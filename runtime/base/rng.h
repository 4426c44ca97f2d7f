/// Random numbers that are the same on every platform for the same seed.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

namespace tensmith {

/// xoshiro256**, seeded by splitmix64. Only integer and exactly rounded operations, so the sequence never depends on
/// the compiler, the C library or the CPU. Source: Blackman and Vigna, "Scrambled linear pseudorandom number
/// generators" (2018).
class Rng {
 public:
  explicit Rng(uint64_t seed = 0);
  /// An independent sequence for a named thing: the same name and seed always give the same sequence, whatever else is
  /// drawn.
  Rng(uint64_t seed, std::string_view name);

  /// 64 random bits.
  uint64_t next();
  /// Uniform in [0, n), without bias. n > 0.
  uint64_t below(uint64_t n);
  /// Uniform in [low, high], both included.
  int64_t between(int64_t low, int64_t high);
  /// Uniform in [0, 1) with 53 bits.
  double uniform();
  /// Uniform in [low, high).
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Standard normal.
  double normal();
  /// True with probability p.
  bool chance(double p) { return uniform() < p; }
  /// Shuffles a range with random access.
  template <typename Container>
  void shuffle(Container& c) {
    for (uint64_t i = c.size(); i > 1; --i) {
      using std::swap;
      swap(c[i - 1], c[below(i)]);
    }
  }

  // What <algorithm> and <random> ask of a generator.
  using result_type = uint64_t;
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return UINT64_MAX; }
  uint64_t operator()() { return next(); }

 private:
  uint64_t state_[4];
};

/// One step of splitmix64: a good 64-bit mixing of the state, which it advances.
uint64_t splitmix64(uint64_t& state);

}  // namespace tensmith
