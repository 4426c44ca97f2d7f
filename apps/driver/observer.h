/// What the switches of `--help-debug` show, write and time while a model is compiled.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "apps/driver/program.h"
#include "graph/partition/layouts.h"
#include "runtime/base/config.h"

namespace tensmith {

/// Leaves compile_graph when the switch `stop-after` ends the compilation: no error. Not an Error on purpose, so that
/// nobody takes it for one.
class CompilationStopped : public std::exception {
 public:
  explicit CompilationStopped(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return "compilation ended as --stop-after asks"; }
  /// What stands after the pass.
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Where a compilation may end.
enum class StopAt : uint8_t { kNowhere, kGraph, kLayouts, kPlacement, kFuse, kSchedule, kLower, kCode };

/// Serves one compilation. Texts go to stderr, files into the folder of `dump`. Threads: kernels may be compiled by
/// several at a time.
class CompileObserver {
 public:
  /// Errors: UserError `unknown-pass` for a name in `stop-after` or `print-ir` that is no pass; `cannot-write`.
  explicit CompileObserver(const Config& config);

  StopAt stop_at() const { return stop_at_; }
  /// Whether kernels of this name are shown and dumped.
  bool shows(const std::string& kernel) const;
  bool wants_code_text(const std::string& kernel) const { return !config_.dump.empty() && shows(kernel); }

  /// Options of lowering with hooks that print, dump and time; call `lowered` behind it.
  LowerOptions lower_options(const std::string& kernel, const LowerOptions& given);
  void lowered(const std::string& kernel);
  void scheduled(const CompiledKernel& kernel);
  void coded(const CompiledKernel& kernel, const ObjectCode& object);
  /// Hears the reasons of graph passes, or null when nobody wants to know them; `chosen` ends them.
  std::function<void(const std::string&)> listener();
  void chosen();
  /// Which ways the passes went where there was more than one.
  void decided(const std::string& list);
  void laid_out(const graph::Graph& graph, const graph::LayoutMap& layouts);
  void placed(const std::string& explanation);
  void fused(const std::string& explanation);
  /// The plan of the memory, the loop IR and code of `main`.
  void finished(const CompiledProgram& program, const ObjectCode& main);

  /// Adds to the table of `time-passes`.
  void time(const std::string& pass, double milliseconds);
  /// Prints that table, the passes of the graph first.
  void print_times(const std::vector<graph::PassRecord>& records);

  /// Ends the compilation when it shall stop here.
  void stop_if(StopAt here, const std::string& text) const {
    if (stop_at_ == here) throw CompilationStopped(text);
  }
  /// The text that stands for one kernel when the compilation ends with kernels; "" for those that are filtered out.
  std::string standing(const CompiledKernel& kernel) const;

 private:
  struct Lowering;  // of one kernel
  void print(const std::string& text);
  void write(const std::string& file, std::string_view text);

  const Config config_;
  StopAt stop_at_ = StopAt::kNowhere;
  int stop_lowering_ = -1;  ///< number of the last pass of lowering that runs
  std::string algorithms_;  ///< reasons of graph passes, a line each
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Lowering>> lowering_;
  struct Time {
    double ms = 0;
    int count = 0;
  };
  std::vector<std::string> order_;
  std::map<std::string, Time> times_;
};

}  // namespace tensmith
