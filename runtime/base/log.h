/// Log lines to stderr, off unless the level or a rule for the file switches them on.
#pragma once

#include <sstream>
#include <string>
#include <string_view>

namespace tensmith {

/// What a line is for: warnings reach the user, `kInfo` tells the stages, `kDebug` decisions, `kTrace` every step.
enum class LogLevel { kError, kWarning, kInfo, kDebug, kTrace };

/// Sets levels from text: `info`, or `warning,lower/vectorize=trace` (rules match a part of the source file's path).
/// Returns the part that is wrong, or "".
std::string set_log_rules(std::string_view text);
/// Chooses JSON lines instead of text.
void set_log_json(bool on);
/// True if a line of that level in that source file would be written. Cost: one atomic load when there are no rules.
bool log_enabled(LogLevel level, const char* file);
/// Writes one line in one write, so that threads do not mix.
void write_log(LogLevel level, const char* file, int line, const std::string& text);

namespace detail {

/// Collects one line and writes it when destroyed.
class LogLine {
 public:
  LogLine(LogLevel level, const char* file, int line) : level_(level), file_(file), line_(line) {}
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;
  ~LogLine() { write_log(level_, file_, line_, stream_.str()); }
  template <typename T>
  LogLine& operator<<(const T& value) {
    stream_ << value;
    return *this;
  }

 private:
  LogLevel level_;
  const char* file_;
  int line_;
  std::ostringstream stream_;
};

}  // namespace detail
}  // namespace tensmith

/// `TS_LOG(kInfo) << "took " << ms << " ms";` builds the text only if it is written.
#define TS_LOG(level)                                                    \
  if (!::tensmith::log_enabled(::tensmith::LogLevel::level, __FILE__)) { \
  } else ::tensmith::detail::LogLine(::tensmith::LogLevel::level, __FILE__, __LINE__)
