#include "runtime/base/log.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/base/json.h"

namespace tensmith {
namespace {

constexpr const char* kNames[] = {"error", "warning", "info", "debug", "trace"};

struct Rule {
  std::string part;
  LogLevel level;
};

struct Rules {
  LogLevel base = LogLevel::kWarning;
  std::vector<Rule> rules;
};

std::mutex g_mutex;
std::shared_ptr<const Rules> g_rules = std::make_shared<const Rules>();
std::atomic<int> g_highest{-1};  // -1: not yet read from the configuration
std::atomic<bool> g_json{false};

bool parse_level(std::string_view text, LogLevel& level) {
  for (int i = 0; i < 5; ++i)
    if (text == kNames[i]) {
      level = static_cast<LogLevel>(i);
      return true;
    }
  return false;
}

}  // namespace

std::string set_log_rules(std::string_view text) {
  Rules next;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const size_t equal = word.find('=');
    LogLevel level;
    if (!parse_level(equal == std::string_view::npos ? word : word.substr(equal + 1), level) || equal == 0)
      return std::string(word);
    if (equal == std::string_view::npos) next.base = level;
    else next.rules.push_back({std::string(word.substr(0, equal)), level});
  }
  LogLevel highest = next.base;
  for (const Rule& rule : next.rules) highest = std::max(highest, rule.level);
  std::lock_guard lock(g_mutex);
  g_rules = std::make_shared<const Rules>(std::move(next));
  g_highest.store(static_cast<int>(highest), std::memory_order_release);
  return "";
}

void set_log_json(bool on) { g_json.store(on); }

bool log_enabled(LogLevel level, const char* file) {
  int highest = g_highest.load(std::memory_order_acquire);
  if (highest < 0) {
    const auto current = config();
    if (!set_log_rules(current->log).empty()) set_log_rules("warning");
    if (current->log_json) set_log_json(true);
    highest = g_highest.load(std::memory_order_acquire);
  }
  if (static_cast<int>(level) > highest) return false;
  std::shared_ptr<const Rules> rules;
  {
    std::lock_guard lock(g_mutex);
    rules = g_rules;
  }
  for (const Rule& rule : rules->rules)
    if (std::strstr(file, rule.part.c_str())) return level <= rule.level;
  return level <= rules->base;
}

void write_log(LogLevel level, const char* file, int line, const std::string& text) {
  const char* slash = std::strrchr(file, '/');
  const std::string place = std::string(slash ? slash + 1 : file) + ":" + std::to_string(line);
  const char* name = kNames[static_cast<int>(level)];
  std::string out;
  if (g_json.load(std::memory_order_relaxed))
    out = Json{{"level", name}, {"at", place}, {"text", text}}.dump(-1, ' ', false, Json::error_handler_t::replace) +
          "\n";
  else out = std::string(name) + ": " + (level >= LogLevel::kDebug ? place + ": " : "") + text + "\n";
  // One write, and no exception: a full or closed stderr must not end a compilation.
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, out.data(), out.size());
}

}  // namespace tensmith
