#include "graph/dim_facts.h"
#include "graph/ops/arith.h"
#include "graph/ops/op_list.h"
#include "graph/ops/ref_loops.h"
#include "graph/ops/sample.h"
#include "graph/ops/shapes.h"
#include "graph/ops/window.h"

namespace tensmith::graph::ops {

namespace {

/// Input position i and tap k meet output position `i stride + k dilation - pad`.
struct TransposeShape {
  std::vector<int64_t> kernel, stride, dilation;
  Shape pad;  ///< in front
  Shape out;  ///< [N, O, spatial...]
  int64_t group = 1;
};

Result<std::vector<int64_t>> list(const AttrMap& attrs, const char* name, size_t rank, int64_t fallback,
                                  int64_t lowest) {
  std::vector<int64_t> values = attrs.get_ints(name);
  if (values.empty()) values.assign(rank, fallback);
  if (values.size() != rank)
    return refuse("bad-attribute") << "attribute " << name << ": expected " << rank << " numbers, got "
                                   << values.size();
  for (int64_t value : values)
    if (value < lowest || value > INT32_MAX)
      return refuse("bad-attribute") << "attribute " << name << ": expected numbers from " << lowest << " to "
                                     << INT32_MAX << ", got " << value;
  return values;
}

Result<TransposeShape> resolve(const AttrMap& attrs, const TensorType& x, const TensorType& w) {
  if (Result<void> ok = check_rank(x, 3, 5, "input X"); !ok) return ok.failure();
  if (w.rank() != x.rank())
    return refuse("rank-mismatch") << "input W: expected rank " << x.rank() << " as X, got shape "
                                   << shape_text(w.shape);
  const size_t rank = static_cast<size_t>(x.rank()) - 2;
  TransposeShape shape;
  shape.group = attrs.get_int("group", 1);
  for (size_t d = 0; d < rank; ++d) {
    const auto size = known(w.shape[2 + d]);
    if (!size)
      return refuse("dynamic-shape") << "input W: expected spatial dims known at compile time, got "
                                     << shape_text(w.shape);
    if (*size > INT32_MAX)
      return refuse("shape-mismatch") << "input W: expected spatial dims of up to " << INT32_MAX << ", got shape "
                                      << shape_text(w.shape);
    shape.kernel.push_back(*size);
  }
  if (const std::vector<int64_t> given = attrs.get_ints("kernel_shape"); !given.empty() && given != shape.kernel)
    return refuse("bad-attribute") << "attribute kernel_shape: expected the spatial dims of the weights "
                                   << shape_text(w.shape);
  const auto strides = list(attrs, "strides", rank, 1, 1), dilations = list(attrs, "dilations", rank, 1, 1),
             extra = list(attrs, "output_padding", rank, 0, 0), pads = list(attrs, "pads", 2 * rank, 0, 0);
  for (const auto* one : {&strides, &dilations, &extra, &pads})
    if (!*one) return one->failure();
  shape.stride = *strides, shape.dilation = *dilations;
  if (same_dim(w.shape[0], x.shape[1]) == false)
    return refuse(different_dim(w.shape[0], x.shape[1]) ? "shape-mismatch" : "dynamic-shape")
           << "input W: expected " << dim_to_string(x.shape[1]) << " input channels as X, got shape "
           << shape_text(w.shape);
  const auto channels = known(w.shape[0]);
  if (shape.group < 1 || shape.group > INT32_MAX || (shape.group > 1 && !channels) ||
      (channels && *channels % shape.group != 0))
    return refuse("bad-attribute") << "attribute group: expected a divisor of " << dim_to_string(w.shape[0])
                                   << " channels, got " << shape.group;
  shape.out = {x.shape[0], w.shape[1] * Expr(shape.group)};
  std::vector<int64_t> wanted = attrs.get_ints("output_shape");
  if (wanted.size() == rank + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (!wanted.empty() && wanted.size() != rank)
    return refuse("bad-attribute") << "attribute output_shape: expected " << rank << " numbers, got " << wanted.size();
  const std::string auto_pad = attrs.get_string("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  for (size_t d = 0; d < rank; ++d) {
    const Expr in = x.shape[2 + d];
    const int64_t reach = (shape.kernel[d] - 1) * shape.dilation[d] + 1;
    const Expr full = (in - 1) * Expr(shape.stride[d]) + Expr(reach + (*extra)[d]);
    if (wanted.empty() && !same) {
      const int64_t front = auto_pad == "VALID" ? 0 : (*pads)[d], back = auto_pad == "VALID" ? 0 : (*pads)[rank + d];
      shape.pad.push_back(front);
      shape.out.push_back(full - Expr(front + back));
      continue;
    }
    // What the full result has too much is cut off at both ends; where it has too little, zeros follow at the back.
    const Expr size = wanted.empty() ? in * Expr(shape.stride[d]) : Expr(wanted[d]);
    const Expr total = max(full - size, Expr(0));
    const Expr half = floor_div(total, Expr(2));
    shape.pad.push_back(auto_pad == "SAME_UPPER" ? half : total - half);
    shape.out.push_back(size);
  }
  for (Shape* dims : {&shape.pad, &shape.out})
    for (Expr& dim : *dims) dim = simplify_dim(dim);
  return shape;
}

/// The input index and tap that belong to output position `o` and reduction index `r` of one dim, and when they exist.
struct Meeting {
  Expr input, tap, exists;
};

Meeting meet(const TransposeShape& shape, size_t d, const Expr& o, const Expr& r, const Expr& in) {
  const Expr stride(shape.stride[d]), position = o + shape.pad[d];
  Meeting m;
  if (shape.dilation[d] == 1) {
    // The taps that meet position p are p mod stride + j stride: only those are summed, not all with a test for
    // divisibility.
    m.tap = floor_mod(position, stride) + r * stride;
    m.input = floor_div(position, stride) - r;
    m.exists = m.input >= Expr(0) && m.input < in;
    if (shape.kernel[d] % shape.stride[d] != 0) m.exists = m.exists && m.tap < Expr(shape.kernel[d]);
    return m;
  }
  const Expr reached = position - r * Expr(shape.dilation[d]);
  m.tap = r;
  m.input = floor_div(reached, stride);
  m.exists = m.input >= Expr(0) && m.input < in;
  if (shape.stride[d] != 1) m.exists = m.exists && floor_mod(reached, stride) == Expr(0);
  return m;
}

std::vector<Tensor> compute_transpose(const ComputeContext& ctx) {
  const Tensor &x = ctx.input(0), &w = ctx.input(1);
  const TransposeShape shape = resolve(ctx.node.attrs, *ctx.input_types[0], *ctx.input_types[1]).value();
  const size_t rank = shape.kernel.size();
  const DType type = ctx.output_type().dtype;
  const Expr per_group = floor_div(x.shape()[1], Expr(shape.group)), outs = w.shape()[1];
  Reduction reduction;
  reduction.extents = {per_group};
  for (size_t d = 0; d < rank; ++d)
    reduction.extents.push_back(shape.dilation[d] == 1 ? (shape.kernel[d] + shape.stride[d] - 1) / shape.stride[d]
                                                       : shape.kernel[d]);
  reduction.reducer = sum_reducer(compute_type(type));
  reduction.body = [&](const Indices& i, const Indices& r) {
    const Expr channel = shape.group == 1 ? r[0] : floor_div(i[1], outs) * per_group + r[0];
    Indices from{i[0], channel}, weight{channel, shape.group == 1 ? i[1] : floor_mod(i[1], outs)};
    for (size_t d = 0; d < rank; ++d) {
      const Meeting m = meet(shape, d, i[2 + d], r[1 + d], x.shape()[2 + d]);
      from.push_back(m.input);
      weight.push_back(m.tap);
    }
    return std::vector<Expr>{widen(x(from)) * widen(w(weight))};
  };
  reduction.where = [&](const Indices& i, const Indices& r) {
    Expr all = make_bool(true);
    for (size_t d = 0; d < rank; ++d) all = all && meet(shape, d, i[2 + d], r[1 + d], x.shape()[2 + d]).exists;
    return all;
  };
  if (ctx.has(2)) reduction.initial = [&](const Indices& i) { return std::vector<Expr>{widen(ctx.input(2)(i[1]))}; };
  return {narrow(reduce_multi("conv_transpose", shape.out, reduction)[0], type)};
}

Result<void> reference(ReferenceContext& ctx) {
  const RefTensor &x = ctx.input(0), &w = ctx.input(1);
  const Result<TransposeShape> resolved =
      resolve(ctx.node.attrs, {x.dtype, to_shape(x.shape), {}}, {w.dtype, to_shape(w.shape), {}});
  if (!resolved) return resolved.failure();
  const TransposeShape& shape = *resolved;
  RefTensor& y = ctx.output();
  const size_t rank = shape.kernel.size();
  // Three dims, those missing of extent 1 in front.
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, pad{0, 0, 0};
  for (size_t d = 0; d < rank; ++d) {
    const size_t to = 3 - rank + d;
    in[to] = x.shape[2 + d], out[to] = y.shape[2 + d], kernel[to] = shape.kernel[d];
    stride[to] = shape.stride[d], dilation[to] = shape.dilation[d], pad[to] = known(shape.pad[d]).value();
  }
  const int64_t channels = x.shape[1], outs = w.shape[1], per_group = channels / shape.group,
                all_outs = outs * shape.group;
  const int64_t out_size = out[0] * out[1] * out[2], in_size = in[0] * in[1] * in[2],
                taps = kernel[0] * kernel[1] * kernel[2];
  if (ctx.has(2))
    for (int64_t k = 0; k < y.num_elements(); ++k) y.f[k] = ctx.input(2).f[k / out_size % all_outs];
  for (int64_t n = 0; n < x.shape[0]; ++n)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t o = 0; o < outs; ++o) {
        const double* from = x.f.data() + (n * channels + c) * in_size;
        const double* weight = w.f.data() + (c * outs + o) * taps;
        double* to = y.f.data() + (n * all_outs + c / per_group * outs + o) * out_size;
        for (int64_t iz = 0; iz < in[0]; ++iz)
          for (int64_t iy = 0; iy < in[1]; ++iy)
            for (int64_t ix = 0; ix < in[2]; ++ix)
              for (int64_t kz = 0; kz < kernel[0]; ++kz)
                for (int64_t ky = 0; ky < kernel[1]; ++ky)
                  for (int64_t kx = 0; kx < kernel[2]; ++kx) {
                    const int64_t oz = iz * stride[0] + kz * dilation[0] - pad[0],
                                  oy = iy * stride[1] + ky * dilation[1] - pad[1],
                                  ox = ix * stride[2] + kx * dilation[2] - pad[2];
                    if (oz < 0 || oz >= out[0] || oy < 0 || oy >= out[1] || ox < 0 || ox >= out[2]) continue;
                    to[(oz * out[1] + oy) * out[2] + ox] +=
                        from[(iz * in[1] + iy) * in[2] + ix] * weight[(kz * kernel[1] + ky) * kernel[2] + kx];
                  }
      }
  return {};
}

std::vector<OpSample> samples() {
  const NamedAttr s2("strides", ints({2, 2})), pads("pads", ints({1, 1, 1, 1}));
  return {
      {.name = "plain", .inputs = {f32({1, 2, 3, 3}), f32({2, 3, 3, 3})}},
      {.name = "strided_bias", .inputs = {f32({1, 2, 3, 4}), f32({2, 3, 2, 2}), f32({3})}, .attrs = attrs({s2})},
      {.name = "kernel_not_multiple", .inputs = {f32({1, 2, 3, 4}), f32({2, 1, 3, 3})}, .attrs = attrs({s2})},
      {.name = "padded",
       .inputs = {f32({1, 1, 4, 4}), f32({1, 2, 3, 3})},
       .attrs = attrs({s2, pads, {"output_padding", ints({1, 1})}})},
      {.name = "dilated",
       .inputs = {f32({1, 1, 3, 3}), f32({1, 1, 2, 2})},
       .attrs = attrs({{"dilations", ints({2, 2})}})},
      {.name = "dilated_strided",
       .inputs = {f32({1, 1, 3, 3}), f32({1, 1, 2, 3})},
       .attrs = attrs({s2, {"dilations", ints({2, 3})}})},
      {.name = "grouped",
       .inputs = {f32({1, 4, 3, 3}), f32({4, 2, 2, 2}), f32({4})},
       .attrs = attrs({s2, {"group", 2}})},
      {.name = "output_shape",
       .inputs = {f32({1, 1, 3, 3}), f32({1, 2, 3, 3})},
       .attrs = attrs({{"strides", ints({3, 2})}, {"output_shape", ints({10, 8})}})},
      {.name = "output_shape_smaller",
       .inputs = {f32({1, 1, 3, 3}), f32({1, 1, 4, 4})},
       .attrs = attrs({s2, {"output_shape", ints({5, 6})}})},
      {.name = "same_upper",
       .inputs = {f32({1, 1, 3, 3}), f32({1, 1, 3, 3})},
       .attrs = attrs({s2, {"auto_pad", "SAME_UPPER"}})},
      {.name = "same_lower",
       .inputs = {f32({1, 1, 3, 3}), f32({1, 1, 3, 3})},
       .attrs = attrs({s2, {"auto_pad", "SAME_LOWER"}})},
      {.name = "line", .inputs = {f32({1, 2, 5}), f32({2, 3, 3})}, .attrs = attrs({{"strides", ints({3})}})},
      {.name = "volume",
       .inputs = {f32({1, 1, 2, 3, 2}), f32({1, 2, 2, 2, 2})},
       .attrs = attrs({{"strides", ints({1, 2, 2})}})},
      {.name = "half", .inputs = {in(kFloat16, {1, 1, 3, 3}), in(kFloat16, {1, 1, 2, 2})}, .rtol = 2e-3, .atol = 2e-3},
      {.name = "channels_differ", .inputs = {f32({1, 3, 3, 3}), f32({2, 1, 2, 2})}, .error_id = "shape-mismatch"},
      {.name = "group_not_divisor",
       .inputs = {f32({1, 3, 3, 3}), f32({3, 1, 2, 2})},
       .attrs = attrs({{"group", 2}}),
       .error_id = "bad-attribute"},
  };
}

}  // namespace

OpDef conv_transpose() {
  std::vector<AttrSpec> attributes = window_attrs(/*kernel_required=*/false);
  attributes.push_back({.name = "group", .kind = AttrKind::kInt, .default_value = int64_t{1}});
  attributes.push_back({.name = "output_padding", .kind = AttrKind::kInts, .no_default = true});
  attributes.push_back({.name = "output_shape", .kind = AttrKind::kInts, .no_default = true});
  return OpDef{
      .name = "ConvTranspose",
      .doc =
          "Transposed convolution: each input element is spread over the output by the kernel; written as a sum over "
          "the taps that meet an output position.",
      .inputs = {{.name = "X", .types = TypeSet::kFloat},
                 {.name = "W", .types = TypeSet::kFloat, .same_type_as = "X"},
                 {.name = "B", .types = TypeSet::kFloat, .optional = true, .same_type_as = "X"}},
      .attrs = attributes,
      .fusion = FusionKind::kContraction,
      .layout = LayoutRole::kChannels,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        const Result<TransposeShape> shape = resolve(ctx.node.attrs, ctx.input(0), ctx.input(1));
        if (!shape) return shape.failure();
        if (ctx.has(2))
          if (Result<void> ok = check_shape(ctx.input(2), {shape->out[1]}, "input B"); !ok) return ok.failure();
        return std::vector<TensorType>{{ctx.input(0).dtype, shape->out, {}}};
      },
      .compute = compute_transpose,
      .reference = reference,
      .flops =
          [](const InferContext& ctx) {
            double total = 2;
            for (const Expr& dim : ctx.input(0).shape) total *= static_cast<double>(known(dim).value_or(1));
            for (int d = 1; d < ctx.input(1).rank(); ++d)
              total *= static_cast<double>(known(ctx.input(1).shape[static_cast<size_t>(d)]).value_or(1));
            return total;
          },
      .samples = samples(),
  };
}

}  // namespace tensmith::graph::ops
