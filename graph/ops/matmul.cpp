#include "graph/ops/arith.h"
#include "graph/ops/matrix_product.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

/// What the attributes of FusedMatMul say (MatMul has none: no transposition, factor 1).
struct Options {
  bool transposed_a, transposed_b;
  double alpha;
};

Options options_of(const AttrMap& attrs) {
  return {attrs.get_int("transA", 0) != 0, attrs.get_int("transB", 0) != 0, attrs.get_float("alpha", 1)};
}

Result<ProductShape> resolve(const Node& node, const TensorType& a, const TensorType& b) {
  const Options options = options_of(node.attrs);
  return resolve_product(a, b, options.transposed_a, options.transposed_b);
}

Result<std::vector<TensorType>> infer(const InferContext& ctx) {
  const Result<ProductShape> shape = resolve(ctx.node, ctx.input(0), ctx.input(1));
  if (!shape) return shape.failure();
  return std::vector<TensorType>{{ctx.input(0).dtype, shape->out, {}}};
}

std::vector<Tensor> compute_product(const ComputeContext& ctx) {
  const ProductShape shape = resolve(ctx.node, *ctx.input_types[0], *ctx.input_types[1]).value();
  const DType type = ctx.output_type().dtype;
  const double alpha = options_of(ctx.node.attrs).alpha;
  Tensor sum = multiply("matmul", shape, ctx.input(0), ctx.input(1), compute_type(type),
                        {.term = [](const Expr& a, const Expr& b, const Indices&) { return widen(a) * widen(b); }});
  if (alpha != 1)
    sum = compute("scale", sum.shape(),
                  [&](const Indices& i) { return cast(type, sum(i) * make_const(sum.dtype(), alpha)); });
  return {narrow(sum, type)};
}

Result<void> reference(ReferenceContext& ctx) {
  const RefTensor &a = ctx.input(0), &b = ctx.input(1);
  const Result<ProductShape> shape =
      resolve(ctx.node, {a.dtype, to_shape(a.shape), {}}, {b.dtype, to_shape(b.shape), {}});
  if (!shape) return shape.failure();
  RefTensor& y = ctx.output();
  if (a.is_float()) {
    reference_multiply(*shape, a.f, a.shape, b.f, b.shape, y.f);
    const double alpha = options_of(ctx.node.attrs).alpha;
    if (alpha != 1)
      for (double& value : y.f) value *= alpha;
    return {};
  }
  // Unsigned arithmetic wraps without being undefined; the bits are the same for signed numbers.
  const std::vector<uint64_t> au(a.i.begin(), a.i.end()), bu(b.i.begin(), b.i.end());
  std::vector<uint64_t> sum(y.i.size(), 0);
  reference_multiply(*shape, au, a.shape, bu, b.shape, sum);
  for (size_t k = 0; k < sum.size(); ++k) y.i[k] = wrap_int(y.dtype, static_cast<int64_t>(sum[k]));
  return {};
}

double flops(const InferContext& ctx) {
  const auto shape = resolve(ctx.node, ctx.input(0), ctx.input(1));
  return shape ? product_flops(*shape) : 0;
}

