#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/op_list.h"
#include "graph/ops/reduced_shape.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

Result<ReducedShape> shape_of(const Node& node, const Shape& in) {
  const Result<int> axis = normalize_axis(node.attrs.get_int("axis", 0), static_cast<int>(in.size()));
  if (!axis) return axis.failure();
  return ReducedShape(in, {*axis}, node.attrs.get_int("keepdims", 1) != 0);
}

bool takes_last(const Node& node) { return node.attrs.get_int("select_last_index", 0) != 0; }

OpDef make(const char* name, bool max) {
  OpDef op{
      .name = name,
      .doc = std::string("The index of the ") + (max ? "greatest" : "least") +
             " element along an axis; NaN counts as it, of equal ones the first (or last) wins.",
      .inputs = {{.name = "data", .types = TypeSet::kNumeric}},
      .attrs = {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{0}},
                {.name = "keepdims", .kind = AttrKind::kInt, .default_value = int64_t{1}},
                {.name = "select_last_index", .kind = AttrKind::kInt, .default_value = int64_t{0}, .since = 12}},
      .fusion = FusionKind::kReduction,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        const Result<ReducedShape> shape = shape_of(ctx.node, ctx.input(0).shape);
        if (!shape) return shape.failure();
        if (is_const_int(shape->extents[0], 0))
          return refuse("shape-mismatch")
                 << "input data: expected elements along the axis, got shape " << shape_text(ctx.input(0).shape);
        return std::vector<TensorType>{{kInt64, shape->out, {}}};
      },
  };
  op.compute = [max](const ComputeContext& ctx) {
    const Tensor& x = ctx.input(0);
    const ReducedShape shape = shape_of(ctx.node, x.shape()).value();
    const DType type = compute_type(x.dtype());
    Reduction reduction;
    reduction.extents = shape.extents;
    reduction.reducer =
        max ? arg_max_reducer(type, kInt64, takes_last(ctx.node)) : arg_min_reducer(type, kInt64, takes_last(ctx.node));
    reduction.body = [&](const Indices& i, const Indices& r) {
      return std::vector<Expr>{widen(x(shape.input_index(i, r))), r[0]};
    };
    return std::vector<Tensor>{reduce_multi(max ? "arg_max" : "arg_min", shape.out, reduction)[1]};
  };
  op.reference = [max](ReferenceContext& ctx) -> Result<void> {
    const RefTensor& x = ctx.input(0);
    const Result<int> axis = normalize_axis(ctx.node.attrs.get_int("axis", 0), static_cast<int>(x.shape.size()));
    if (!axis) return axis.failure();
    const AxisView view(x.shape, static_cast<size_t>(*axis));
    const bool last = takes_last(ctx.node);
    const auto better = [&](int64_t a, int64_t b) {  // element a beats element b
      if (!x.is_float()) {
        const bool less =
            x.dtype.is_uint() ? static_cast<uint64_t>(x.i[b]) < static_cast<uint64_t>(x.i[a]) : x.i[b] < x.i[a];
        return x.i[a] == x.i[b] ? last : less == max;
      }
      const double p = x.f[a], q = x.f[b];
      if (std::isnan(p) || std::isnan(q)) return std::isnan(p) && (last || !std::isnan(q));
      return p == q ? last : (p > q) == max;
    };
    for (int64_t o = 0; o < view.outer; ++o)
      for (int64_t n = 0; n < view.inner; ++n) {
        const int64_t base = o * view.axis * view.inner + n;
        int64_t best = 0;
        for (int64_t k = 1; k < view.axis; ++k)
          if (better(base + k * view.inner, base + best * view.inner)) best = k;
        ctx.output().i[o * view.inner + n] = best;
      }
    return {};
  };
  op.samples = {
      {.name = "last_axis", .inputs = {f32({3, 17})}, .attrs = attrs({{"axis", -1}})},
      {.name = "first_axis", .inputs = {f32({5, 3})}, .attrs = attrs({{"keepdims", 0}})},
      {.name = "middle", .inputs = {f32({2, 3, 4})}, .attrs = attrs({{"axis", 1}, {"keepdims", 0}})},
      {.name = "ties_first", .inputs = {given(kFloat32, {2, 3}, {2, 2, 1, 1, 1, 1})}, .attrs = attrs({{"axis", 1}})},
      {.name = "ties_last",
       .inputs = {given(kFloat32, {2, 3}, {2, 2, 1, 1, 1, 1})},
       .attrs = attrs({{"axis", 1}, {"select_last_index", 1}})},
      {.name = "nan", .inputs = {given(kFloat32, {2, 3}, {1, NAN, 2, NAN, 1, NAN})}, .attrs = attrs({{"axis", 1}})},
      {.name = "infinite",
       .inputs = {given(kFloat32, {2, 2}, {-INFINITY, -INFINITY, INFINITY, INFINITY})},
       .attrs = attrs({{"axis", 1}})},
      {.name = "int8", .inputs = {in(kInt8, {4, 3}, -9, 9)}},
      {.name = "uint64", .inputs = {given(kUInt64, {3}, {3, 1e19, 5})}},
      {.name = "one", .inputs = {f32({1})}},
      {.name = "axis_out_of_range",
       .inputs = {f32({3})},
       .attrs = attrs({{"axis", 1}}),
       .error_id = "axis-out-of-range"},
      {.name = "no_elements", .inputs = {f32({0, 3})}, .error_id = "shape-mismatch"},
  };
  return op;
}

}  // namespace

/// ArgMax and ArgMin.
std::vector<OpDef> arg_reduce() { return {make("ArgMax", true), make("ArgMin", false)}; }

}  // namespace tensmith::graph::ops
