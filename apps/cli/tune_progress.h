/// What a tuning run shows while it goes on and when it is over.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "autotune/search/tuner.h"

namespace tensmith::cli {

/// How progress is shown.
enum class ProgressStyle : uint8_t {
  kBar,    ///< one line of a terminal that changes
  kPlain,  ///< a line when something was gained, and every ten seconds
  kJsonl,  ///< an object a trial on standard output
  kNone,
};
/// `auto` is a bar on terminals and plain elsewhere. Errors: bad-progress.
Result<ProgressStyle> parse_progress_style(const std::string& text);

/// Listens to a run and shows it on standard error.
class TuneProgress {
 public:
  TuneProgress(ProgressStyle style, const std::vector<TuningTask>& tasks, const TunerOptions& options);
  void operator()(const TunerProgress& now);
  /// What goes on behind the trials. The same phase again is a line of a log no more than every ten seconds; a phase is
  /// the text up to a colon.
  void say(const std::string& what);
  /// Ends a line that changes.
  void finish();

  /// Failures by kind.
  const std::map<std::string, int64_t>& failures() const { return failures_; }

 private:
  std::string line(const TunerProgress& now) const;

  const ProgressStyle style_;
  const std::vector<TuningTask>& tasks_;
  const TunerOptions& options_;
  std::map<std::string, int64_t> failures_;
  /// Shows a line that a terminal's bar replaces.
  void show(std::string text);

  double shown_s_ = -1e9, shown_model_us_ = 0;
  std::string phase_;
  std::chrono::steady_clock::time_point said_;
  size_t width_ = 0;
};

/// A table of the tasks and what was found, with the sums.
std::string tuning_table(const std::vector<TuningTask>& tasks, const TuningReport& report);

}  // namespace tensmith::cli
