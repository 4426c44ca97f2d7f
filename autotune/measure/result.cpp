#include "autotune/measure/result.h"

#include <nlohmann/json.hpp>

#include <iterator>

namespace tensmith {

namespace {

constexpr const char* kNames[] = {
    "valid",
    "illegal-schedule",
    "build-failed",
    "build-timeout",
    "build-crashed",
    "code-too-large",
    "guard-rejected",
    "crashed",
    "run-timeout",
    "out-of-memory",
    "kernel-error",
    "out-of-bounds-write",
    "out-of-bounds-read",
    "wrong-result",
    "task-failed",
    "worker-lost",
    "bad-answer",
    "cancelled",
};
static_assert(std::size(kNames) == static_cast<size_t>(MeasureFailure::kCancelled) + 1);

/// Takes a field if it is there; what is of another type is left alone, since the text may come from anywhere.
template <typename T>
void take(const Json& json, const char* name, T& value) {
  const auto it = json.find(name);
  if (it == json.end()) return;
  try {
    value = it->get<T>();
  } catch (const nlohmann::json::exception&) {
  }
}

}  // namespace

const char* to_string(MeasureFailure failure) { return kNames[static_cast<int>(failure)]; }

Result<MeasureFailure> parse_measure_failure(std::string_view text) {
  for (size_t k = 0; k < std::size(kNames); ++k)
    if (text == kNames[k]) return static_cast<MeasureFailure>(k);
  return Failure{"bad-measure-failure",
                 "failure kind: expected one of valid, illegal-schedule, ..., got '" + std::string(text) + "'"};
}

Json to_json(const BuildReport& r) {
  return Json{{"replay_ms", r.replay_ms}, {"lower_ms", r.lower_ms},     {"codegen_ms", r.codegen_ms},
              {"guard_ms", r.guard_ms},   {"code_bytes", r.code_bytes}, {"code_sha256", r.code_sha256},
              {"guard", r.guard_findings}};
}

BuildReport build_report_from_json(const Json& json) {
  BuildReport r;
  if (!json.is_object()) return r;
  take(json, "replay_ms", r.replay_ms);
  take(json, "lower_ms", r.lower_ms);
  take(json, "codegen_ms", r.codegen_ms);
  take(json, "guard_ms", r.guard_ms);
  take(json, "code_bytes", r.code_bytes);
  take(json, "code_sha256", r.code_sha256);
  take(json, "guard", r.guard_findings);
  return r;
}

Json to_json(const TimingReport& r) {
  return Json{{"min_us", r.min_us},
              {"median_us", r.median_us},
              {"spread", r.spread},
              {"calls", r.calls},
              {"discarded", r.discarded},
              {"peak_gflops", r.peak_gflops},
              {"peak_cache_gbs", r.peak_cache_gbs},
              {"peak_memory_gbs", r.peak_memory_gbs},
              {"yardstick_ratio", r.yardstick_ratio},
              {"disturbed", r.disturbed},
              {"dropped", r.dropped},
              {"ratio", r.ratio},
              {"ratio_low", r.ratio_low},
              {"ratio_high", r.ratio_high},
              {"windows_us", r.windows_us},
              {"incumbent_us", r.incumbent_us},
              {"yardstick_us", r.yardstick_us}};
}

TimingReport timing_report_from_json(const Json& json) {
  TimingReport r;
  if (!json.is_object()) return r;
  take(json, "min_us", r.min_us);
  take(json, "median_us", r.median_us);
  take(json, "spread", r.spread);
  take(json, "calls", r.calls);
  take(json, "discarded", r.discarded);
  take(json, "peak_gflops", r.peak_gflops);
  take(json, "peak_cache_gbs", r.peak_cache_gbs);
  take(json, "peak_memory_gbs", r.peak_memory_gbs);
  take(json, "yardstick_ratio", r.yardstick_ratio);
  take(json, "disturbed", r.disturbed);
  take(json, "dropped", r.dropped);
  take(json, "ratio", r.ratio);
  take(json, "ratio_low", r.ratio_low);
  take(json, "ratio_high", r.ratio_high);
  take(json, "windows_us", r.windows_us);
  take(json, "incumbent_us", r.incumbent_us);
  take(json, "yardstick_us", r.yardstick_us);
  return r;
}

Json to_json(const MeasureResult& r) {
  Json json{{"id", r.id}, {"task", r.task}, {"state", to_string(r.failure)}};
  if (r.signal) json["signal"] = r.signal;
  if (!r.message.empty()) json["message"] = r.message;
  json["build"] = to_json(r.build);
  json["timing"] = to_json(r.timing);
  json["incumbent"] = r.incumbent;
  json["same_code_as"] = r.same_code_as;
  json["cost_us"] = r.cost_us;
  json["build_wall_ms"] = r.build_wall_ms;
  json["run_wall_ms"] = r.run_wall_ms;
  json["attempts"] = r.attempts;
  return json;
}

}  // namespace tensmith
