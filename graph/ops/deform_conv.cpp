#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/convolution.h"
#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

enum Input { kX, kW, kOffset, kBias, kMask };

struct DeformShape {
  ConvShape conv;
  int64_t offset_groups = 1;
  int64_t taps() const { return conv.window.kernel[0] * conv.window.kernel[1]; }
};

Result<DeformShape> resolve(const AttrMap& attrs, const TensorType& x, const TensorType& w) {
  if (x.rank() != 4) return refuse("unsupported-rank") << "input X: expected images [N, C, H, W], got " << to_string(x);
  const Result<ConvShape> conv = resolve_conv(attrs, x, w);
  if (!conv) return conv.failure();
  DeformShape shape{*conv, attrs.get_int("offset_group", 1)};
  const auto channels = known(x.shape[1]);
  if (!channels) return refuse("dynamic-shape") << "input X: expected a fixed number of channels, got " << to_string(x);
  if (shape.offset_groups < 1 || shape.offset_groups > INT32_MAX || *channels % shape.offset_groups != 0)
    return refuse("bad-attribute") << "attribute offset_group: expected a divisor of " << *channels << ", got "
                                   << shape.offset_groups;
  if (shape.taps() > INT32_MAX)
    return refuse("shape-mismatch") << "input W: expected a kernel of up to " << INT32_MAX << " elements, got shape "
                                    << shape_text(w.shape);
  return shape;
}

Result<std::vector<TensorType>> infer(const InferContext& ctx) {
  const TensorType &x = ctx.input(kX), &w = ctx.input(kW);
  const Result<DeformShape> shape = resolve(ctx.node.attrs, x, w);
  if (!shape) return shape.failure();
  const Shape& out = shape->conv.out;
  const int64_t places = shape->offset_groups * shape->taps();
  if (Result<void> ok = check_shape(ctx.input(kOffset), {x.shape[0], Expr(2 * places), out[2], out[3]}, "input offset");
      !ok)
    return ok.failure();
  if (ctx.has(kBias))
    if (Result<void> ok = check_conv_bias(ctx.input(kBias), w); !ok) return ok.failure();
  if (ctx.has(kMask))
    if (Result<void> ok = check_shape(ctx.input(kMask), {x.shape[0], Expr(places), out[2], out[3]}, "input mask"); !ok)
      return ok.failure();
  return std::vector<TensorType>{{x.dtype, out, {}}};
}

/// The image between its pixels; what lies outside counts as zero.
Expr between_pixels(const Tensor& x, const Expr& n, const Expr& c, const Expr& row, const Expr& column) {
  const auto c1 = [&](double value) { return constant_like(row, value); };
  const Expr height = x.shape()[2], width = x.shape()[3];
  // Far outside is as good as just outside, and fits an index; NaN ends there too.
  const auto near = [&](const Expr& at, const Expr& extent) {
    return select(at > c1(-2), min(at, cast(at.dtype(), extent + 1)), c1(-2));
  };
  return with_value("row", near(row, height), [&](const Expr& y) {
    return with_value("column", near(column, width), [&](const Expr& z) {
      const Expr top = call(Intrinsic::kFloor, {y}), left = call(Intrinsic::kFloor, {z});
      const Expr down = y - top, right = z - left, i = cast(kInt64, top), j = cast(kInt64, left);
      const auto pixel = [&](const Expr& r, const Expr& s) {
        const Expr inside = r >= 0 && r < height && s >= 0 && s < width;
        const Expr value = widen(x(n, c, max(min(r, height - 1), 0), max(min(s, width - 1), 0)));
        return select(inside, value, make_zero(value.dtype()));
      };
      return (c1(1) - down) * ((c1(1) - right) * pixel(i, j) + right * pixel(i, j + 1)) +
             down * ((c1(1) - right) * pixel(i + 1, j) + right * pixel(i + 1, j + 1));
    });
  });
}

/// The moved taps of every position are gathered once for all output channels; what follows is a product of matrices.
std::vector<Tensor> compute_deform(const ComputeContext& ctx) {
  const Tensor &x = ctx.input(kX), &w = ctx.input(kW);
  const DType type = x.dtype(), wide = compute_type(type);
  const DeformShape shape = resolve(ctx.node.attrs, *ctx.input_types[kX], *ctx.input_types[kW]).value();
  const Window& window = shape.conv.window;
  const int64_t rows = window.kernel[0], columns = window.kernel[1];
  const int64_t channels = *known(x.shape()[1]), per_offset = channels / shape.offset_groups;
  const Shape& out = shape.conv.out;
  const Shape taps{x.shape()[0], x.shape()[1], Expr(rows), Expr(columns), out[2], out[3]};
  const Tensor gathered = compute("deform_taps", taps, [&](const Indices& i) {
    const Expr place = floor_div(i[1], per_offset) * (rows * columns) + i[2] * columns + i[3];
    const auto position = [&](int axis) {
      const Expr base = tap_index(window, static_cast<size_t>(axis), i[4 + axis], i[2 + axis]);
      return cast(wide, base) + widen(ctx.input(kOffset)(i[0], place * 2 + axis, i[4], i[5]));
    };
    const Expr value = between_pixels(x, i[0], i[1], position(0), position(1));
    return ctx.has(kMask) ? value * widen(ctx.input(kMask)(i[0], place, i[4], i[5])) : value;
  });
  const int64_t group = shape.conv.group, inputs = channels / group;
  const Expr outputs = floor_div(w.shape()[0], group);
  const Tensor sums =
      sum("deform_conv", out, {Expr(inputs), Expr(rows), Expr(columns)}, [&](const Indices& i, const Indices& r) {
        const Expr c = group == 1 ? r[0] : floor_div(i[1], outputs) * inputs + r[0];
        return gathered(i[0], c, r[1], r[2], i[2], i[3]) * widen(w(i[1], r[0], r[1], r[2]));
      });
  return {compute("deform_bias", out, [&](const Indices& i) {
    return cast(type, ctx.has(kBias) ? sums(i) + widen(ctx.input(kBias)(i[1])) : sums(i));
  })};
}

