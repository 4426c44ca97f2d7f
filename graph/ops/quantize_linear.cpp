#include <cmath>

#include "graph/constant_math.h"
#include "graph/ops/arith.h"
#include "graph/ops/op_list.h"
#include "graph/ops/quantization.h"
#include "graph/ops/reduced_shape.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

std::vector<AttrSpec> quantize_attrs(int output_dtype_since) {
  return {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{1}, .since = 13},
          {.name = "block_size", .kind = AttrKind::kInt, .default_value = int64_t{0}, .since = 21},
          {.name = "output_dtype", .kind = AttrKind::kType, .no_default = true, .since = output_dtype_since}};
}

/// A zero point spreads as the scale does.
Result<Granularity> granularity_of(const InferContext& ctx) {
  Result<Granularity> g = resolve_granularity(ctx.node.attrs, ctx.input(0), ctx.input(1));
  if (!g || !ctx.has(2)) return g;
  if (ctx.input(2).rank() != ctx.input(1).rank() && !(g->kind == Granularity::Kind::kTensor))
    return refuse("shape-mismatch") << "the zero point: expected shape " << shape_text(ctx.input(1).shape)
                                    << " as of the scale, got " << shape_text(ctx.input(2).shape);
  if (g->kind != Granularity::Kind::kTensor) {
    if (Result<void> ok = check_shape(ctx.input(2), ctx.input(1).shape, "the zero point"); !ok) return ok.failure();
  } else if (Result<void> ok = check_single(ctx.input(2), "the zero point"); !ok) {
    return ok.failure();
  }
  return g;
}

Granularity granularity_of(const ComputeContext& ctx) {
  return resolve_granularity(ctx.node.attrs, *ctx.input_types[0], *ctx.input_types[1]).value();
}
Granularity granularity_of(const ReferenceContext& ctx) {
  const auto type = [](const RefTensor& t) { return TensorType{t.dtype, to_shape(t.shape), {}}; };
  return resolve_granularity(ctx.node.attrs, type(ctx.input(0)), type(ctx.input(1))).value();
}

/// The type in which x / scale is computed: the attribute `precision`, or the wider of both.
DType division_type(const Node& node, DType x, DType scale) {
  if (node.attrs.has("precision")) return compute_type(node.attrs.get_dtype("precision", kFloat32));
  return x == kFloat64 || scale == kFloat64 ? kFloat64 : kFloat32;
}

Result<std::vector<TensorType>> infer_quantize(const InferContext& ctx) {
  if (Result<Granularity> g = granularity_of(ctx); !g) return g.failure();
  DType type = ctx.node.attrs.get_dtype("output_dtype", kUInt8);
  if (ctx.has(2)) {
    if (ctx.node.attrs.has("output_dtype") && type != ctx.input(2).dtype)
      return refuse("dtype-mismatch") << "attribute output_dtype: expected " << to_string(ctx.input(2).dtype)
                                      << " as of the zero point, got " << to_string(type);
    type = ctx.input(2).dtype;
  }
  if (!type.is_integral() || type.bits > 16)
    return refuse("unsupported-dtype") << "output: expected an integer type of 4 to 16 bits, got " << to_string(type);
  return std::vector<TensorType>{{type, ctx.input(0).shape, {}}};
}

std::vector<Tensor> compute_quantize(const ComputeContext& ctx) {
  const Granularity g = granularity_of(ctx);
  const Tensor &x = ctx.input(0), &scale = ctx.input(1);
  const DType wide = division_type(ctx.node, x.dtype(), scale.dtype()), type = ctx.output_type().dtype;
  return {compute("quantize", x.shape(), [&](const Indices& i) {
    const Expr quotient = cast(wide, x(i)) / cast(wide, scale(scale_index(g, scale.shape(), i)));
    return quantize(quotient, ctx.has(2) ? ctx.input(2)(scale_index(g, ctx.input(2).shape(), i)) : Expr(), type);
  })};
}

