#include <cmath>
#include <limits>

#include "graph/ops/arith.h"
#include "graph/ops/op_list.h"
#include "graph/ops/pool_loops.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

Result<std::vector<TensorType>> infer(const InferContext& ctx) {
  const Result<Window> window = resolve_pool(ctx.node.attrs, ctx.input(0));
  if (!window) return window.failure();
  const Shape out = pool_output(*window, ctx.input(0));
  return std::vector<TensorType>{{ctx.input(0).dtype, out, {}}, {kInt64, out, {}}};
}

/// The same element counted with the first spatial dim running fastest.
Expr column_major(const Expr& row_major, const Shape& in) {
  Expr rest = row_major, plane = 1, index = 0;
  std::vector<Expr> at(in.size());
  for (size_t d = in.size(); d-- > 2;) {
    at[d] = floor_mod(rest, in[d]);
    rest = floor_div(rest, in[d]);
  }
  for (size_t d = 2; d < in.size(); ++d) {
    index = index + at[d] * plane;
    plane = plane * in[d];
  }
  return rest * plane + index;
}

std::vector<Tensor> compute_pool(const ComputeContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Window window = resolve_pool(ctx.node.attrs, *ctx.input_types[0]).value();
  const Shape out = pool_output(window, *ctx.input_types[0]);
  const DType type = x.dtype(), wide = compute_type(type);
  Reduction reduction = pool_reduction(window);
  if (ctx.node.types.size() < 2) {
    reduction.reducer = max_reducer(wide);
    reduction.body = [&](const Indices& i, const Indices& r) {
      return std::vector<Expr>{widen(x(pool_input_index(window, i, r)))};
    };
    return {narrow(reduce_multi("max_pool", out, reduction)[0], type)};
  }
  reduction.reducer = arg_max_reducer(wide, kInt64, /*last_index=*/false);
  reduction.body = [&](const Indices& i, const Indices& r) {
    const Indices at = pool_input_index(window, i, r);
    Expr position = 0;
    for (size_t d = 0; d < at.size(); ++d) position = position * x.shape()[d] + at[d];
    return std::vector<Expr>{widen(x(at)), position};
  };
  const std::vector<Tensor> best = reduce_multi("max_pool", out, reduction);
  Tensor position = best[1];
  if (ctx.node.attrs.get_int("storage_order", 0) == 1)
    position = compute("column_major", out, [&](const Indices& i) { return column_major(best[1](i), x.shape()); });
  return {narrow(best[0], type), position};
}

Result<void> reference(ReferenceContext& ctx) {
  const RefTensor& x = ctx.input(0);
  const Result<Window> resolved = resolve_pool(ctx.node.attrs, {x.dtype, to_shape(x.shape), {}});
  if (!resolved) return resolved.failure();
  const StaticWindow window = to_static(*resolved);
  const auto [dz, dy, dx] = window.dims;
  const bool columns = ctx.node.attrs.get_int("storage_order", 0) == 1, indices = ctx.outputs.size() > 1;
  const int64_t planes = x.shape[0] * x.shape[1];
  RefTensor& y = ctx.output();
  const auto greater = [&](int64_t a, int64_t b) {
    if (!x.is_float())
      return x.dtype.is_uint() ? static_cast<uint64_t>(x.i[a]) > static_cast<uint64_t>(x.i[b]) : x.i[a] > x.i[b];
    return x.f[a] > x.f[b] || (std::isnan(x.f[a]) && !std::isnan(x.f[b]));
  };
  for (int64_t p = 0; p < planes; ++p)
    for_each_window(window, [&](int64_t o, const PoolTaps& taps) {
      int64_t best = -1, best_z = 0, best_y = 0, best_x = 0;
      taps.for_each([&](int64_t z, int64_t v, int64_t u) {
        const int64_t at = p * window.in_size() + (z * dy.in + v) * dx.in + u;
        if (best < 0 || greater(at, best)) best = at, best_z = z, best_y = v, best_x = u;
      });
      const int64_t to = p * window.out_size() + o;
      if (best < 0) {  // no tap inside the input
        if (y.is_float()) y.f[to] = -std::numeric_limits<double>::infinity();
        else y.i[to] = y.dtype.is_int() ? static_cast<int64_t>(~uint64_t{0} << (y.dtype.bits - 1)) : 0;
        if (indices) ctx.output(1).i[to] = -1;
        return;
      }
      if (y.is_float()) y.f[to] = x.f[best];
      else y.i[to] = x.i[best];
      if (indices)
        ctx.output(1).i[to] = columns ? p * window.in_size() + best_z + (best_y + best_x * dy.in) * dz.in : best;
    });
  return {};
}

