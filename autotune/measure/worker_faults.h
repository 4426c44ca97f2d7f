/// What a worker does when the code that it runs goes astray: it names the fault in its answer and ends.
#pragma once

#include <cstdint>
#include <string>

#include "autotune/measure/result.h"

namespace tensmith {

/// Exit codes of a worker that gave up; a fault's answer has been written before.
inline constexpr int kWorkerTimeoutExit = 76, kWorkerMemoryExit = 77, kWorkerFaultExit = 78;

/// Installs handlers for SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT and SIGTRAP and for failing allocations, and starts
/// the watchdog. A handler writes the answer of the request at hand to `out`, then the process dies of the signal.
/// Called once, before any request.
void install_worker_faults(int out);

/// The request that is being worked on, for the answers of handlers. `failure` is what a signal means here: kCrashed or
/// kBuildCrashed; a time-out means kRunTimeout or kBuildTimeout accordingly.
void begin_request(int64_t id, MeasureFailure failure);
/// Ends the request; true when the answer is still to be written (a handler may have been faster).
bool end_request();

/// Limits the request at hand. Units: seconds of processor time of all threads; of wall time, three times as much.
void arm_watchdog(double seconds, int threads);
void disarm_watchdog();

/// Limits this process's memory to what it has now and so much more. Units: MiB.
void limit_memory(int64_t mib);

/// A range of addresses that nobody may touch (or write to); a fault there is an access out of bounds rather than a
/// crash. `what` is copied. Threads: not while a kernel runs.
void add_guard_zone(const void* begin, int64_t bytes, const std::string& what);
void remove_guard_zone(const void* begin);

}  // namespace tensmith
