#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/op_list.h"
#include "graph/ops/pool_loops.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

Result<std::vector<TensorType>> infer(const InferContext& ctx) {
  const Result<Window> window = resolve_pool(ctx.node.attrs, ctx.input(0));
  if (!window) return window.failure();
  if (ctx.node.attrs.get_int("p", 2) < 1)
    return refuse("bad-attribute") << "attribute p: expected 1 or more, got " << ctx.node.attrs.get_int("p", 2);
  return std::vector<TensorType>{{ctx.input(0).dtype, pool_output(*window, ctx.input(0)), {}}};
}

/// Whether the number of elements under the window depends on its position.
bool counts_vary(const Window& window, size_t d, bool with_padding) {
  return with_padding ? window.ceil : may_leave_input(window, d);
}

std::vector<Tensor> compute_average(const ComputeContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Window window = resolve_pool(ctx.node.attrs, *ctx.input_types[0]).value();
  const DType type = x.dtype(), wide = compute_type(type);
  const bool with_padding = ctx.node.attrs.get_int("count_include_pad", 0) != 0;
  Reduction reduction = pool_reduction(window);
  reduction.reducer = sum_reducer(wide);
  reduction.body = [&](const Indices& i, const Indices& r) {
    return std::vector<Expr>{widen(x(pool_input_index(window, i, r)))};
  };
  const Tensor total = reduce_multi("pool_sum", pool_output(window, *ctx.input_types[0]), reduction)[0];
  return {compute("average_pool", total.shape(), [&](const Indices& i) {
    Expr count = 1;
    for (size_t d = 0; d < window.rank(); ++d)
      count = count * (counts_vary(window, d, with_padding) ? count_taps(window, d, i[2 + d], with_padding)
                                                            : Expr(window.kernel[d]));
    return cast(type, total(i) / cast(wide, count));
  })};
}

Result<void> average_reference(ReferenceContext& ctx) {
  const RefTensor& x = ctx.input(0);
  const Result<Window> resolved = resolve_pool(ctx.node.attrs, {x.dtype, to_shape(x.shape), {}});
  if (!resolved) return resolved.failure();
  const StaticWindow window = to_static(*resolved);
  const auto [dz, dy, dx] = window.dims;
  const bool with_padding = ctx.node.attrs.get_int("count_include_pad", 0) != 0;
  StaticWindow padded = window;  // as if the padding were part of the input, to count it
  for (StaticWindow::Dim& d : padded.dims) d.in += d.pad + d.pad_end, d.pad = d.pad_end = 0;
  std::vector<int64_t> counts(static_cast<size_t>(window.out_size()), 0);
  for_each_window(with_padding ? padded : window, [&](int64_t o, const PoolTaps& taps) {
    taps.for_each([&](int64_t, int64_t, int64_t) { ++counts[static_cast<size_t>(o)]; });
  });
  for (int64_t p = 0; p < x.shape[0] * x.shape[1]; ++p)
    for_each_window(window, [&](int64_t o, const PoolTaps& taps) {
      double total = 0;
      taps.for_each(
          [&](int64_t z, int64_t v, int64_t u) { total += x.f[p * window.in_size() + (z * dy.in + v) * dx.in + u]; });
      ctx.output().f[p * window.out_size() + o] = total / static_cast<double>(counts[static_cast<size_t>(o)]);
    });
  return {};
}

std::vector<Tensor> compute_lp(const ComputeContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Window window = resolve_pool(ctx.node.attrs, *ctx.input_types[0]).value();
  const DType type = x.dtype(), wide = compute_type(type);
  const int64_t p = ctx.node.attrs.get_int("p", 2);
  Reduction reduction = pool_reduction(window);
  reduction.reducer = sum_reducer(wide);
  reduction.body = [&](const Indices& i, const Indices& r) {
    return std::vector<Expr>{power_of_magnitude(widen(x(pool_input_index(window, i, r))), p)};
  };
  const Tensor total = reduce_multi("pool_sum", pool_output(window, *ctx.input_types[0]), reduction)[0];
  return {compute("lp_pool", total.shape(), [&](const Indices& i) { return cast(type, root_of(total(i), p)); })};
}

Result<void> lp_reference(ReferenceContext& ctx) {
  const RefTensor& x = ctx.input(0);
  const Result<Window> resolved = resolve_pool(ctx.node.attrs, {x.dtype, to_shape(x.shape), {}});
  if (!resolved) return resolved.failure();
  const StaticWindow window = to_static(*resolved);
  const auto [dz, dy, dx] = window.dims;
  const auto p = static_cast<double>(ctx.node.attrs.get_int("p", 2));
  for (int64_t plane = 0; plane < x.shape[0] * x.shape[1]; ++plane)
    for_each_window(window, [&](int64_t o, const PoolTaps& taps) {
      double total = 0;
      taps.for_each([&](int64_t z, int64_t v, int64_t u) {
        total += std::pow(std::fabs(x.f[plane * window.in_size() + (z * dy.in + v) * dx.in + u]), p);
      });
      ctx.output().f[plane * window.out_size() + o] = std::pow(total, 1 / p);
    });
  return {};
}

