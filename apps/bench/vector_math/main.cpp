// vector_math: measures the error and the speed of exp, tanh, ... as code generation writes them out.
//
//   vector_math [--functions exp,erf] [--type f32|f64] [--fast] [--step N] [--from X --to Y] [--samples N]
//               [--threads N] [--target T] [--lanes N] [--speed] [--special]
//
// f32: every N-th of the 2^32 inputs (default: all of them, about a minute a function on two cores) against double, or
// only those from X to Y (both positive); f64 and pow: random arguments against long double. --speed only times;
// --special prints a table of special values. Exit code 4 when a function errs by more than codegen/math promises.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "apps/bench/vector_math/functions.h"
#include "apps/bench/vector_math/kernel.h"
#include "apps/bench/vector_math/ulp.h"
#include "runtime/base/error.h"

namespace tensmith {
namespace {

struct Options {
  std::string functions;
  bool is_double = false, fast = false, speed_only = false, special = false;
  uint64_t step = 1, first = 0, end = uint64_t{1} << 32;  // bits of f32 inputs
  int64_t samples = 10'000'000;
  int threads = 2, lanes = 0;
  std::string target = "host";
};

uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--fast") o.fast = true;
    else if (flag == "--speed") o.speed_only = true;
    else if (flag == "--special") o.special = true;
    else {
      TS_USER_CHECK(i + 1 < argc, "bad-usage")
          << "vector_math: " << flag
          << ": expected a known flag and its value; see the head of apps/bench/vector_math/main.cpp";
      const std::string value = argv[++i];
      if (flag == "--functions") o.functions = value;
      else if (flag == "--type") o.is_double = value == "f64";
      else if (flag == "--step") o.step = std::max(1ull, std::stoull(value));
      else if (flag == "--from") o.first = bits_of(std::stof(value));
      else if (flag == "--to") o.end = bits_of(std::stof(value)) + uint64_t{1};
      else if (flag == "--samples") o.samples = std::stoll(value);
      else if (flag == "--threads") o.threads = std::max(1, std::stoi(value));
      else if (flag == "--lanes") o.lanes = std::stoi(value);
      else if (flag == "--target") o.target = value;
      else
        throw UserError("bad-usage", "vector_math: " + flag +
                                         ": expected a known flag; see the head of apps/bench/vector_math/main.cpp");
    }
  }
  return o;
}

constexpr int64_t kBlock = 4096;

/// Buffers of one block, aligned as generated code wants them.
template <typename T>
struct Block {
  alignas(64) T x[kBlock], y[kBlock], out[kBlock];
};

/// The largest error seen, and where.
template <typename T>
struct Worst {
  double ulp = 0;
  T x = 0, y = 0, got = 0;
  int64_t count = 0, over_one = 0;
  void take(double error, T at, T at_y, T value) {
    ++count;
    over_one += error > 1;
    if (!(error > ulp)) return;
    ulp = error, x = at, y = at_y, got = value;
  }
  void merge(const Worst& other) {
    const int64_t total = count + other.count, over = over_one + other.over_one;
    if (other.ulp > ulp) *this = other;
    count = total, over_one = over;
  }
};

/// Runs `work(thread, &worst)` on every thread and merges what they found.
template <typename T, typename F>
Worst<T> on_threads(int threads, const F& work) {
  std::mutex mutex;
  Worst<T> all;
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t)
    pool.emplace_back([&, t] {
      Worst<T> mine;
      work(t, &mine);
      const std::lock_guard lock(mutex);
      all.merge(mine);
    });
  for (std::thread& thread : pool) thread.join();
  return all;
}

Worst<float> all_floats(const MathFunction& f, const ElementKernel& kernel, const Options& o) {
  return on_threads<float>(o.threads, [&](int thread, Worst<float>* worst) {
    auto block = std::make_unique<Block<float>>();
    const uint64_t stride = kBlock * o.step;
    for (uint64_t base = o.first + thread * stride; base < o.end; base += o.threads * stride) {
      for (int64_t i = 0; i < kBlock; ++i) {
        const auto bits = static_cast<uint32_t>(base + i * o.step);
        std::memcpy(&block->x[i], &bits, sizeof bits);
      }
      kernel(block->x, block->y, block->out, kBlock);
      for (int64_t i = 0; i < kBlock; ++i) {
        const double exact = f.exact(block->x[i]);
        const auto rounded = static_cast<float>(exact);
        // Most results are the nearest float: there is no need to say by how little they err.
        if (std::memcmp(&rounded, &block->out[i], sizeof rounded) == 0) worst->take(0.5, block->x[i], 0, block->out[i]);
        else worst->take(ulp_error(block->out[i], exact), block->x[i], 0, block->out[i]);
      }
    }
  });
}

