/// Memory of a parallel loop's iterations that is too large for a thread's stack.
#pragma once

#include "tensor/stmt.h"

namespace tensmith {

/// Workspaces allocated inside a parallel loop of constant extent are allocated outside it, with a part for each
/// iteration; one inside a loop of another extent stays where it is (lowering refuses it).
/// Rewrite: parallel p in n { alloc W: [m] ... W[i] ... } --> alloc W: [n, m] parallel p in n { ... W[p, i] ... }
Stmt private_workspaces(const Stmt& s);

}  // namespace tensmith
