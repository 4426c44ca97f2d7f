/// Checks that must hold for every well-formed program between any two passes.
#pragma once

#include "runtime/base/result.h"
#include "tensor/stmt.h"

namespace tensmith {

/// What to check beyond types, scopes and definitions before use.
struct VerifyOptions {
  bool bounds = true;  ///< every load and store in bounds by interval analysis (an access that cannot be proven is refused)
  bool races = true;   ///< no two iterations of a parallel loop write, or read and write, one element
};
/// Errors: a Failure with an id such as `verify-type`, `verify-scope`, `verify-bounds`, `verify-race`, naming the statement.
Result<void> verify(const LoopFunction& f, const VerifyOptions& options = {});

}  // namespace tensmith