Result<void> reference_quantize_linear(ReferenceContext& ctx) {
  const RefTensor &x = ctx.input(0), &scale = ctx.input(1);
  RefTensor& y = ctx.output();
  // The quotient is defined in the type of the division: its rounding decides ties.
  const bool single_precision = division_type(ctx.node, x.dtype, scale.dtype) == kFloat32;
  for_each_scaled(granularity_of(ctx), x.shape, [&](int64_t k, int64_t s) {
    const double exact = x.get(k) / scale.f[s];
    const double quotient = single_precision ? static_cast<float>(x.get(k)) / static_cast<float>(scale.f[s]) : exact;
    y.i[k] = reference_quantize(quotient, ctx.has(2) ? ctx.input(2).i[s] : 0, y.dtype);
  });
  return {};
}

}  // namespace

OpDef quantize_linear() {
  std::vector<AttrSpec> attributes = quantize_attrs(/*output_dtype_since=*/21);
  attributes.push_back({.name = "precision", .kind = AttrKind::kType, .no_default = true, .since = 23});
  attributes.push_back({.name = "saturate", .kind = AttrKind::kInt, .default_value = int64_t{1}, .since = 19});
  const NamedAttr blocks("block_size", 2);
  return OpDef{
      .name = "QuantizeLinear",
      .since = 10,
      .doc =
          "saturate(round(x / scale) + zero point), with a scale for the tensor, for each index of an axis, or for "
          "each block along it.",
      .inputs = {{.name = "x", .types = TypeSet::kFloatOrInt32},
                 {.name = "y_scale", .types = TypeSet::kFloat},
                 {.name = "y_zero_point", .types = TypeSet::kInteger, .optional = true}},
      .attrs = attributes,
      .fusion = FusionKind::kElementwise,
      .infer = infer_quantize,
      .compute = compute_quantize,
      .reference = reference_quantize_linear,
      .samples =
          {{.name = "tensor", .inputs = {f32({3, 5}, -300, 300), given(kFloat32, {}, {2}), given(kUInt8, {}, {128})}},
           {.name = "ties", .inputs = {given(kFloat32, {6}, {1, 3, -1, -3, 5, 1000}), given(kFloat32, {}, {2})}},
           {.name = "axis",
            .inputs = {f32({2, 3, 4}, -100, 100), given(kFloat32, {3}, {0.5, 1, 4}), given(kInt8, {3}, {0, 10, -10})}},
           {.name = "last_axis",
            .inputs = {f32({2, 3}, -100, 100), given(kFloat32, {3}, {0.5, 1, 4})},
            .attrs = attrs({{"axis", -1}})},
           {.name = "blocked",
            .inputs = {f32({3, 4}, -50, 50), f32({3, 2}, 0.5, 1), in(kUInt8, {3, 2}, 0, 9)},
            .attrs = attrs({blocks})},
           {.name = "blocked_uneven", .inputs = {f32({3, 5}, -50, 50), f32({3, 3}, 0.5, 1)}, .attrs = attrs({blocks})},
           {.name = "int16", .inputs = {f32({5}, -9e4, 9e4), given(kFloat32, {}, {2}), given(kInt16, {}, {100})}},
           {.name = "int4", .inputs = {f32({5}, -20, 20), given(kFloat32, {}, {2}), given(kInt4, {}, {1})}},
           {.name = "output_dtype",
            .inputs = {f32({5}, -300, 300), given(kFloat32, {}, {2})},
            .attrs = attrs({{"output_dtype", AttrValue(kInt8)}})},
           {.name = "int32", .inputs = {in(kInt32, {5}, -900, 900), given(kFloat32, {}, {3})}},
           {.name = "scale_of_other_length", .inputs = {f32({2, 3}), f32({2}, 1, 2)}, .error_id = "shape-mismatch"},
           {.name = "scale_matrix_without_block",
            .inputs = {f32({2, 4}), f32({2, 2}, 1, 2)},
            .error_id = "bad-attribute"}},
  };
}