/// Numbers of every size and, more often, those where functions do something: around 0 and 1, and over a few binades.
template <typename T>
class RandomNumbers {
 public:
  explicit RandomNumbers(uint64_t seed) : bits_(seed) {}
  T of_exponents(int low, int high) {
    const double magnitude = std::ldexp(1 + uniform(), low + static_cast<int>(bits_() % (high - low)));
    return static_cast<T>(bits_() & 1 ? -magnitude : magnitude);
  }
  T any() {
    using Limits = std::numeric_limits<T>;
    switch (bits_() % 4) {
      case 0: return of_exponents(Limits::min_exponent - Limits::digits, Limits::max_exponent);
      case 1: return of_exponents(-30, 12);
      case 2: return of_exponents(-4, 5);
      default: return of_exponents(-2, 2);
    }
  }
  double uniform() { return static_cast<double>(bits_() >> 12) * 0x1p-52; }

 private:
  std::mt19937_64 bits_;
};

Worst<double> random_doubles(const MathFunction& f, const ElementKernel& kernel, const Options& o) {
  return on_threads<double>(o.threads, [&](int thread, Worst<double>* worst) {
    auto block = std::make_unique<Block<double>>();
    RandomNumbers<double> random(1 + thread);
    for (int64_t done = 0; done < o.samples / o.threads; done += kBlock) {
      for (double& x : block->x)
        x = f.low >= 0 ? std::fabs(random.any()) + (f.low >= 1 ? random.uniform() : 0) : random.any();
      kernel(block->x, block->y, block->out, kBlock);
      for (int64_t i = 0; i < kBlock; ++i)
        worst->take(ulp_error(block->out[i], f.exact_long(static_cast<long double>(block->x[i]))), block->x[i], 0,
                    block->out[i]);
    }
  });
}

template <typename T>
double pow_error(T got, T x, T y) {
  if constexpr (sizeof(T) == 4)
    return ulp_error(got, static_cast<double>(std::pow(static_cast<long double>(x), static_cast<long double>(y))));
  else return ulp_error(got, std::pow(static_cast<long double>(x), static_cast<long double>(y)));
}

template <typename T>
Worst<T> random_powers(const ElementKernel& kernel, const Options& o) {
  return on_threads<T>(o.threads, [&](int thread, Worst<T>* worst) {
    auto block = std::make_unique<Block<T>>();
    RandomNumbers<T> random(1 + thread);
    const double span = std::log(static_cast<double>(std::numeric_limits<T>::max()));
    for (int64_t done = 0; done < o.samples / o.threads; done += kBlock) {
      for (int64_t i = 0; i < kBlock; ++i) {
        T &x = block->x[i], &y = block->y[i];
        x = std::fabs(random.any()), y = random.any();
        if (i % 2)
          y = static_cast<T>((random.uniform() * 2 - 1) * span /
                             std::log(static_cast<double>(x)));  // results of every size
        if (i % 16 == 0) x = -x, y = std::nearbyint(y);
      }
      kernel(block->x, block->y, block->out, kBlock);
      for (int64_t i = 0; i < kBlock; ++i)
        worst->take(pow_error(block->out[i], block->x[i], block->y[i]), block->x[i], block->y[i], block->out[i]);
    }
  });
}

/// Units: seconds of a core clock cycle, from a chain of dependent additions; 0 where that is not known.
double cycle_seconds() {
#if defined(__x86_64__)
  double best = 1;
  uint64_t sum = 0;
  for (int round = 0; round < 30; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 20000; ++i) asm volatile("add $1, %0" : "+r"(sum));
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 20000);
  }
  return best;
#else
  return 0;
#endif
}