std::vector<OpSample> samples() {
  return {
      {.name = "matrix", .inputs = {f32({3, 17}), f32({17, 5})}},
      {.name = "one", .inputs = {f32({1, 1}), f32({1, 1})}},
      {.name = "batched", .inputs = {f32({2, 3, 4}), f32({2, 4, 5})}},
      {.name = "batch_broadcast", .inputs = {f32({2, 1, 3, 4}), f32({3, 4, 5})}},
      {.name = "shared_weights", .inputs = {f32({2, 3, 4}), f32({4, 5})}},
      {.name = "vector_matrix", .inputs = {f32({4}), f32({4, 5})}},
      {.name = "matrix_vector", .inputs = {f32({3, 4}), f32({4})}},
      {.name = "batch_vector", .inputs = {f32({2, 3, 4}), f32({4})}},
      {.name = "vector_batch", .inputs = {f32({4}), f32({2, 4, 3})}},
      {.name = "vectors", .inputs = {f32({7}), f32({7})}},
      {.name = "empty_sum", .inputs = {f32({2, 0}), f32({0, 3})}},
      {.name = "half", .inputs = {in(kFloat16, {3, 9}), in(kFloat16, {9, 4})}, .rtol = 2e-3, .atol = 2e-3},
      {.name = "brain", .inputs = {in(kBFloat16, {3, 9}), in(kBFloat16, {9, 4})}, .rtol = 1e-2, .atol = 1e-2},
      {.name = "double", .inputs = {in(kFloat64, {3, 4}), in(kFloat64, {4, 2})}},
      {.name = "int32", .inputs = {in(kInt32, {3, 4}, -9, 9), in(kInt32, {4, 2}, -9, 9)}},
      {.name = "uint64", .inputs = {in(kUInt64, {2, 3}, 0, 9), in(kUInt64, {3, 2}, 0, 9)}},
      {.name = "inner_dims_differ", .inputs = {f32({3, 4}), f32({5, 2})}, .error_id = "shape-mismatch"},
      {.name = "batch_dims_differ", .inputs = {f32({2, 3, 4}), f32({3, 4, 5})}, .error_id = "shape-mismatch"},
      {.name = "scalar", .inputs = {f32({}), f32({3})}, .error_id = "rank-mismatch"},
  };
}

}  // namespace

OpDef matmul() {
  return OpDef{
      .name = "MatMul",
      .doc =
          "Matrix product by numpy's rules: stacks are broadcast, a vector is a row on the left and a column on the "
          "right.",
      .inputs = {{.name = "A", .types = TypeSet::kNumeric},
                 {.name = "B", .types = TypeSet::kNumeric, .same_type_as = "A"}},
      .fusion = FusionKind::kContraction,
      .infer = infer,
      .compute = compute_product,
      .reference = reference,
      .flops = flops,
      .samples = samples(),
  };
}

OpDef fused_matmul() {
  return OpDef{
      .name = "FusedMatMul",
      .domain = "com.microsoft",
      .doc = "Matrix product with the last two dims of either input swapped if asked for, times alpha.",
      .inputs = {{.name = "A", .types = TypeSet::kFloat}, {.name = "B", .types = TypeSet::kFloat, .same_type_as = "A"}},
      .attrs = {{.name = "alpha", .kind = AttrKind::kFloat, .default_value = 1.0},
                {.name = "transA", .kind = AttrKind::kInt, .default_value = int64_t{0}},
                {.name = "transB", .kind = AttrKind::kInt, .default_value = int64_t{0}},
                {.name = "transBatchA", .kind = AttrKind::kInt, .default_value = int64_t{0}},
                {.name = "transBatchB", .kind = AttrKind::kInt, .default_value = int64_t{0}}},
      .fusion = FusionKind::kContraction,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        for (const char* name : {"transBatchA", "transBatchB"})
          if (ctx.node.attrs.get_int(name, 0))
            return refuse("unsupported-attribute")
                   << "attribute " << name << ": expected 0, got 1; put a Transpose in front";
        return infer(ctx);
      },
      .compute = compute_product,
      .reference = reference,
      .flops = flops,
      .samples = {{.name = "plain", .inputs = {f32({3, 4}), f32({4, 5})}},
                  {.name = "scaled",
                   .inputs = {f32({2, 3, 4}), f32({2, 5, 4})},
                   .attrs = attrs({{"transB", 1}, {"alpha", 0.125}})},
                  {.name = "both",
                   .inputs = {f32({4, 3}), f32({5, 4})},
                   .attrs = attrs({{"transA", 1}, {"transB", 1}})},
                  {.name = "half",
                   .inputs = {in(kFloat16, {3, 4}), in(kFloat16, {4, 2})},
                   .attrs = attrs({{"alpha", 0.5}}),
                   .rtol = 2e-3,
                   .atol = 2e-3},
                  {.name = "batch_swapped",
                   .inputs = {f32({2, 3, 4}), f32({4, 5})},
                   .attrs = attrs({{"transBatchA", 1}}),
                   .error_id = "unsupported-attribute"}},
  };
}

}  // namespace tensmith::graph::ops
