#include "runtime/time_line.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>

#include "runtime/base/config.h"

namespace tensmith {

void TimeLine::add(Span span) {
  std::lock_guard lock(mutex_);
  spans_.push_back(std::move(span));
}

std::vector<TimeLine::Span> TimeLine::spans() const {
  std::lock_guard lock(mutex_);
  return spans_;
}

Json TimeLine::chrome_json(const Provenance& from) const {
  std::vector<Span> list = spans();
  // Longer spans first among those that begin together, so that viewers nest them.
  std::stable_sort(list.begin(), list.end(), [](const Span& a, const Span& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.duration_ns > b.duration_ns;
  });
  const int64_t origin = list.empty() ? 0 : list.front().start_ns;
  Json events = Json::array();
  for (const Span& s : list) {
    Json event{{"name", s.name},
               {"cat", s.category},
               {"ph", "X"},
               {"ts", static_cast<double>(s.start_ns - origin) * 1e-3},
               {"dur", static_cast<double>(s.duration_ns) * 1e-3},
               {"pid", static_cast<int>(::getpid())},
               {"tid", s.thread}};
    if (!s.figures.empty()) {
      event["args"] = Json::object();
      for (const auto& [name, value] : s.figures) event["args"][name] = value;
    }
    events.push_back(std::move(event));
  }
  return Json{{"displayTimeUnit", "ms"}, {"otherData", json_header(from)}, {"traceEvents", std::move(events)}};
}

ScopedSpan::~ScopedSpan() {
  if (line_) line_->add({std::move(name_), std::move(category_), start_, now_ns() - start_, this_thread_number(), {}});
}

TimeLine* process_time_line() {
  static TimeLine line;
  return config()->profile.empty() ? nullptr : &line;
}

int this_thread_number() {
  static std::atomic<int> next{0};
  thread_local const int number = next++;
  return number;
}

}  // namespace tensmith
