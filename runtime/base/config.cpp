#include "runtime/base/config.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <mutex>

extern char** environ;  // NOLINT: POSIX has no header for it

namespace tensmith {
namespace {

const Switch kTable[] = {
    {"log", "LEVEL", "",
     "error, warning, info, debug or trace, and rules such as lower/vectorize=trace, separated by commas",
     &Config::log},
    {"log-json", "", "", "write the log as JSON lines", &Config::log_json},
    {"print-ir", "WHEN", "after-change|after-each|after:|before:",
     "print loop IR after changes, after each pass or around one pass", &Config::print_ir},
    {"print-graph", "WHEN", "after-change|after-each|after:|before:",
     "print the graph after changes, after each pass or around one pass", &Config::print_graph},
    {"print-schedule", "FORM", "steps|cpp|json|loops|c", "print each kernel's schedule", &Config::print_schedule},
    {"explain", "WHAT", "algorithm|fusion|schedule|layout|memory|tuning",
     "give reasons for decisions: algorithm, fusion, schedule, layout, memory, tuning, separated by commas",
     &Config::explain, /*is_list=*/true},
    {"dump", "DIR", "", "write numbered files of every stage (graph, loop IR, .ll, .s, .o) into a folder",
     &Config::dump},
    {"filter", "TEXT", "", "print and dump only kernels whose name contains the text", &Config::filter},
    {"time-passes", "", "", "print the time of each pass", &Config::time_passes},
    {"profile", "FILE", "", "write a Chrome trace of compilation and run", &Config::profile},
    {"stop-after", "PASS", "",
     "end compilation after that pass and print its result: a pass of the graph, layouts, placement, fuse, schedule, a "
     "pass of lowering, or codegen",
     &Config::stop_after},
    {"pass-limit", "N", "", "run only the first N optional passes, -1 for all: bisects a wrong result",
     &Config::pass_limit},
    {"disable-pass", "PASS", "", "leave out optional passes, separated by commas", &Config::disable_pass},
    {"verify-each", "", "", "verify the IR after each pass", &Config::verify_each},
    {"check", "", "", "compare each kernel's result with the reference interpreter before a run, on its data",
     &Config::check},
    {"repro", "DIR", "", "folder for a reproducer of an internal error or a wrong result", &Config::repro},
    {"seed", "N", "", "seed of everything random", &Config::seed},
    {"contract", "", "", "allow a*b+c to become one fused multiply-add", &Config::contract},
    {"winograd", "", "", "compute convolutions by transformed tiles where that is faster", &Config::winograd},
    {"layouts", "FORM", "auto|channels-last|blocked", "the layout of chains of spatial operators", &Config::layouts},
    {"constant-limit-mib", "N", "", "largest tensor that constant folding may make, at most 2^40",
     &Config::constant_limit_mib},
    {"memory-limit-mib", "N", "", "largest arena and largest model that are accepted, at most 2^40",
     &Config::memory_limit_mib},
    {"threads", "N", "", "threads for running, 0 for all usable cores", &Config::threads},
    {"compile-threads", "N", "", "threads for compiling, at most 1024, 0 for all usable cores",
     &Config::compile_threads},
    {"spin-us", "N", "", "microseconds that an idle worker spins before it sleeps", &Config::spin_us},
    {"huge-pages", "", "", "ask for huge pages for arenas and weights", &Config::huge_pages},
    {"perf-map", "", "", "name loaded kernels in /tmp/perf-PID.map for perf", &Config::perf_map},
};

const Switch* find_switch(std::string_view name) {
  for (const Switch& s : kTable)
    if (name == s.name) return &s;
  return nullptr;
}

/// Whether a value is one of the choices, or a list of them.
bool allowed(std::string_view choices, std::string_view value, bool is_list) {
  if (choices.empty() || value.empty()) return true;
  if (const size_t comma = value.find(','); is_list && comma != std::string_view::npos)
    return allowed(choices, value.substr(0, comma), false) && allowed(choices, value.substr(comma + 1), true);
  while (!choices.empty()) {
    size_t bar = std::min(choices.find('|'), choices.size());
    std::string_view word = choices.substr(0, bar);
    if (word.back() == ':' ? value.starts_with(word) && value.size() > word.size() : word == value) return true;
    choices.remove_prefix(std::min(bar + 1, choices.size()));
  }
  return false;
}

template <typename... F>
struct Match : F... {
  using F::operator()...;
};

struct Range {
  int64_t least, most;
};

/// What a number may be.
Range range_of(int64_t Config::*field) {
  if (field == &Config::seed) return {INT64_MIN, INT64_MAX};
  if (field == &Config::pass_limit) return {-1, INT64_MAX};  // -1: none
  // More would not fit into 64 bits as bytes.
  if (field == &Config::constant_limit_mib || field == &Config::memory_limit_mib) return {0, int64_t{1} << 40};
  if (field == &Config::compile_threads) return {0, 1024};
  return {0, INT64_MAX};
}

/// Sets one field. `where` names the flag or variable for the message.
Result<void> assign(const Switch& s, const std::string& where, std::string_view value, Config& config) {
  auto bad = [&](const std::string& expected) {
    return Failure{"bad-switch", where + ": expected " + expected + ", got '" + std::string(value) + "'"};
  };
  return std::visit(Match{[&](bool Config::*field) -> Result<void> {
                            const bool yes = value == "1" || value == "true" || value == "on" || value == "yes";
                            const bool no = value == "0" || value == "false" || value == "off" || value == "no";
                            if (!yes && !no) return bad("on or off");
                            config.*field = yes;
                            return {};
                          },
                          [&](int64_t Config::*field) -> Result<void> {
                            int64_t number = 0;
                            auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
                            if (error != std::errc() || end != value.data() + value.size())
                              return bad("a number of 64 bits");
                            const Range range = range_of(field);
                            if (number < range.least) return bad("a number that is not negative");
                            if (number > range.most) return bad("at most " + std::to_string(range.most));
                            config.*field = number;
                            return {};
                          },
                          [&](std::string Config::*field) -> Result<void> {
                            if (!allowed(s.choices, value, s.is_list)) {
                              std::string words = s.choices;
                              for (size_t at = 0; (at = words.find('|', at)) != std::string::npos;)
                                words.replace(at, 1, ", ");
                              return bad("one of " + words);
                            }
                            config.*field = value;
                            return {};
                          }},
                    s.field);
}

std::string text_of(const Switch& s, const Config& config) {
  return std::visit(Match{[&](bool Config::*f) { return std::string(config.*f ? "on" : "off"); },
                          [&](int64_t Config::*f) { return std::to_string(config.*f); },
                          [&](std::string Config::*f) { return config.*f; }},
                    s.field);
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::mutex g_mutex;
std::shared_ptr<const Config> g_config;

}  // namespace

std::span<const Switch> switches() { return kTable; }

std::string environment_name(std::string_view switch_name) {
  std::string name = "TENSMITH_";
  for (char c : switch_name) name += c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

Result<Config> Config::from_environment() {
  Config config;
  for (const Switch& s : kTable) {
    const std::string name = environment_name(s.name);
    const char* value = std::getenv(name.c_str());
    if (!value) continue;
    if (Result<void> set = assign(s, "environment variable " + name, value, config); !set) return set.failure();
  }
  return config;
}

Result<bool> Config::set_flag(std::string_view flag) {
  if (!flag.starts_with("--")) return false;
  std::string_view name = flag.substr(2);
  const size_t equal = name.find('=');
  const bool has_value = equal != std::string_view::npos;
  std::string_view value = has_value ? name.substr(equal + 1) : std::string_view();
  name = name.substr(0, equal);
  const Switch* s = find_switch(name);
  bool negated = false;
  if (!s && name.starts_with("no-")) {
    s = find_switch(name.substr(3));
    negated = true;
  }
  if (!s || (negated && (has_value || s->field.index() != 0))) return false;
  const std::string where = "option --" + std::string(name);
  if (s->field.index() == 0 && !has_value) value = negated ? "off" : "on";
  if (s->field.index() != 0 && !has_value)
    return Failure{"bad-switch", where + ": expected --" + s->name + "=" + s->value + ", got no value"};
  if (Result<void> done = assign(*s, where, value, *this); !done) return done.failure();
  return true;
}

Result<void> Config::set(std::string_view name, std::string_view value) {
  if (const Switch* s = find_switch(name)) return assign(*s, "switch " + std::string(name), value, *this);
  std::vector<std::string> names;
  for (const Switch& s : kTable) names.push_back(s.name);
  const std::string near = nearest_word(name, names);
  return Failure{"unknown-switch", "unknown switch '" + std::string(name) + "'" +
                                       (near.empty() ? "; --help-debug lists all" : "; did you mean '" + near + "'?")};
}

std::string Config::get(std::string_view name) const {
  const Switch* s = find_switch(name);
  TS_CHECK(s != nullptr) << "no switch " << name;
  return text_of(*s, *this);
}

std::string help_debug() {
  std::string text =
      "Switches; each can also be set by its environment variable TENSMITH_NAME (dashes become underscores).\n";
  for (const Switch& s : kTable) {
    std::string left = std::string("  --") + s.name + (*s.value ? std::string("=") + s.value : "");
    left.resize(std::max<size_t>(left.size() + 2, 30), ' ');
    const std::string initial = text_of(s, Config{});
    text += left + s.doc + (initial.empty() ? "" : " [" + initial + "]") + "\n";
  }
  return text;
}

std::vector<std::string> unknown_environment_names() {
  std::vector<std::string> unknown;
  for (char** entry = environ; entry && *entry; ++entry) {
    std::string_view text = *entry;
    if (!text.starts_with("TENSMITH_")) continue;
    text = text.substr(0, text.find('='));
    if (std::none_of(std::begin(kTable), std::end(kTable),
                     [&](const Switch& s) { return environment_name(s.name) == text; }))
      unknown.emplace_back(text);
  }
  std::sort(unknown.begin(), unknown.end());
  return unknown;
}

std::shared_ptr<const Config> config() {
  std::lock_guard lock(g_mutex);
  if (!g_config) {
    // A bad variable is reported by whoever reads the environment first in main; here the defaults hold.
    Result<Config> read = Config::from_environment();
    g_config = std::make_shared<const Config>(read ? *read : Config{});
  }
  return g_config;
}

void set_config(Config config) {
  auto next = std::make_shared<const Config>(std::move(config));
  std::lock_guard lock(g_mutex);
  g_config = std::move(next);
}

std::string nearest_word(std::string_view word, std::span<const std::string> candidates) {
  std::string best;
  size_t limit = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates)
    if (size_t d = edit_distance(word, candidate); d < limit) {
      limit = d;
      best = candidate;
    }
  return best;
}

}  // namespace tensmith
