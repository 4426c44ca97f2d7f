#include "graph/ops/injective.h"

#include "graph/cost.h"
#include "graph/ops/arith.h"

namespace tensmith::graph::ops {

bool is_empty(const Shape& shape) {
  for (const Expr& dim : shape)
    if (is_const_int(dim, 0)) return true;
  return false;
}

Tensor injective(const std::string& name, const TensorType& type, const std::function<Expr(const Indices&)>& body) {
  if (is_empty(type.shape)) return compute(name, type.shape, [&](const Indices&) { return make_zero(type.dtype); });
  return compute(name, type.shape, body);
}

Expr wrap_index(const Expr& raw, const Expr& extent) {
  return with_value("at", cast(kInt64, raw), [&](const Expr& at) {
    const Expr from_front = raw.dtype().is_uint() ? at : select(at < 0, at + extent, at);
    return max(min(from_front, extent - 1), 0);
  });
}

Expr unless_empty(const Expr& extent, const Expr& value) {
  if (known(extent)) return value;
  return select(extent > 0, value, make_zero(value.dtype()));
}

void reads_what_it_gives(const InferContext& ctx, OpWork& work) {
  const double given = count_elements(ctx.node.types[0], /*symbolic=*/1) * ctx.input(0).dtype.bytes();
  work.input_bytes[0] = std::min(work.input_bytes[0], given);
}

Result<int64_t> wrap_number(int64_t index, int64_t extent, const std::string& what) {
  if (index < -extent || index >= extent)
    return refuse("index-out-of-range") << what << ": expected an index from " << -extent << " to " << extent - 1
                                        << ", got " << index;
  return index < 0 ? index + extent : index;
}

RefTensor& make_output(ReferenceContext& ctx, DType dtype, Dims shape, int output) {
  if (static_cast<int>(ctx.outputs.size()) <= output) ctx.outputs.resize(static_cast<size_t>(output) + 1);
  ctx.outputs[output] = make_ref_tensor(dtype, std::move(shape));
  return ctx.outputs[output];
}

void copy_elements(ReferenceContext& ctx, Dims shape) {
  const RefTensor& x = ctx.input(0);
  RefTensor& y = make_output(ctx, x.dtype, std::move(shape));
  y.f = x.f;
  y.i = x.i;
}

void move_elements(RefTensor& to, const RefTensor& from, const std::function<int64_t(const Dims& index)>& source) {
  for_each_index(to.shape, [&](int64_t position, const Dims& index) {
    const int64_t at = source(index);
    if (at >= 0) copy_element(to, position, from, at);
  });
}

}  // namespace tensmith::graph::ops
