/// Loop nests for operators that are written as statements (StageKind::kImperative).
#pragma once

#include <functional>

#include "graph/ops/shapes.h"
#include "tensor/stmt.h"

namespace tensmith::graph::ops {

/// `for name in [0, extent)` around the statement that `body` gives for the loop variable.
Stmt loop(const char* name, const Expr& extent, const std::function<Stmt(const Expr&)>& body,
          ForKind kind = ForKind::kSerial);
/// A nest over `extents`, the innermost last. The outermost loop that turns more than once is of kind `outer`.
Stmt loop_nest(const Shape& extents, const std::function<Stmt(const Indices&)>& body, ForKind outer = ForKind::kSerial);
/// The same, a vector of iterations of the innermost loop at a time, so that no iteration may depend on another.
Stmt vector_nest(const Shape& extents, const std::function<Stmt(const Indices&)>& body,
                 ForKind outer = ForKind::kSerial);
/// Sets every element of `to` to `value(index)` in parallel.
Stmt fill(const Buffer& to, const std::function<Expr(const Indices&)>& value);
/// The statement where `extent` is above 0, for accesses to an axis that may be empty at run time.
Stmt unless_empty(const Expr& extent, Stmt body);
/// A buffer with one element, for a scalar that changes.
Buffer local_scalar(const char* name, DType dtype);
inline Expr get(const Buffer& scalar) { return load(scalar, {Expr(0)}); }
Stmt set(const Buffer& scalar, const Expr& value);
/// `body` with all these buffers existing.
Stmt with_buffers(const std::vector<Buffer>& buffers, Stmt body);

}  // namespace tensmith::graph::ops