/// Units: seconds an element, the least of many runs over a block that stays in the first cache.
template <typename T>
double seconds_per_element(const ElementKernel& kernel, double low, double high) {
  constexpr int64_t kCount = 1024;
  auto block = std::make_unique<Block<T>>();
  std::mt19937 random(1);
  std::uniform_real_distribution<double> in_range(low, high);
  for (int64_t i = 0; i < kCount; ++i)
    block->x[i] = static_cast<T>(in_range(random)), block->y[i] = static_cast<T>(in_range(random));
  double best = 1;
  for (int round = 0; round < 500; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 4; ++i) kernel(block->x, block->y, block->out, kCount);
    best =
        std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / (4 * kCount));
  }
  return best;
}

template <typename T>
void print_special_values(const MathFunction& f, const ElementKernel& kernel) {
  using Limits = std::numeric_limits<T>;
  const T numbers[] = {0,
                       -T(0),
                       1,
                       -1,
                       Limits::infinity(),
                       -Limits::infinity(),
                       Limits::quiet_NaN(),
                       Limits::denorm_min(),
                       -Limits::denorm_min(),
                       Limits::min(),
                       -Limits::min(),
                       Limits::max(),
                       -Limits::max()};
  auto block = std::make_unique<Block<T>>();
  for (const T y : numbers) {
    for (size_t i = 0; i < std::size(numbers); ++i) block->x[i] = numbers[i], block->y[i] = y;
    kernel(block->x, block->y, block->out, 64);
    for (size_t i = 0; i < std::size(numbers); ++i) {
      std::printf("  %s(%g", f.name, static_cast<double>(numbers[i]));
      if (f.arity == 2) std::printf(", %g", static_cast<double>(y));
      std::printf(") = %g\n", static_cast<double>(block->out[i]));
    }
    if (f.arity == 1) break;
  }
}

template <typename T>
bool report(const MathFunction& f, const Options& o, const Target& target) {
  const DType type = sizeof(T) == 4 ? kFloat32 : kFloat64;
  const int lanes = o.lanes ? o.lanes : target.lanes(sizeof(T));
  const CodegenOptions options{.fast_math = o.fast};
  const ElementKernel kernel(f.id, f.arity, type, lanes, target, options), copy(f.id, 0, type, lanes, target, options);
  if (o.special) print_special_values<T>(f, kernel);
  const double cycle = cycle_seconds(), time = seconds_per_element<T>(kernel, f.low, f.high),
               base = seconds_per_element<T>(copy, f.low, f.high);
  std::printf("%-8s %s%s  %7.3f ns", f.name, to_string(type).c_str(), o.fast ? " fast" : "", time * 1e9);
  if (cycle > 0) std::printf("  %6.2f cycles/%d (copy %.2f)", time * 16 / cycle, 16, base * 16 / cycle);
  bool good = true;
  if (!o.speed_only) {
    Worst<T> worst;
    if (f.arity == 2) worst = random_powers<T>(kernel, o);
    else if constexpr (sizeof(T) == 4) worst = all_floats(f, kernel, o);
    else worst = random_doubles(f, kernel, o);
    const double limit = sizeof(T) == 8 ? f.f64_limit : o.fast ? f.f32_fast_limit : f.f32_limit;
    good = worst.ulp <= limit;
    std::printf("  max %.4f ulp at %a", worst.ulp, static_cast<double>(worst.x));
    if (f.arity == 2) std::printf(", %a", static_cast<double>(worst.y));
    std::printf(" (got %a); %lld of %lld over 1%s", static_cast<double>(worst.got),
                static_cast<long long>(worst.over_one), static_cast<long long>(worst.count), good ? "" : "  TOO LARGE");
  }
  std::printf("\n");
  std::fflush(stdout);
  return good;
}

int run(int argc, char** argv) {
  const Options o = parse(argc, argv);
  Result<Target> target = Target::parse(o.target);
  if (!target.ok()) throw UserError(target.failure().id, target.failure().message);
  bool good = true;
  for (const MathFunction& f : math_functions()) {
    if (!o.functions.empty() && ("," + o.functions + ",").find("," + std::string(f.name) + ",") == std::string::npos)
      continue;
    good &= o.is_double ? report<double>(f, o, target.value()) : report<float>(f, o, target.value());
  }
  return good ? 0 : exit_code(ErrorKind::kMismatch);
}

}  // namespace
}  // namespace tensmith

int main(int argc, char** argv) {
  try {
    return tensmith::run(argc, argv);
  } catch (const tensmith::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return tensmith::exit_code(error.kind());
  }
}
