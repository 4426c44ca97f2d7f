#include "graph/ops/arith.h"
#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

Result<std::vector<TensorType>> infer_affine_grid(const InferContext& ctx) {
  const TensorType& theta = ctx.input(0);
  if (Result<void> ok = check_rank(theta, 3, 3, "input theta"); !ok) return ok.failure();
  const auto count = ctx.input(1).rank() == 1 ? known(ctx.input(1).shape[0]) : std::nullopt;
  if (count != 4 && count != 5)
    return refuse("shape-mismatch") << "input size: expected 4 or 5 elements, got shape "
                                    << shape_text(ctx.input(1).shape);
  const int64_t axes = *count - 2;
  if (Result<void> ok = check_shape(theta, {theta.shape[0], Expr(axes), Expr(axes + 1)}, "input theta"); !ok)
    return ok.failure();
  TensorType type{theta.dtype, {theta.shape[0]}, {}};
  const auto size = int_elements(ctx, 1);
  if (size && different_dim((*size)[0], theta.shape[0]))
    return refuse("shape-mismatch") << "input size: expected batch " << dim_to_string(theta.shape[0])
                                    << " as of theta, got " << dim_to_string((*size)[0]);
  for (int k = 0; k < axes; ++k) type.shape.push_back(size ? (*size)[2 + k] : ctx.data_dim(0, 1 + k));
  type.shape.emplace_back(axes);
  return std::vector<TensorType>{std::move(type)};
}

std::vector<Tensor> compute_affine_grid(const ComputeContext& ctx) {
  const Tensor& theta = ctx.input(0);
  const TensorType& type = ctx.output_type();
  const bool align = ctx.node.attrs.get_int("align_corners", 0) != 0;
  const DType wide = compute_type(type.dtype);
  const int axes = static_cast<int>(type.shape.size()) - 2;
  return {injective("affine_grid", type, [&](const Indices& i) {
    const auto c = [&](double value) { return make_const(wide, value); };
    const auto entry = [&](int column) { return widen(theta(i[0], i.back(), column)); };
    Expr sum = entry(axes);
    // Coordinates are named innermost axis first.
    for (int k = 0; k < axes; ++k) {
      const int axis = axes - k;
      const Expr length = cast(wide, type.shape[axis]), at = cast(wide, i[axis]);
      const Expr coordinate = align ? at * c(2) / max(length - c(1), c(1)) - c(1) : (at * c(2) + c(1)) / length - c(1);
      sum = sum + entry(k) * coordinate;
    }
    return cast(type.dtype, sum);
  })};
}

Result<void> reference_affine_grid(ReferenceContext& ctx) {
  const RefTensor& theta = ctx.input(0);
  const Dims& size = ctx.input(1).i;
  const auto axes = static_cast<int64_t>(size.size()) - 2;
  const bool align = ctx.node.attrs.get_int("align_corners", 0) != 0;
  Dims shape{theta.shape[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(axes);
  RefTensor& y = make_output(ctx, theta.dtype, shape);
  for_each_index(shape, [&](int64_t position, const Dims& i) {
    const int64_t row = (i[0] * axes + i.back()) * (axes + 1);
    double sum = theta.f[row + axes];
    for (int64_t k = 0; k < axes; ++k) {
      const auto length = static_cast<double>(shape[axes - k]), at = static_cast<double>(i[axes - k]);
      sum += theta.f[row + k] * (align ? -1 + 2 * at / std::max(length - 1, 1.0) : -1 + (2 * at + 1) / length);
    }
    y.f[position] = sum;
  });
  return {};
}

}  // namespace

OpDef affine_grid() {
  return OpDef{
      .name = "AffineGrid",
      .since = 20,
      .doc = "The grid (of GridSample) that an affine map of the output's positions gives.",
      .inputs = {{.name = "theta", .types = TypeSet::kFloat}, {.name = "size", .types = TypeSet::kInt64}},
      .attrs = {{.name = "align_corners", .kind = AttrKind::kInt, .default_value = int64_t{0}}},
      .fusion = FusionKind::kInjective,
      .infer = infer_affine_grid,
      .compute = compute_affine_grid,
      .supports = [](const InferContext& ctx) { return require_elements(ctx, {1}); },
      .reference = reference_affine_grid,
      .samples =
          {
              {.name = "image", .inputs = {f32({2, 2, 3}), known_ints({2, 3, 5, 6})}},
              {.name = "corners",
               .inputs = {f32({2, 2, 3}), known_ints({2, 1, 3, 17})},
               .attrs = attrs({{"align_corners", 1}})},
              {.name = "volume", .inputs = {f32({1, 3, 4}), known_ints({1, 3, 2, 3, 4})}},
              {.name = "one_row",
               .inputs = {f32({1, 2, 3}), known_ints({1, 1, 1, 4})},
               .attrs = attrs({{"align_corners", 1}})},
              {.name = "wrong_matrix",
               .inputs = {f32({1, 2, 2}), known_ints({1, 1, 3, 4})},
               .error_id = "shape-mismatch"},
          },
  };
}

}  // namespace tensmith::graph::ops
