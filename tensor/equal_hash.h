/// Structural equality and hash.
#pragma once

#include "tensor/stmt.h"

namespace tensmith {

/// Same structure; variables bound inside (loops, lets, allocations, parameters) match by position, free ones by
/// identity.
bool equal(const Expr& a, const Expr& b);
bool equal(const Stmt& a, const Stmt& b);
/// Parameters match by position; names do not count.
bool equal(const LoopFunction& a, const LoopFunction& b);
/// Equal structures have equal hashes (stable from run to run).
uint64_t structural_hash(const Expr& e);
uint64_t structural_hash(const Stmt& s);
uint64_t structural_hash(const LoopFunction& f);

}  // namespace tensmith