namespace {

/// (x - zero) * scale; the difference is an integer and the product of two floats, so one rounding is all there is.
std::optional<Constant> fold_dequantize(const Node& node, const std::vector<const Constant*>& inputs) {
  if (inputs.size() < 2 || !inputs[1] || inputs[0]->dtype().bits > 8 || inputs[1]->dtype() != kFloat32 ||
      node.types[0].dtype != kFloat32)
    return std::nullopt;
  if (node.attrs.get_int("block_size", 0) != 0 || inputs[1]->shape().size() > 1) return std::nullopt;
  const Constant& x = *inputs[0];
  const int64_t channels = inputs[1]->num_elements();
  std::vector<double> scale, zero(static_cast<size_t>(channels), 0.0);
  for (int64_t c = 0; c < channels; ++c) scale.push_back(inputs[1]->float_at(c));
  const Constant* zero_point = inputs.size() > 2 ? inputs[2] : nullptr;
  if (zero_point && zero_point->num_elements() != channels) return std::nullopt;
  for (int64_t c = 0; zero_point && c < channels; ++c) zero[static_cast<size_t>(c)] = zero_point->float_at(c);
  int64_t inner = x.num_elements();
  if (channels > 1) {
    const auto rank = static_cast<int64_t>(x.shape().size());
    int64_t axis = node.attrs.get_int("axis", 1);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || x.shape()[static_cast<size_t>(axis)] != channels) return std::nullopt;
    inner = 1;
    for (int64_t k = axis + 1; k < rank; ++k) inner *= x.shape()[static_cast<size_t>(k)];
  }
  return map_elements(x, kFloat32, [&](double value, int64_t k) {
    const auto c = static_cast<size_t>(channels == 1 ? 0 : k / inner % channels);
    return (value - zero[c]) * scale[c];
  });
}

}  // namespace

OpDef dequantize_linear() {
  const NamedAttr blocks("block_size", 2);
  return OpDef{
      .name = "DequantizeLinear",
      .since = 10,
      .doc =
          "(x - zero point) scale, with a scale for the tensor, for each index of an axis, or for each block along it.",
      .inputs = {{.name = "x", .types = TypeSet::kInteger},
                 {.name = "x_scale", .types = TypeSet::kFloat},
                 {.name = "x_zero_point", .types = TypeSet::kInteger, .optional = true, .same_type_as = "x"}},
      .attrs = quantize_attrs(/*output_dtype_since=*/23),
      .fusion = FusionKind::kElementwise,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        if (Result<Granularity> g = granularity_of(ctx); !g) return g.failure();
        const DType type = ctx.node.attrs.get_dtype("output_dtype", ctx.input(1).dtype);
        if (ctx.input(0).dtype.bits > 32 || !type.is_float())
          return refuse("unsupported-dtype") << "expected integers of up to 32 bits and a float output, got "
                                             << to_string(ctx.input(0).dtype) << " and " << to_string(type);
        return std::vector<TensorType>{{type, ctx.input(0).shape, {}}};
      },
      .compute =
          [](const ComputeContext& ctx) {
            const Granularity g = granularity_of(ctx);
            const Tensor &x = ctx.input(0), &scale = ctx.input(1);
            const DType wide = compute_type(scale.dtype()), type = ctx.output_type().dtype;
            return std::vector<Tensor>{compute("dequantize", x.shape(), [&](const Indices& i) {
              Expr value = cast(kInt32, x(i));
              if (ctx.has(2)) value = value - cast(kInt32, ctx.input(2)(scale_index(g, ctx.input(2).shape(), i)));
              return cast(type, cast(wide, value) * widen(scale(scale_index(g, scale.shape(), i))));
            })};
          },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        for_each_scaled(granularity_of(ctx), ctx.input(0).shape, [&](int64_t k, int64_t s) {
          ctx.output().f[k] =
              static_cast<double>(ctx.input(0).i[k] - (ctx.has(2) ? ctx.input(2).i[s] : 0)) * ctx.input(1).f[s];
        });
        return {};
      },
      .fold = fold_dequantize,
      .samples = {{.name = "tensor",
                   .inputs = {in(kUInt8, {3, 5}, 0, 255), given(kFloat32, {}, {2}), given(kUInt8, {}, {128})}},
                  {.name = "axis",
                   .inputs = {in(kInt8, {2, 3, 4}, -128, 127), f32({3}, 0.1, 1), in(kInt8, {3}, -9, 9)}},
                  {.name = "first_axis",
                   .inputs = {in(kInt8, {2, 3}, -128, 127), f32({2}, 0.1, 1)},
                   .attrs = attrs({{"axis", 0}})},
                  {.name = "blocked",
                   .inputs = {in(kInt8, {2, 3, 4}, -128, 127), f32({2, 2, 4}, 0.1, 1), in(kInt8, {2, 2, 4}, -9, 9)},
                   .attrs = attrs({blocks})},
                  {.name = "int4",
                   .inputs = {in(kInt4, {5}, -8, 7), given(kFloat32, {}, {0.5}), given(kInt4, {}, {1})}},
                  {.name = "bias", .inputs = {in(kInt32, {5}, -9e5, 9e5), given(kFloat32, {}, {0.001})}},
                  {.name = "half_scale", .inputs = {in(kUInt8, {5}, 0, 255), given(kFloat16, {}, {0.5})}, .rtol = 1e-3},
                  {.name = "scalar", .inputs = {in(kUInt8, {}, 0, 255), given(kFloat32, {1}, {0.5})}},
                  {.name = "axis_out_of_range",
                   .inputs = {in(kInt8, {3}, 0, 9), f32({3}, 1, 2)},
                   .error_id = "axis-out-of-range"},
                  {.name = "zero_point_of_other_type",
                   .inputs = {in(kInt8, {3}, 0, 9), given(kFloat32, {}, {1}), given(kUInt8, {}, {1})},
                   .error_id = "dtype-mismatch"}},
  };
}

