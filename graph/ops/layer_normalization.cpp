#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/moments.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

Result<ReducedShape> normalized_part(const Node& node, const Shape& shape) {
  const int rank = static_cast<int>(shape.size());
  const Result<int> axis = normalize_axis(node.attrs.get_int("axis", -1), rank);
  if (!axis) return axis.failure();
  return ReducedShape(shape, axes_from(*axis, rank), /*keep_dims=*/true);
}

std::vector<bool> reduced_of(const RefTensor& x, int64_t axis) {
  std::vector<bool> reduced(x.shape.size(), false);
  for (size_t d = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.shape.size()) : axis);
       d < reduced.size(); ++d)
    reduced[d] = true;
  return reduced;
}

/// y = normalised * scale (+ bias), with scale and bias broadcast to x.
template <typename Normalised>
void scale_and_shift(ReferenceContext& ctx, const RefTensor& x, Normalised normalised) {
  const RefTensor& scale = ctx.input(1);
  const bool shifted = ctx.has(2);
  const Dims& bias_shape = shifted ? ctx.input(2).shape : scale.shape;
  for_each_broadcast<2>(x.shape, {&scale.shape, &bias_shape}, [&](int64_t k, const std::array<int64_t, 2>& at) {
    ctx.output().f[k] = normalised(k) * scale.f[at[0]] + (shifted ? ctx.input(2).f[at[1]] : 0);
  });
}

Result<void> check_affine(const InferContext& ctx) {
  for (int k = 1; k < 3; ++k)
    if (ctx.has(k))
      if (Result<void> ok =
              check_broadcast_to(ctx.input(k).shape, ctx.input(0).shape, k == 1 ? "input Scale" : "input B");
          !ok)
        return ok;
  const int64_t stash = ctx.node.attrs.get_int("stash_type", 1);
  if (stash != 1 && stash != 11)
    return refuse("unsupported-attribute") << "attribute stash_type: expected 1 (float) or 11 (double), got " << stash;
  return {};
}

Result<std::vector<TensorType>> infer(const InferContext& ctx) {
  const Result<ReducedShape> part = normalized_part(ctx.node, ctx.input(0).shape);
  if (!part) return part.failure();
  if (Result<void> ok = check_affine(ctx); !ok) return ok.failure();
  const DType stash = ctx.node.attrs.get_int("stash_type", 1) == 11 ? kFloat64 : kFloat32;
  const TensorType statistics{stash, part->out, {}};
  return std::vector<TensorType>{{ctx.input(0).dtype, ctx.input(0).shape, {}}, statistics, statistics};
}

std::vector<Tensor> layer_norm(const ComputeContext& ctx) {
  const Tensor& x = ctx.input(0);
  const DType type = x.dtype();
  const ReducedShape part = normalized_part(ctx.node, x.shape()).value();
  const auto load = [&](const Indices& i) { return widen(x(i)); };
  const Moments m = moments("layer_norm", part, ctx.node.attrs.get_float("epsilon", 1e-5), load);
  std::vector<Tensor> outputs{compute("layer_norm", x.shape(), [&](const Indices& i) {
    const Indices row = part.output_index(i);
    Expr y = (load(i) - m.mean(row)) * m.inverse_deviation(row) * widen(broadcast_load(ctx.input(1), i));
    if (ctx.has(2)) y = y + widen(broadcast_load(ctx.input(2), i));
    return cast(type, y);
  })};
  if (ctx.node.types.size() > 1) outputs.push_back(narrow(m.mean, ctx.output_type(1).dtype));
  if (ctx.node.types.size() > 2) outputs.push_back(narrow(m.inverse_deviation, ctx.output_type(2).dtype));
  return outputs;
}

Result<void> layer_norm_reference(ReferenceContext& ctx) {
  const RefTensor& x = ctx.input(0);
  const double epsilon = ctx.node.attrs.get_float("epsilon", 1e-5);
  const Dims strides = reduced_strides(x.shape, reduced_of(x, ctx.node.attrs.get_int("axis", -1)));
  int64_t rows = 1;
  for (size_t d = 0; d < strides.size(); ++d) rows *= strides[d] ? x.shape[d] : 1;
  const ReferenceMoments m = reference_moments(x, strides, rows);
  const int64_t columns = rows ? x.num_elements() / rows : 0;  // the reduced axes are the last ones
  scale_and_shift(
      ctx, x, [&](int64_t k) { return (x.f[k] - m.mean[k / columns]) / std::sqrt(m.variance[k / columns] + epsilon); });
  if (ctx.outputs.size() > 1) ctx.output(1).f = m.mean;
  if (ctx.outputs.size() > 2)
    for (int64_t k = 0; k < rows; ++k) ctx.output(2).f[k] = 1 / std::sqrt(m.variance[k] + epsilon);
  return {};
}

std::vector<AttrSpec> norm_attrs() {
  return {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{-1}},
          {.name = "epsilon", .kind = AttrKind::kFloat, .default_value = 1e-5},
          {.name = "stash_type", .kind = AttrKind::kInt, .default_value = int64_t{1}}};
}

double norm_flops(const InferContext& ctx) {
  double count = 8;
  for (const Expr& dim : ctx.input(0).shape) count *= static_cast<double>(known(dim).value_or(1));
  return count;
}

}  // namespace

