#include "graph/ops/arith.h"
#include "graph/ops/convolution.h"
#include "graph/ops/matrix_product.h"
#include "graph/ops/op_list.h"
#include "graph/ops/quantization.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

/// A scale or zero point of a matrix product: one element, one a row of A, one a column of B, or of full rank.
enum class Side { kA, kB };

Result<void> check_parameter(const TensorType& type, const ProductShape& shape, Side side, const char* name) {
  if (check_single(type, name)) return {};
  if (type.rank() == 1) {
    const bool has_dim = side == Side::kA ? shape.row : shape.column;
    if (!has_dim) return check_single(type, name);
    return check_shape(type, {side == Side::kA ? shape.m : shape.n}, name);
  }
  Shape target = shape.out;
  if (!shape.row || !shape.column) return check_single(type, name);
  target[target.size() - (side == Side::kA ? 1 : 2)] = 1;
  return check_broadcast_to(type.shape, target, name);
}

Expr parameter(const Tensor& t, const ProductShape& shape, Side side, const Indices& i) {
  if (t.rank() == 0 || (t.rank() == 1 && is_const_int(t.shape()[0], 1))) return single(t);
  if (t.rank() == 1) return t(side == Side::kA ? i[i.size() - (shape.column ? 2 : 1)] : i.back());
  return broadcast_load(t, i);
}

/// a[...] minus its zero point, in 64 bits; `row` tells the index of an element into a zero point of one dim.
std::vector<int64_t> centered(const RefTensor& x, const RefTensor* zero, Side side) {
  std::vector<int64_t> values = x.i;
  if (!zero) return values;
  const auto count = static_cast<size_t>(zero->num_elements());
  const size_t columns = x.shape.empty() ? 1 : static_cast<size_t>(x.shape.back());
  if (zero->shape.size() <= 1) {
    for (size_t k = 0; k < values.size(); ++k)
      values[k] -= zero->i[count == 1 ? 0 : side == Side::kA ? k / columns % count : k % columns];
    return values;
  }
  for_each_broadcast<1>(x.shape, {&zero->shape}, [&](int64_t k, const std::array<int64_t, 1>& at) {
    values[static_cast<size_t>(k)] -= zero->i[at[0]];
  });
  return values;
}

/// The parameter of output element `k`.
double parameter_at(const RefTensor& t, const Dims& out, Side side, int64_t k) {
  if (t.num_elements() == 1) return t.get(0);
  const int64_t columns = out.back(), rows = out.size() > 1 ? out[out.size() - 2] : 1;
  if (t.shape.size() == 1) return t.get(side == Side::kA ? k / columns % rows : k % columns);
  int64_t offset = 0, rest = k;
  const Dims strides = broadcast_strides(t.shape, out.size());
  for (size_t d = out.size(); d-- > 0; rest /= out[d]) offset += rest % out[d] * strides[d];
  return t.get(offset);
}

TensorType type_of(const RefTensor& t) { return {t.dtype, to_shape(t.shape), {}}; }

/// The sum of (a - a_zero)(b - b_zero) in i32; `zero_a`, `zero_b` are input numbers (-1: none).
Tensor integer_product(const ComputeContext& ctx, const ProductShape& shape, int a, int b, int zero_a, int zero_b) {
  const auto minus_zero = [&](const Expr& value, int zero, Side side, const Indices& i) {
    const Expr wide = cast(kInt32, value);
    return ctx.has(zero) ? wide - cast(kInt32, parameter(ctx.input(zero), shape, side, i)) : wide;
  };
  return multiply("matmul_integer", shape, ctx.input(a), ctx.input(b), kInt32,
                  {.term = [&](const Expr& x, const Expr& y, const Indices& i) {
                    return minus_zero(x, zero_a, Side::kA, i) * minus_zero(y, zero_b, Side::kB, i);
                  }});
}

