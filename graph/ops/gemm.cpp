#include "graph/ops/arith.h"
#include "graph/ops/matrix_product.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

Result<ProductShape> resolve(const Node& node, const TensorType& a, const TensorType& b) {
  for (const auto& [type, name] : {std::pair{&a, "input A"}, {&b, "input B"}})
    if (Result<void> ok = check_rank(*type, 2, 2, name); !ok) return ok.failure();
  return resolve_product(a, b, node.attrs.get_int("transA", 0) != 0, node.attrs.get_int("transB", 0) != 0);
}

Result<std::vector<TensorType>> infer(const InferContext& ctx) {
  const Result<ProductShape> shape = resolve(ctx.node, ctx.input(0), ctx.input(1));
  if (!shape) return shape.failure();
  if (ctx.has(2))
    if (Result<void> ok = check_broadcast_to(ctx.input(2).shape, shape->out, "input C"); !ok) return ok.failure();
  return std::vector<TensorType>{{ctx.input(0).dtype, shape->out, {}}};
}

std::vector<Tensor> compute_gemm(const ComputeContext& ctx) {
  const ProductShape shape = resolve(ctx.node, *ctx.input_types[0], *ctx.input_types[1]).value();
  const DType type = ctx.output_type().dtype, wide = compute_type(type);
  const double alpha = ctx.node.attrs.get_float("alpha", 1), beta = ctx.node.attrs.get_float("beta", 1);
  const bool adds = ctx.has(2) && beta != 0;
  // Integers take the factors in float64, as the schema gives them as floats.
  const auto scaled = [&](const Expr& value, double factor) {
    if (factor == 1) return value;
    return wide.is_float() ? value * make_const(wide, factor)
                           : cast(wide, cast(kFloat64, value) * make_const(kFloat64, factor));
  };
  const auto addend = [&](const Indices& i) { return scaled(widen(broadcast_load(ctx.input(2), i)), beta); };
  ProductTerms terms{.term = [](const Expr& a, const Expr& b, const Indices&) { return widen(a) * widen(b); }};
  if (adds && alpha == 1) terms.initial = addend;
  const Tensor sum = multiply("gemm", shape, ctx.input(0), ctx.input(1), wide, terms);
  if (alpha == 1) return {narrow(sum, type)};
  return {compute("gemm_scale", shape.out, [&](const Indices& i) {
    const Expr product = scaled(sum(i), alpha);
    return cast(type, adds ? product + addend(i) : product);
  })};
}

Result<void> reference(ReferenceContext& ctx) {
  const RefTensor &a = ctx.input(0), &b = ctx.input(1);
  const Result<ProductShape> shape =
      resolve(ctx.node, {a.dtype, to_shape(a.shape), {}}, {b.dtype, to_shape(b.shape), {}});
  if (!shape) return shape.failure();
  RefTensor& y = ctx.output();
  const double alpha = ctx.node.attrs.get_float("alpha", 1), beta = ctx.node.attrs.get_float("beta", 1);
  std::vector<double> sum(static_cast<size_t>(y.num_elements()), 0.0);
  if (a.is_float()) {
    reference_multiply(*shape, a.f, a.shape, b.f, b.shape, sum);
  } else {
    reference_multiply(*shape, std::vector<double>(a.i.begin(), a.i.end()), a.shape,
                       std::vector<double>(b.i.begin(), b.i.end()), b.shape, sum);
  }
  for (size_t k = 0; k < sum.size(); ++k) y.set(static_cast<int64_t>(k), alpha * sum[k]);
  if (!ctx.has(2) || beta == 0) return {};
  const RefTensor& c = ctx.input(2);
  for_each_broadcast<1>(y.shape, {&c.shape},
                        [&](int64_t k, const std::array<int64_t, 1>& at) { y.set(k, y.get(k) + beta * c.get(at[0])); });
  return {};
}

}  // namespace

OpDef gemm() {
  return OpDef{
      .name = "Gemm",
      .since = 7,
      .doc = "alpha A' B' + beta C, where A' and B' are A and B or their transposes and C is broadcast.",
      .inputs = {{.name = "A", .types = TypeSet::kNumeric},
                 {.name = "B", .types = TypeSet::kNumeric, .same_type_as = "A"},
                 {.name = "C", .types = TypeSet::kNumeric, .optional = true, .same_type_as = "A"}},
      .attrs = {{.name = "alpha", .kind = AttrKind::kFloat, .default_value = 1.0},
                {.name = "beta", .kind = AttrKind::kFloat, .default_value = 1.0},
                {.name = "transA", .kind = AttrKind::kInt, .default_value = int64_t{0}},
                {.name = "transB", .kind = AttrKind::kInt, .default_value = int64_t{0}}},
      .fusion = FusionKind::kContraction,
      .infer = infer,
      .compute = compute_gemm,
      .reference = reference,
      .flops =
          [](const InferContext& ctx) {
            const auto shape = resolve(ctx.node, ctx.input(0), ctx.input(1));
            return shape ? product_flops(*shape) : 0.0;
          },
      .samples =
          {{.name = "plain", .inputs = {f32({3, 17}), f32({17, 5})}},
           {.name = "bias", .inputs = {f32({3, 4}), f32({4, 5}), f32({5})}},
           {.name = "bias_column", .inputs = {f32({3, 4}), f32({4, 5}), f32({3, 1})}},
           {.name = "bias_scalar", .inputs = {f32({3, 4}), f32({4, 5}), f32({})}},
           {.name = "classifier", .inputs = {f32({1, 9}), f32({7, 9}), f32({7})}, .attrs = attrs({{"transB", 1}})},
           {.name = "all",
            .inputs = {f32({4, 3}), f32({5, 4}), f32({3, 5})},
            .attrs = attrs({{"alpha", 0.25}, {"beta", 0.35}, {"transA", 1}, {"transB", 1}})},
           {.name = "beta_only", .inputs = {f32({2, 3}), f32({3, 2}), f32({2})}, .attrs = attrs({{"beta", 0.5}})},
           {.name = "beta_zero", .inputs = {f32({2, 3}), f32({3, 2}), f32({2})}, .attrs = attrs({{"beta", 0.0}})},
           {.name = "half",
            .inputs = {in(kFloat16, {3, 4}), in(kFloat16, {4, 2}), in(kFloat16, {2})},
            .rtol = 2e-3,
            .atol = 2e-3},
           {.name = "int32", .inputs = {in(kInt32, {3, 4}, -9, 9), in(kInt32, {4, 2}, -9, 9), in(kInt32, {2}, -9, 9)}},
           {.name = "bias_too_large", .inputs = {f32({3, 4}), f32({4, 5}), f32({4, 5})}, .error_id = "shape-mismatch"},
           {.name = "stack", .inputs = {f32({2, 3, 4}), f32({4, 5})}, .error_id = "rank-mismatch"},
           {.name = "inner_dims_differ",
            .inputs = {f32({3, 4}), f32({4, 5})},
            .attrs = attrs({{"transB", 1}}),
            .error_id = "shape-mismatch"}},
  };
}

}  // namespace tensmith::graph::ops
