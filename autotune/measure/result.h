/// What measuring a candidate gives: how it was built, its times, or a failure with a named kind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"

namespace tensmith {

/// Why a candidate has no valid time.
enum class MeasureFailure : uint8_t {
  kNone,
  kIllegalSchedule,  ///< a step is illegal, or lowering refused the schedule
  kBuildFailed,      ///< code generation or loading refused it
  kBuildTimeout,
  kBuildCrashed,  ///< the builder died of a signal; MeasureResult::signal
  kCodeTooLarge,
  kGuardRejected,  ///< the assembly guard refused the code, which did not run
  kCrashed,        ///< the kernel died of a signal; MeasureResult::signal
  kRunTimeout,
  kOutOfMemory,
  kKernelError,       ///< the kernel returned a code other than 0
  kOutOfBoundsWrite,  ///< a write outside its buffers, or into an input
  kOutOfBoundsRead,
  kWrongResult,
  kTaskFailed,  ///< the task's own reference could not be made; nothing of the task can be measured
  kWorkerLost,  ///< a worker was killed from outside or its connection broke, again after a retry
  kBadAnswer,   ///< the worker's answer could not be read
  kCancelled,
};
/// `illegal-schedule`, `build-failed`, ...; `valid` for kNone. The names stand in records.
const char* to_string(MeasureFailure failure);
/// Errors: bad-measure-failure.
Result<MeasureFailure> parse_measure_failure(std::string_view text);

/// How a candidate became code.
struct BuildReport {
  double replay_ms = 0, lower_ms = 0, codegen_ms = 0, guard_ms = 0;
  int64_t code_bytes = 0;
  std::string code_sha256;
  std::vector<std::string> guard_findings;  ///< what the guard says of the hot loop; may be accepted all the same
};

/// Times of a candidate. Windows of the candidate, the incumbent and the yardstick take turns in one process.
struct TimingReport {
  std::vector<double> windows_us;    ///< time of a call in each window that counts
  std::vector<double> incumbent_us;  ///< of the incumbent, in the window beside; empty without an incumbent
  std::vector<double> yardstick_us;  ///< of the yardstick's fixed work, in the window beside
  int64_t calls = 0;                 ///< calls in a window
  int64_t discarded = 0;             ///< windows that do not count, because the yardstick beside them was slow
  double min_us = 0, median_us = 0;
  double spread = 0;       ///< half of the distance between the quartiles, as a part of the median
  double peak_gflops = 0;  ///< the yardstick's best in this worker; 0: unknown
  double peak_cache_gbs = 0, peak_memory_gbs = 0;  ///< read from L2 and from behind it
  double yardstick_ratio = 0;  ///< the yardstick's median here to its best in this worker; 1: an undisturbed machine
  bool disturbed = false;      ///< the yardstick was slow too often: take the time with care
  bool dropped = false;        ///< given up early: far slower than the incumbent
  double ratio = 0;            ///< the candidate's time to the incumbent's, median over pairs; 0 without an incumbent
  double ratio_low = 0, ratio_high = 0;  ///< 95 % interval of it
};

/// The answer for one candidate.
struct MeasureResult {
  int64_t id = -1;  ///< as `submit` gave it
  int task = -1;
  MeasureFailure failure = MeasureFailure::kNone;
  int signal = 0;       ///< kCrashed, kBuildCrashed
  std::string message;  ///< of a failure: what happened, in one line
  BuildReport build;
  TimingReport timing;
  int64_t incumbent = -1;     ///< the candidate that `timing.ratio` refers to
  int64_t same_code_as = -1;  ///< an earlier candidate with the same bytes of code, whose result this is
  /// Time of a call on the task's common scale: the ratio to the incumbent times its cost, so that a change of the
  /// machine's clock between two candidates does not change their order. Units: microseconds.
  double cost_us = 0;
  double build_wall_ms = 0, run_wall_ms = 0;  ///< seen from the session
  int attempts = 1;                           ///< more than 1: a worker was lost on the way

  bool valid() const { return failure == MeasureFailure::kNone; }
};
/// All fields; for records and logs.
Json to_json(const MeasureResult& result);
Json to_json(const BuildReport& report);
Json to_json(const TimingReport& report);
/// Reads what `to_json` wrote; fields that are missing keep their defaults.
BuildReport build_report_from_json(const Json& json);
TimingReport timing_report_from_json(const Json& json);

}  // namespace tensmith
