#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/moments.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

/// Statistics of the channels of one group and all positions. The input seen as [N, groups, C / groups, spatial...].
struct Grouping {
  Shape split;  ///< that shape
  Expr per_group;
  ReducedShape part;  ///< all but the first two dims reduced

  Grouping(const Shape& x, const Expr& groups)
      : split(split_of(x, groups)),
        per_group(split[2]),
        part(split, axes_from(2, static_cast<int>(split.size())), /*keep_dims=*/false) {}
  static Shape split_of(const Shape& x, const Expr& groups) {
    Shape shape{x[0], groups, same_dim(groups, x[1]) ? Expr(1) : floor_div(x[1], groups)};
    shape.insert(shape.end(), x.begin() + 2, x.end());
    return shape;
  }
  /// Index into x for an index into the split shape.
  Indices joined(const Indices& in) const {
    Indices index{in[0], is_const_int(per_group, 1) ? in[1] : in[1] * per_group + in[2]};
    index.insert(index.end(), in.begin() + 3, in.end());
    return index;
  }
};

std::vector<Tensor> normalize(const ComputeContext& ctx, const char* name, const Expr& groups) {
  const Tensor& x = ctx.input(0);
  const Grouping grouping(x.shape(), groups);
  const Moments m = moments(name, grouping.part, ctx.node.attrs.get_float("epsilon", 1e-5),
                            [&](const Indices& in) { return widen(x(grouping.joined(in))); });
  // Scale and bias have one element a channel, or (up to opset 20) one a group.
  const bool per_group = !same_dim(ctx.input(1).shape()[0], x.shape()[1]);
  return {compute(name, x.shape(), [&](const Indices& i) {
    const Expr group = floor_div(i[1], grouping.per_group);
    const Expr channel = per_group ? group : i[1];
    const Expr y = (widen(x(i)) - m.mean(i[0], group)) * m.inverse_deviation(i[0], group);
    return cast(x.dtype(), y * widen(ctx.input(1)(channel)) + widen(ctx.input(2)(channel)));
  })};
}

Result<void> reference(ReferenceContext& ctx, int64_t groups) {
  const RefTensor &x = ctx.input(0), &scale = ctx.input(1), &bias = ctx.input(2);
  const double epsilon = ctx.node.attrs.get_float("epsilon", 1e-5);
  const int64_t batch = x.shape[0], channels = x.shape[1], spatial = count_of(x.shape, 2),
                per_group = channels / groups;
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t first = (n * channels + g * per_group) * spatial, count = per_group * spatial;
      double mean = 0, variance = 0;
      for (int64_t k = 0; k < count; ++k) mean += x.f[first + k];
      mean /= static_cast<double>(count);
      for (int64_t k = 0; k < count; ++k) variance += (x.f[first + k] - mean) * (x.f[first + k] - mean);
      variance /= static_cast<double>(count);
      for (int64_t k = 0; k < count; ++k) {
        const int64_t channel = scale.shape[0] == channels ? g * per_group + k / spatial : g;
        ctx.output().f[first + k] =
            (x.f[first + k] - mean) / std::sqrt(variance + epsilon) * scale.f[channel] + bias.f[channel];
      }
    }
  return {};
}

double flops(const InferContext& ctx) {
  double count = 8;
  for (const Expr& dim : ctx.input(0).shape) count *= static_cast<double>(known(dim).value_or(1));
  return count;
}

}  // namespace

