#include "graph/ops/dim_product.h"
#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/reshape_index.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

/// The output shape of Reshape for known elements of its shape input.
Result<Shape> target_shape(const Shape& from, const Elements& elements, bool allow_zero) {
  Shape to;
  int wild = -1;
  for (size_t k = 0; k < elements.size(); ++k) {
    const auto number = known(elements[k]);
    if (number && *number < -1)
      return refuse("shape-mismatch") << "input shape: expected dims of -1 or more, got " << *number << " at position "
                                      << k;
    if (number && *number == -1) {
      if (wild >= 0)
        return refuse("shape-mismatch") << "input shape: expected -1 at most once, got it at positions " << wild
                                        << " and " << k;
      wild = static_cast<int>(k);
      to.push_back(1);
      continue;
    }
    if (number && *number == 0 && !allow_zero) {
      if (k >= from.size())
        return refuse("shape-mismatch") << "input shape: expected 0 (copy) only below the rank " << from.size()
                                        << " of the data, got it at position " << k;
      to.push_back(from[k]);
      continue;
    }
    to.push_back(elements[k]);
  }
  const DimProduct all = dim_product(from), given = dim_product(to);
  if (wild >= 0) {
    if (is_empty(to))
      return refuse("shape-mismatch") << "input shape: expected dims above 0 beside -1, got " << shape_text(to)
                                      << "; state the dim instead of -1";
    to[static_cast<size_t>(wild)] = quotient(all, given);
    if (all.factors.empty() && given.factors.empty() && all.constant % given.constant != 0)
      return refuse("shape-mismatch") << "input shape: expected dims that divide the " << all.constant
                                      << " elements of the data, got a product of " << given.constant;
    return to;
  }
  if (all.factors.empty() && given.factors.empty() && all.constant != given.constant)
    return refuse("shape-mismatch") << "input shape: expected " << all.constant << " elements as in the data, got "
                                    << given.constant << " in " << shape_text(to);
  return to;
}

Result<std::vector<TensorType>> infer_reshape(const InferContext& ctx) {
  const TensorType& data = ctx.input(0);
  if (Result<void> ok = check_rank(ctx.input(1), 1, 1, "input shape"); !ok) return ok.failure();
  TensorType type{data.dtype, {}, {}};
  if (const auto elements = int_elements(ctx, 1)) {
    Result<Shape> shape = target_shape(data.shape, *elements, ctx.node.attrs.get_int("allowzero", 0) != 0);
    if (!shape) return shape.failure();
    type.shape = *shape;
  } else {
    const auto rank = known(ctx.input(1).shape[0]);
    if (!rank)
      return refuse("dynamic-rank") << "input shape: expected a known number of dims, got "
                                    << dim_to_string(ctx.input(1).shape[0]);
    type.shape = data_shape(ctx, 0, static_cast<int>(*rank));
  }
  pass_elements(ctx, 0, type);
  return std::vector<TensorType>{std::move(type)};
}

/// An output whose elements are as many as the input's whatever the dims are.
Result<void> supports_reshape(const InferContext& ctx) {
  if (Result<void> ok = require_elements(ctx, {1}); !ok) return ok;
  const auto elements = int_elements(ctx, 1);
  for (const Expr& element : *elements)
    if (is_const_int(element, -1)) return {};
  const Result<Shape> to = target_shape(ctx.input(0).shape, *elements, ctx.node.attrs.get_int("allowzero", 0) != 0);
  if (!to) return to.failure();
  if (same_product(dim_product(ctx.input(0).shape), dim_product(*to))) return {};
  return refuse("dynamic-shape") << "input shape: expected as many elements as in " << shape_text(ctx.input(0).shape)
                                 << ", got " << shape_text(*to)
                                 << ", which may differ at run time; give the dims a size with --dim";
}

Result<void> reference_reshape(ReferenceContext& ctx) {
  const Dims& from = ctx.input(0).shape;
  Dims to = ctx.input(1).i;
  const int64_t total = count_of(from);
  int64_t rest = 1;
  for (size_t k = 0; k < to.size(); ++k) {
    if (to[k] == 0 && !ctx.node.attrs.get_int("allowzero", 0)) to[k] = k < from.size() ? from[k] : 0;
    if (to[k] != -1) rest *= to[k];
  }
  for (int64_t& dim : to)
    if (dim == -1) dim = rest ? total / rest : 0;
  if (count_of(to) != total)
    return Failure{"shape-mismatch",
                   "reshape of " + std::to_string(total) + " elements to " + std::to_string(count_of(to))};
  copy_elements(ctx, std::move(to));
  return {};
}

}  // namespace

