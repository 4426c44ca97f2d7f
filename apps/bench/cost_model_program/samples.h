/// Candidates with their times: measured here, or read from a file of an earlier run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/bench/cost_model_program/tasks.h"
#include "runtime/base/result.h"
#include "schedule/step.h"

namespace tensmith::bench {

struct TimedCandidate {
  std::string task;
  std::vector<Step> steps;
  double us =
      0;  ///< of a call: the task's default in its least window times the median ratio to it in pairs of windows
};

/// Draws about `count` different candidates of a task, half of them by cost and half of them by chance or as mutations
/// of the better ones, compiles each and times it in windows that alternate with the default's. `warn` gets what could
/// not be compiled.
std::vector<TimedCandidate> measure_candidates(const JudgedTask& task, int count, uint64_t seed,
                                               const std::function<void(const std::string&)>& warn);

/// One JSON line a candidate. Errors: cannot-write.
Result<void> save_candidates(const std::string& path, const std::vector<TimedCandidate>& candidates);
/// Errors: cannot-read, bad-json and those of a trace, with the line.
Result<std::vector<TimedCandidate>> load_candidates(const std::string& path);

}  // namespace tensmith::bench
