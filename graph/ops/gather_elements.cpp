#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

Result<std::vector<TensorType>> infer_gather_elements(const InferContext& ctx) {
  const TensorType &data = ctx.input(0), &indices = ctx.input(1);
  const Result<int> axis = normalize_axis(ctx.node.attrs.get_int("axis", 0), data.rank());
  if (!axis) return axis.failure();
  if (Result<void> ok = check_rank(indices, data.rank(), data.rank(), "input indices"); !ok) return ok.failure();
  for (int dim = 0; dim < data.rank(); ++dim) {
    const auto limit = known(data.shape[dim]), size = known(indices.shape[dim]);
    if (dim != *axis && limit && size && *size > *limit)
      return refuse("shape-mismatch") << "input indices: expected at most " << *limit << " at axis " << dim
                                      << " as in the data, got shape " << shape_text(indices.shape);
  }
  TensorType type{data.dtype, indices.shape, {}};
  if (known(data.shape[*axis]) == 0 && !is_empty(type.shape))
    return refuse("index-out-of-range") << "input data: expected elements along axis " << *axis << ", got shape "
                                        << shape_text(data.shape);
  return std::vector<TensorType>{std::move(type)};
}

std::vector<Tensor> compute_gather_elements(const ComputeContext& ctx) {
  const Tensor &data = ctx.input(0), &indices = ctx.input(1);
  const int axis = normalize_axis(ctx.node.attrs.get_int("axis", 0), data.rank()).value();
  return {injective("gather_elements", ctx.output_type(), [&](const Indices& i) {
    Indices index = i;
    index[axis] = wrap_index(indices(i), data.shape()[axis]);
    return unless_empty(data.shape()[axis], data(index));
  })};
}

std::vector<Expr> index_extents(const InferContext& ctx) {
  const Shape& data = ctx.input(0).shape;
  return {data[static_cast<size_t>(normalize_axis(ctx.node.attrs.get_int("axis", 0), ctx.input(0).rank()).value())]};
}

Result<void> reference_gather_elements(ReferenceContext& ctx) {
  const RefTensor &data = ctx.input(0), &indices = ctx.input(1);
  int64_t axis = ctx.node.attrs.get_int("axis", 0);
  if (axis < 0) axis += static_cast<int64_t>(data.shape.size());
  RefTensor& y = make_output(ctx, data.dtype, indices.shape);
  Result<void> result;
  for_each_index(indices.shape, [&](int64_t position, const Dims& index) {
    const Result<int64_t> at = wrap_number(indices.i[position], data.shape[axis], "input indices");
    if (!at) {
      result = at.failure();
      return;
    }
    Dims from = index;
    from[axis] = *at;
    copy_element(y, position, data, flat_index(data.shape, from));
  });
  return result;
}

}  // namespace

OpDef gather_elements() {
  return OpDef{
      .name = "GatherElements",
      .since = 11,
      .doc =
          "For each index, the element of the data at the same position except along one axis, where the index says "
          "which.",
      .inputs = {{.name = "data"}, {.name = "indices", .types = TypeSet::kIndex}},
      .attrs = {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{0}}},
      .fusion = FusionKind::kInjective,
      .infer = infer_gather_elements,
      .compute = compute_gather_elements,
      .index_input = 1,
      .index_extents = index_extents,
      .supports = [](const InferContext& ctx) -> Result<void> {
        const Shape &data = ctx.input(0).shape, &indices = ctx.input(1).shape;
        const int axis = normalize_axis(ctx.node.attrs.get_int("axis", 0), ctx.input(0).rank()).value();
        for (int dim = 0; dim < ctx.input(0).rank(); ++dim)
          if (dim != axis && !(known(data[dim]) && known(indices[dim])))
            if (Result<void> ok =
                    require_same_dim(data[dim], indices[dim], "input indices, axis " + std::to_string(dim));
                !ok)
              return ok;
        return {};
      },
      .reference = reference_gather_elements,
      .work = reads_what_it_gives,
      .samples =
          {
              {.name = "rows", .inputs = {f32({3, 5}), in(kInt64, {2, 5}, -3, 2)}},
              {.name = "columns", .inputs = {f32({3, 17}), in(kInt32, {3, 4}, -17, 16)}, .attrs = attrs({{"axis", 1}})},
              {.name = "fewer_rows",
               .inputs = {f32({3, 4, 5}), in(kInt64, {2, 9, 1}, -4, 3)},
               .attrs = attrs({{"axis", -2}})},
              {.name = "no_indices", .inputs = {f32({3, 4}), in(kInt64, {0, 4})}},
              {.name = "ranks_differ", .inputs = {f32({3, 4}), in(kInt64, {3}, 0, 2)}, .error_id = "rank-mismatch"},
              {.name = "too_wide", .inputs = {f32({3, 4}), in(kInt64, {3, 5}, 0, 2)}, .error_id = "shape-mismatch"},
          },
  };
}

}  // namespace tensmith::graph::ops
