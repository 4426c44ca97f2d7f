#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/ops/arith.h"
#include "graph/ops/op_list.h"
#include "graph/ops/reduced_shape.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

enum class Kind { kSoftmax, kLogSoftmax, kHardmax };

Result<int> axis_of(const Node& node, int rank) { return normalize_axis(node.attrs.get_int("axis", -1), rank); }

/// Max, exponentials, their sum, quotient: one stage each, so that a schedule may keep a row in registers or cache.
std::vector<Tensor> compute_softmax(const ComputeContext& ctx, Kind kind) {
  const Tensor& x = ctx.input(0);
  const DType type = ctx.output_type().dtype;
  const int axis = axis_of(ctx.node, x.rank()).value();
  const ReducedShape row(x.shape(), {axis}, /*keep_dims=*/true);
  const auto load = [&](const Indices& i) { return widen(x(i)); };
  if (kind == Kind::kHardmax) {
    Reduction reduction;
    reduction.extents = row.extents;
    reduction.reducer = arg_max_reducer(compute_type(type), kInt64, /*last_index=*/false);
    reduction.body = [&](const Indices& i, const Indices& r) {
      return std::vector<Expr>{load(row.input_index(i, r)), r[0]};
    };
    const Tensor best = reduce_multi("arg_max", row.out, reduction)[1];
    return {compute("hardmax", x.shape(), [&](const Indices& i) {
      return select(i[static_cast<size_t>(axis)] == best(row.output_index(i)), make_const_int(type, 1),
                    make_zero(type));
    })};
  }
  const Tensor top = reduce_axes("softmax_max", row, max_reducer(compute_type(type)), load);
  const auto shifted = [&](const Indices& i) { return load(i) - top(row.output_index(i)); };
  if (kind == Kind::kLogSoftmax) {
    const Tensor total =
        sum_axes("softmax_sum", row, [&](const Indices& i) { return call(Intrinsic::kExp, {shifted(i)}); });
    const Tensor log =
        compute("softmax_log", row.out, [&](const Indices& i) { return call(Intrinsic::kLog, {total(i)}); });
    return {compute("log_softmax", x.shape(),
                    [&](const Indices& i) { return cast(type, shifted(i) - log(row.output_index(i))); })};
  }
  const Tensor power =
      compute("softmax_exp", x.shape(), [&](const Indices& i) { return call(Intrinsic::kExp, {shifted(i)}); });
  const Tensor total = sum_axes("softmax_sum", row, [&](const Indices& i) { return power(i); });
  // One division a row: the quotient would cost more than the exponential.
  const Tensor scale =
      compute("softmax_scale", row.out, [&](const Indices& i) { return make_const(compute_type(type), 1) / total(i); });
  return {compute("softmax", x.shape(),
                  [&](const Indices& i) { return cast(type, power(i) * scale(row.output_index(i))); })};
}

Result<void> reference(ReferenceContext& ctx, Kind kind) {
  const RefTensor& x = ctx.input(0);
  const Result<int> axis = axis_of(ctx.node, static_cast<int>(x.shape.size()));
  if (!axis) return axis.failure();
  const AxisView view(x.shape, static_cast<size_t>(*axis));
  std::vector<double>& y = ctx.output().f;
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t n = 0; n < view.inner; ++n) {
      const auto at = [&](int64_t k) { return (o * view.axis + k) * view.inner + n; };
      double top = -std::numeric_limits<double>::infinity(), total = 0;
      int64_t best = 0;
      for (int64_t k = 0; k < view.axis; ++k) {
        const double value = x.f[at(k)];
        if (value > top || (std::isnan(value) && !std::isnan(top))) top = value, best = k;
      }
      for (int64_t k = 0; k < view.axis; ++k) total += std::exp(x.f[at(k)] - top);
      for (int64_t k = 0; k < view.axis; ++k) {
        const double shifted = x.f[at(k)] - top;
        y[at(k)] = kind == Kind::kHardmax   ? k == best
                   : kind == Kind::kSoftmax ? std::exp(shifted) / total
                                            : shifted - std::log(total);
      }
    }
  return {};
}

OpDef make(const char* name, Kind kind, const char* doc) {
  OpDef op{
      .name = name,
      .since = 13,
      .doc = doc,
      .inputs = {{.name = "input", .types = TypeSet::kFloat}},
      .attrs = {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{1}, .until = 12},
                {.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{-1}, .since = 13}},
      .fusion = FusionKind::kReduction,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        if (Result<int> axis = axis_of(ctx.node, ctx.input(0).rank()); !axis) return axis.failure();
        return std::vector<TensorType>{{ctx.input(0).dtype, ctx.input(0).shape, {}}};
      },
      .samples = {{.name = "last_axis", .inputs = {f32({3, 17}, -5, 5)}},
                  {.name = "first_axis", .inputs = {f32({5, 3})}, .attrs = attrs({{"axis", 0}})},
                  {.name = "middle", .inputs = {f32({2, 3, 4})}, .attrs = attrs({{"axis", -2}})},
                  {.name = "large", .inputs = {given(kFloat32, {2, 3}, {1000, 1001, 1002, -1000, -2000, -1001})}},
                  {.name = "minus_infinity", .inputs = {given(kFloat32, {1, 3}, {0, -INFINITY, 1})}},
                  {.name = "ties", .inputs = {given(kFloat32, {1, 3}, {1, 1, 0})}},
                  {.name = "one", .inputs = {f32({1})}},
                  {.name = "long", .inputs = {f32({1, 65})}},
                  {.name = "half", .inputs = {in(kFloat16, {3, 9})}, .rtol = 2e-3, .atol = 2e-3},
                  {.name = "double", .inputs = {in(kFloat64, {2, 5})}},
                  {.name = "axis_out_of_range",
                   .inputs = {f32({3})},
                   .attrs = attrs({{"axis", 1}}),
                   .error_id = "axis-out-of-range"},
                  {.name = "scalar", .inputs = {f32({})}, .error_id = "axis-out-of-range"}},
  };
  op.compute = [kind](const ComputeContext& ctx) { return compute_softmax(ctx, kind); };
  op.reference = [kind](ReferenceContext& ctx) { return reference(ctx, kind); };
  op.flops = [](const InferContext& ctx) {
    double count = 14;
    for (const Expr& dim : ctx.input(0).shape) count *= static_cast<double>(known(dim).value_or(1));
    return count;
  };
  return op;
}

}  // namespace

/// Softmax and its relatives along one axis (the meaning since opset 13).
std::vector<OpDef> softmax() {
  return {make("Hardmax", Kind::kHardmax, "1 at the first greatest element along an axis, 0 elsewhere."),
          make("LogSoftmax", Kind::kLogSoftmax, "The logarithm of Softmax."),
          make("Softmax", Kind::kSoftmax,
               "exp(x) / sum(exp(x)) along an axis, computed relative to the greatest element.")};
}

}  // namespace tensmith::graph::ops
