#include "graph/ops/quantization.h"

#include <cmath>

#include "graph/ops/arith.h"

namespace tensmith::graph::ops {

Result<Granularity> resolve_granularity(const AttrMap& attrs, const TensorType& x, const TensorType& scale) {
  Granularity g;
  const int64_t block = attrs.get_int("block_size", 0);
  const bool one = scale.rank() == 0 || (scale.rank() == 1 && is_const_int(scale.shape[0], 1));
  if (one && block == 0) return g;
  const Result<int> axis = normalize_axis(attrs.get_int("axis", 1), x.rank());
  if (!axis) return axis.failure();
  g.axis = *axis;
  const auto d = static_cast<size_t>(g.axis);
  if (scale.rank() == 1 && block == 0) {
    g.kind = Granularity::Kind::kAxis;
    if (Result<void> ok = check_shape(scale, {x.shape[d]}, "the scale"); !ok) return ok.failure();
    return g;
  }
  if (block <= 0)
    return refuse("bad-attribute") << "attribute block_size: expected 1 or more for a scale of shape "
                                   << shape_text(scale.shape) << ", got " << block;
  g.kind = Granularity::Kind::kBlocked;
  g.block = block;
  Shape expected = x.shape;
  expected[d] = ceil_div(x.shape[d], Expr(block));
  if (Result<void> ok = check_shape(scale, expected, "the scale"); !ok) return ok.failure();
  return g;
}

Indices scale_index(const Granularity& g, const Shape& scale, const Indices& i) {
  const auto d = static_cast<size_t>(g.axis);
  if (g.kind == Granularity::Kind::kTensor) return Indices(scale.size(), Expr(0));
  if (g.kind == Granularity::Kind::kAxis) return {i[d]};
  Indices index = i;
  index[d] = floor_div(i[d], Expr(g.block));
  return index;
}

void for_each_scaled(const Granularity& g, const Dims& x, const std::function<void(int64_t, int64_t)>& fn) {
  if (g.kind == Granularity::Kind::kTensor) {
    for (int64_t k = 0, count = count_of(x); k < count; ++k) fn(k, 0);
    return;
  }
  const AxisView view(x, static_cast<size_t>(g.axis));
  const int64_t blocks = g.block ? (view.axis + g.block - 1) / g.block : 0;
  int64_t element = 0;
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t a = 0; a < view.axis; ++a)
      for (int64_t n = 0; n < view.inner; ++n) fn(element++, g.block ? (o * blocks + a / g.block) * view.inner + n : a);
}

Expr quantize(const Expr& value, const Expr& zero_point, DType dtype) {
  Expr rounded = call(Intrinsic::kRoundEven, {value});
  if (zero_point.get()) rounded = rounded + cast(value.dtype(), zero_point);
  return cast(dtype,
              max(min(rounded, constant_like(value, highest_of(dtype))), constant_like(value, lowest_of(dtype))));
}

int64_t reference_quantize(double value, int64_t zero_point, DType dtype) {
  if (std::isnan(value)) return 0;
  const double shifted = std::nearbyint(value) + static_cast<double>(zero_point);
  return static_cast<int64_t>(std::min(std::max(shifted, lowest_of(dtype)), highest_of(dtype)));
}

Expr single(const Tensor& tensor) { return tensor(Indices(static_cast<size_t>(tensor.rank()), Expr(0))); }

Result<void> check_single(const TensorType& type, const char* name) {
  for (const Expr& dim : type.shape)
    if (!is_const_int(dim, 1))
      return refuse("shape-mismatch") << name << ": expected one element, got shape " << shape_text(type.shape);
  return {};
}

Result<void> check_8_bit(const TensorType& type, const char* name) {
  if (type.dtype == kInt8 || type.dtype == kUInt8) return {};
  return refuse("unsupported-dtype") << name << ": expected i8 or u8, got " << to_string(type.dtype);
}

}  // namespace tensmith::graph::ops