std::vector<OpSample> samples() {
  const NamedAttr k2("kernel_shape", ints({2, 2})), k3("kernel_shape", ints({3, 3}));
  return {
      {.name = "plain", .inputs = {f32({1, 3, 4, 5})}, .attrs = attrs({k2})},
      {.name = "strided_padded",
       .inputs = {f32({1, 2, 7, 7})},
       .attrs = attrs({k3, {"strides", ints({2, 2})}, {"pads", ints({1, 1, 1, 1})}})},
      {.name = "ceil",
       .inputs = {f32({1, 1, 4, 4})},
       .attrs = attrs({k3, {"strides", ints({2, 2})}, {"ceil_mode", 1}})},
      {.name = "ceil_window_in_padding",
       .inputs = {f32({1, 1, 2, 2})},
       .attrs = attrs({{"kernel_shape", ints({1, 1})}, {"strides", ints({2, 2})}, {"ceil_mode", 1}})},
      {.name = "dilated", .inputs = {f32({1, 1, 6, 6})}, .attrs = attrs({k2, {"dilations", ints({2, 3})}})},
      {.name = "indices",
       .inputs = {f32({2, 2, 4, 4})},
       .attrs = attrs({k2, {"strides", ints({2, 2})}}),
       .num_outputs = 2},
      {.name = "indices_padded",
       .inputs = {f32({1, 2, 3, 4})},
       .attrs = attrs({k3, {"pads", ints({1, 1, 1, 1})}}),
       .num_outputs = 2},
      {.name = "indices_ties",
       .inputs = {given(kFloat32, {1, 1, 2, 2}, {1, 1, 1, 1})},
       .attrs = attrs({k2}),
       .num_outputs = 2},
      {.name = "indices_column_major",
       .inputs = {f32({1, 2, 3, 5})},
       .attrs = attrs({k2, {"storage_order", 1}}),
       .num_outputs = 2},
      {.name = "line",
       .inputs = {f32({1, 2, 17})},
       .attrs = attrs({{"kernel_shape", ints({3})}, {"strides", ints({2})}})},
      {.name = "volume", .inputs = {f32({1, 1, 3, 4, 5})}, .attrs = attrs({{"kernel_shape", ints({2, 2, 3})}})},
      {.name = "volume_indices",
       .inputs = {f32({1, 2, 3, 4, 5})},
       .attrs = attrs({{"kernel_shape", ints({2, 2, 3})}, {"storage_order", 1}}),
       .num_outputs = 2},
      {.name = "same_upper",
       .inputs = {f32({1, 1, 5, 5})},
       .attrs = attrs({k3, {"strides", ints({2, 2})}, {"auto_pad", "SAME_UPPER"}})},
      {.name = "nan", .inputs = {given(kFloat32, {1, 1, 2, 3}, {1, NAN, 2, 3, 4, 5})}, .attrs = attrs({k2})},
      {.name = "uint8", .inputs = {in(kUInt8, {1, 1, 4, 4}, 0, 255)}, .attrs = attrs({k2})},
      {.name = "int8",
       .inputs = {in(kInt8, {1, 1, 4, 4}, -128, -1)},
       .attrs = attrs({k2, {"pads", ints({1, 1, 0, 0})}})},
      {.name = "half", .inputs = {in(kFloat16, {1, 1, 4, 4})}, .attrs = attrs({k2}), .rtol = 1e-3},
      {.name = "kernel_of_other_rank", .inputs = {f32({1, 1, 4})}, .attrs = attrs({k2}), .error_id = "bad-attribute"},
      {.name = "matrix", .inputs = {f32({4, 4})}, .attrs = attrs({k2}), .error_id = "rank-mismatch"},
      {.name = "no_kernel", .inputs = {f32({1, 1, 4, 4})}, .error_id = "missing-attribute"},
  };
}

}  // namespace

OpDef max_pool() {
  std::vector<AttrSpec> attributes = pool_attrs(/*dilations_since=*/10, /*ceil_mode_since=*/10);
  attributes.push_back({.name = "storage_order", .kind = AttrKind::kInt, .default_value = int64_t{0}, .since = 8});
  return OpDef{
      .name = "MaxPool",
      .doc = "The greatest element under each position of a window, and where it lies in the input.",
      .inputs = {{.name = "X", .types = TypeSet::kNumeric}},
      .attrs = attributes,
      .min_outputs = 1,
      .max_outputs = 2,
      .fusion = FusionKind::kReduction,
      .layout = LayoutRole::kChannels,
      .infer = infer,
      .compute = compute_pool,
      .reference = reference,
      .flops = pool_flops,
      .samples = samples(),
  };
}

}  // namespace tensmith::graph::ops
