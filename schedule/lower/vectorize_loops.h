/// Turns vectorized loops into vector expressions.
#pragma once

#include "tensor/stmt.h"

namespace tensmith {

/// After it no kVectorized loop is left. An extent that is no power of two runs in the next larger number of lanes
/// under a mask; conditions on the lane become predicates of loads and stores; an accumulation into one element becomes
/// a reduction over the lanes. Stands before unrolling, so that a body is widened once and not once per copy. Errors:
/// ScheduleError `vectorize-extent`, `vectorize-race`, `vectorize-body`.
Stmt vectorize_loops(const Stmt& s);

}  // namespace tensmith
