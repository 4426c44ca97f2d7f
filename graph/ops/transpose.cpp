#include <algorithm>

#include "graph/constant_math.h"
#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

/// Output axis k is input axis permutation[k]. Errors: `bad-attribute` when perm is no permutation of the axes.
Result<std::vector<int>> permutation(const AttrMap& attrs, int rank) {
  std::vector<int> perm;
  if (!attrs.has("perm")) {
    for (int axis = rank; axis-- > 0;) perm.push_back(axis);
    return perm;
  }
  const std::vector<int64_t> given = attrs.get_ints("perm");
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (int64_t axis : given) {
    if (axis < 0 || axis >= rank || seen[static_cast<size_t>(axis)])
      return refuse("bad-attribute") << "attribute perm: expected each of 0 to " << rank - 1 << " once, got " << axis;
    seen[static_cast<size_t>(axis)] = true;
    perm.push_back(static_cast<int>(axis));
  }
  if (static_cast<int>(perm.size()) != rank)
    return refuse("bad-attribute") << "attribute perm: expected " << rank << " axes, got " << perm.size();
  return perm;
}

Result<std::vector<TensorType>> infer_transpose(const InferContext& ctx) {
  const TensorType& data = ctx.input(0);
  const Result<std::vector<int>> perm = permutation(ctx.node.attrs, data.rank());
  if (!perm) return perm.failure();
  TensorType type{data.dtype, {}, {}};
  for (int axis : *perm) type.shape.push_back(data.shape[axis]);
  if (follows_elements(type)) {
    const Dims to = type.static_shape(), from = data.static_shape();
    pass_elements(ctx, 0, type, [&](int64_t flat) {
      Dims index(from.size());
      for (size_t k = to.size(); k-- > 0; flat /= to[k]) index[(*perm)[k]] = flat % to[k];
      return flat_index(from, index);
    });
  }
  return std::vector<TensorType>{std::move(type)};
}

std::vector<Tensor> compute_transpose(const ComputeContext& ctx) {
  const Tensor& x = ctx.input(0);
  const std::vector<int> perm = permutation(ctx.node.attrs, x.rank()).value();
  return {injective("transpose", ctx.output_type(), [&](const Indices& i) {
    Indices index(i.size());
    for (size_t k = 0; k < i.size(); ++k) index[perm[k]] = i[k];
    return x(index);
  })};
}

Result<void> reference_transpose(ReferenceContext& ctx) {
  const RefTensor& x = ctx.input(0);
  const size_t rank = x.shape.size();
  Dims perm = ctx.node.attrs.get_ints("perm");
  if (!ctx.node.attrs.has("perm"))
    for (size_t k = 0; k < rank; ++k) perm.push_back(static_cast<int64_t>(rank - 1 - k));
  Dims shape, strides(rank);
  for (int64_t axis : perm) shape.push_back(x.shape[axis]);
  for (size_t k = 0; k < rank; ++k) strides[k] = count_of(x.shape, static_cast<size_t>(perm[k]) + 1);
  RefTensor& y = make_output(ctx, x.dtype, shape);
  for_each_strided<1>(shape, {strides},
                      [&](int64_t k, const std::array<int64_t, 1>& at) { copy_element(y, k, x, at[0]); });
  return {};
}

std::optional<Constant> fold_transpose(const Node& node, const std::vector<const Constant*>& inputs) {
  Dims perm = node.attrs.get_ints("perm");
  if (!node.attrs.has("perm"))
    for (int64_t k = static_cast<int64_t>(inputs[0]->shape().size()) - 1; k >= 0; --k) perm.push_back(k);
  return graph::transpose(*inputs[0], perm);
}

}  // namespace

OpDef transpose() {
  return OpDef{
      .name = "Transpose",
      .doc = "The axes in another order: output axis k is input axis perm[k]; without perm in reverse order.",
      .inputs = {{.name = "data"}},
      .attrs = {{.name = "perm", .kind = AttrKind::kInts, .no_default = true}},
      .fusion = FusionKind::kInjective,
      .infer = infer_transpose,
      .compute = compute_transpose,
      .reference = reference_transpose,
      .fold = fold_transpose,
      .samples =
          {
              {.name = "reverse", .inputs = {f32({2, 3, 17})}},
              {.name = "to_channels_last",
               .inputs = {f32({2, 3, 4, 5})},
               .attrs = attrs({{"perm", ints({0, 2, 3, 1})}})},
              {.name = "heads", .inputs = {in(kFloat16, {1, 5, 3, 4})}, .attrs = attrs({{"perm", ints({0, 2, 1, 3})}})},
              {.name = "scalar", .inputs = {in(kInt64, {})}},
              {.name = "empty", .inputs = {f32({0, 3})}},
              {.name = "axis_twice",
               .inputs = {f32({2, 3})},
               .attrs = attrs({{"perm", ints({0, 0})}}),
               .error_id = "bad-attribute"},
              {.name = "axis_missing",
               .inputs = {f32({2, 3})},
               .attrs = attrs({{"perm", ints({0})}}),
               .error_id = "bad-attribute"},
          },
  };
}

}  // namespace tensmith::graph::ops