Result<void> reference(ReferenceContext& ctx) {
  const RefTensor &x = ctx.input(kX), &w = ctx.input(kW), &offset = ctx.input(kOffset);
  const auto as_type = [](const RefTensor& t) { return TensorType{t.dtype, to_shape(t.shape), {}}; };
  const Result<DeformShape> shape = resolve(ctx.node.attrs, as_type(x), as_type(w));
  if (!shape) return shape.failure();
  const StaticWindow window = to_static(shape->conv.window);
  const auto &dy = window.dims[1], &dx = window.dims[2];
  const int64_t channels = x.shape[1], per_offset = channels / shape->offset_groups, taps = dy.kernel * dx.kernel;
  const int64_t inputs = w.shape[1], outs = w.shape[0] / shape->conv.group, size = dy.out * dx.out;
  const auto pixel = [&](int64_t plane, double row, double column) {
    return row < 0 || column < 0 || row >= static_cast<double>(dy.in) || column >= static_cast<double>(dx.in)
               ? 0.0
               : x.f[(plane * dy.in + static_cast<int64_t>(row)) * dx.in + static_cast<int64_t>(column)];
  };
  RefTensor& y = ctx.output();
  for (int64_t k = 0; k < y.num_elements(); ++k) {
    const int64_t at = k % size, o = k / size % w.shape[0], n = k / size / w.shape[0];
    double total = ctx.has(kBias) ? ctx.input(kBias).f[o] : 0;
    for (int64_t i = 0; i < inputs; ++i) {
      const int64_t c = o / outs * inputs + i;
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t place = (n * shape->offset_groups + c / per_offset) * taps + tap;
        const double moved[2] = {offset.f[(place * 2) * size + at], offset.f[(place * 2 + 1) * size + at]};
        const double row =
            static_cast<double>(at / dx.out * dy.stride + tap / dx.kernel * dy.dilation - dy.pad) + moved[0];
        const double column =
            static_cast<double>(at % dx.out * dx.stride + tap % dx.kernel * dx.dilation - dx.pad) + moved[1];
        const double top = std::floor(row), left = std::floor(column), down = row - top, right = column - left;
        const int64_t plane = n * channels + c;
        const double value =
            (1 - down) * ((1 - right) * pixel(plane, top, left) + right * pixel(plane, top, left + 1)) +
            down * ((1 - right) * pixel(plane, top + 1, left) + right * pixel(plane, top + 1, left + 1));
        total +=
            value * (ctx.has(kMask) ? ctx.input(kMask).f[place * size + at] : 1) * w.f[(o * inputs + i) * taps + tap];
      }
    }
    y.f[k] = total;
  }
  return {};
}

}  // namespace

OpDef deform_conv() {
  const auto like_x = [](const char* name, bool optional) {
    return InputSpec{.name = name, .types = TypeSet::kFloat, .optional = optional, .same_type_as = "X"};
  };
  OpDef op{
      .name = "DeformConv",
      .since = 19,
      .doc =
          "Convolution of images whose taps are moved by offsets of their own at each position, and weighted by a "
          "mask.",
      .inputs = {{.name = "X", .types = TypeSet::kFloat},
                 like_x("W", false),
                 like_x("offset", false),
                 like_x("B", true),
                 like_x("mask", true)},
      .attrs = conv_attrs(),
      .infer = infer,
      .compute = compute_deform,
      .reference = reference,
      .flops =
          [](const InferContext& ctx) {
            const auto shape = resolve(ctx.node.attrs, ctx.input(kX), ctx.input(kW));
            return shape ? conv_flops(shape->conv, ctx.input(kW)) : 0.0;
          },
      .samples = {{.name = "plain", .inputs = {f32({1, 1, 3, 3}), f32({1, 1, 2, 2}), f32({1, 8, 2, 2})}},
                  {.name = "groups_and_mask",
                   .inputs = {f32({2, 4, 5, 6}), f32({6, 2, 3, 2}), f32({2, 24, 3, 6}), f32({6}), f32({2, 12, 3, 6})},
                   .attrs = attrs(
                       {{"group", 2}, {"offset_group", 2}, {"pads", ints({1, 0, 1, 1})}, {"strides", ints({2, 1})}})},
                  {.name = "far_outside",
                   .inputs = {f32({1, 1, 3, 3}), f32({1, 1, 2, 2}), f32({1, 8, 2, 2}, -1e9, 1e9)}},
                  {.name = "offsets_of_other_size",
                   .inputs = {f32({1, 1, 3, 3}), f32({1, 1, 2, 2}), f32({1, 6, 2, 2})},
                   .error_id = "shape-mismatch"},
                  {.name = "groups_do_not_divide",
                   .inputs = {f32({1, 3, 3, 3}), f32({1, 3, 2, 2}), f32({1, 16, 2, 2})},
                   .attrs = attrs({{"offset_group", 2}}),
                   .error_id = "bad-attribute"},
                  {.name = "a_line",
                   .inputs = {f32({1, 1, 3}), f32({1, 1, 2}), f32({1, 2, 2})},
                   .error_id = "unsupported-rank"}},
  };
  op.attrs.push_back({.name = "offset_group", .kind = AttrKind::kInt, .default_value = int64_t{1}});
  return op;
}

}  // namespace tensmith::graph::ops