OpDef reshape() {
  return OpDef{
      .name = "Reshape",
      .since = 5,
      .doc =
          "The same elements under another shape: -1 takes what is left, 0 copies the dim of the input (unless "
          "allowzero).",
      .inputs = {{.name = "data"}, {.name = "shape", .types = TypeSet::kInt64}},
      .attrs = {{.name = "allowzero", .kind = AttrKind::kInt, .default_value = int64_t{0}, .since = 14}},
      .fusion = FusionKind::kInjective,
      .renames = true,
      .infer = infer_reshape,
      .compute =
          [](const ComputeContext& ctx) {
            return std::vector<Tensor>{reshaped("reshape", ctx.input(0), ctx.output_type().shape)};
          },
      .supports = supports_reshape,
      .reference = reference_reshape,
      .samples =
          {
              {.name = "merge", .inputs = {f32({2, 3, 5}), known_ints({6, 5})}},
              {.name = "split", .inputs = {f32({6, 5}), known_ints({2, 3, 5})}},
              {.name = "regroup", .inputs = {f32({4, 6, 3}), known_ints({6, 4, 3})}},
              {.name = "wild", .inputs = {f32({3, 17}), known_ints({-1, 3, 1})}},
              {.name = "copy", .inputs = {f32({2, 3, 4}), known_ints({0, -1, 2, 1})}},
              {.name = "to_scalar", .inputs = {f32({1, 1}), known_ints({})}},
              {.name = "from_scalar", .inputs = {f32({}), known_ints({1, -1})}},
              {.name = "empty", .inputs = {f32({0, 3}), known_ints({3, 0, 2})}, .attrs = attrs({{"allowzero", 1}})},
              {.name = "integers", .inputs = {in(kInt64, {3, 2}), known_ints({6})}},
              {.name = "not_divisible", .inputs = {f32({3, 5}), known_ints({-1, 4})}, .error_id = "shape-mismatch"},
              {.name = "other_count", .inputs = {f32({3, 5}), known_ints({4, 4})}, .error_id = "shape-mismatch"},
              {.name = "two_wild", .inputs = {f32({3, 5}), known_ints({-1, -1})}, .error_id = "shape-mismatch"},
              {.name = "copy_beyond", .inputs = {f32({3}), known_ints({3, 0})}, .error_id = "shape-mismatch"},
          },
  };
}

OpDef flatten() {
  return OpDef{
      .name = "Flatten",
      .doc = "A matrix whose rows are the dims before `axis` and whose columns are the others.",
      .inputs = {{.name = "input"}},
      .attrs = {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{1}}},
      .fusion = FusionKind::kInjective,
      .renames = true,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        const Shape& from = ctx.input(0).shape;
        const int rank = static_cast<int>(from.size());
        const int64_t axis = ctx.node.attrs.get_int("axis", 1);
        if (axis < -rank || axis > rank)
          return refuse("axis-out-of-range")
                 << "attribute axis: expected " << -rank << " to " << rank << ", got " << axis;
        const auto split = static_cast<size_t>(axis < 0 ? axis + rank : axis);
        TensorType type{ctx.input(0).dtype, {product(from, 0, split), product(from, split)}, {}};
        pass_elements(ctx, 0, type);
        return std::vector<TensorType>{std::move(type)};
      },
      .compute =
          [](const ComputeContext& ctx) {
            return std::vector<Tensor>{reshaped("flatten", ctx.input(0), ctx.output_type().shape)};
          },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const Dims& from = ctx.input(0).shape;
        const int64_t axis = ctx.node.attrs.get_int("axis", 1);
        const auto split = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(from.size()) : axis);
        copy_elements(ctx, {count_of(from, 0, split), count_of(from, split)});
        return {};
      },
      .samples =
          {
              {.name = "default_axis", .inputs = {f32({2, 3, 5})}},
              {.name = "front", .inputs = {f32({2, 3})}, .attrs = attrs({{"axis", 0}})},
              {.name = "back", .inputs = {f32({2, 17})}, .attrs = attrs({{"axis", 2}})},
              {.name = "negative", .inputs = {f32({2, 1, 3, 4})}, .attrs = attrs({{"axis", -2}})},
              {.name = "scalar", .inputs = {f32({})}, .attrs = attrs({{"axis", 0}})},
              {.name = "empty", .inputs = {f32({2, 0, 3})}},
              {.name = "axis_too_large",
               .inputs = {f32({2, 3})},
               .attrs = attrs({{"axis", 3}}),
               .error_id = "axis-out-of-range"},
          },
  };
}

}  // namespace tensmith::graph::ops
