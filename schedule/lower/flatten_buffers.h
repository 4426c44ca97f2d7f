/// Turns multi-dimensional accesses into flat ones.
#pragma once

#include "tensor/stmt.h"

namespace tensmith {

/// After it each load and store has one element index, row-major over the buffer's shape. Stands after everything that
/// reasons about single dimensions.
Stmt flatten_buffers(const Stmt& s);

}  // namespace tensmith
