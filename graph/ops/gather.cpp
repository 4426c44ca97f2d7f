#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

Result<std::vector<TensorType>> infer_gather(const InferContext& ctx) {
  const TensorType &data = ctx.input(0), &indices = ctx.input(1);
  const Result<int> axis = normalize_axis(ctx.node.attrs.get_int("axis", 0), data.rank());
  if (!axis) return axis.failure();
  TensorType type{data.dtype, {}, {}};
  type.shape.assign(data.shape.begin(), data.shape.begin() + *axis);
  type.shape.insert(type.shape.end(), indices.shape.begin(), indices.shape.end());
  type.shape.insert(type.shape.end(), data.shape.begin() + *axis + 1, data.shape.end());
  const auto extent = known(data.shape[*axis]);
  if (extent == 0 && !is_empty(type.shape))
    return refuse("index-out-of-range") << "input data: expected elements along axis " << *axis << ", got shape "
                                        << shape_text(data.shape);
  const auto numbers = known_numbers(ctx, 1);
  if (extent && numbers)
    for (int64_t number : *numbers)
      if (const Result<int64_t> ok = wrap_number(number, *extent, "input indices"); !ok) return ok.failure();
  if (numbers && follows_elements(type) && data.is_static()) {
    const AxisView from(data.static_shape(), static_cast<size_t>(*axis));
    const auto count = static_cast<int64_t>(numbers->size());
    pass_elements(ctx, 0, type, [&](int64_t flat) {
      const int64_t inner = flat % from.inner, at = flat / from.inner % count, outer = flat / from.inner / count;
      const int64_t number = (*numbers)[static_cast<size_t>(at)];
      return (outer * from.axis + (number < 0 ? number + from.axis : number)) * from.inner + inner;
    });
  }
  return std::vector<TensorType>{std::move(type)};
}

/// first + k * step, when the constant indices (of at most one dim) are such a row inside the axis; reading no indices
/// then, the stage is a plain slice.
struct Row {
  Expr first;
  int64_t step;
};
std::optional<Row> as_row(const ComputeContext& ctx, const Expr& extent) {
  if (ctx.input(1).rank() > 1) return {};
  const auto numbers = known_numbers(ctx, 1);
  if (!numbers || numbers->empty()) return {};
  const bool from_end = numbers->front() < 0;
  const int64_t step = numbers->size() > 1 ? (*numbers)[1] - (*numbers)[0] : 0;
  for (size_t k = 0; k < numbers->size(); ++k) {
    if (((*numbers)[k] < 0) != from_end || (*numbers)[k] != numbers->front() + static_cast<int64_t>(k) * step)
      return {};
    // Of a symbolic axis only the first and the last element can be known to be inside, once it is not empty.
    if (!known(extent) && (*numbers)[k] != 0 && (*numbers)[k] != -1) return {};
  }
  return Row{from_end ? extent + numbers->front() : Expr(numbers->front()), step};
}

std::vector<Tensor> compute_gather(const ComputeContext& ctx) {
  const Tensor &data = ctx.input(0), &indices = ctx.input(1);
  const int axis = normalize_axis(ctx.node.attrs.get_int("axis", 0), data.rank()).value();
  const int count = indices.rank();
  const Expr extent = data.shape()[axis];
  const auto row = as_row(ctx, extent);
  return {injective("gather", ctx.output_type(), [&](const Indices& i) {
    Indices index(i.begin(), i.begin() + axis);
    if (row) index.push_back(row->step == 0 ? row->first : i[axis] * row->step + row->first);
    else index.push_back(wrap_index(indices(Indices(i.begin() + axis, i.begin() + axis + count)), extent));
    index.insert(index.end(), i.begin() + axis + count, i.end());
    return unless_empty(extent, data(index));
  })};
}

std::vector<Expr> index_extents(const InferContext& ctx) {
  const Shape& data = ctx.input(0).shape;
  return {data[static_cast<size_t>(normalize_axis(ctx.node.attrs.get_int("axis", 0), ctx.input(0).rank()).value())]};
}

Result<void> reference_gather(ReferenceContext& ctx) {
  const RefTensor &data = ctx.input(0), &indices = ctx.input(1);
  int64_t axis = ctx.node.attrs.get_int("axis", 0);
  if (axis < 0) axis += static_cast<int64_t>(data.shape.size());
  const AxisView from(data.shape, static_cast<size_t>(axis));
  Dims shape(data.shape.begin(), data.shape.begin() + axis);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), data.shape.begin() + axis + 1, data.shape.end());
  RefTensor& y = make_output(ctx, data.dtype, shape);
  if (count_of(shape) == 0) return {};
  int64_t at = 0;
  for (int64_t outer = 0; outer < from.outer; ++outer)
    for (int64_t raw : indices.i) {
      const Result<int64_t> index = wrap_number(raw, from.axis, "input indices");
      if (!index) return index.failure();
      for (int64_t inner = 0; inner < from.inner; ++inner)
        copy_element(y, at++, data, (outer * from.axis + *index) * from.inner + inner);
    }
  return {};
}

}  // namespace

OpDef gather() {
  return OpDef{
      .name = "Gather",
      .doc = "Slices of the data along one axis, chosen by indices of any shape; negative indices count from the end.",
      .inputs = {{.name = "data"}, {.name = "indices", .types = TypeSet::kIndex}},
      .attrs = {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{0}}},
      .fusion = FusionKind::kInjective,
      .infer = infer_gather,
      .compute = compute_gather,
      .index_input = 1,
      .index_extents = index_extents,
      .reference = reference_gather,
      .work = reads_what_it_gives,
      .samples =
          {
              {.name = "rows", .inputs = {f32({7, 3}), in(kInt64, {5}, -7, 6)}},
              {.name = "embedding", .inputs = {f32({17, 4}), in(kInt32, {2, 3}, 0, 16)}},
              {.name = "columns",
               .inputs = {f32({3, 5, 2}), in(kInt64, {2, 1}, -5, 4)},
               .attrs = attrs({{"axis", -2}})},
              {.name = "scalar_index",
               .inputs = {f32({3, 5}), known_scalar(kInt64, -1)},
               .attrs = attrs({{"axis", 1}})},
              {.name = "constant_row",
               .inputs = {f32({3, 9}), known_ints({1, 3, 5, 7})},
               .attrs = attrs({{"axis", 1}})},
              {.name = "constant_any",
               .inputs = {f32({3, 9}), known_ints({1, -2, 5, 5})},
               .attrs = attrs({{"axis", 1}})},
              {.name = "no_indices", .inputs = {f32({3, 5}), in(kInt64, {0})}},
              {.name = "integers", .inputs = {in(kInt64, {3}), in(kInt64, {}, 0, 2)}},
              {.name = "beyond", .inputs = {f32({3, 5}), known_ints({3})}, .error_id = "index-out-of-range"},
              {.name = "scalar_data", .inputs = {f32({}), known_ints({0})}, .error_id = "axis-out-of-range"},
          },
  };
}

}  // namespace tensmith::graph::ops
