/// Times kernels made from compute definitions by the default schedules against the machine's peak: `kernels [--target
/// T] [--json F]`.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "apps/bench/kernels_program/yardstick.h"
#include "autotune/default_schedule.h"
#include "codegen/artifact.h"
#include "codegen/jit.h"
#include "runtime/base/json.h"
#include "runtime/thread_pool.h"
#include "schedule/lower/lowering.h"
#include "tensor/walk.h"

namespace tensmith::bench {
namespace {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

enum class Measure { kPeak, kCycles };

/// A kernel to be timed.
struct Item {
  std::string group, name;
  Workload workload;
  std::vector<Layout> inputs, outputs;  ///< default-constructed: row-major
  double flops = 0;                     ///< of a call; kPeak
  double elements = 0;                  ///< kCycles
  double cycles_per_16 = 0;             ///< the figure of notes/cpu.md section 5 to compare with; kCycles
  Measure measure = Measure::kPeak;
};

Tensor input(const char* name, std::vector<Expr> shape, bool constant = false) {
  return placeholder(name, std::move(shape), kFloat32, constant);
}

Item matmul(int64_t m, int64_t n, int64_t k) {
  const Tensor a = input("A", {m, k}), b = input("B", {k, n}, true);
  const Tensor c =
      sum("C", {m, n}, {k}, [&](const Indices& i, const Indices& r) { return a(i[0], r[0]) * b(r[0], i[1]); });
  const std::string name = std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  return {"matmul", name, make_workload("matmul", {a, b}, {c}), {}, {}, 2.0 * static_cast<double>(m * n * k)};
}

struct Conv {
  int64_t c, size, o, kernel, stride;
};

Item conv(const Conv& s, bool depthwise) {
  const int64_t pad = s.kernel / 2, out = (s.size + 2 * pad - s.kernel) / s.stride + 1;
  const int64_t o = depthwise ? s.c : s.o;
  const Tensor x = input("X", {1, s.c, s.size, s.size}),
               w = input("W", {o, depthwise ? 1 : s.c, s.kernel, s.kernel}, true);
  const auto row = [&](const Indices& i, const Indices& r, int d) { return i[d] * s.stride + r[d - 1] - pad; };
  const auto inside = [&](const Expr& e) { return e >= 0 && e < s.size; };
  // Reduce axes: channel, y, x.
  const Tensor y = reduce(
      "Y", {1, o, out, out}, {depthwise ? Expr(1) : Expr(s.c), s.kernel, s.kernel}, sum_reducer(kFloat32),
      [&](const Indices& i, const Indices& r) {
        return x(i[0], depthwise ? i[1] : r[0], row(i, r, 2), row(i, r, 3)) * w(i[1], r[0], r[1], r[2]);
      },
      pad ? std::function<Expr(const Indices&, const Indices&)>(
                [&](const Indices& i, const Indices& r) { return inside(row(i, r, 2)) && inside(row(i, r, 3)); })
          : nullptr);
  const Layout last = Layout::permuted({0, 2, 3, 1});
  const std::string name = std::to_string(s.kernel) + "x" + std::to_string(s.kernel) + " s" + std::to_string(s.stride) +
                           " " + std::to_string(s.c) + "->" + std::to_string(o) + " @" + std::to_string(s.size);
  // Work on padding is not counted: it is skipped.
  double taps = 0;
  for (int64_t p = 0; p < out; ++p)
    for (int64_t k = 0; k < s.kernel; ++k) taps += p * s.stride + k - pad >= 0 && p * s.stride + k - pad < s.size;
  const double flops = 2.0 * static_cast<double>(o) * (depthwise ? 1.0 : static_cast<double>(s.c)) * taps * taps;
  return {depthwise ? "depthwise" : "convolution",
          name,
          make_workload("conv", {x, w}, {y}),
          {last, Layout()},
          {last},
          flops};
}

std::vector<Item> vector_items() {
  const int64_t rows = 96, columns = 768, keys = 128;
  const double all = static_cast<double>(rows * columns);
  std::vector<Item> items;
  const auto one = [](double v) { return make_const(kFloat32, v); };
  {
    const Tensor x = input("X", {384, keys});
    const Tensor top = reduce("m", {384}, {keys}, max_reducer(kFloat32),
                              [&](const Indices& i, const Indices& r) { return x(i[0], r[0]); });
    const Tensor e =
        compute("e", {384, keys}, [&](const Indices& i) { return call(Intrinsic::kExp, {x(i[0], i[1]) - top(i[0])}); });
    const Tensor total = sum("s", {384}, {keys}, [&](const Indices& i, const Indices& r) { return e(i[0], r[0]); });
    const Tensor scale = compute("r", {384}, [&](const Indices& i) { return one(1) / total(i[0]); });
    const Tensor y = compute("Y", {384, keys}, [&](const Indices& i) { return e(i[0], i[1]) * scale(i[0]); });
    items.push_back({"vector",
                     "softmax, rows of 128",
                     make_workload("softmax", {x}, {y}),
                     {},
                     {},
                     0,
                     384.0 * keys,
                     16.2,
                     Measure::kCycles});
  }
  {
    const Tensor x = input("X", {rows, columns}), g = input("g", {columns}, true), b = input("b", {columns}, true);
    const Tensor mean =
        compute("mean", {rows},
                [s = sum("s", {rows}, {columns}, [&](const Indices& i, const Indices& r) { return x(i[0], r[0]); }),
                 &one](const Indices& i) { return s(i[0]) * one(1.0 / columns); });
    const Tensor q = sum("q", {rows}, {columns}, [&](const Indices& i, const Indices& r) {
      return (x(i[0], r[0]) - mean(i[0])) * (x(i[0], r[0]) - mean(i[0]));
    });
    const Tensor inv = compute("inv", {rows}, [&](const Indices& i) {
      return one(1) / call(Intrinsic::kSqrt, {q(i[0]) * one(1.0 / columns) + one(1e-5)});
    });
    const Tensor y = compute("Y", {rows, columns}, [&](const Indices& i) {
      return (x(i[0], i[1]) - mean(i[0])) * inv(i[0]) * g(i[1]) + b(i[1]);
    });
    items.push_back({"vector",
                     "layer norm, rows of 768",
                     make_workload("layer_norm", {x, g, b}, {y}),
                     {},
                     {},
                     0,
                     all,
                     6.4,
                     Measure::kCycles});
  }
  const auto elementwise = [&](const char* name, double cycles, const std::function<Expr(Expr)>& f) {
    const Tensor x = input("X", {4096});
    items.push_back(
        {"vector",
         name,
         make_workload("elementwise", {x}, {compute("Y", {4096}, [&](const Indices& i) { return f(x(i[0])); })}),
         {},
         {},
         0,
         4096,
         cycles,
         Measure::kCycles});
  };
  elementwise("GELU (erf)", 18.2,
              [&](Expr x) { return x * one(0.5) * (one(1) + call(Intrinsic::kErf, {x * one(0.7071067811865476)})); });
  elementwise("sigmoid", 14.4, [](Expr x) { return call(Intrinsic::kSigmoid, {x}); });
  elementwise("exp", 10.8, [](Expr x) { return call(Intrinsic::kExp, {x}); });
  elementwise("tanh", 12.2, [](Expr x) { return call(Intrinsic::kTanh, {x}); });
  elementwise("relu", 2.2, [&](Expr x) { return max(x, one(0)); });
  return items;
}

std::vector<Item> all_items() {
  std::vector<Item> items;
  for (int64_t m : {8, 16, 49, 128, 196, 512, 1024}) items.push_back(matmul(m, 768, 768));
  items.push_back(matmul(128, 3072, 768));
  items.push_back(matmul(128, 768, 3072));
  items.push_back(matmul(1024, 1024, 1024));
  for (const Conv& c :
       {Conv{64, 56, 64, 3, 1}, Conv{128, 28, 128, 3, 1}, Conv{256, 14, 256, 3, 1}, Conv{512, 7, 512, 3, 1},
        Conv{128, 56, 128, 3, 2}, Conv{64, 56, 256, 1, 1}, Conv{256, 56, 64, 1, 1}, Conv{512, 28, 128, 1, 1},
        Conv{256, 14, 1024, 1, 1}, Conv{1024, 14, 256, 1, 1}, Conv{512, 7, 2048, 1, 1}, Conv{2048, 7, 512, 1, 1}})
    items.push_back(conv(c, false));
  for (const Conv& c : {Conv{32, 112, 0, 3, 1}, Conv{144, 56, 0, 3, 1}, Conv{192, 28, 0, 3, 1}, Conv{576, 14, 0, 3, 1},
                        Conv{960, 7, 0, 3, 1}})
    items.push_back(conv(c, true));
  for (Item& item : vector_items()) items.push_back(std::move(item));
  return items;
}

/// The kernel loaded, with memory in the layouts that it asks for.
class Runner {
 public:
  Runner(const Item& item, const Target& target, int threads) : pool_(threads), context_(pool_.context()) {
    const auto start = Clock::now();
    ScheduleRequest request{target, threads, item.inputs, item.outputs};
    const LoweredKernel kernel = lower(default_schedule(item.workload, request, &why_));
    const ObjectCode object = compile(LoopProgram{{kernel.function}}, target);
    module_ = std::make_unique<JitModule>(JitModule::load(std::span(&object, 1)));
    compile_ms_ = ms_since(start);
    function_ = module_->find(kernel.function.name);
    for (const Buffer& buffer : kernel.function.buffers) {
      int64_t elements = 1;
      for (const Expr& extent : buffer->shape) {
        int64_t value = 1;
        TS_CHECK(as_const_int(extent, &value)) << buffer->name;
        elements *= value;
      }
      memory_.emplace_back(elements + 64);
      for (int64_t k = 0; k < elements; ++k)
        memory_.back()[k] = static_cast<float>(std::sin(0.37 * static_cast<double>(k % 1000)));
      pointers_.push_back(memory_.back().data() +
                          (64 - (reinterpret_cast<uintptr_t>(memory_.back().data()) & 63)) / 4 % 16);
    }
  }
  void run() {
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
  /// Units: milliseconds of a call, the least of many windows of at least half a millisecond.
  double best_ms(int windows) {
    run();
    auto start = Clock::now();
    run();
    const int turns = std::max(1, static_cast<int>(0.5 / std::max(1e-4, ms_since(start))));
    double best = 1e30;
    for (int w = 0; w < windows; ++w) {
      start = Clock::now();
      for (int t = 0; t < turns; ++t) run();
      best = std::min(best, ms_since(start) / turns);
    }
    return best;
  }
  double compile_ms() const { return compile_ms_; }

 private:
  ThreadPool pool_;
  tensmith_context context_;
  std::string why_;
  std::unique_ptr<JitModule> module_;
  void* function_ = nullptr;
  double compile_ms_ = 0;
  std::vector<std::vector<float>> memory_;
  std::vector<void*> pointers_;
};

int main_with(const Target& target, const std::string& filter, const std::string& json_file) {
  if (const char* missing = target.missing_on_host()) {
    std::fprintf(stderr, "kernels: this machine lacks %s\n", missing);
    return 5;
  }
  const double peak = peak_flops(target.vector_bits), hz = clock_hz();
  std::printf("%s, %s: peak %.1f GFLOP/s a thread, clock %.2f GHz\n", host_cpu_model().c_str(),
              to_string(target).c_str(), peak / 1e9, hz / 1e9);
  std::printf("%-12s %-28s %10s %10s %9s %9s\n", "group", "kernel", "ms", "of peak", "2 threads", "compile");
  Json rows = Json::array();
  for (const Item& item : all_items()) {
    if (!filter.empty() && (item.group + " " + item.name).find(filter) == std::string::npos) continue;
    Runner one(item, target, 1);
    const double ms = one.best_ms(30);
    // The yardstick of the same moment, so that what else runs meets both.
    const double now = std::max(peak_flops(target.vector_bits), peak * 0.5);
    double two = 0;
    if (Target::host().cores >= 2 && ms > 0.2) two = ms / Runner(item, target, 2).best_ms(20);
    double figure = 0;
    if (item.measure == Measure::kPeak) figure = item.flops / (ms * 1e-3) / now;
    else figure = item.cycles_per_16 / (ms * 1e-3 * hz / item.elements * 16);
    std::printf("%-12s %-28s %10.4f %9.3f%s %9.2f %7.1fms\n", item.group.c_str(), item.name.c_str(), ms, figure,
                item.measure == Measure::kPeak ? " " : "*", two, one.compile_ms());
    std::fflush(stdout);
    rows.push_back({{"group", item.group},
                    {"kernel", item.name},
                    {"ms", ms},
                    {item.measure == Measure::kPeak ? "fraction_of_peak" : "of_notes_cycles", figure},
                    {"speedup_2_threads", two},
                    {"compile_ms", one.compile_ms()}});
  }
  std::printf("* cycles of notes/cpu.md section 5 over ours\n");
  if (json_file.empty()) return 0;
  Json json = json_header({"tensmith.bench-kernels/1", to_string(target), 1, 0, {}});
  json["peak_gflops"] = peak / 1e9;
  json["clock_ghz"] = hz / 1e9;
  json["kernels"] = rows;
  const Result<void> ok = write_json(json_file, json);
  if (!ok) std::fprintf(stderr, "%s\n", ok.failure().message.c_str());
  return ok ? 0 : 2;
}

}  // namespace
}  // namespace tensmith::bench

int main(int argc, char** argv) {
  std::string target = "host", filter, json;
  for (int k = 1; k + 1 < argc; k += 2) {
    if (std::strcmp(argv[k], "--target") == 0) target = argv[k + 1];
    if (std::strcmp(argv[k], "--filter") == 0) filter = argv[k + 1];
    if (std::strcmp(argv[k], "--json") == 0) json = argv[k + 1];
  }
  try {
    const tensmith::Result<tensmith::Target> parsed = tensmith::Target::parse(target);
    if (!parsed) throw tensmith::UserError(parsed.failure().id, parsed.failure().message);
    return tensmith::bench::main_with(*parsed, filter, json);
  } catch (const tensmith::Error& e) {
    std::fprintf(stderr, "kernels: %s\n", e.what());
    return tensmith::exit_code(e.kind());
  }
}
