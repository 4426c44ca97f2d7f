/// Carries out compute_inline.
#pragma once

#include "schedule/state.h"

namespace tensmith {

/// The state with the bodies of inlined stages put in place of each read of them (transitively). Inlined stages stay in
/// the list.
ScheduleState with_inlined_stages(ScheduleState state);

}  // namespace tensmith
