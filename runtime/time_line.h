/// A time line of spans that chrome://tracing and Perfetto open.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/timer.h"

namespace tensmith {

/// Collects spans. Threads: any number may add at a time.
class TimeLine {
 public:
  struct Span {
    std::string name;
    std::string category;  ///< "pass", "kernel", "run", ...
    int64_t start_ns = 0;
    int64_t duration_ns = 0;
    int thread = 0;                                       ///< See this_thread_number.
    std::vector<std::pair<std::string, double>> figures;  ///< Such as {"GFLOP/s", 88.1}; shown with the span.
  };

  void add(Span span);
  std::vector<Span> spans() const;
  /// Trace Event Format, spans in order of time; `from` describes machine and model.
  Json chrome_json(const Provenance& from) const;

 private:
  mutable std::mutex mutex_;
  std::vector<Span> spans_;
};

/// The process's own time line, which the switch `profile` asks for; null without it.
TimeLine* process_time_line();
/// Numbers threads in the order in which they ask.
int this_thread_number();

/// Adds a span from construction to destruction; a null time line costs nothing.
class ScopedSpan {
 public:
  ScopedSpan(TimeLine* line, std::string name, std::string category)
      : line_(line), name_(std::move(name)), category_(std::move(category)) {}
  ScopedSpan(const ScopedSpan&) = delete;
  ScopedSpan& operator=(const ScopedSpan&) = delete;
  ~ScopedSpan();

 private:
  TimeLine* line_;
  std::string name_;
  std::string category_;
  int64_t start_ = now_ns();
};

}  // namespace tensmith
