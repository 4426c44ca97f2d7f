/// How an update is combined with the element that it meets, shared by the scatter operators.
#pragma once

#include "graph/op_def.h"

namespace tensmith::graph::ops {

/// The attribute `reduction`: none, add, mul, max, min.
AttrSpec reduction_attr();
/// Errors: `unsupported-dtype` for a reduction that the element type does not have.
Result<void> check_reduction(const AttrMap& attrs, DType dtype);
/// The new element; arithmetic on 16-bit floats is done in float32.
Expr reduce_update(const AttrMap& attrs, const Expr& old, const Expr& update);
/// The same for element `at` of `to` and element `from` of `updates`.
void reduce_update(const AttrMap& attrs, RefTensor& to, int64_t at, const RefTensor& updates, int64_t from);

}  // namespace tensmith::graph::ops
