#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/moments.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

Result<ReducedShape> mvn_shape(const Node& node, const Shape& in) {
  const Result<std::vector<int>> axes =
      normalize_axes(node.attrs.get_ints("axes", {0, 2, 3}), static_cast<int>(in.size()));
  if (!axes) return axes.failure();
  return ReducedShape(in, *axes, /*keep_dims=*/true);
}

Result<ReducedShape> lp_shape(const Node& node, const Shape& in) {
  const Result<int> axis = normalize_axis(node.attrs.get_int("axis", -1), static_cast<int>(in.size()));
  if (!axis) return axis.failure();
  const int64_t p = node.attrs.get_int("p", 2);
  if (p != 1 && p != 2) return refuse("bad-attribute") << "attribute p: expected 1 or 2, got " << p;
  return ReducedShape(in, {*axis}, /*keep_dims=*/true);
}

}  // namespace

OpDef mean_variance_normalization() {
  return OpDef{
      .name = "MeanVarianceNormalization",
      .since = 9,
      .doc = "(x - mean) / (deviation + 1e-9) with statistics over the given axes.",
      .inputs = {{.name = "X", .types = TypeSet::kFloat}},
      .attrs = {{.name = "axes", .kind = AttrKind::kInts, .default_value = std::vector<int64_t>{0, 2, 3}}},
      .fusion = FusionKind::kReduction,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        if (Result<ReducedShape> shape = mvn_shape(ctx.node, ctx.input(0).shape); !shape) return shape.failure();
        return std::vector<TensorType>{{ctx.input(0).dtype, ctx.input(0).shape, {}}};
      },
      .compute =
          [](const ComputeContext& ctx) {
            const Tensor& x = ctx.input(0);
            const ReducedShape shape = mvn_shape(ctx.node, x.shape()).value();
            const Moments m = moments("mvn", shape, 0, [&](const Indices& i) { return widen(x(i)); });
            const Tensor inverse = compute("mvn_inverse", shape.out, [&](const Indices& i) {
              const Expr variance = m.variance(i);
              return constant_like(variance, 1) / (call(Intrinsic::kSqrt, {variance}) + constant_like(variance, 1e-9));
            });
            return std::vector<Tensor>{compute("mvn", x.shape(), [&](const Indices& i) {
              const Indices at = shape.output_index(i);
              return cast(x.dtype(), (widen(x(i)) - m.mean(at)) * inverse(at));
            })};
          },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const RefTensor& x = ctx.input(0);
        const Result<ReducedShape> shape = mvn_shape(ctx.node, to_shape(x.shape));
        if (!shape) return shape.failure();
        const Dims strides = reduced_strides(x.shape, shape->reduced);
        const ReferenceMoments m = reference_moments(x, strides, known(product(shape->out)).value());
        for_each_strided<1>(x.shape, {strides}, [&](int64_t k, const std::array<int64_t, 1>& at) {
          ctx.output().f[k] = (x.f[k] - m.mean[at[0]]) / (std::sqrt(m.variance[at[0]]) + 1e-9);
        });
        return {};
      },
      .samples = {{.name = "image", .inputs = {f32({2, 3, 4, 5})}},
                  {.name = "rows", .inputs = {f32({3, 17})}, .attrs = attrs({{"axes", ints({-1})}})},
                  {.name = "half",
                   .inputs = {in(kFloat16, {2, 9})},
                   .attrs = attrs({{"axes", ints({1})}}),
                   .rtol = 3e-3,
                   .atol = 3e-3},
                  {.name = "axes_out_of_range", .inputs = {f32({3, 5})}, .error_id = "axis-out-of-range"}},
  };
}

OpDef lp_normalization() {
  return OpDef{
      .name = "LpNormalization",
      .doc = "x divided by its L1 or L2 norm along an axis; 0 where the norm is 0.",
      .inputs = {{.name = "input", .types = TypeSet::kFloat}},
      .attrs = {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{-1}},
                {.name = "p", .kind = AttrKind::kInt, .default_value = int64_t{2}}},
      .fusion = FusionKind::kReduction,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        if (Result<ReducedShape> shape = lp_shape(ctx.node, ctx.input(0).shape); !shape) return shape.failure();
        return std::vector<TensorType>{{ctx.input(0).dtype, ctx.input(0).shape, {}}};
      },
      .compute =
          [](const ComputeContext& ctx) {
            const Tensor& x = ctx.input(0);
            const ReducedShape shape = lp_shape(ctx.node, x.shape()).value();
            const bool squares = ctx.node.attrs.get_int("p", 2) == 2;
            const Tensor total = sum_axes("lp_sum", shape, [&](const Indices& in) {
              return with_value("x", widen(x(in)),
                                [&](const Expr& v) { return squares ? v * v : call(Intrinsic::kAbs, {v}); });
            });
            const Tensor norm = compute("lp_norm", shape.out, [&](const Indices& i) {
              return squares ? call(Intrinsic::kSqrt, {total(i)}) : total(i);
            });
            return std::vector<Tensor>{compute("lp_normalize", x.shape(), [&](const Indices& i) {
              const Expr n = norm(shape.output_index(i));
              return cast(x.dtype(), select(n == constant_like(n, 0), constant_like(n, 0), widen(x(i)) / n));
            })};
          },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const RefTensor& x = ctx.input(0);
        const Result<ReducedShape> shape = lp_shape(ctx.node, to_shape(x.shape));
        if (!shape) return shape.failure();
        const bool squares = ctx.node.attrs.get_int("p", 2) == 2;
        const Dims strides = reduced_strides(x.shape, shape->reduced);
        std::vector<double> norm(static_cast<size_t>(known(product(shape->out)).value()), 0.0);
        using At = std::array<int64_t, 1>;
        for_each_strided<1>(x.shape, {strides}, [&](int64_t k, const At& at) {
          norm[at[0]] += squares ? x.f[k] * x.f[k] : std::fabs(x.f[k]);
        });
        for (double& value : norm) value = squares ? std::sqrt(value) : value;
        for_each_strided<1>(x.shape, {strides}, [&](int64_t k, const At& at) {
          ctx.output().f[k] = norm[at[0]] == 0 ? 0 : x.f[k] / norm[at[0]];
        });
        return {};
      },
      .samples =
          {{.name = "l2", .inputs = {f32({3, 17})}},
           {.name = "l1", .inputs = {f32({3, 5})}, .attrs = attrs({{"axis", 0}, {"p", 1}})},
           {.name = "zero", .inputs = {given(kFloat32, {2, 2}, {0, 0, 3, 4})}},
           {.name = "half", .inputs = {in(kFloat16, {2, 9})}, .rtol = 3e-3, .atol = 3e-3},
           {.name = "third_norm", .inputs = {f32({3})}, .attrs = attrs({{"p", 3}}), .error_id = "bad-attribute"}},
  };
}

