#include "graph/ops/arith.h"
#include "graph/ops/convolution.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

Result<std::vector<TensorType>> infer(const InferContext& ctx) {
  const Result<ConvShape> shape = resolve_conv(ctx.node.attrs, ctx.input(0), ctx.input(1));
  if (!shape) return shape.failure();
  if (ctx.has(2))
    if (Result<void> ok = check_conv_bias(ctx.input(2), ctx.input(1)); !ok) return ok.failure();
  return std::vector<TensorType>{{ctx.input(0).dtype, shape->out, {}}};
}

std::vector<Tensor> conv_compute(const ComputeContext& ctx) {
  const ConvShape shape = resolve_conv(ctx.node.attrs, *ctx.input_types[0], *ctx.input_types[1]).value();
  ConvTerms terms{.term = [](const Expr& x, const Expr& w, const Expr&) { return widen(x) * widen(w); }};
  if (ctx.has(2)) terms.initial = [&](const Expr& o) { return widen(ctx.input(2)(o)); };
  const DType type = ctx.output_type().dtype;
  return {narrow(convolve("conv", shape, ctx.input(0), ctx.input(1), compute_type(type), terms), type)};
}

Result<void> reference(ReferenceContext& ctx) {
  const RefTensor &x = ctx.input(0), &w = ctx.input(1);
  RefTensor& y = ctx.output();
  const auto as_type = [](const RefTensor& t) { return TensorType{t.dtype, to_shape(t.shape), {}}; };
  const Result<ConvShape> shape = resolve_conv(ctx.node.attrs, as_type(x), as_type(w));
  if (!shape) return shape.failure();
  const StaticWindow window = to_static(shape->window);
  if (ctx.has(2)) {
    const int64_t size = window.out_size();
    for (int64_t k = 0; k < y.num_elements(); ++k) y.f[k] = ctx.input(2).f[k / size % w.shape[0]];
  }
  reference_convolve(window, x.shape[0], x.shape[1], w.shape[0], shape->group, x.f.data(), w.f.data(), y.f.data());
  return {};
}

std::vector<OpSample> samples() {
  return {
      {.name = "pointwise", .inputs = {f32({1, 3, 5, 5}), f32({4, 3, 1, 1})}},
      {.name = "padded", .inputs = {f32({2, 3, 5, 7}), f32({4, 3, 3, 3}), f32({4})}, .attrs = attrs({{"pads", ints({1, 1, 1, 1})}})},
      {.name = "strided", .inputs = {f32({1, 2, 7, 7}), f32({3, 2, 3, 3})}, .attrs = attrs({{"strides", ints({2, 2})}, {"pads", ints({1, 1, 1, 1})}})},
      {.name = "uneven_pads", .inputs = {f32({1, 2, 5, 4}), f32({3, 2, 3, 2}), f32({3})}, .attrs = attrs({{"pads", ints({0, 1, 2, 3})}})},
      {.name = "dilated", .inputs = {f32({1, 1, 7, 7}), f32({2, 1, 3, 3})}, .attrs = attrs({{"dilations", ints({2, 3})}, {"pads", ints({2, 2, 2, 2})}})},
      {.name = "depthwise", .inputs = {f32({1, 4, 5, 5}), f32({4, 1, 3, 3}), f32({4})}, .attrs = attrs({{"group", 4}, {"pads", ints({1, 1, 1, 1})}})},
      {.name = "depthwise_multiplier", .inputs = {f32({1, 2, 5, 5}), f32({6, 1, 3, 3})}, .attrs = attrs({{"group", 2}})},
      {.name = "grouped", .inputs = {f32({1, 6, 4, 4}), f32({4, 3, 2, 2}), f32({4})}, .attrs = attrs({{"group", 2}})},
      {.name = "line", .inputs = {f32({1, 2, 17}), f32({3, 2, 3}), f32({3})}, .attrs = attrs({{"pads", ints({1, 1})}, {"strides", ints({2})}})},
      {.name = "volume", .inputs = {f32({1, 2, 3, 4, 5}), f32({2, 2, 2, 2, 3})}, .attrs = attrs({{"pads", ints({1, 0, 1, 0, 0, 1})}})},
      {.name = "same_upper", .inputs = {f32({1, 1, 5, 6}), f32({1, 1, 3, 2})}, .attrs = attrs({{"auto_pad", "SAME_UPPER"}, {"strides", ints({2, 2})}})},
      {.name = "same_lower", .inputs = {f32({1, 1, 5, 6}), f32({1, 1, 2, 2})}, .attrs = attrs({{"auto_pad", "SAME_LOWER"}})},
      {.name = "valid", .inputs = {f32({1, 1, 5, 5}), f32({1, 1, 3, 3})}, .attrs = attrs({{"auto_pad", "VALID"}})},
      {.name = "half", .inputs = {in(kFloat16, {1, 2, 4, 4}), in(kFloat16, {2, 2, 3, 3}), in(kFloat16, {2})}, .rtol = 2e-3, .atol = 2e-3},
      {.name = "double", .inputs = {in(kFloat64, {1, 2, 4, 4}), in(kFloat64, {2, 2, 3, 3})}},
      {.name = "channels_differ", .inputs = {f32({1, 3, 5, 5}), f32({4, 2, 1, 1})}, .error_id = "shape-mismatch"},
      {.name = "kernel_too_large", .inputs = {f32({1, 1, 2, 2}), f32({1, 1, 3, 3})}, .error_id = "shape-mismatch"},
      {.name = "zero_stride", .inputs = {f32({1, 1, 5, 5}), f32({1, 1, 3, 3})}, .attrs = attrs({{"strides", ints({0, 1})}}), .error_id = "bad-attribute"},
      {.name = "too_few_pads", .inputs = {f32({1, 1, 5, 5}), f32({1, 1, 3, 3})}, .attrs = attrs({{"pads", ints({1, 1})}}), .error_id = "bad-attribute"},
      {.name = "matrix_input", .inputs = {f32({5, 5}), f32({1, 1, 3, 3})}, .error_id = "rank-mismatch"},
  };
}

}  // namespace

OpDef conv() {
  return OpDef{
      .name = "Conv",
      .doc = "Convolution of 1 to 3 spatial dims with groups, dilations, strides and padding: y[n, o] = B[o] + sum over c, k of x[n, c, o stride + k dilation - pad] w[o, c, k].",
      .inputs = {{.name = "X", .types = TypeSet::kFloat},
                 {.name = "W", .types = TypeSet::kFloat, .same_type_as = "X"},
                 {.name = "B", .types = TypeSet::kFloat, .optional = true, .same_type_as = "X"}},
      .attrs = conv_attrs(),
      .fusion = FusionKind::kContraction,
      .infer = infer,
      .compute = conv_compute,
      .reference = reference,
      .flops =
          [](const InferContext& ctx) {
            const auto shape = resolve_conv(ctx.node.attrs, ctx.input(0), ctx.input(1));
            return shape ? conv_flops(*shape, ctx.input(1)) : 0.0;
          },
      .samples = samples(),
  };
}

}  // namespace tensmith::graph::ops
