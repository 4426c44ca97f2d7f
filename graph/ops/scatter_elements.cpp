#include "graph/ops/injective.h"
#include "graph/ops/loop_builder.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/scatter_reduction.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

Result<std::vector<TensorType>> infer_scatter(const InferContext& ctx) {
  const TensorType &data = ctx.input(0), &indices = ctx.input(1), &updates = ctx.input(2);
  const Result<int> axis = normalize_axis(ctx.node.attrs.get_int("axis", 0), data.rank());
  if (!axis) return axis.failure();
  if (Result<void> ok = check_rank(indices, data.rank(), data.rank(), "input indices"); !ok) return ok.failure();
  if (Result<void> ok = check_rank(updates, data.rank(), data.rank(), "input updates"); !ok) return ok.failure();
  if (Result<void> ok = check_reduction(ctx.node.attrs, data.dtype); !ok) return ok.failure();
  bool any = true;
  for (int dim = 0; dim < data.rank(); ++dim) {
    const auto limit = known(data.shape[dim]), size = known(indices.shape[dim]);
    if (different_dim(indices.shape[dim], updates.shape[dim]))
      return refuse("shape-mismatch") << "input updates: expected the shape " << shape_text(indices.shape)
                                      << " of the indices, got " << shape_text(updates.shape);
    if (dim != *axis && limit && size && *size > *limit)
      return refuse("shape-mismatch") << "input indices: expected at most " << *limit << " at axis " << dim
                                      << " as in the data, got shape " << shape_text(indices.shape);
    any = any && size != 0;
  }
  if (any && known(data.shape[*axis]) == 0)
    return refuse("index-out-of-range") << "input data: expected elements along axis " << *axis << ", got shape "
                                        << shape_text(data.shape);
  TensorType type{data.dtype, data.shape, {}};
  const auto numbers = known_numbers(ctx, 1);
  const auto old = any_elements(ctx, 0), fresh = any_elements(ctx, 2);
  if (numbers && old && fresh && data.rank() == 1 && known(data.shape[0]) &&
      ctx.node.attrs.get_string("reduction", "none") == "none") {
    Elements elements = *old;
    for (size_t k = 0; k < numbers->size(); ++k) {
      const Result<int64_t> at = wrap_number((*numbers)[k], static_cast<int64_t>(elements.size()), "input indices");
      if (!at) return at.failure();
      elements[static_cast<size_t>(*at)] = fresh->at(k);
    }
    set_elements(type, std::move(elements));
  }
  return std::vector<TensorType>{std::move(type)};
}

Result<void> supports_scatter(const InferContext& ctx) {
  const Shape &data = ctx.input(0).shape, &indices = ctx.input(1).shape, &updates = ctx.input(2).shape;
  const int axis = normalize_axis(ctx.node.attrs.get_int("axis", 0), ctx.input(0).rank()).value();
  for (int dim = 0; dim < ctx.input(0).rank(); ++dim) {
    if (Result<void> ok = require_same_dim(indices[dim], updates[dim], "input updates, axis " + std::to_string(dim));
        !ok)
      return ok;
    if (dim != axis && !(known(data[dim]) && known(indices[dim])))
      if (Result<void> ok = require_same_dim(data[dim], indices[dim], "input indices, axis " + std::to_string(dim));
          !ok)
        return ok;
  }
  return {};
}

std::vector<Tensor> compute_scatter(const ComputeContext& ctx) {
  const Tensor &data = ctx.input(0), &indices = ctx.input(1), &updates = ctx.input(2);
  const AttrMap& attrs = ctx.node.attrs;
  const Shape& shape = data.shape();
  if (is_empty(shape)) return {injective("scatter", ctx.output_type(), {})};
  const int axis = normalize_axis(attrs.get_int("axis", 0), data.rank()).value();
  // Updates of different rows along the axis never meet.
  bool axis_is_outermost = true;
  for (int dim = 0; dim < axis; ++dim) axis_is_outermost = axis_is_outermost && is_const_int(indices.shape()[dim], 1);
  return imperative("scatter", ctx.inputs, {shape}, {data.dtype()}, [&](const std::vector<Buffer>& outputs) {
    const Buffer& out = outputs[0];
    const Stmt update = loop_nest(
        indices.shape(),
        [&](const Indices& i) {
          const Var at("at");
          Indices index = i;
          index[axis] = at;
          return LetStmt::make(at, wrap_index(indices(i), shape[axis]),
                               Store::make(out, index, reduce_update(attrs, load(out, index), updates(i))));
        },
        axis_is_outermost ? ForKind::kSerial : ForKind::kParallel);
    return Block::make({fill(out, [&](const Indices& i) { return data(i); }), unless_empty(shape[axis], update)});
  });
}

