/// The one table of switches for seeing inside: each is a flag `--name=value` and an environment variable
/// TENSMITH_NAME.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/result.h"

namespace tensmith {

/// The values of all switches. A plain value: copy it, change it, pass it on; `config()` is the process's own.
/// To add a switch, add a field here and a row to the table in config.cpp.
struct Config {
  // What is shown.
  std::string log = "warning";  ///< Level and rules, see log.h.
  bool log_json = false;        ///< Log as JSON lines.
  std::string print_ir;         ///< Loop IR: "after-change", "after-each", "after:PASS", "before:PASS".
  std::string print_graph;      ///< Graph, same values.
  std::string print_schedule;   ///< Schedules: "steps", "cpp", "json", "loops".
  std::string explain;          ///< Decisions: "fusion", "schedule", "layout", "memory", separated by commas.
  std::string dump;             ///< Folder for numbered files of every stage.
  std::string filter;           ///< Only kernels whose name contains this text are printed and dumped.
  bool time_passes = false;     ///< Table of the time of each pass.
  std::string profile;          ///< File for a Chrome trace of compilation and run.
  // What is done.
  std::string stop_after;            ///< Name of the pass after which compilation ends; what stands is printed.
  int64_t pass_limit = -1;           ///< Number of optional passes that run; -1 = all. For bisecting.
  std::string disable_pass;          ///< Optional passes to leave out, separated by commas.
  bool verify_each = false;          ///< Verify the IR after each pass.
  bool check = false;                ///< Compare each kernel with the reference interpreter on the data of the run.
  std::string repro;                 ///< Folder for a reproducer of an internal error or a wrong result.
  int64_t seed = 0;                  ///< Seed of everything random.
  bool contract = true;              ///< Allow a*b+c to become one fused multiply-add.
  bool winograd = true;              ///< Convolutions may be computed by transformed tiles.
  std::string layouts = "auto";      ///< Of spatial operators: "auto", "channels-last", "blocked".
  int64_t constant_limit_mib = 64;   ///< Largest tensor that constant folding may make.
  int64_t memory_limit_mib = 65536;  ///< Largest arena and largest model that are accepted.
  // How it runs.
  int64_t threads = 0;          ///< Threads for running; 0 = usable cores.
  int64_t compile_threads = 0;  ///< Threads for compiling; 0 = usable cores.
  int64_t spin_us = 1000;       ///< How long an idle worker spins before it sleeps.
  bool huge_pages = true;       ///< Ask for huge pages for arenas and weights.
  bool perf_map = false;        ///< Name loaded kernels in /tmp/perf-PID.map, where perf looks for them.

  /// The environment's values on top of the defaults.
  /// Errors: bad-switch, with the variable's name.
  static Result<Config> from_environment();
  /// Takes `--name=value`, `--name` or `--no-name` (booleans). False if no switch has that name.
  /// Errors: bad-switch for a value that does not fit.
  Result<bool> set_flag(std::string_view flag);
  /// Sets one switch by name (with dashes).
  /// Errors: unknown-switch (suggests the nearest name), bad-switch.
  Result<void> set(std::string_view name, std::string_view value);
  /// The value as text that `set` accepts.
  std::string get(std::string_view name) const;
};

/// One row of the table.
struct Switch {
  const char* name;     ///< With dashes: `time-passes`.
  const char* value;    ///< What stands for the value in the help text: "DIR", "N", "" for booleans.
  const char* choices;  ///< Allowed words separated by '|' (a trailing ':' takes an argument); "" = any.
  const char* doc;      ///< One sentence, lower case, no final period.
  std::variant<bool Config::*, int64_t Config::*, std::string Config::*> field;
  bool is_list = false;  ///< the value is any number of the choices, separated by commas
};

/// All switches in the order of the help text.
std::span<const Switch> switches();
/// The text of `--help-debug`: name, value, default, environment variable, doc.
std::string help_debug();
/// TENSMITH_TIME_PASSES for `time-passes`.
std::string environment_name(std::string_view switch_name);
/// Variables that begin with TENSMITH_ and belong to no switch: probably misspelt.
std::vector<std::string> unknown_environment_names();

/// The process's configuration; the pointer keeps that snapshot alive. Threads: any.
std::shared_ptr<const Config> config();
/// Replaces it. Who already holds a snapshot keeps the old one.
void set_config(Config config);

/// The candidate nearest to a misspelt word, or "" if none is near.
std::string nearest_word(std::string_view word, std::span<const std::string> candidates);

}  // namespace tensmith