Result<std::vector<int64_t>> reference_integer_product(const ReferenceContext& ctx, int a, int b, int zero_a,
                                                       int zero_b, size_t outputs) {
  const Result<ProductShape> shape = resolve_product(type_of(ctx.input(a)), type_of(ctx.input(b)));
  if (!shape) return shape.failure();
  std::vector<int64_t> sum(outputs, 0);
  reference_multiply(
      *shape, centered(ctx.input(a), ctx.has(zero_a) ? &ctx.input(zero_a) : nullptr, Side::kA), ctx.input(a).shape,
      centered(ctx.input(b), ctx.has(zero_b) ? &ctx.input(zero_b) : nullptr, Side::kB), ctx.input(b).shape, sum);
  for (int64_t& value : sum) value = wrap_int(kInt32, value);
  return sum;
}

/// The convolution of (x - x_zero) and (w - w_zero) in i32.
Tensor integer_convolution(const ComputeContext& ctx, const ConvShape& shape, int x, int w, int zero_x, int zero_w,
                           int bias) {
  ConvTerms terms{.term = [&](const Expr& a, const Expr& b, const Expr& o) {
    Expr left = cast(kInt32, a), right = cast(kInt32, b);
    if (ctx.has(zero_x)) left = left - cast(kInt32, single(ctx.input(zero_x)));
    if (ctx.has(zero_w)) {
      const Tensor& zero = ctx.input(zero_w);
      const bool one = zero.rank() == 0 || is_const_int(zero.shape()[0], 1);
      right = right - cast(kInt32, one ? single(zero) : zero(o));
    }
    return left * right;
  }};
  if (bias >= 0 && ctx.has(bias)) terms.initial = [&ctx, bias](const Expr& o) { return ctx.input(bias)(o); };
  return convolve("conv_integer", shape, ctx.input(x), ctx.input(w), kInt32, terms);
}

Result<std::vector<int64_t>> reference_integer_convolution(const ReferenceContext& ctx, int x, int w, int zero_x,
                                                           int zero_w, int bias) {
  const RefTensor &input = ctx.input(x), &weights = ctx.input(w);
  const Result<ConvShape> shape = resolve_conv(ctx.node.attrs, type_of(input), type_of(weights));
  if (!shape) return shape.failure();
  std::vector<int64_t> left = input.i, right = weights.i;
  if (ctx.has(zero_x))
    for (int64_t& value : left) value -= ctx.input(zero_x).i[0];
  const int64_t per_output = count_of(weights.shape, 1), size = to_static(shape->window).out_size();
  if (ctx.has(zero_w))
    for (size_t k = 0; k < right.size(); ++k)
      right[k] -= ctx.input(zero_w).i[ctx.input(zero_w).num_elements() == 1 ? 0 : static_cast<int64_t>(k) / per_output];
  std::vector<int64_t> sum(static_cast<size_t>(input.shape[0] * weights.shape[0] * size), 0);
  if (bias >= 0 && ctx.has(bias))
    for (size_t k = 0; k < sum.size(); ++k)
      sum[k] = ctx.input(bias).i[static_cast<int64_t>(k) / size % weights.shape[0]];
  reference_convolve(to_static(shape->window), input.shape[0], input.shape[1], weights.shape[0], shape->group,
                     left.data(), right.data(), sum.data());
  for (int64_t& value : sum) value = wrap_int(kInt32, value);
  return sum;
}

Result<void> check_per_channel(const TensorType& type, const TensorType& w, const char* name) {
  return check_single(type, name) ? Result<void>() : check_shape(type, {w.shape[0]}, name);
}

}  // namespace

