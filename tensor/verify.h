/// Checks that must hold for every well-formed program between any two passes.
#pragma once

#include "runtime/base/result.h"
#include "tensor/simplify.h"

namespace tensmith {

/// What to check beyond types, scopes and definitions before use.
struct VerifyOptions {
  bool bounds =
      true;  ///< every load and store in bounds by interval analysis (an access that cannot be proven is refused)
  bool races = true;  ///< no two iterations of a parallel loop write, or read and write, one element
  Facts facts;        ///< what is known of the scalars beyond that no buffer has a negative extent
};

/// Errors: a Failure that names the function and the statement:
/// - `verify-type`: operands, indices, predicates or values of the wrong type or number;
/// - `verify-scope`: a variable or buffer that is not defined, or defined twice, or a store to what may not be written;
/// - `verify-bounds`: an access that cannot be shown to be in bounds. The branch of a select counts under its
/// condition, a masked
///   lane not at all; an index that was loaded must be clamped or guarded. Prefetches may point anywhere;
/// - `verify-race`: iterations of a parallel loop that cannot be shown to touch different elements. Memory that a
/// called function
///   is handed by address is not followed.
/// Functions with the attribute `declaration` have no body and pass.
Result<void> verify(const LoopFunction& f, const VerifyOptions& options = {});

}  // namespace tensmith