std::vector<OpSample> samples() {
  const NamedAttr k2("kernel_shape", ints({2, 2})), k3("kernel_shape", ints({3, 3}));
  return {
      {.name = "plain", .inputs = {f32({1, 3, 4, 5})}, .attrs = attrs({k2})},
      {.name = "padded", .inputs = {f32({1, 2, 5, 5})}, .attrs = attrs({k3, {"pads", ints({1, 1, 1, 1})}})},
      {.name = "uneven_strided",
       .inputs = {f32({1, 1, 7, 6})},
       .attrs = attrs({k3, {"pads", ints({2, 0, 1, 2})}, {"strides", ints({2, 3})}})},
      {.name = "ceil",
       .inputs = {f32({1, 1, 4, 4})},
       .attrs = attrs({k3, {"strides", ints({2, 2})}, {"ceil_mode", 1}})},
      {.name = "ceil_padded",
       .inputs = {f32({1, 1, 6, 6})},
       .attrs = attrs({k3, {"strides", ints({2, 2})}, {"ceil_mode", 1}, {"pads", ints({1, 1, 0, 0})}})},
      {.name = "dilated",
       .inputs = {f32({1, 1, 6, 6})},
       .attrs = attrs({k2, {"dilations", ints({2, 3})}, {"pads", ints({1, 1, 1, 1})}})},
      {.name = "line", .inputs = {f32({1, 2, 17})}, .attrs = attrs({{"kernel_shape", ints({3})}})},
      {.name = "volume",
       .inputs = {f32({1, 1, 3, 4, 4})},
       .attrs = attrs({{"kernel_shape", ints({2, 2, 2})}, {"pads", ints({1, 0, 0, 0, 1, 1})}})},
      {.name = "same_lower", .inputs = {f32({1, 1, 4, 4})}, .attrs = attrs({k2, {"auto_pad", "SAME_LOWER"}})},
      {.name = "half", .inputs = {in(kFloat16, {1, 1, 4, 4})}, .attrs = attrs({k2}), .rtol = 2e-3, .atol = 1e-3},
      {.name = "too_few_strides",
       .inputs = {f32({1, 1, 4, 4})},
       .attrs = attrs({k2, {"strides", ints({2})}}),
       .error_id = "bad-attribute"},
      {.name = "negative_pads",
       .inputs = {f32({1, 1, 4, 4})},
       .attrs = attrs({k2, {"pads", ints({-1, 0, 0, 0})}}),
       .error_id = "bad-attribute"},
  };
}

}  // namespace

OpDef average_pool() {
  std::vector<AttrSpec> attributes = pool_attrs(/*dilations_since=*/19, /*ceil_mode_since=*/10);
  attributes.push_back({.name = "count_include_pad", .kind = AttrKind::kInt, .default_value = int64_t{0}, .since = 7});
  const NamedAttr k3("kernel_shape", ints({3, 3})), counts("count_include_pad", 1);
  std::vector<OpSample> list = samples();
  list.push_back({.name = "padding_counts",
                  .inputs = {f32({1, 1, 5, 5})},
                  .attrs = attrs({k3, counts, {"pads", ints({1, 1, 1, 1})}})});
  list.push_back(
      {.name = "padding_counts_ceil",
       .inputs = {f32({1, 1, 6, 6})},
       .attrs = attrs({k3, counts, {"pads", ints({1, 1, 1, 0})}, {"strides", ints({2, 2})}, {"ceil_mode", 1}})});
  return OpDef{
      .name = "AveragePool",
      .since = 7,
      .doc = "The mean of the elements under each position of a window, the padding counted or not.",
      .inputs = {{.name = "X", .types = TypeSet::kFloat}},
      .attrs = attributes,
      .fusion = FusionKind::kReduction,
      .layout = LayoutRole::kChannels,
      .infer = infer,
      .compute = compute_average,
      .reference = average_reference,
      .flops = pool_flops,
      .samples = list,
  };
}

OpDef lp_pool() {
  std::vector<AttrSpec> attributes = pool_attrs(/*dilations_since=*/18, /*ceil_mode_since=*/18);
  attributes.push_back({.name = "p", .kind = AttrKind::kInt, .default_value = int64_t{2}});
  std::vector<OpSample> list = samples();
  list.push_back({.name = "third_norm",
                  .inputs = {f32({1, 1, 4, 4})},
                  .attrs = attrs({{"kernel_shape", ints({2, 2})}, {"p", 3}})});
  list.push_back({.name = "first_norm",
                  .inputs = {f32({1, 1, 4, 4})},
                  .attrs = attrs({{"kernel_shape", ints({2, 2})}, {"p", 1}})});
  return OpDef{
      .name = "LpPool",
      .since = 2,
      .doc = "The Lp norm of the elements under each position of a window.",
      .inputs = {{.name = "X", .types = TypeSet::kFloat}},
      .attrs = attributes,
      .fusion = FusionKind::kReduction,
      .layout = LayoutRole::kChannels,
      .infer = infer,
      .compute = compute_lp,
      .reference = lp_reference,
      .flops = pool_flops,
      .samples = list,
  };
}

}  // namespace tensmith::graph::ops