OpDef matmul_integer() {
  return OpDef{
      .name = "MatMulInteger",
      .since = 10,
      .doc = "Matrix product of 8-bit integers, each less its zero point, summed in i32.",
      .inputs = {{.name = "A", .types = TypeSet::kInteger},
                 {.name = "B", .types = TypeSet::kInteger},
                 {.name = "a_zero_point", .types = TypeSet::kInteger, .optional = true, .same_type_as = "A"},
                 {.name = "b_zero_point", .types = TypeSet::kInteger, .optional = true, .same_type_as = "B"}},
      .fusion = FusionKind::kContraction,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        for (int k = 0; k < 2; ++k)
          if (Result<void> ok = check_8_bit(ctx.input(k), k ? "input B" : "input A"); !ok) return ok.failure();
        const Result<ProductShape> shape = resolve_product(ctx.input(0), ctx.input(1));
        if (!shape) return shape.failure();
        for (int k = 2; k < 4; ++k)
          if (ctx.has(k))
            if (Result<void> ok = check_parameter(ctx.input(k), *shape, k == 2 ? Side::kA : Side::kB,
                                                  k == 2 ? "input a_zero_point" : "input b_zero_point");
                !ok)
              return ok.failure();
        return std::vector<TensorType>{{kInt32, shape->out, {}}};
      },
      .compute =
          [](const ComputeContext& ctx) {
            const ProductShape shape = resolve_product(*ctx.input_types[0], *ctx.input_types[1]).value();
            return std::vector<Tensor>{integer_product(ctx, shape, 0, 1, 2, 3)};
          },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        Result<std::vector<int64_t>> sum = reference_integer_product(ctx, 0, 1, 2, 3, ctx.output().i.size());
        if (!sum) return sum.failure();
        ctx.output().i = std::move(sum).value();
        return {};
      },
      .flops =
          [](const InferContext& ctx) {
            const auto shape = resolve_product(ctx.input(0), ctx.input(1));
            return shape ? product_flops(*shape) : 0.0;
          },
      .samples = {{.name = "plain", .inputs = {in(kUInt8, {3, 17}, 0, 255), in(kInt8, {17, 5}, -128, 127)}},
                  {.name = "zero_points",
                   .inputs = {in(kUInt8, {3, 4}, 0, 255), in(kUInt8, {4, 2}, 0, 255), given(kUInt8, {}, {12}),
                              given(kUInt8, {}, {100})}},
                  {.name = "per_row_and_column",
                   .inputs = {in(kInt8, {3, 4}, -128, 127), in(kInt8, {4, 2}, -128, 127), in(kInt8, {3}, -9, 9),
                              in(kInt8, {2}, -9, 9)}},
                  {.name = "batched",
                   .inputs = {in(kUInt8, {2, 3, 4}, 0, 255), in(kInt8, {2, 4, 5}, -128, 127), absent(),
                              in(kInt8, {2, 1, 5}, -9, 9)}},
                  {.name = "inner_dims_differ",
                   .inputs = {in(kUInt8, {3, 4}), in(kUInt8, {3, 4})},
                   .error_id = "shape-mismatch"},
                  {.name = "wide",
                   .inputs = {in(kInt32, {3, 4}), in(kInt32, {4, 3})},
                   .error_id = "unsupported-dtype"}},
  };
}

OpDef conv_integer() {
  const NamedAttr pads("pads", ints({1, 1, 1, 1}));
  return OpDef{
      .name = "ConvInteger",
      .since = 10,
      .doc = "Convolution of 8-bit integers, each less its zero point, summed in i32.",
      .inputs = {{.name = "x", .types = TypeSet::kInteger},
                 {.name = "w", .types = TypeSet::kInteger},
                 {.name = "x_zero_point", .types = TypeSet::kInteger, .optional = true, .same_type_as = "x"},
                 {.name = "w_zero_point", .types = TypeSet::kInteger, .optional = true, .same_type_as = "w"}},
      .attrs = conv_attrs(),
      .fusion = FusionKind::kContraction,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        for (int k = 0; k < 2; ++k)
          if (Result<void> ok = check_8_bit(ctx.input(k), k ? "input w" : "input x"); !ok) return ok.failure();
        const Result<ConvShape> shape = resolve_conv(ctx.node.attrs, ctx.input(0), ctx.input(1));
        if (!shape) return shape.failure();
        if (ctx.has(2))
          if (Result<void> ok = check_single(ctx.input(2), "input x_zero_point"); !ok) return ok.failure();
        if (ctx.has(3))
          if (Result<void> ok = check_per_channel(ctx.input(3), ctx.input(1), "input w_zero_point"); !ok)
            return ok.failure();
        return std::vector<TensorType>{{kInt32, shape->out, {}}};
      },
      .compute =
          [](const ComputeContext& ctx) {
            const ConvShape shape = resolve_conv(ctx.node.attrs, *ctx.input_types[0], *ctx.input_types[1]).value();
            return std::vector<Tensor>{integer_convolution(ctx, shape, 0, 1, 2, 3, -1)};
          },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        Result<std::vector<int64_t>> sum = reference_integer_convolution(ctx, 0, 1, 2, 3, -1);
        if (!sum) return sum.failure();
        ctx.output().i = std::move(sum).value();
        return {};
      },
      .flops =
          [](const InferContext& ctx) {
            const auto shape = resolve_conv(ctx.node.attrs, ctx.input(0), ctx.input(1));
            return shape ? conv_flops(*shape, ctx.input(1)) : 0.0;
          },
      .samples = {{.name = "plain", .inputs = {in(kUInt8, {1, 2, 5, 5}, 0, 255), in(kInt8, {3, 2, 3, 3}, -128, 127)}},
                  {.name = "padded_with_zero_point",
                   .inputs = {in(kUInt8, {1, 1, 3, 3}, 0, 255), in(kUInt8, {1, 1, 2, 2}, 0, 255),
                              given(kUInt8, {}, {7})},
                   .attrs = attrs({pads})},
                  {.name = "per_channel",
                   .inputs = {in(kUInt8, {1, 2, 4, 4}, 0, 255), in(kInt8, {3, 2, 3, 3}, -128, 127),
                              given(kUInt8, {}, {7}), in(kInt8, {3}, -9, 9)}},
                  {.name = "depthwise",
                   .inputs = {in(kUInt8, {1, 3, 4, 4}, 0, 255), in(kInt8, {3, 1, 3, 3}, -128, 127)},
                   .attrs = attrs({{"group", 3}})},
                  {.name = "channels_differ",
                   .inputs = {in(kUInt8, {1, 3, 4, 4}), in(kUInt8, {1, 2, 3, 3})},
                   .error_id = "shape-mismatch"}},
  };
}

