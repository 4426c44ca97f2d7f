#include <cmath>

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

/// The sum with the bias, in the compute type.
Tensor conv_sum(const ComputeContext& ctx) {
  const ConvShape shape = resolve_conv(ctx.node.attrs, *ctx.input_types[0], *ctx.input_types[1]).value();
  ConvTerms terms{.term = [](const Expr& x, const Expr& w, const Expr&) { return widen(x) * widen(w); }};
  if (ctx.has(2)) terms.initial = [&](const Expr& o) { return widen(ctx.input(2)(o)); };
  return convolve("conv", shape, ctx.input(0), ctx.input(1), compute_type(ctx.output_type().dtype), terms);
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
      {.name = "padded",
       .inputs = {f32({2, 3, 5, 7}), f32({4, 3, 3, 3}), f32({4})},
       .attrs = attrs({{"pads", ints({1, 1, 1, 1})}})},
      {.name = "strided",
       .inputs = {f32({1, 2, 7, 7}), f32({3, 2, 3, 3})},
       .attrs = attrs({{"strides", ints({2, 2})}, {"pads", ints({1, 1, 1, 1})}})},
      {.name = "uneven_pads",
       .inputs = {f32({1, 2, 5, 4}), f32({3, 2, 3, 2}), f32({3})},
       .attrs = attrs({{"pads", ints({0, 1, 2, 3})}})},
      {.name = "dilated",
       .inputs = {f32({1, 1, 7, 7}), f32({2, 1, 3, 3})},
       .attrs = attrs({{"dilations", ints({2, 3})}, {"pads", ints({2, 2, 2, 2})}})},
      {.name = "depthwise",
       .inputs = {f32({1, 4, 5, 5}), f32({4, 1, 3, 3}), f32({4})},
       .attrs = attrs({{"group", 4}, {"pads", ints({1, 1, 1, 1})}})},
      {.name = "depthwise_multiplier",
       .inputs = {f32({1, 2, 5, 5}), f32({6, 1, 3, 3})},
       .attrs = attrs({{"group", 2}})},
      {.name = "grouped", .inputs = {f32({1, 6, 4, 4}), f32({4, 3, 2, 2}), f32({4})}, .attrs = attrs({{"group", 2}})},
      {.name = "line",
       .inputs = {f32({1, 2, 17}), f32({3, 2, 3}), f32({3})},
       .attrs = attrs({{"pads", ints({1, 1})}, {"strides", ints({2})}})},
      {.name = "volume",
       .inputs = {f32({1, 2, 3, 4, 5}), f32({2, 2, 2, 2, 3})},
       .attrs = attrs({{"pads", ints({1, 0, 1, 0, 0, 1})}})},
      {.name = "same_upper",
       .inputs = {f32({1, 1, 5, 6}), f32({1, 1, 3, 2})},
       .attrs = attrs({{"auto_pad", "SAME_UPPER"}, {"strides", ints({2, 2})}})},
      {.name = "same_lower",
       .inputs = {f32({1, 1, 5, 6}), f32({1, 1, 2, 2})},
       .attrs = attrs({{"auto_pad", "SAME_LOWER"}})},
      {.name = "valid", .inputs = {f32({1, 1, 5, 5}), f32({1, 1, 3, 3})}, .attrs = attrs({{"auto_pad", "VALID"}})},
      {.name = "half",
       .inputs = {in(kFloat16, {1, 2, 4, 4}), in(kFloat16, {2, 2, 3, 3}), in(kFloat16, {2})},
       .rtol = 2e-3,
       .atol = 2e-3},
      {.name = "double", .inputs = {in(kFloat64, {1, 2, 4, 4}), in(kFloat64, {2, 2, 3, 3})}},
      {.name = "channels_differ", .inputs = {f32({1, 3, 5, 5}), f32({4, 2, 1, 1})}, .error_id = "shape-mismatch"},
      {.name = "kernel_too_large", .inputs = {f32({1, 1, 2, 2}), f32({1, 1, 3, 3})}, .error_id = "shape-mismatch"},
      {.name = "zero_stride",
       .inputs = {f32({1, 1, 5, 5}), f32({1, 1, 3, 3})},
       .attrs = attrs({{"strides", ints({0, 1})}}),
       .error_id = "bad-attribute"},
      {.name = "too_few_pads",
       .inputs = {f32({1, 1, 5, 5}), f32({1, 1, 3, 3})},
       .attrs = attrs({{"pads", ints({1, 1})}}),
       .error_id = "bad-attribute"},
      {.name = "matrix_input", .inputs = {f32({5, 5}), f32({1, 1, 3, 3})}, .error_id = "rank-mismatch"},
  };
}

