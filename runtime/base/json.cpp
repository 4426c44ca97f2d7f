#include "runtime/base/json.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/base/cpu_count.h"
#include "runtime/base/files.h"
#include "runtime/base/target.h"

namespace tensmith {
namespace {

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

constexpr int kMaxDepth = 64;

/// Nesting depth of brackets outside strings; a guard before the parser sees the text.
int depth_of(std::string_view text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

const char* tool_version() { return TS_VERSION; }

Json manifest_header(const Provenance& from) {
  Json json;
  json["schema"] = from.schema;
  json["tool"] = "tensmith";
  json["version"] = tool_version();
  json["target"] = text_or_null(from.target);
  json["threads"] = from.threads > 0 ? Json(from.threads) : Json(nullptr);
  json["seed"] = from.seed;
  json["model_digest"] = text_or_null(from.model_digest);
  return json;
}

Json json_header(const Provenance& from) {
  Json json = manifest_header(from);
  json["cpu_model"] = host_cpu_model();
  std::string governor;
  std::ifstream file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  std::getline(file, governor);
  json["governor"] = text_or_null(governor);
  json["usable_cores"] = tensmith_usable_cores();
  const int64_t quota = tensmith_cgroup_milli_cpus();
  json["cgroup_cpus"] = quota > 0 ? Json(static_cast<double>(quota) / 1000) : Json(nullptr);
  return json;
}

Result<Json> parse_json(std::string_view text, int64_t limit) {
  if (static_cast<int64_t>(text.size()) > limit)
    return Failure{"bad-json",
                   "json: expected at most " + std::to_string(limit) + " bytes, got " + std::to_string(text.size())};
  if (int depth = depth_of(text); depth > kMaxDepth)
    return Failure{"bad-json",
                   "json: expected at most " + std::to_string(kMaxDepth) + " levels, got " + std::to_string(depth)};
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    const size_t at = std::min<size_t>(error.byte ? error.byte - 1 : 0, text.size());
    const std::string_view before = text.substr(0, at);
    const size_t line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
    const size_t start = before.rfind('\n');
    const size_t column = at - (start == std::string_view::npos ? 0 : start + 1) + 1;
    return Failure{"bad-json",
                   "json: line " + std::to_string(line) + ", column " + std::to_string(column) + ": not well formed"};
  } catch (const Json::exception& error) {
    return Failure{"bad-json", std::string("json: ") + error.what()};
  }
}

std::string json_text(const Json& json) { return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; }

Result<void> write_json(const std::string& path, const Json& json) { return write_file(path, json_text(json)); }

}  // namespace tensmith