OpDef qlinear_matmul() {
  const auto scale = [](std::vector<int64_t> shape) { return f32(std::move(shape), 0.01, 0.05); };
  return OpDef{
      .name = "QLinearMatMul",
      .since = 10,
      .doc = "Matrix product of quantised tensors, requantised to the scale and zero point of the output.",
      .inputs = {{.name = "a", .types = TypeSet::kInteger},
                 {.name = "a_scale", .types = TypeSet::kFloat},
                 {.name = "a_zero_point", .types = TypeSet::kInteger, .same_type_as = "a"},
                 {.name = "b", .types = TypeSet::kInteger},
                 {.name = "b_scale", .types = TypeSet::kFloat},
                 {.name = "b_zero_point", .types = TypeSet::kInteger, .same_type_as = "b"},
                 {.name = "y_scale", .types = TypeSet::kFloat},
                 {.name = "y_zero_point", .types = TypeSet::kInteger}},
      .fusion = FusionKind::kContraction,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        for (int k : {0, 3, 7})
          if (Result<void> ok = check_8_bit(ctx.input(k), k == 0   ? "input a"
                                                          : k == 3 ? "input b"
                                                                   : "input y_zero_point");
              !ok)
            return ok.failure();
        const Result<ProductShape> shape = resolve_product(ctx.input(0), ctx.input(3));
        if (!shape) return shape.failure();
        for (int k : {1, 2, 4, 5, 6, 7}) {
          static constexpr const char* kNames[] = {"",
                                                   "input a_scale",
                                                   "input a_zero_point",
                                                   "",
                                                   "input b_scale",
                                                   "input b_zero_point",
                                                   "input y_scale",
                                                   "input y_zero_point"};
          if (Result<void> ok =
                  check_parameter(ctx.input(k), *shape, k == 4 || k == 5 ? Side::kB : Side::kA, kNames[k]);
              !ok)
            return ok.failure();
        }
        return std::vector<TensorType>{{ctx.input(7).dtype, shape->out, {}}};
      },
      .compute =
          [](const ComputeContext& ctx) {
            const ProductShape shape = resolve_product(*ctx.input_types[0], *ctx.input_types[3]).value();
            const Tensor sum = integer_product(ctx, shape, 0, 3, 2, 5);
            return std::vector<Tensor>{compute("requantize", shape.out, [&](const Indices& i) {
              const auto scale_of = [&](int k, Side side) {
                return cast(kFloat32, parameter(ctx.input(k), shape, side, i));
              };
              const Expr factor = scale_of(1, Side::kA) * scale_of(4, Side::kB) / scale_of(6, Side::kA);
              return quantize(cast(kFloat32, sum(i)) * factor, parameter(ctx.input(7), shape, Side::kA, i),
                              ctx.output_type().dtype);
            })};
          },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        RefTensor& y = ctx.output();
        const Result<std::vector<int64_t>> sum = reference_integer_product(ctx, 0, 3, 2, 5, y.i.size());
        if (!sum) return sum.failure();
        for (int64_t k = 0; k < y.num_elements(); ++k) {
          const auto at = [&](int input, Side side) { return parameter_at(ctx.input(input), y.shape, side, k); };
          const double factor = at(1, Side::kA) * at(4, Side::kB) / at(6, Side::kA);
          y.i[k] = reference_quantize(static_cast<double>((*sum)[static_cast<size_t>(k)]) * factor,
                                      static_cast<int64_t>(at(7, Side::kA)), y.dtype);
        }
        return {};
      },
      .flops =
          [](const InferContext& ctx) {
            const auto shape = resolve_product(ctx.input(0), ctx.input(3));
            return shape ? product_flops(*shape) : 0.0;
          },
      .samples = {{.name = "plain",
                   .inputs = {in(kUInt8, {2, 4}, 0, 255), scale({}), given(kUInt8, {}, {113}),
                              in(kUInt8, {4, 3}, 0, 255), scale({}), given(kUInt8, {}, {114}), f32({}, 0.1, 0.2),
                              given(kUInt8, {}, {118})}},
                  {.name = "signed_batched",
                   .inputs = {in(kInt8, {2, 3, 4}, -128, 127), scale({1}), given(kInt8, {1}, {3}),
                              in(kInt8, {2, 4, 3}, -128, 127), scale({1}), given(kInt8, {1}, {-4}), f32({1}, 0.1, 0.2),
                              given(kInt8, {1}, {5})}},
                  {.name = "per_row_and_column",
                   .inputs = {in(kInt8, {3, 4}, -128, 127), scale({3}), in(kInt8, {3}, -5, 5),
                              in(kInt8, {4, 2}, -128, 127), scale({2}), in(kInt8, {2}, -5, 5), f32({}, 0.1, 0.2),
                              given(kInt8, {}, {5})}},
                  {.name = "scale_of_other_length",
                   .inputs = {in(kInt8, {3, 4}), scale({2}), in(kInt8, {3}), in(kInt8, {4, 2}), scale({2}),
                              in(kInt8, {2}), scale({}), given(kInt8, {}, {5})},
                   .error_id = "shape-mismatch"}},
  };
}

