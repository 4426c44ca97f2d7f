#include "graph/ops/data_shape.h"
#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

Result<std::vector<TensorType>> infer_non_zero(const InferContext& ctx) {
  const auto known_types = types_by_reference(ctx);
  if (!known_types) return known_types.failure();
  if (*known_types) return **known_types;
  return std::vector<TensorType>{{kInt64, {Expr(ctx.input(0).rank()), ctx.data_dim(0, 1)}, {}}};
}

Result<void> reference_non_zero(ReferenceContext& ctx) {
  const RefTensor& x = ctx.input(0);
  std::vector<Dims> found;
  for_each_index(x.shape, [&](int64_t position, const Dims& index) {
    if (x.get(position) != 0) found.push_back(index);
  });
  const auto count = static_cast<int64_t>(found.size());
  RefTensor& y = make_output(ctx, kInt64, {static_cast<int64_t>(x.shape.size()), count});
  for (size_t axis = 0; axis < x.shape.size(); ++axis)
    for (int64_t k = 0; k < count; ++k) y.i[static_cast<int64_t>(axis) * count + k] = found[k][axis];
  return {};
}

}  // namespace

OpDef non_zero() {
  return OpDef{
      .name = "NonZero",
      .since = 9,
      .doc = "The indices of the elements that are not zero, one column each, in row-major order. Only for constants.",
      .inputs = {{.name = "X"}},
      .fusion = FusionKind::kOpaque,
      .infer = infer_non_zero,
      .supports = refuse_data_shape,
      .decompose = outputs_by_reference,
      .reference = reference_non_zero,
      .samples = {{.name = "data", .inputs = {given(kFloat32, {2, 3}, {0, 1, 2, 0, 0, -1})}}},
  };
}

}  // namespace tensmith::graph::ops
