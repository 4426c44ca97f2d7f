#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

/// The depth when it is known before the run.
template <typename Context>
std::optional<Expr> known_depth(const Context& ctx) {
  if (const auto elements = int_elements(ctx, 1); elements && elements->size() == 1) return (*elements)[0];
  if (const auto number = known_float(ctx.constants.size() > 1 ? ctx.constants[1] : nullptr))
    return Expr(static_cast<int64_t>(*number));
  return {};
}

Result<std::vector<TensorType>> infer_one_hot(const InferContext& ctx) {
  const TensorType& indices = ctx.input(0);
  const Result<int> axis = normalize_axis(ctx.node.attrs.get_int("axis", -1), indices.rank() + 1);
  if (!axis) return axis.failure();
  if (const TensorType& depth = ctx.input(1); !depth.shape.empty())
    if (Result<void> ok = check_shape(depth, {Expr(1)}, "input depth"); !ok) return ok.failure();
  if (Result<void> ok = check_shape(ctx.input(2), {Expr(2)}, "input values"); !ok) return ok.failure();
  const auto depth = known_depth(ctx);
  if (depth && known(*depth).value_or(0) < 0)
    return refuse("shape-mismatch") << "input depth: expected 0 or more, got " << *known(*depth);
  TensorType type{ctx.input(2).dtype, indices.shape, {}};
  type.shape.insert(type.shape.begin() + *axis, depth ? *depth : ctx.data_dim(0, *axis));
  return std::vector<TensorType>{std::move(type)};
}

std::vector<Tensor> compute_one_hot(const ComputeContext& ctx) {
  const Tensor &indices = ctx.input(0), &values = ctx.input(2);
  const int axis = normalize_axis(ctx.node.attrs.get_int("axis", -1), indices.rank() + 1).value();
  const Expr depth = *known_depth(ctx);
  return {injective("one_hot", ctx.output_type(), [&](const Indices& i) {
    Indices at = i;
    at.erase(at.begin() + axis);
    const Expr index = cast(kInt64, indices(at));
    // A negative index counts from the end; what lies outside hits no position.
    const Expr hit = indices.dtype().is_uint() ? index == i[axis] : index == i[axis] || index + depth == i[axis];
    return select(hit, values(1), values(0));
  })};
}

Result<void> reference_one_hot(ReferenceContext& ctx) {
  const RefTensor &indices = ctx.input(0), &values = ctx.input(2);
  const auto depth = static_cast<int64_t>(ctx.input(1).get(0));
  int64_t axis = ctx.node.attrs.get_int("axis", -1);
  if (axis < 0) axis += static_cast<int64_t>(indices.shape.size()) + 1;
  Dims shape = indices.shape;
  shape.insert(shape.begin() + axis, depth);
  RefTensor& y = make_output(ctx, values.dtype, shape);
  for_each_index(shape, [&](int64_t position, const Dims& index) {
    Dims at = index;
    at.erase(at.begin() + axis);
    auto hot = static_cast<int64_t>(indices.get(flat_index(indices.shape, at)));
    if (hot < 0) hot += depth;
    copy_element(y, position, values, hot == index[axis] ? 1 : 0);
  });
  return {};
}

}  // namespace

OpDef one_hot() {
  return OpDef{
      .name = "OneHot",
      .since = 9,
      .doc = "A new axis of length depth that holds values[1] where its position is the index and values[0] elsewhere.",
      .inputs = {{.name = "indices", .types = TypeSet::kNumeric},
                 {.name = "depth", .types = TypeSet::kNumeric},
                 {.name = "values"}},
      .attrs = {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{-1}}},
      .fusion = FusionKind::kInjective,
      .infer = infer_one_hot,
      .compute = compute_one_hot,
      .supports = [](const InferContext& ctx) -> Result<void> {
        if (known_depth(ctx)) return {};
        return refuse("dynamic-shape") << "input depth: expected a number known at compile time, got one that only the "
                                          "data gives; make it a constant";
      },
      .reference = reference_one_hot,
      .samples =
          {
              {.name = "last",
               .inputs = {in(kInt64, {3, 2}, -6, 6), known_scalar(kInt64, 5), given(kFloat32, {2}, {0, 1})}},
              {.name = "first",
               .inputs = {in(kInt32, {17}, 0, 3), known_scalar(kInt64, 4), given(kFloat32, {2}, {-1, 2})},
               .attrs = attrs({{"axis", 0}})},
              {.name = "middle",
               .inputs = {in(kUInt8, {2, 3}, 0, 3), known_ints({3}), given(kInt64, {2}, {2, 7})},
               .attrs = attrs({{"axis", -2}})},
              {.name = "float_index",
               .inputs = {given(kFloat32, {3}, {0, 2, -1}), known_scalar(kFloat32, 3), given(kBool, {2}, {0, 1})}},
              {.name = "scalar",
               .inputs = {in(kInt64, {}, 0, 2), known_scalar(kInt64, 3), given(kFloat32, {2}, {0, 1})}},
              {.name = "three_values",
               .inputs = {in(kInt64, {3}, 0, 2), known_scalar(kInt64, 3), f32({3})},
               .error_id = "shape-mismatch"},
          },
  };
}

}  // namespace tensmith::graph::ops
