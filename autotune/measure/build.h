/// From the steps of a candidate to machine code and the guard's opinion of it.
#pragma once

#include <string>
#include <vector>

#include "autotune/measure/limits.h"
#include "autotune/measure/result.h"
#include "autotune/measure/task.h"

namespace tensmith {

/// The symbol of every kernel that `build_candidate` makes.
inline constexpr const char* kMeasuredFunction = "measured_kernel";

struct BuildOutcome {
  MeasureFailure failure = MeasureFailure::kNone;
  std::string message;
  BuiltKernel kernel;
  BuildReport report;
};

/// Replays, lowers, generates code and looks at the assembly. Never throws for what a candidate does; failures are
/// kIllegalSchedule, kBuildFailed, kCodeTooLarge, kGuardRejected (only with `guard`).
BuildOutcome build_candidate(const MeasureTask& task, const std::vector<Step>& steps, const MeasureLimits& limits,
                             const GuardOptions* guard);

/// What a guard says of a kernel's hot loop: all findings; `refused` gets the one that breaks the options, or stays
/// empty.
std::vector<std::string> guard_findings(const std::string& assembly, const GuardOptions& options, std::string* refused);

}  // namespace tensmith
