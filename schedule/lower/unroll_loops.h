/// Turns unrolled loops into copies of their body.
#pragma once

#include "tensor/stmt.h"

namespace tensmith {

/// After it no kUnrolled loop is left; one whose extent is no constant becomes serial. A serial loop with the attribute
/// `unroll` whose extent it divides gets that many copies. Stands after vectorizing and before partitioning, which
/// looks at conditions on single loop variables. Errors: ScheduleError `unroll-limit` beyond `max_statements` copies in
/// one function.
Stmt unroll_loops(const Stmt& s, int max_statements);

}  // namespace tensmith