/// The activation that FusedConv names, on a value in its compute type.
Expr activated(const AttrMap& attrs, const Expr& value) {
  const std::string name = attrs.get_string("activation", "");
  const std::vector<double> params = attrs.get_floats("activation_params");
  const auto param = [&](size_t k, double fallback) {
    return constant_like(value, k < params.size() ? params[k] : fallback);
  };
  const Expr zero = constant_like(value, 0);
  if (name == "Relu") return max(value, zero);
  if (name == "Tanh") return call(Intrinsic::kTanh, {value});
  if (name == "Sigmoid") return call(Intrinsic::kSigmoid, {value});
  if (name == "LeakyRelu")
    return with_value("x", value, [&](const Expr& x) { return select(x < zero, x * param(0, 0.01), x); });
  if (name == "Clip") return min(max(value, param(0, 0)), param(1, 6));
  if (name == "HardSigmoid") return max(zero, min(constant_like(value, 1), value * param(0, 0.2) + param(1, 0.5)));
  return value;
}

double activated(const AttrMap& attrs, double x) {
  const std::string name = attrs.get_string("activation", "");
  const std::vector<double> params = attrs.get_floats("activation_params");
  const auto param = [&](size_t k, double fallback) { return k < params.size() ? params[k] : fallback; };
  if (name == "Relu") return x < 0 ? 0 : x;
  if (name == "Tanh") return std::tanh(x);
  if (name == "Sigmoid") return 1 / (1 + std::exp(-x));
  if (name == "LeakyRelu") return x < 0 ? x * param(0, 0.01) : x;
  if (name == "Clip") return std::min(std::max(x, param(0, 0)), param(1, 6));
  if (name == "HardSigmoid") return std::max(0.0, std::min(1.0, x * param(0, 0.2) + param(1, 0.5)));
  return x;
}

}  // namespace

OpDef fused_conv() {
  OpDef op = conv();
  op.name = "FusedConv";
  op.domain = "com.microsoft";
  op.doc = "Conv, plus Z, through an activation.";
  op.inputs.push_back({.name = "Z", .types = TypeSet::kFloat, .optional = true, .same_type_as = "X"});
  op.attrs.push_back({.name = "activation",
                      .kind = AttrKind::kString,
                      .default_value = std::string(),
                      .allowed = {"", "Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid"}});
  op.attrs.push_back({.name = "activation_params", .kind = AttrKind::kFloats, .no_default = true});
  op.infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
    Result<std::vector<TensorType>> types = infer(ctx);
    if (types && ctx.has(3))
      if (Result<void> ok = check_shape(ctx.input(3), types.value()[0].shape, "input Z"); !ok) return ok.failure();
    return types;
  };
  op.compute = [](const ComputeContext& ctx) {
    const DType type = ctx.output_type().dtype;
    const Tensor sum = conv_sum(ctx);
    return std::vector<Tensor>{compute("conv_activation", sum.shape(), [&](const Indices& i) {
      return cast(type, activated(ctx.node.attrs, ctx.has(3) ? sum(i) + widen(ctx.input(3)(i)) : sum(i)));
    })};
  };
  op.reference = [](ReferenceContext& ctx) -> Result<void> {
    if (Result<void> ok = reference(ctx); !ok) return ok;
    std::vector<double>& y = ctx.output().f;
    for (size_t k = 0; k < y.size(); ++k) y[k] = activated(ctx.node.attrs, y[k] + (ctx.has(3) ? ctx.input(3).f[k] : 0));
    return {};
  };
  op.samples.clear();
  for (const char* name : {"Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid"})
    op.samples.push_back({.name = name,
                          .inputs = {f32({1, 2, 4, 4}), f32({3, 2, 3, 3}), f32({3})},
                          .attrs = attrs({{"activation", name}, {"pads", ints({1, 1, 1, 1})}})});
  op.samples.push_back({.name = "residual",
                        .inputs = {f32({1, 2, 3, 3}), f32({2, 2, 1, 1}), absent(), f32({1, 2, 3, 3})},
                        .attrs = attrs({{"activation", "Relu"}})});
  op.samples.push_back({.name = "residual_of_other_shape",
                        .inputs = {f32({1, 2, 3, 3}), f32({2, 2, 1, 1}), absent(), f32({1, 2, 3, 2})},
                        .error_id = "shape-mismatch"});
  return op;
}

OpDef conv() {
  return OpDef{
      .name = "Conv",
      .doc =
          "Convolution of 1 to 3 spatial dims with groups, dilations, strides and padding: y[n, o] = B[o] + sum over "
          "c, k of x[n, c, o stride + k dilation - pad] w[o, c, k].",
      .inputs = {{.name = "X", .types = TypeSet::kFloat},
                 {.name = "W", .types = TypeSet::kFloat, .same_type_as = "X"},
                 {.name = "B", .types = TypeSet::kFloat, .optional = true, .same_type_as = "X"}},
      .attrs = conv_attrs(),
      .fusion = FusionKind::kContraction,
      .layout = LayoutRole::kChannels,
      .infer = infer,
      .compute =
          [](const ComputeContext& ctx) { return std::vector<Tensor>{narrow(conv_sum(ctx), ctx.output_type().dtype)}; },
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
