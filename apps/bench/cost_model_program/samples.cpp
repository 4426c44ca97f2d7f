#include "apps/bench/cost_model_program/samples.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "autotune/space/space.h"
#include "codegen/artifact.h"
#include "codegen/jit.h"
#include "runtime/tensor.h"
#include "runtime/thread_pool.h"
#include "schedule/lower/lowering.h"
#include "schedule/trace.h"

namespace tensmith::bench {

namespace {

using Clock = std::chrono::steady_clock;
double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

/// A candidate, compiled, loaded and with memory of its own.
class TimedCode {
 public:
  TimedCode(const Schedule& schedule, const Target& target) {
    const LoweredKernel kernel = lower(schedule);
    CodegenOptions options;
    options.verify = false;
    const ObjectCode object = compile(LoopProgram{{kernel.function}}, target, options);
    module_ = std::make_unique<JitModule>(JitModule::load(std::span(&object, 1)));
    function_ = module_->find(kernel.function.name);
    constexpr int64_t kPage = 4096, kHugeFrom = int64_t{4} << 20;
    std::vector<int64_t> starts, sizes;
    int64_t bytes = 0;
    for (const Buffer& buffer : kernel.function.buffers) {
      int64_t size = buffer->dtype.bytes();
      for (const Expr& extent : buffer->shape) {
        int64_t value = 1;
        TS_CHECK(as_const_int(extent, &value)) << buffer->name;
        size *= value;
      }
      starts.push_back(bytes);
      sizes.push_back(size);
      bytes += (size + kPage - 1) / kPage * kPage + kPage + kBufferAlignment;
    }
    memory_ = HostMemory(std::max(bytes, kHugeFrom));
    TS_CHECK(starts.size() <= pointers_.size()) << starts.size();
    for (size_t b = 0; b < starts.size(); ++b) {
      auto* at = reinterpret_cast<float*>(static_cast<char*>(memory_.data()) + starts[b]);
      for (int64_t k = 0; k < sizes[b] / 4; ++k) at[k] = static_cast<float>((k * 7919 % 1013) - 500) * 1e-3F;
      pointers_[b] = at;
    }
  }

  /// Surplus arguments are harmless in the calling conventions at hand.
  void run(const tensmith_context* context) {
    void** p = pointers_.data();
    reinterpret_cast<int32_t (*)(const tensmith_context*, void*, void*, void*, void*, void*, void*, void*, void*, void*,
                                 void*, void*, void*)>(function_)(context, p[0], p[1], p[2], p[3], p[4], p[5], p[6],
                                                                  p[7], p[8], p[9], p[10], p[11]);
  }

  /// Units: microseconds a call, of one window of about `window_us`.
  double window(const tensmith_context* context, double window_us) {
    if (calls_ == 0) {
      double once = 1e30;
      for (int k = 0; k < 3; ++k) {
        const auto start = Clock::now();
        run(context);
        once = std::min(once, us_since(start));
      }
      calls_ = std::clamp<int64_t>(static_cast<int64_t>(window_us / std::max(0.05, once)), 1, 100000);
    }
    run(context);
    const auto start = Clock::now();
    for (int64_t k = 0; k < calls_; ++k) run(context);
    return us_since(start) / static_cast<double>(calls_);
  }

 private:
  std::unique_ptr<JitModule> module_;
  void* function_ = nullptr;
  HostMemory memory_;
  std::array<void*, 12> pointers_{};
  int64_t calls_ = 0;
};

constexpr double kWindowUs = 250;
constexpr int kPairs = 9;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

}  // namespace

std::vector<TimedCandidate> measure_candidates(const JudgedTask& task, int count, uint64_t seed,
                                               const std::function<void(const std::string&)>& warn) {
  const Space space(task.workload, task.request);
  ThreadPool pool(task.request.threads);
  const tensmith_context context = pool.context();
  Rng rng(seed, task.name);
  PreferredChooser preferred;
  const Candidate usual = space.make(preferred).value();
  TimedCode yardstick(usual.schedule, task.request.target);
  double least = 1e30;
  std::vector<TimedCandidate> timed;
  std::vector<double> ratios{1};
  std::vector<Candidate> parents{usual};
  std::set<std::string> seen{usual.schedule.to_string()};
  timed.push_back({task.name, usual.schedule.steps(), 0});
  for (int k = 0; static_cast<int>(timed.size()) < count && k < 6 * count; ++k) {
    // Searches compare what they draw and what they derive from good ones.
    Result<Candidate> drawn = k % 4 == 0   ? sample(space, rng, Draw::kUniform)
                              : k % 4 == 1 ? sample(space, rng, Draw::kByCost)
                                           : mutate(space, parents[rng.below(parents.size())], rng, 1 + k % 3);
    if (!drawn || !seen.insert(drawn->schedule.to_string()).second) continue;
    try {
      TimedCode code(drawn->schedule, task.request.target);
      std::vector<double> pairs;
      for (int p = 0; p < kPairs; ++p) {
        const double before = yardstick.window(&context, kWindowUs), own = code.window(&context, kWindowUs),
                     after = yardstick.window(&context, kWindowUs);
        least = std::min({least, before, after});
        pairs.push_back(2 * own / (before + after));
        if (p >= 2 && pairs.back() > 6) break;
      }
      timed.push_back({task.name, drawn->schedule.steps(), 0});
      ratios.push_back(median(pairs));
      if (ratios.back() < 1.5) parents.push_back(drawn.value());
    } catch (const Error& e) {
      warn(task.name + ": " + e.what());
    }
  }
  for (size_t k = 0; k < timed.size(); ++k) timed[k].us = ratios[k] * least;
  if (timed.size() == 1) timed.clear();
  return timed;
}

Result<void> save_candidates(const std::string& path, const std::vector<TimedCandidate>& candidates) {
  std::ofstream file(path);
  for (const TimedCandidate& c : candidates) {
    Json line;
    line["task"] = c.task;
    line["us"] = c.us;
    line["trace"] = trace_to_json(Trace{{}, c.steps});
    file << line.dump() << '\n';
  }
  file.flush();
  if (!file) return Failure{"cannot-write", path + ": expected a file that can be written"};
  return {};
}

Result<std::vector<TimedCandidate>> load_candidates(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Failure{"cannot-read", path + ": expected a file with candidates"};
  std::vector<TimedCandidate> candidates;
  std::string text;
  for (int number = 1; std::getline(file, text); ++number) {
    const auto at = [&](const Failure& failure) {
      return Failure{failure.id, path + ": line " + std::to_string(number) + ": " + failure.message};
    };
    const Result<Json> line = parse_json(text);
    if (!line) return at(line.failure());
    if (!line->is_object() || !line->contains("task") || !line->contains("us") || !line->contains("trace"))
      return at({"bad-json", "expected task, us and trace"});
    const Result<Trace> trace = trace_from_json((*line)["trace"].get<std::string>());
    if (!trace) return at(trace.failure());
    candidates.push_back({(*line)["task"].get<std::string>(), trace->steps, (*line)["us"].get<double>()});
  }
  return candidates;
}

}  // namespace tensmith::bench