OpDef instance_normalization() {
  return OpDef{
      .name = "InstanceNormalization",
      .since = 6,
      .doc = "scale (x - mean) / sqrt(variance + epsilon) + B with statistics of each channel of each sample.",
      .inputs = {{.name = "input", .types = TypeSet::kFloat},
                 {.name = "scale", .types = TypeSet::kFloat, .same_type_as = "input"},
                 {.name = "B", .types = TypeSet::kFloat, .same_type_as = "input"}},
      .attrs = {{.name = "epsilon", .kind = AttrKind::kFloat, .default_value = 1e-5}},
      .fusion = FusionKind::kReduction,
      .layout = LayoutRole::kFollows,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        const TensorType& x = ctx.input(0);
        if (Result<void> ok = check_rank(x, 3, 64, "input"); !ok) return ok.failure();
        for (int k = 1; k < 3; ++k)
          if (Result<void> ok = check_shape(ctx.input(k), {x.shape[1]}, k == 1 ? "input scale" : "input B"); !ok)
            return ok.failure();
        return std::vector<TensorType>{{x.dtype, x.shape, {}}};
      },
      .compute = [](const ComputeContext& ctx) { return normalize(ctx, "instance_norm", ctx.input(0).shape()[1]); },
      .reference = [](ReferenceContext& ctx) { return reference(ctx, ctx.input(0).shape[1]); },
      .flops = flops,
      .samples = {{.name = "image", .inputs = {f32({2, 3, 4, 5}), f32({3}), f32({3})}},
                  {.name = "line",
                   .inputs = {f32({1, 3, 17}), f32({3}), f32({3})},
                   .attrs = attrs({{"epsilon", 0.01}})},
                  {.name = "half",
                   .inputs = {in(kFloat16, {1, 2, 9}), in(kFloat16, {2}), in(kFloat16, {2})},
                   .rtol = 3e-3,
                   .atol = 3e-3},
                  {.name = "scale_of_other_channels",
                   .inputs = {f32({2, 3, 4}), f32({2}), f32({3})},
                   .error_id = "shape-mismatch"},
                  {.name = "matrix", .inputs = {f32({2, 3}), f32({3}), f32({3})}, .error_id = "rank-mismatch"}},
  };
}

OpDef group_normalization() {
  return OpDef{
      .name = "GroupNormalization",
      .since = 18,
      .doc =
          "scale (x - mean) / sqrt(variance + epsilon) + bias with statistics of each group of channels of each "
          "sample.",
      .inputs = {{.name = "X", .types = TypeSet::kFloat},
                 {.name = "scale", .types = TypeSet::kFloat, .same_type_as = "X"},
                 {.name = "bias", .types = TypeSet::kFloat, .same_type_as = "X"}},
      .attrs = {{.name = "epsilon", .kind = AttrKind::kFloat, .default_value = 1e-5},
                {.name = "num_groups", .kind = AttrKind::kInt, .required = true},
                {.name = "stash_type", .kind = AttrKind::kInt, .default_value = int64_t{1}, .since = 21}},
      .fusion = FusionKind::kReduction,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        const TensorType& x = ctx.input(0);
        if (Result<void> ok = check_rank(x, 2, 64, "input X"); !ok) return ok.failure();
        const int64_t groups = ctx.node.attrs.get_int("num_groups", 1);
        const auto channels = known(x.shape[1]);
        if (!channels)
          return refuse("dynamic-shape") << "input X: expected a number of channels known at compile time, got "
                                         << shape_text(x.shape);
        if (groups < 1 || *channels % groups != 0)
          return refuse("bad-attribute") << "attribute num_groups: expected a divisor of " << *channels
                                         << " channels, got " << groups;
        for (int k = 1; k < 3; ++k) {
          const TensorType& t = ctx.input(k);
          if (t.rank() == 1 && is_const_int(t.shape[0], groups)) continue;  // the meaning up to opset 20
          if (Result<void> ok = check_shape(t, {x.shape[1]}, k == 1 ? "input scale" : "input bias"); !ok)
            return ok.failure();
        }
        return std::vector<TensorType>{{x.dtype, x.shape, {}}};
      },
      .compute =
          [](const ComputeContext& ctx) {
            return normalize(ctx, "group_norm", ctx.node.attrs.get_int("num_groups", 1));
          },
      .reference = [](ReferenceContext& ctx) { return reference(ctx, ctx.node.attrs.get_int("num_groups", 1)); },
      .flops = flops,
      .samples =
          {{.name = "image", .inputs = {f32({2, 6, 3, 3}), f32({6}), f32({6})}, .attrs = attrs({{"num_groups", 3}})},
           {.name = "one_group", .inputs = {f32({1, 4, 5}), f32({4}), f32({4})}, .attrs = attrs({{"num_groups", 1}})},
           {.name = "group_a_channel",
            .inputs = {f32({1, 4, 5}), f32({4}), f32({4})},
            .attrs = attrs({{"num_groups", 4}})},
           {.name = "scale_per_group",
            .inputs = {f32({1, 6, 4}), f32({2}), f32({2})},
            .attrs = attrs({{"num_groups", 2}, {"epsilon", 0.1}})},
           {.name = "channels_not_divisible",
            .inputs = {f32({1, 5, 4}), f32({5}), f32({5})},
            .attrs = attrs({{"num_groups", 2}}),
            .error_id = "bad-attribute"}},
  };
}

}  // namespace tensmith::graph::ops
