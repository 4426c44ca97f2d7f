#include <algorithm>

#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/reshape_index.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

/// The axes input as numbers, counted from the front of a tensor of `rank` dims, ascending.
Result<std::vector<int>> given_axes(const InferContext& ctx, int rank) {
  const auto axes = known_numbers(ctx, 1);
  if (!axes)
    return refuse("dynamic-rank")
           << "input axes: expected a constant, got values that are only known at run time; make it a constant";
  return normalize_axes(*axes, rank);
}

Result<std::vector<TensorType>> infer_squeeze(const InferContext& ctx) {
  const TensorType& data = ctx.input(0);
  std::vector<int> axes;
  if (ctx.has(1)) {
    Result<std::vector<int>> given = given_axes(ctx, data.rank());
    if (!given) return given.failure();
    axes = *given;
    for (int axis : axes)
      if (known(data.shape[axis]).value_or(1) != 1)
        return refuse("shape-mismatch") << "input axes: expected axes of 1, got axis " << axis << " of shape "
                                        << shape_text(data.shape);
  } else {
    for (int axis = 0; axis < data.rank(); ++axis) {
      if (!known(data.shape[axis]))
        return refuse("dynamic-rank") << "shape " << shape_text(data.shape)
                                      << ": expected known dims where no axes are given, got "
                                      << dim_to_string(data.shape[axis])
                                      << ", which may be 1 at run time; give axes, or the dim a size with --dim";
      if (*known(data.shape[axis]) == 1) axes.push_back(axis);
    }
  }
  TensorType type{data.dtype, {}, {}};
  for (int axis = 0; axis < data.rank(); ++axis)
    if (!std::binary_search(axes.begin(), axes.end(), axis)) type.shape.push_back(data.shape[axis]);
  pass_elements(ctx, 0, type);
  return std::vector<TensorType>{std::move(type)};
}

Result<void> supports_squeeze(const InferContext& ctx) {
  if (!ctx.has(1)) return {};
  const Shape& shape = ctx.input(0).shape;
  const std::vector<int> axes = given_axes(ctx, ctx.input(0).rank()).value();
  for (int axis : axes)
    if (Result<void> ok = require_same_dim(shape[axis], 1, "axis " + std::to_string(axis) + " of the data"); !ok)
      return ok;
  return {};
}

Result<std::vector<TensorType>> infer_unsqueeze(const InferContext& ctx) {
  const TensorType& data = ctx.input(0);
  const auto numbers = known_numbers(ctx, 1);
  const int rank = data.rank() + (numbers ? static_cast<int>(numbers->size()) : 0);
  const Result<std::vector<int>> axes = given_axes(ctx, rank);
  if (!axes) return axes.failure();
  TensorType type{data.dtype, {}, {}};
  for (int axis = 0, taken = 0; axis < rank; ++axis)
    type.shape.push_back(std::binary_search(axes->begin(), axes->end(), axis) ? Expr(1) : data.shape[taken++]);
  pass_elements(ctx, 0, type);
  return std::vector<TensorType>{std::move(type)};
}

bool contains(const Dims& axes, int64_t axis, int64_t rank) {
  return std::any_of(axes.begin(), axes.end(), [&](int64_t a) { return a == axis || a + rank == axis; });
}

std::vector<AttrSpec> axes_history(bool required) {
  return {{.name = "axes",
           .kind = AttrKind::kInts,
           .required = required,
           .no_default = true,
           .until = 12,
           .becomes_input = 1}};
}

std::vector<Tensor> compute_reshape(const ComputeContext& ctx) {
  return {reshaped("reshape", ctx.input(0), ctx.output_type().shape)};
}

}  // namespace

OpDef squeeze() {
  return OpDef{
      .name = "Squeeze",
      .doc = "Removes the given axes of 1, or all axes of 1 when none are given.",
      .inputs = {{.name = "data"}, {.name = "axes", .types = TypeSet::kInt64, .optional = true}},
      .attrs = axes_history(/*required=*/false),
      .fusion = FusionKind::kInjective,
      .renames = true,
      .infer = infer_squeeze,
      .compute = compute_reshape,
      .supports = supports_squeeze,
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const Dims& from = ctx.input(0).shape;
        const auto rank = static_cast<int64_t>(from.size());
        Dims to;
        for (int64_t axis = 0; axis < rank; ++axis)
          if (ctx.has(1) ? !contains(ctx.input(1).i, axis, rank) : from[axis] != 1) to.push_back(from[axis]);
        copy_elements(ctx, std::move(to));
        return {};
      },
      .samples =
          {
              {.name = "given", .inputs = {f32({1, 3, 1, 5}), known_ints({0, -2})}},
              {.name = "all", .inputs = {f32({1, 3, 1, 17})}},
              {.name = "to_scalar", .inputs = {in(kInt64, {1}), known_ints({0})}},
              {.name = "scalar", .inputs = {f32({})}},
              {.name = "not_one", .inputs = {f32({2, 3}), known_ints({1})}, .error_id = "shape-mismatch"},
              {.name = "twice", .inputs = {f32({1, 3}), known_ints({0, -2})}, .error_id = "duplicate-axis"},
          },
  };
}

OpDef unsqueeze() {
  return OpDef{
      .name = "Unsqueeze",
      .doc = "Inserts axes of 1 at the given positions of the output.",
      .inputs = {{.name = "data"}, {.name = "axes", .types = TypeSet::kInt64}},
      .attrs = axes_history(/*required=*/true),
      .fusion = FusionKind::kInjective,
      .renames = true,
      .infer = infer_unsqueeze,
      .compute = compute_reshape,
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const Dims& axes = ctx.input(1).i;
        const auto rank = static_cast<int64_t>(ctx.input(0).shape.size() + axes.size());
        Dims to;
        for (int64_t axis = 0, taken = 0; axis < rank; ++axis)
          to.push_back(contains(axes, axis, rank) ? 1 : ctx.input(0).shape[taken++]);
        copy_elements(ctx, std::move(to));
        return {};
      },
      .samples =
          {
              {.name = "front_and_back", .inputs = {f32({3, 5}), known_ints({0, -1})}},
              {.name = "unsorted", .inputs = {f32({3, 5}), known_ints({3, 0})}},
              {.name = "scalar", .inputs = {f32({}), known_ints({0})}},
              {.name = "axis_too_large", .inputs = {f32({3}), known_ints({2})}, .error_id = "axis-out-of-range"},
          },
  };
}

}  // namespace tensmith::graph::ops
