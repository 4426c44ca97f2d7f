#include "autotune/measure/limits.h"

#include <nlohmann/json.hpp>

namespace tensmith {

namespace {

template <typename T>
T field(const Json& json, const char* name, T fallback) {
  const auto it = json.find(name);
  if (it == json.end() || !(it->is_number() || it->is_boolean())) return fallback;
  return it->get<T>();
}

}  // namespace

Json to_json(const TimingOptions& o) {
  return Json{{"window_ms", o.window_ms},          {"min_windows", o.min_windows},
              {"max_windows", o.max_windows},      {"max_ms", o.max_ms},
              {"drop_ratio", o.drop_ratio},        {"separation", o.separation},
              {"slow_yardstick", o.slow_yardstick}};
}

TimingOptions timing_options_from_json(const Json& json) {
  TimingOptions o;
  if (!json.is_object()) return o;
  o.window_ms = field(json, "window_ms", o.window_ms);
  o.min_windows = field(json, "min_windows", o.min_windows);
  o.max_windows = field(json, "max_windows", o.max_windows);
  o.max_ms = field(json, "max_ms", o.max_ms);
  o.drop_ratio = field(json, "drop_ratio", o.drop_ratio);
  o.separation = field(json, "separation", o.separation);
  o.slow_yardstick = field(json, "slow_yardstick", o.slow_yardstick);
  return o;
}

Json to_json(const GuardOptions& o) {
  return Json{{"min_fmas", o.min_fmas},
              {"max_stack_share", o.max_stack_share},
              {"max_scalar_share", o.max_scalar_share},
              {"allow_calls", o.allow_calls}};
}

GuardOptions guard_options_from_json(const Json& json) {
  GuardOptions o;
  if (!json.is_object()) return o;
  o.min_fmas = field(json, "min_fmas", o.min_fmas);
  o.max_stack_share = field(json, "max_stack_share", o.max_stack_share);
  o.max_scalar_share = field(json, "max_scalar_share", o.max_scalar_share);
  o.allow_calls = field(json, "allow_calls", o.allow_calls);
  return o;
}

}  // namespace tensmith
