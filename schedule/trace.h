/// A schedule's steps as a document: saved, loaded, replayed on a workload, compared, printed as C++.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schedule/schedule.h"

namespace tensmith {

/// The steps of a schedule with the text of the workload that they were made for.
struct Trace {
  std::string workload;     ///< to_text of the workload
  std::vector<Step> steps;  ///< in order, with all arguments

  friend bool operator==(const Trace&, const Trace&) = default;
};

Trace trace_of(const Schedule& schedule);

/// The trace as JSON: `{"schema": "tensmith.schedule/1", "workload": ..., "steps": [{"primitive": ..., "args": {...}},
/// ...]}`. Equal traces give equal bytes.
std::string trace_to_json(const Trace& trace);
/// Reads what `trace_to_json` wrote; the text may come from anywhere.
/// Errors: bad-json; trace-schema for another form or version; bad-trace, naming the step and what is wrong with it.
Result<Trace> trace_from_json(std::string_view text);

/// On which workloads a trace may be replayed.
enum class ReplayOn {
  kSameWorkload,  ///< only the one that it was made for
  kAnyWorkload,   ///< every one on which its steps are legal, e.g. the same operator in another size
};
/// A schedule of the workload with the trace's steps.
/// Errors: trace-workload (shows the first line that differs); the id of the step that is illegal, with its number, the
/// step and the reason.
Result<Schedule> replay(const Workload& workload, const Trace& trace, ReplayOn on = ReplayOn::kSameWorkload);

/// The schedule with another decision at one of its steps that decide at random (sample_tile and its like): drawn
/// among the legal ones, recorded in the step; all other steps as they are.
/// Errors: no-decision when no step decides; no-other-decision when none was found under which all steps are legal.
Result<Schedule> mutate(const Schedule& schedule, Rng& rng);

/// The difference of two traces, one step a line: ` ` in both, `-` only in `from`, `+` only in `to`; a first line says
/// when they belong to different workloads. Empty when they are equal.
std::string trace_diff(const Trace& from, const Trace& to);

/// A C++ function `void NAME(tensmith::Schedule& s)` that makes the steps; needs `schedule/schedule.h`.
std::string trace_to_cpp(const Trace& trace, const std::string& name);

}  // namespace tensmith