OpDef layer_normalization() {
  return OpDef{
      .name = "LayerNormalization",
      .since = 17,
      .doc =
          "(x - mean) / sqrt(variance + epsilon) * Scale + B over the axes from `axis` on; also gives mean and 1 / "
          "deviation.",
      .inputs = {{.name = "X", .types = TypeSet::kFloat},
                 {.name = "Scale", .types = TypeSet::kFloat},
                 {.name = "B", .types = TypeSet::kFloat, .optional = true}},
      .attrs = norm_attrs(),
      .min_outputs = 1,
      .max_outputs = 3,
      .fusion = FusionKind::kReduction,
      .infer = infer,
      .compute = layer_norm,
      .reference = layer_norm_reference,
      .flops = norm_flops,
      .samples =
          {{.name = "rows", .inputs = {f32({3, 17}), f32({17}), f32({17})}},
           {.name = "no_bias", .inputs = {f32({2, 3, 5}), f32({5})}},
           {.name = "two_axes", .inputs = {f32({2, 3, 5}), f32({3, 5}), f32({5})}, .attrs = attrs({{"axis", 1}})},
           {.name = "all_axes", .inputs = {f32({3, 5}), f32({3, 5}), f32({3, 5})}, .attrs = attrs({{"axis", 0}})},
           {.name = "statistics",
            .inputs = {f32({2, 3, 4}), f32({4}), f32({4})},
            .attrs = attrs({{"epsilon", 0.1}}),
            .num_outputs = 3},
           {.name = "far_from_zero",
            .inputs = {f32({2, 9}, 1000, 1001), f32({9}), f32({9})},
            .rtol = 1e-3,
            .atol = 1e-3},
           {.name = "one", .inputs = {f32({1, 1}), f32({1}), f32({1})}},
           {.name = "half",
            .inputs = {in(kFloat16, {3, 9}), in(kFloat16, {9}), in(kFloat16, {9})},
            .rtol = 3e-3,
            .atol = 3e-3},
           {.name = "double", .inputs = {in(kFloat64, {3, 4}), in(kFloat64, {4})}},
           {.name = "scale_too_large", .inputs = {f32({3, 5}), f32({4})}, .error_id = "shape-mismatch"},
           {.name = "axis_out_of_range",
            .inputs = {f32({3, 5}), f32({5})},
            .attrs = attrs({{"axis", 2}}),
            .error_id = "axis-out-of-range"}},
  };
}

OpDef rms_normalization() {
  return OpDef{
      .name = "RMSNormalization",
      .since = 23,
      .doc = "x / sqrt(mean of squares + epsilon) * scale over the axes from `axis` on.",
      .inputs = {{.name = "X", .types = TypeSet::kFloat}, {.name = "scale", .types = TypeSet::kFloat}},
      .attrs = norm_attrs(),
      .fusion = FusionKind::kReduction,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        if (Result<ReducedShape> part = normalized_part(ctx.node, ctx.input(0).shape); !part) return part.failure();
        if (Result<void> ok = check_affine(ctx); !ok) return ok.failure();
        return std::vector<TensorType>{{ctx.input(1).dtype, ctx.input(0).shape, {}}};
      },
      .compute =
          [](const ComputeContext& ctx) {
            const Tensor& x = ctx.input(0);
            const ReducedShape part = normalized_part(ctx.node, x.shape()).value();
            const Tensor inverse = inverse_root_mean_square("rms_norm", part, ctx.node.attrs.get_float("epsilon", 1e-5),
                                                            [&](const Indices& i) { return widen(x(i)); });
            const DType type = ctx.output_type().dtype;
            return std::vector<Tensor>{compute("rms_norm", x.shape(), [&](const Indices& i) {
              const Expr normalised = widen(x(i)) * inverse(part.output_index(i));
              return cast(type, normalised * cast(normalised.dtype(), broadcast_load(ctx.input(1), i)));
            })};
          },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const RefTensor& x = ctx.input(0);
        const double epsilon = ctx.node.attrs.get_float("epsilon", 1e-5);
        int64_t axis = ctx.node.attrs.get_int("axis", -1);
        if (axis < 0) axis += static_cast<int64_t>(x.shape.size());
        const int64_t columns = count_of(x.shape, static_cast<size_t>(axis)),
                      rows = count_of(x.shape, 0, static_cast<size_t>(axis));
        std::vector<double> inverse(static_cast<size_t>(rows));
        for (int64_t r = 0; r < rows; ++r) {
          double total = 0;
          for (int64_t k = r * columns; k < (r + 1) * columns; ++k) total += x.f[k] * x.f[k];
          inverse[r] = 1 / std::sqrt(total / static_cast<double>(columns) + epsilon);
        }
        scale_and_shift(ctx, x, [&](int64_t k) { return x.f[k] * inverse[k / columns]; });
        return {};
      },
      .flops = norm_flops,
      .samples = {{.name = "rows", .inputs = {f32({3, 17}), f32({17})}},
                  {.name = "two_axes",
                   .inputs = {f32({2, 3, 5}), f32({3, 5})},
                   .attrs = attrs({{"axis", 1}, {"epsilon", 0.1}})},
                  {.name = "scalar_scale", .inputs = {f32({2, 5}), f32({})}},
                  {.name = "half", .inputs = {in(kFloat16, {3, 9}), in(kFloat16, {9})}, .rtol = 3e-3, .atol = 3e-3},
                  {.name = "scale_too_large", .inputs = {f32({3, 5}), f32({4})}, .error_id = "shape-mismatch"}},
  };
}

}  // namespace tensmith::graph::ops
