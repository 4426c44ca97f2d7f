#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"
#include "graph/ops/top_k_stages.h"

namespace tensmith::graph::ops {

namespace {

bool wants_largest(const AttrMap& attrs) { return attrs.get_int("largest", 1) != 0; }

Result<std::vector<TensorType>> infer_top_k(const InferContext& ctx) {
  const TensorType& data = ctx.input(0);
  const Result<int> axis = normalize_axis(ctx.node.attrs.get_int("axis", -1), data.rank());
  if (!axis) return axis.failure();
  if (!ctx.input(1).shape.empty())
    if (Result<void> ok = check_shape(ctx.input(1), {Expr(1)}, "input K"); !ok) return ok.failure();
  Shape shape = data.shape;
  if (const auto k = int_elements(ctx, 1)) {
    const auto number = known((*k)[0]), extent = known(shape[*axis]);
    if (number && (*number < 0 || (extent && *number > *extent)))
      return refuse("shape-mismatch") << "input K: expected 0 to " << dim_to_string(shape[*axis])
                                      << " elements of axis " << *axis << ", got " << *number;
    shape[*axis] = (*k)[0];
  } else {
    shape[*axis] = ctx.data_dim(0, *axis);
  }
  return std::vector<TensorType>{{data.dtype, shape, {}}, {kInt64, shape, {}}};
}

std::vector<Tensor> compute_top_k(const ComputeContext& ctx) {
  const Tensor& x = ctx.input(0);
  const int axis = normalize_axis(ctx.node.attrs.get_int("axis", -1), x.rank()).value();
  const bool largest = wants_largest(ctx.node.attrs);
  const Shape& shape = ctx.output_type().shape;
  std::vector<Tensor> outputs;
  if (is_empty(shape)) {
    outputs = {injective("top_k", {x.dtype(), shape, {}}, {}), injective("top_k_indices", {kInt64, shape, {}}, {})};
  } else if (is_const_int(shape[axis], 1) && axis < x.rank() - 1 && known(x.shape()[axis]) &&
             (largest || !x.dtype().is_float())) {
    // The first best one across rows is a reduction, which is scheduled as such. (Among the smallest, NaN comes last;
    // arg_min puts it first.)
    outputs =
        reduce_multi("top_1", shape,
                     {{x.shape()[axis]},
                      [&](const Indices& i, const Indices& r) {
                        Indices at = i;
                        at[axis] = r[0];
                        return std::vector<Expr>{x(at), r[0]};
                      },
                      largest ? arg_max_reducer(x.dtype(), kInt64, false) : arg_min_reducer(x.dtype(), kInt64, false)});
  } else {
    outputs = best_of_rows({x, axis, shape[axis], largest}, shape);
  }
  outputs.resize(ctx.node.types.size());
  return outputs;
}

Result<void> reference_top_k(ReferenceContext& ctx) {
  const RefTensor& x = ctx.input(0);
  int64_t axis = ctx.node.attrs.get_int("axis", -1);
  if (axis < 0) axis += static_cast<int64_t>(x.shape.size());
  const AxisView view(x.shape, static_cast<size_t>(axis));
  const int64_t k = ctx.input(1).i[0];
  if (k < 0 || k > view.axis)
    return Failure{"shape-mismatch", std::to_string(k) + " of " + std::to_string(view.axis) + " elements"};
  const bool largest = wants_largest(ctx.node.attrs);
  Dims shape = x.shape;
  shape[axis] = k;
  const size_t asked = ctx.outputs.size();
  make_output(ctx, x.dtype, shape, 0);
  if (asked > 1) make_output(ctx, kInt64, shape, 1);
  const auto less = [&](int64_t a, int64_t b) {
    if (x.is_float()) return x.f[a] < x.f[b] || (std::isnan(x.f[b]) && !std::isnan(x.f[a]));
    return x.dtype.is_uint() ? static_cast<uint64_t>(x.i[a]) < static_cast<uint64_t>(x.i[b]) : x.i[a] < x.i[b];
  };
  std::vector<int64_t> order(static_cast<size_t>(view.axis));
  for (int64_t row = 0; row < view.outer * view.inner; ++row) {
    const int64_t base = row / view.inner * view.axis * view.inner + row % view.inner,
                  to = row / view.inner * k * view.inner + row % view.inner;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const int64_t x_at = base + a * view.inner, y_at = base + b * view.inner;
      return largest ? less(y_at, x_at) : less(x_at, y_at);
    });
    for (int64_t p = 0; p < k; ++p) {
      copy_element(ctx.outputs[0], to + p * view.inner, x, base + order[p] * view.inner);
      if (asked > 1) ctx.outputs[1].i[to + p * view.inner] = order[p];
    }
  }
  return {};
}

}  // namespace

OpDef top_k() {
  const auto k = [](double value) { return known_ints({value}); };
  return OpDef{
      .name = "TopK",
      .doc = "The k largest or smallest elements along an axis and their indices, best first; of equal ones the first.",
      .inputs = {{.name = "X", .types = TypeSet::kNumeric}, {.name = "K", .types = TypeSet::kInt64}},
      .attrs = {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{-1}},
                {.name = "largest", .kind = AttrKind::kInt, .default_value = int64_t{1}, .since = 11},
                {.name = "sorted", .kind = AttrKind::kInt, .default_value = int64_t{1}, .since = 11}},
      .min_outputs = 1,
      .max_outputs = 2,
      .fusion = FusionKind::kOpaque,
      .infer = infer_top_k,
      .compute = compute_top_k,
      .supports = [](const InferContext& ctx) { return require_elements(ctx, {1}); },
      .reference = reference_top_k,
      .samples =
          {
              {.name = "largest", .inputs = {f32({3, 17}), k(3)}, .num_outputs = 2},
              {.name = "smallest",
               .inputs = {f32({5, 4}), k(2)},
               .attrs = attrs({{"axis", 0}, {"largest", 0}}),
               .num_outputs = 2},
              {.name = "long_row", .inputs = {f32({2, 100}), k(7)}, .num_outputs = 2},
              {.name = "sort_odd", .inputs = {in(kInt32, {2, 45}, 0, 9), k(40)}, .num_outputs = 2},
              {.name = "sort_all", .inputs = {f32({2, 33}), k(33)}, .attrs = attrs({{"largest", 0}}), .num_outputs = 2},
              {.name = "first", .inputs = {f32({3, 17, 2}), k(1)}, .attrs = attrs({{"axis", 1}}), .num_outputs = 2},
              {.name = "first_smallest",
               .inputs = {in(kInt32, {17}), k(1)},
               .attrs = attrs({{"largest", 0}}),
               .num_outputs = 2},
              {.name = "ties", .inputs = {in(kInt64, {3, 40}, 0, 3), k(9)}, .num_outputs = 2},
              {.name = "unsigned", .inputs = {in(kUInt8, {20}, 0, 255), k(5)}, .num_outputs = 2},
              {.name = "half", .inputs = {in(kFloat16, {3, 18}), k(4)}, .num_outputs = 2},
              {.name = "values_only", .inputs = {f32({3, 9}), k(4)}},
              {.name = "none", .inputs = {f32({3, 9}), k(0)}, .num_outputs = 2},
              {.name = "too_many", .inputs = {f32({3, 9}), k(10)}, .num_outputs = 2, .error_id = "shape-mismatch"},
          },
  };
}

}  // namespace tensmith::graph::ops
