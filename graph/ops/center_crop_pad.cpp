#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

Result<std::vector<int>> axes_of(const AttrMap& attrs, int rank) {
  std::vector<int> axes;
  if (!attrs.has("axes"))
    for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
  for (int64_t given : attrs.get_ints("axes")) {
    const Result<int> axis = normalize_axis(given, rank, "attribute axes");
    if (!axis) return axis.failure();
    axes.push_back(*axis);
  }
  return axes;
}

Result<std::vector<TensorType>> infer_center_crop_pad(const InferContext& ctx) {
  const TensorType& data = ctx.input(0);
  const Result<std::vector<int>> axes = axes_of(ctx.node.attrs, data.rank());
  if (!axes) return axes.failure();
  if (Result<void> ok = check_shape(ctx.input(1), {Expr(static_cast<int64_t>(axes->size()))}, "input shape"); !ok)
    return ok.failure();
  TensorType type{data.dtype, data.shape, {}};
  const auto wanted = int_elements(ctx, 1);
  for (size_t k = 0; k < axes->size(); ++k)
    type.shape[(*axes)[k]] = wanted ? (*wanted)[k] : ctx.data_dim(0, (*axes)[k]);
  return std::vector<TensorType>{std::move(type)};
}

std::vector<Tensor> compute_center_crop_pad(const ComputeContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Shape& shape = ctx.output_type().shape;
  return {injective("center_crop_pad", ctx.output_type(), [&](const Indices& i) {
    Indices index;
    Expr inside = make_bool(true);
    for (int axis = 0; axis < x.rank(); ++axis) {
      const Expr &from = x.shape()[axis], &to = shape[axis];
      // Cropping shifts to the left of the centre, padding puts the odd element to the right: both round down.
      const Expr grown = floor_div(max(to - from, 0), 2), cut = floor_div(max(from - to, 0), 2);
      const Expr at = i[axis] - grown + cut;
      index.push_back(same_dim(from, to) ? i[axis] : at);
      if (!(known(from) && known(to) && *known(from) >= *known(to)) && !same_dim(from, to))
        inside = inside && at >= 0 && at < from;
    }
    if (is_empty(x.shape())) return make_zero(x.dtype());
    return select(inside, x(index), make_zero(x.dtype()));
  })};
}

Result<void> reference_center_crop_pad(ReferenceContext& ctx) {
  const RefTensor& x = ctx.input(0);
  const auto rank = static_cast<int>(x.shape.size());
  const std::vector<int> axes = axes_of(ctx.node.attrs, rank).value();
  Dims shape = x.shape, start(x.shape.size(), 0);
  for (size_t k = 0; k < axes.size(); ++k) {
    const int axis = axes[k];
    shape[axis] = ctx.input(1).i[k];
    start[axis] =
        x.shape[axis] > shape[axis] ? (x.shape[axis] - shape[axis]) / 2 : -((shape[axis] - x.shape[axis]) / 2);
  }
  move_elements(make_output(ctx, x.dtype, shape), x, [&](const Dims& index) -> int64_t {
    Dims at = index;
    for (size_t k = 0; k < at.size(); ++k) {
      at[k] += start[k];
      if (at[k] < 0 || at[k] >= x.shape[k]) return -1;
    }
    return flat_index(x.shape, at);
  });
  return {};
}

}  // namespace

OpDef center_crop_pad() {
  return OpDef{
      .name = "CenterCropPad",
      .since = 18,
      .doc = "Each axis cut to or padded with zeros to a given length, the same at both ends.",
      .inputs = {{.name = "input_data"}, {.name = "shape", .types = TypeSet::kIndex}},
      .attrs = {{.name = "axes", .kind = AttrKind::kInts, .no_default = true}},
      .fusion = FusionKind::kInjective,
      .infer = infer_center_crop_pad,
      .compute = compute_center_crop_pad,
      .supports = [](const InferContext& ctx) { return require_elements(ctx, {1}); },
      .reference = reference_center_crop_pad,
      .samples =
          {
              {.name = "crop", .inputs = {f32({7, 8}), known_ints({4, 3})}},
              {.name = "pad", .inputs = {f32({3, 4}), known_ints({6, 17})}},
              {.name = "both",
               .inputs =
                   {
                       f32({2, 7, 1}),
                       known_ints({3, 4}),
                   },
               .attrs = attrs({{"axes", ints({-2, 2})}})},
              {.name = "same", .inputs = {f32({3, 3}), known_ints({3, 3})}},
              {.name = "wrong_count", .inputs = {f32({3, 3}), known_ints({3})}, .error_id = "shape-mismatch"},
          },
  };
}

}  // namespace tensmith::graph::ops
