#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/ops/arith.h"
#include "graph/ops/op_list.h"
#include "graph/ops/reduced_shape.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

enum class Kind { kAverage, kMax, kLp };

ReducedShape spatial_part(const Shape& x) {
  return ReducedShape(x, axes_from(2, static_cast<int>(x.size())), /*keep_dims=*/true);
}

std::vector<Tensor> compute_pool(const ComputeContext& ctx, Kind kind) {
  const Tensor& x = ctx.input(0);
  const ReducedShape shape = spatial_part(x.shape());
  const DType type = x.dtype(), wide = compute_type(type);
  const int64_t p = ctx.node.attrs.get_int("p", 2);
  const auto load = [&](const Indices& i) { return widen(x(i)); };
  if (kind == Kind::kMax) return {narrow(reduce_axes("global_max", shape, max_reducer(wide), load), type)};
  if (kind == Kind::kAverage) return {narrow(mean_axes("global_average", shape, load), type)};
  const Tensor total =
      sum_axes("global_lp_sum", shape, [&](const Indices& i) { return power_of_magnitude(load(i), p); });
  return {compute("global_lp", shape.out, [&](const Indices& i) { return cast(type, root_of(total(i), p)); })};
}

Result<void> reference(ReferenceContext& ctx, Kind kind) {
  const RefTensor& x = ctx.input(0);
  const int64_t planes = x.shape[0] * x.shape[1], size = count_of(x.shape, 2);
  const auto p = static_cast<double>(ctx.node.attrs.get_int("p", 2));
  for (int64_t k = 0; k < planes; ++k) {
    double total = kind == Kind::kMax ? -std::numeric_limits<double>::infinity() : 0;
    for (int64_t at = k * size; at < (k + 1) * size; ++at) {
      if (kind == Kind::kMax) total = x.f[at] > total || std::isnan(x.f[at]) ? x.f[at] : total;
      else total += kind == Kind::kAverage ? x.f[at] : std::pow(std::fabs(x.f[at]), p);
    }
    ctx.output().f[k] = kind == Kind::kAverage ? total / static_cast<double>(size)
                        : kind == Kind::kLp    ? std::pow(total, 1 / p)
                                               : total;
  }
  return {};
}

OpDef make(const char* name, Kind kind, const char* doc) {
  OpDef op{
      .name = name,
      .since = kind == Kind::kLp ? 2 : 1,
      .doc = doc,
      .inputs = {{.name = "X", .types = TypeSet::kFloat}},
      .attrs = {},
      .fusion = FusionKind::kReduction,
      .layout = LayoutRole::kChannels,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        if (Result<void> ok = check_rank(ctx.input(0), 2, 64, "input X"); !ok) return ok.failure();
        if (ctx.node.attrs.get_int("p", 2) < 1)
          return refuse("bad-attribute") << "attribute p: expected 1 or more, got " << ctx.node.attrs.get_int("p", 2);
        return std::vector<TensorType>{{ctx.input(0).dtype, spatial_part(ctx.input(0).shape).out, {}}};
      },
      .samples = {{.name = "image", .inputs = {f32({2, 3, 5, 7})}},
                  {.name = "one", .inputs = {f32({1, 1, 1, 1})}},
                  {.name = "line", .inputs = {f32({1, 3, 17})}},
                  {.name = "volume", .inputs = {f32({1, 2, 3, 3, 3})}},
                  {.name = "half", .inputs = {in(kFloat16, {1, 2, 3, 3})}, .rtol = 2e-3, .atol = 1e-3},
                  {.name = "vector", .inputs = {f32({5})}, .error_id = "rank-mismatch"}},
  };
  if (kind == Kind::kLp) {
    op.attrs = {{.name = "p", .kind = AttrKind::kInt, .default_value = int64_t{2}}};
    op.samples.push_back({.name = "third_norm", .inputs = {f32({1, 2, 3, 3})}, .attrs = attrs({{"p", 3}})});
  }
  op.compute = [kind](const ComputeContext& ctx) { return compute_pool(ctx, kind); };
  op.reference = [kind](ReferenceContext& ctx) { return reference(ctx, kind); };
  return op;
}

}  // namespace

/// Pools whose window is the whole image.
std::vector<OpDef> global_pool() {
  return {make("GlobalAveragePool", Kind::kAverage, "The mean of each channel of each sample."),
          make("GlobalLpPool", Kind::kLp, "The Lp norm of each channel of each sample."),
          make("GlobalMaxPool", Kind::kMax, "The greatest element of each channel of each sample.")};
}

}  // namespace tensmith::graph::ops