std::vector<Expr> index_extents(const InferContext& ctx) {
  const Shape& data = ctx.input(0).shape;
  return {data[static_cast<size_t>(normalize_axis(ctx.node.attrs.get_int("axis", 0), ctx.input(0).rank()).value())]};
}

Result<void> reference_scatter(ReferenceContext& ctx) {
  const RefTensor &data = ctx.input(0), &indices = ctx.input(1), &updates = ctx.input(2);
  int64_t axis = ctx.node.attrs.get_int("axis", 0);
  if (axis < 0) axis += static_cast<int64_t>(data.shape.size());
  copy_elements(ctx, data.shape);
  RefTensor& y = ctx.output();
  Result<void> result;
  for_each_index(indices.shape, [&](int64_t position, const Dims& index) {
    const Result<int64_t> at = wrap_number(indices.i[position], data.shape[axis], "input indices");
    if (!at) {
      result = at.failure();
      return;
    }
    Dims to = index;
    to[axis] = *at;
    reduce_update(ctx.node.attrs, y, flat_index(data.shape, to), updates, position);
  });
  return result;
}

}  // namespace

OpDef scatter_elements() {
  return OpDef{
      .name = "ScatterElements",
      .since = 11,
      .doc = "The data with updates written at the same position except along one axis, where the index says where.",
      .inputs = {{.name = "data"},
                 {.name = "indices", .types = TypeSet::kIndex},
                 {.name = "updates", .same_type_as = "data"}},
      .attrs = {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{0}}, reduction_attr()},
      .fusion = FusionKind::kOpaque,
      .infer = infer_scatter,
      .compute = compute_scatter,
      .index_input = 1,
      .index_extents = index_extents,
      .supports = supports_scatter,
      .reference = reference_scatter,
      .samples =
          {
              {.name = "rows",
               .inputs = {f32({3, 5}), given(kInt64, {2, 5}, {0, 1, 2, -1, 0, 2, 0, 1, 1, 2}), f32({2, 5})}},
              {.name = "columns",
               .inputs = {f32({3, 17}), given(kInt32, {2, 3}, {0, -1, 5, 16, 2, 3}), f32({2, 3})},
               .attrs = attrs({{"axis", 1}})},
              {.name = "add",
               .inputs = {f32({3, 4}), in(kInt64, {5, 4}, -3, 2), f32({5, 4})},
               .attrs = attrs({{"reduction", "add"}})},
              {.name = "mul_half",
               .inputs = {in(kFloat16, {2, 3, 4}), in(kInt64, {2, 3, 2}, -4, 3), in(kFloat16, {2, 3, 2})},
               .attrs = attrs({{"axis", -1}, {"reduction", "mul"}}),
               .rtol = 4e-3,
               .atol = 1e-3},
              {.name = "max",
               .inputs = {in(kInt32, {5}), in(kInt64, {7}, -5, 4), in(kInt32, {7})},
               .attrs = attrs({{"reduction", "max"}})},
              {.name = "min",
               .inputs = {in(kUInt8, {5}, 0, 9), in(kInt64, {7}, -5, 4), in(kUInt8, {7}, 0, 9)},
               .attrs = attrs({{"reduction", "min"}})},
              {.name = "wide_rows",
               .inputs = {f32({2, 3, 40}), given(kInt64, {1, 1, 2}, {0, 39}), f32({1, 1, 2})},
               .attrs = attrs({{"axis", 2}})},
              {.name = "no_updates", .inputs = {f32({3, 4}), in(kInt64, {0, 4}), f32({0, 4})}},
              {.name = "shapes_differ",
               .inputs = {f32({3, 4}), in(kInt64, {2, 4}, 0, 1), f32({2, 3})},
               .error_id = "shape-mismatch"},
              {.name = "add_bools",
               .inputs = {in(kBool, {3}, 0, 1), in(kInt64, {1}, 0, 1), in(kBool, {1}, 0, 1)},
               .attrs = attrs({{"reduction", "add"}}),
               .error_id = "unsupported-dtype"},
          },
  };
}

}  // namespace tensmith::graph::ops