OpDef lrn() {
  return OpDef{
      .name = "LRN",
      .doc = "x / (bias + alpha / size * sum of squares of the `size` channels around)^beta.",
      .inputs = {{.name = "X", .types = TypeSet::kFloat}},
      .attrs = {{.name = "alpha", .kind = AttrKind::kFloat, .default_value = 1e-4},
                {.name = "beta", .kind = AttrKind::kFloat, .default_value = 0.75},
                {.name = "bias", .kind = AttrKind::kFloat, .default_value = 1.0},
                {.name = "size", .kind = AttrKind::kInt, .required = true}},
      .fusion = FusionKind::kReduction,
      .layout = LayoutRole::kChannels,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        if (Result<void> ok = check_rank(ctx.input(0), 2, 64, "input X"); !ok) return ok.failure();
        const int64_t size = ctx.node.attrs.get_int("size", 1);
        if (size < 1 || size > INT32_MAX)
          return refuse("bad-attribute") << "attribute size: expected 1 or more, got " << size;
        return std::vector<TensorType>{{ctx.input(0).dtype, ctx.input(0).shape, {}}};
      },
      .compute =
          [](const ComputeContext& ctx) {
            const Tensor& x = ctx.input(0);
            const AttrMap& a = ctx.node.attrs;
            const int64_t size = a.get_int("size", 1);
            const DType wide = compute_type(x.dtype());
            const auto channel = [&](const Indices& i, const Indices& r) { return i[1] + r[0] - Expr((size - 1) / 2); };
            const Tensor squares = reduce(
                "lrn_sum", x.shape(), {Expr(size)}, sum_reducer(wide),
                [&](const Indices& i, const Indices& r) {
                  Indices at = i;
                  at[1] = channel(i, r);
                  return with_value("x", widen(x(at)), [](const Expr& v) { return v * v; });
                },
                [&](const Indices& i, const Indices& r) {
                  return channel(i, r) >= Expr(0) && channel(i, r) < x.shape()[1];
                });
            return std::vector<Tensor>{compute("lrn", x.shape(), [&](const Indices& i) {
              const Expr base = squares(i) * make_const(wide, a.get_float("alpha", 1e-4) / static_cast<double>(size)) +
                                make_const(wide, a.get_float("bias", 1));
              return cast(x.dtype(),
                          widen(x(i)) / call(Intrinsic::kPow, {base, make_const(wide, a.get_float("beta", 0.75))}));
            })};
          },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const RefTensor& x = ctx.input(0);
        const AttrMap& a = ctx.node.attrs;
        const int64_t size = a.get_int("size", 1), channels = x.shape[1], spatial = count_of(x.shape, 2);
        const double alpha = a.get_float("alpha", 1e-4), beta = a.get_float("beta", 0.75),
                     bias = a.get_float("bias", 1);
        for (int64_t n = 0; n < x.shape[0]; ++n)
          for (int64_t c = 0; c < channels; ++c) {
            const int64_t first = std::max<int64_t>(0, c - (size - 1) / 2), last = std::min(channels - 1, c + size / 2);
            for (int64_t k = 0; k < spatial; ++k) {
              double total = 0;
              for (int64_t d = first; d <= last; ++d) {
                const double value = x.f[(n * channels + d) * spatial + k];
                total += value * value;
              }
              const int64_t at = (n * channels + c) * spatial + k;
              ctx.output().f[at] = x.f[at] / std::pow(bias + alpha / static_cast<double>(size) * total, beta);
            }
          }
        return {};
      },
      .samples = {{.name = "image", .inputs = {f32({2, 5, 3, 3})}, .attrs = attrs({{"size", 3}})},
                  {.name = "even_size",
                   .inputs = {f32({1, 7, 2, 2})},
                   .attrs = attrs({{"size", 4}, {"alpha", 0.2}, {"beta", 0.5}, {"bias", 2.0}})},
                  {.name = "wider_than_channels",
                   .inputs = {f32({1, 2, 3})},
                   .attrs = attrs({{"size", 9}, {"alpha", 1.0}})},
                  {.name = "size_zero",
                   .inputs = {f32({1, 2, 3})},
                   .attrs = attrs({{"size", 0}}),
                   .error_id = "bad-attribute"}},
  };
}

}  // namespace tensmith::graph::ops