OpDef dynamic_quantize_linear() {
  return OpDef{
      .name = "DynamicQuantizeLinear",
      .since = 11,
      .doc = "Quantises to u8 by the range of the data (0 included): gives the values, the scale and the zero point.",
      .inputs = {{.name = "x", .types = TypeSet::kFloat}},
      .min_outputs = 3,
      .max_outputs = 3,
      .fusion = FusionKind::kReduction,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        if (ctx.input(0).dtype != kFloat32)
          return refuse("unsupported-dtype") << "input x: expected f32, got " << to_string(ctx.input(0).dtype);
        return std::vector<TensorType>{{kUInt8, ctx.input(0).shape, {}}, {kFloat32, {}, {}}, {kUInt8, {}, {}}};
      },
      .compute =
          [](const ComputeContext& ctx) {
            const Tensor& x = ctx.input(0);
            const ReducedShape all(x.shape(), axes_from(0, x.rank()), /*keep_dims=*/false);
            const auto load = [&](const Indices& i) { return x(i); };
            const Tensor top = reduce_axes("range_max", all, max_reducer(kFloat32), load),
                         bottom = reduce_axes("range_min", all, min_reducer(kFloat32), load);
            const Expr zero = make_zero(kFloat32);
            const auto low = [&] { return min(bottom(Indices{}), zero); };
            const Tensor scale = compute("scale", {}, [&](const Indices&) {
              const Expr range = max(top(Indices{}), zero) - low();
              return select(range == zero, make_const(kFloat32, 1), range / make_const(kFloat32, 255));
            });
            const Tensor zero_point = compute("zero_point", {}, [&](const Indices&) {
              return round_saturate(zero - low() / scale(Indices{}), kUInt8);
            });
            const Tensor y = compute("quantize", x.shape(), [&](const Indices& i) {
              return quantize(x(i) / scale(Indices{}), zero_point(Indices{}), kUInt8);
            });
            return std::vector<Tensor>{y, scale, zero_point};
          },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const RefTensor& x = ctx.input(0);
        double low = 0, high = 0;
        for (double value : x.f) low = std::min(low, value), high = std::max(high, value);
        const double range = high - low, scale = range == 0 ? 1 : static_cast<float>(range) / 255.0f;
        const int64_t zero_point = reference_quantize(static_cast<float>(-low) / static_cast<float>(scale), 0, kUInt8);
        ctx.output(1).f[0] = scale;
        ctx.output(2).i[0] = zero_point;
        for (int64_t k = 0; k < x.num_elements(); ++k)
          ctx.output(0).i[k] =
              reference_quantize(static_cast<float>(x.f[k]) / static_cast<float>(scale), zero_point, kUInt8);
        return {};
      },
      .samples = {{.name = "mixed", .inputs = {f32({3, 5}, -3, 7)}, .num_outputs = 3},
                  {.name = "positive", .inputs = {f32({7}, 2, 7)}, .num_outputs = 3},
                  {.name = "negative", .inputs = {f32({7}, -7, -2)}, .num_outputs = 3},
                  {.name = "zeros", .inputs = {given(kFloat32, {3}, {0, 0, 0})}, .num_outputs = 3},
                  {.name = "double", .inputs = {in(kFloat64, {3})}, .num_outputs = 3, .error_id = "unsupported-dtype"}},
  };
}

}  // namespace tensmith::graph::ops