OpDef qlinear_conv() {
  const auto scale = [](std::vector<int64_t> shape) { return f32(std::move(shape), 0.01, 0.05); };
  const NamedAttr pads("pads", ints({1, 1, 1, 1}));
  return OpDef{
      .name = "QLinearConv",
      .since = 10,
      .doc = "Convolution of quantised tensors, requantised to the scale and zero point of the output.",
      .inputs = {{.name = "x", .types = TypeSet::kInteger},
                 {.name = "x_scale", .types = TypeSet::kFloat},
                 {.name = "x_zero_point", .types = TypeSet::kInteger, .same_type_as = "x"},
                 {.name = "w", .types = TypeSet::kInteger},
                 {.name = "w_scale", .types = TypeSet::kFloat},
                 {.name = "w_zero_point", .types = TypeSet::kInteger, .same_type_as = "w"},
                 {.name = "y_scale", .types = TypeSet::kFloat},
                 {.name = "y_zero_point", .types = TypeSet::kInteger},
                 {.name = "B", .types = TypeSet::kIndex, .optional = true}},
      .attrs = conv_attrs(),
      .fusion = FusionKind::kContraction,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        static constexpr const char* kNames[] = {"input x",       "input x_scale",     "input x_zero_point",
                                                 "input w",       "input w_scale",     "input w_zero_point",
                                                 "input y_scale", "input y_zero_point"};
        for (int k : {0, 3, 7})
          if (Result<void> ok = check_8_bit(ctx.input(k), kNames[k]); !ok) return ok.failure();
        const Result<ConvShape> shape = resolve_conv(ctx.node.attrs, ctx.input(0), ctx.input(3));
        if (!shape) return shape.failure();
        for (int k : {1, 2, 6, 7})
          if (Result<void> ok = check_single(ctx.input(k), kNames[k]); !ok) return ok.failure();
        for (int k : {4, 5})
          if (Result<void> ok = check_per_channel(ctx.input(k), ctx.input(3), kNames[k]); !ok) return ok.failure();
        if (ctx.has(8)) {
          if (ctx.input(8).dtype != kInt32)
            return refuse("unsupported-dtype") << "input B: expected i32, got " << to_string(ctx.input(8).dtype);
          if (Result<void> ok = check_conv_bias(ctx.input(8), ctx.input(3)); !ok) return ok.failure();
        }
        return std::vector<TensorType>{{ctx.input(7).dtype, shape->out, {}}};
      },
      .compute =
          [](const ComputeContext& ctx) {
            const ConvShape shape = resolve_conv(ctx.node.attrs, *ctx.input_types[0], *ctx.input_types[3]).value();
            const Tensor sum = integer_convolution(ctx, shape, 0, 3, 2, 5, 8);
            const Tensor& w_scale = ctx.input(4);
            return std::vector<Tensor>{compute("requantize", shape.out, [&](const Indices& i) {
              const bool one = w_scale.rank() == 0 || is_const_int(w_scale.shape()[0], 1);
              const Expr factor = cast(kFloat32, single(ctx.input(1))) *
                                  cast(kFloat32, one ? single(w_scale) : w_scale(i[1])) /
                                  cast(kFloat32, single(ctx.input(6)));
              return quantize(cast(kFloat32, sum(i)) * factor, single(ctx.input(7)), ctx.output_type().dtype);
            })};
          },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const Result<std::vector<int64_t>> sum = reference_integer_convolution(ctx, 0, 3, 2, 5, 8);
        if (!sum) return sum.failure();
        RefTensor& y = ctx.output();
        const int64_t size = count_of(y.shape, 2);
        for (int64_t k = 0; k < y.num_elements(); ++k) {
          const RefTensor& w_scale = ctx.input(4);
          const double factor = ctx.input(1).f[0] * w_scale.f[w_scale.num_elements() == 1 ? 0 : k / size % y.shape[1]] /
                                ctx.input(6).f[0];
          y.i[k] = reference_quantize(static_cast<double>((*sum)[static_cast<size_t>(k)]) * factor, ctx.input(7).i[0],
                                      y.dtype);
        }
        return {};
      },
      .flops =
          [](const InferContext& ctx) {
            const auto shape = resolve_conv(ctx.node.attrs, ctx.input(0), ctx.input(3));
            return shape ? conv_flops(*shape, ctx.input(3)) : 0.0;
          },
      .samples = {{.name = "plain",
                   .inputs = {in(kUInt8, {1, 2, 5, 5}, 0, 255), scale({}), given(kUInt8, {}, {113}),
                              in(kUInt8, {3, 2, 3, 3}, 0, 255), scale({}), given(kUInt8, {}, {114}), f32({}, 0.2, 0.3),
                              given(kUInt8, {}, {118})}},
                  {.name = "per_channel_bias_padded",
                   .inputs = {in(kUInt8, {1, 2, 4, 4}, 0, 255), scale({}), given(kUInt8, {}, {113}),
                              in(kInt8, {3, 2, 3, 3}, -128, 127), scale({3}), in(kInt8, {3}, -5, 5), f32({}, 0.2, 0.3),
                              given(kUInt8, {}, {118}), in(kInt32, {3}, -900, 900)},
                   .attrs = attrs({pads})},
                  {.name = "bias_of_other_length",
                   .inputs = {in(kUInt8, {1, 1, 3, 3}), scale({}), given(kUInt8, {}, {1}), in(kUInt8, {2, 1, 1, 1}),
                              scale({}), given(kUInt8, {}, {1}), scale({}), given(kUInt8, {}, {1}), in(kInt32, {3})},
                   .error_id = "shape-mismatch"}},
  };
}

}  // namespace tensmith::graph::ops
