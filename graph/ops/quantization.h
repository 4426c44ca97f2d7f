/// Scales and zero points: how they spread over a tensor, and the step from accumulators to quantised values.
#pragma once

#include "graph/op_def.h"
#include "graph/ops/ref_loops.h"
#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

/// How a scale (or zero point) belongs to the elements of a tensor.
struct Granularity {
  enum class Kind { kTensor, kAxis, kBlocked } kind = Kind::kTensor;
  int axis = 0;
  int64_t block = 0;  ///< elements along the axis that share a scale
};
/// Errors: `shape-mismatch`, `axis-out-of-range`, `bad-attribute`, `dynamic-shape`.
Result<Granularity> resolve_granularity(const AttrMap& attrs, const TensorType& x, const TensorType& scale);
/// The index into the scale for index `i` of the tensor.
Indices scale_index(const Granularity& g, const Shape& scale, const Indices& i);
/// The same as flat offsets: calls `fn(element, offset into the scale)` for each element of a tensor of shape `x`.
void for_each_scaled(const Granularity& g, const Dims& x,
                     const std::function<void(int64_t element, int64_t scale)>& fn);

/// round(value) + zero point, saturated to `dtype`. `value` is float; `zero_point` null: 0.
Expr quantize(const Expr& value, const Expr& zero_point, DType dtype);
int64_t reference_quantize(double value, int64_t zero_point, DType dtype);

/// The only element of a tensor of one element.
Expr single(const Tensor& tensor);
/// Errors: `shape-mismatch` unless the type has one element.
Result<void> check_single(const TensorType& type, const char* name);
/// Errors: `unsupported-dtype` unless i8 or u8.
Result<void> check_8_bit(const TensorType& type, const char* name);

}  // namespace tensmith::graph::ops
