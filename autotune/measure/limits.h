/// Limits and options of measuring, as client and worker exchange them.
#pragma once

#include <cstdint>

#include "runtime/base/json.h"

namespace tensmith {

/// Hard limits; what exceeds one is a failure with a name, and its worker is replaced where needed.
struct MeasureLimits {
  double build_s = 10;              ///< of one build
  double run_s = 10;                ///< of loading, checking and timing one candidate
  double reference_s = 120;         ///< of making a task's reference
  int64_t build_mib = 2048;         ///< memory that a builder may have beyond what it starts with
  int64_t run_mib = 4096;           ///< the same for a runner
  int64_t code_bytes = 2 << 20;     ///< of one object
  int64_t answer_bytes = 64 << 20;  ///< of one line
  int64_t builds_of_worker = 2000;  ///< builds after which a builder is replaced, whatever it leaked; 0: never
  int max_unroll = 4096;            ///< as in LowerOptions
};

/// How a candidate is timed.
struct TimingOptions {
  double window_ms = 0.2;    ///< a window holds as many calls as fill it, at least one
  int min_windows = 5;       ///< before anything is decided
  int max_windows = 40;      ///< even if nothing is decided
  double max_ms = 200;       ///< time for all windows of a candidate, once there are min_windows
  double drop_ratio = 3;     ///< slower than that many times the incumbent: given up at once
  double separation = 0.01;  ///< ends when the interval of the ratio leaves 1, or is narrower than this on each side
  double slow_yardstick = 1.25;  ///< windows beside a yardstick that much slower than its best do not count
};

/// What the assembly guard refuses: only loops that are dense products without doubt, and only what no such loop needs.
/// Small buffers of a schedule lie on the stack too, so a reference is not a spill by itself; an accumulator that is
/// spilled costs two for each FMA.
struct GuardOptions {
  int min_fmas = 16;              ///< FMAs of a hot loop that is judged
  double max_stack_share = 1.5;   ///< stack references to FMAs
  double max_scalar_share = 0.5;  ///< scalar FMAs to all FMAs
  bool allow_calls = false;
};

Json to_json(const TimingOptions& options);
Json to_json(const GuardOptions& options);
/// Missing fields keep their defaults.
TimingOptions timing_options_from_json(const Json& json);
GuardOptions guard_options_from_json(const Json& json);

}  // namespace tensmith
