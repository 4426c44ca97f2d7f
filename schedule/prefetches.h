/// Whether what the loops of a schedule ask the processor for ahead of time can be asked for.
#pragma once

#include "schedule/state.h"

namespace tensmith {

/// Checks one request of a loop: the producer is read by what the loop computes and lies in memory while the loop runs;
/// of prefetch_next, that the loop sweeps over it in steps of a known size, and that the shares are spread over a loop
/// around the stage.
/// Errors: prefetch-not-read, prefetch-no-memory, prefetch-no-sweep, spread-loop.
Result<void> check_prefetch(const ScheduleState& state, const StageState& stage, int loop, const Prefetch& prefetch);
/// The same for all requests of all loops: steps behind a prefetch may have moved stages or changed layouts.
Result<void> check_prefetches(const ScheduleState& state);
/// Whether any loop asks for something.
bool has_prefetches(const ScheduleState& state);

/// The name under which a request is noted: `prefetch:B`, `prefetch_next:B`.
std::string prefetch_key(const Prefetch& prefetch);

}  // namespace tensmith
