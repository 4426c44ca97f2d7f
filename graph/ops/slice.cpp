#include "graph/dim_facts.h"
#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"
#include "runtime/base/shape.h"

namespace tensmith::graph::ops {

namespace {

/// Of one axis: output element i is input element start + i * step, of `size` elements.
struct AxisSlice {
  Expr start, size;
  int64_t step;
};

/// A position that may count from the end as one from the front, not yet clamped.
Expr from_front(const Expr& position, const Expr& extent) {
  if (const auto number = known(position)) return *number < 0 ? position + extent : position;
  if (can_prove(position >= 0, dim_facts(position))) return position;
  return select(position < 0, position + extent, position);
}

/// Positions beyond every dim mean the end, as INT64_MAX does in most models.
bool is_far(const Expr& position) { return known(position).value_or(0) >= kMaxDim; }
bool is_far_below(const Expr& position) { return known(position).value_or(0) <= -kMaxDim; }

AxisSlice slice_axis(const Expr& start, const Expr& end, int64_t step, const Expr& extent) {
  if (step > 0) {
    const Expr begin = is_far(start) ? extent : is_far_below(start) ? Expr(0) : max(from_front(start, extent), 0);
    const Expr stop = is_far(end) ? extent : is_far_below(end) ? Expr(0) : min(from_front(end, extent), extent);
    // A start behind the end of the axis leaves nothing, so it need not be clamped.
    return {simplify_dim(begin), simplify_dim(max(ceil_div(stop - begin, step), 0)), step};
  }
  const Expr begin = is_far(start)         ? extent - 1
                     : is_far_below(start) ? Expr(-1)
                                           : min(from_front(start, extent), extent - 1);
  const Expr stop = is_far(end) ? extent - 1 : is_far_below(end) ? Expr(-1) : max(from_front(end, extent), -1);
  return {simplify_dim(begin), simplify_dim(max(ceil_div(begin - stop, -step), 0)), step};
}

/// One slice for each axis of the data; nothing when starts or ends are not known. Errors: ids of slice inputs that do
/// not fit.
template <typename Context>
Result<std::optional<std::vector<AxisSlice>>> slices(const Context& ctx, const Shape& data) {
  using Slices = std::optional<std::vector<AxisSlice>>;
  const auto starts = int_elements(ctx, 1), ends = int_elements(ctx, 2);
  std::vector<int64_t> axes, steps;
  if (ctx.has(3)) {
    const auto numbers = known_numbers(ctx, 3);
    if (!numbers) return Slices{};
    axes = *numbers;
  }
  if (ctx.has(4)) {
    const auto numbers = known_numbers(ctx, 4);
    if (!numbers) return Slices{};
    steps = *numbers;
  }
  if (!starts || !ends) return Slices{};
  if (starts->size() != ends->size() || (ctx.has(3) && axes.size() != starts->size()) ||
      (ctx.has(4) && steps.size() != starts->size()))
    return refuse("shape-mismatch") << "inputs starts, ends, axes, steps: expected equal lengths, got "
                                    << starts->size() << ", " << ends->size() << ", "
                                    << (ctx.has(3) ? axes.size() : starts->size()) << ", "
                                    << (ctx.has(4) ? steps.size() : starts->size());
  if (starts->size() > data.size())
    return refuse("shape-mismatch") << "input starts: expected at most one element for each of the " << data.size()
                                    << " axes, got " << starts->size();
  std::vector<AxisSlice> result;
  for (const Expr& extent : data) result.push_back({Expr(0), extent, 1});
  std::vector<bool> seen(data.size(), false);
  for (size_t k = 0; k < starts->size(); ++k) {
    const Result<int> axis =
        normalize_axis(ctx.has(3) ? axes[k] : static_cast<int64_t>(k), static_cast<int>(data.size()), "input axes");
    if (!axis) return axis.failure();
    if (seen[*axis])
      return refuse("duplicate-axis") << "input axes: expected each axis once, got axis " << *axis << " twice";
    seen[*axis] = true;
    const int64_t step = ctx.has(4) ? steps[k] : 1;
    if (step == 0 || step == INT64_MIN)
      return refuse("bad-step") << "input steps: expected steps other than 0, got " << step << " for axis " << *axis;
    result[*axis] = slice_axis((*starts)[k], (*ends)[k], step, data[*axis]);
  }
  return Slices{std::move(result)};
}

/// For each axis whether it may be cut at all, when starts and ends are unknown.
Shape unknown_shape(const InferContext& ctx) {
  const Shape& data = ctx.input(0).shape;
  Shape shape = data_shape(ctx, 0, static_cast<int>(data.size()));
  const auto axes = known_numbers(ctx, 3);
  if (!axes) return shape;
  for (size_t k = 0; k < data.size(); ++k) {
    bool cut = false;
    for (int64_t axis : *axes)
      cut |= axis == static_cast<int64_t>(k) || axis + static_cast<int64_t>(data.size()) == static_cast<int64_t>(k);
    if (!cut) shape[k] = data[k];
  }
  return shape;
}

Result<std::vector<TensorType>> infer_slice(const InferContext& ctx) {
  const TensorType& data = ctx.input(0);
  for (int k = 1; k < 5; ++k)
    if (ctx.has(k))
      if (Result<void> ok = check_rank(ctx.input(k), 1, 1, std::string("input ") + ctx.node.op->inputs[k].name); !ok)
        return ok.failure();
  const auto cuts = slices(ctx, data.shape);
  if (!cuts) return cuts.failure();
  TensorType type{data.dtype, {}, {}};
  if (!*cuts) {
    type.shape = unknown_shape(ctx);
    return std::vector<TensorType>{std::move(type)};
  }
  for (const AxisSlice& cut : **cuts) type.shape.push_back(cut.size);
  if (follows_elements(type) && data.is_static()) {
    const Dims from = data.static_shape(), to = type.static_shape();
    bool numbers = true;
    for (const AxisSlice& cut : **cuts) numbers = numbers && known(cut.start);
    if (numbers)
      pass_elements(ctx, 0, type, [&](int64_t flat) {
        Dims index(from.size());
        for (size_t k = to.size(); k-- > 0; flat /= to[k])
          index[k] = *known((**cuts)[k].start) + flat % to[k] * (**cuts)[k].step;
        return flat_index(from, index);
      });
  }
  return std::vector<TensorType>{std::move(type)};
}

std::vector<Tensor> compute_slice(const ComputeContext& ctx) {
  const Tensor& x = ctx.input(0);
  const std::vector<AxisSlice> cuts = *slices(ctx, x.shape()).value();
  return {injective("slice", ctx.output_type(), [&](const Indices& i) {
    Indices index;
    for (size_t k = 0; k < i.size(); ++k) index.push_back(i[k] * cuts[k].step + cuts[k].start);
    return x(index);
  })};
}

Result<void> reference_slice(ReferenceContext& ctx) {
  const RefTensor& x = ctx.input(0);
  const auto rank = static_cast<int64_t>(x.shape.size());
  Dims start(rank, 0), step(rank, 1), shape = x.shape;
  for (size_t k = 0; k < ctx.input(1).i.size(); ++k) {
    int64_t axis = ctx.has(3) ? ctx.input(3).i[k] : static_cast<int64_t>(k);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return Failure{"axis-out-of-range", "slice of axis " + std::to_string(axis)};
    const int64_t extent = x.shape[axis], by = ctx.has(4) ? ctx.input(4).i[k] : 1;
    if (by == 0) return Failure{"bad-step", "slice with step 0"};
    // numpy's rule: bounds count from the end when negative, then are clamped to what the direction can reach.
    const auto place = [&](int64_t at) {
      if (at < 0) at = at < -extent ? -1 : at + extent;
      else if (at > extent) at = extent;
      return by > 0 ? std::max<int64_t>(at, 0) : std::min(at, extent - 1);
    };
    const int64_t from = place(ctx.input(1).i[k]), to = place(ctx.input(2).i[k]);
    const int64_t span = by > 0 ? to - from : from - to, width = by > 0 ? by : -by;
    start[axis] = from;
    step[axis] = by;
    shape[axis] = span <= 0 ? 0 : (span - 1) / width + 1;
  }
  RefTensor& y = make_output(ctx, x.dtype, shape);
  move_elements(y, x, [&](const Dims& index) {
    Dims at(index.size());
    for (size_t k = 0; k < index.size(); ++k) at[k] = start[k] + index[k] * step[k];
    return flat_index(x.shape, at);
  });
  return {};
}

}  // namespace

OpDef slice() {
  return OpDef{
      .name = "Slice",
      .doc =
          "Elements start, start + step, ... before end of the given axes. Bounds count from the end when negative and "
          "are clamped.",
      .inputs = {{.name = "data"},
                 {.name = "starts", .types = TypeSet::kIndex},
                 {.name = "ends", .types = TypeSet::kIndex, .same_type_as = "starts"},
                 {.name = "axes", .types = TypeSet::kIndex, .optional = true},
                 {.name = "steps", .types = TypeSet::kIndex, .optional = true}},
      .attrs = {{.name = "starts", .kind = AttrKind::kInts, .required = true, .until = 9, .becomes_input = 1},
                {.name = "ends", .kind = AttrKind::kInts, .required = true, .until = 9, .becomes_input = 2},
                {.name = "axes", .kind = AttrKind::kInts, .no_default = true, .until = 9, .becomes_input = 3}},
      .fusion = FusionKind::kInjective,
      .layout = LayoutRole::kFollows,
      .infer = infer_slice,
      .compute = compute_slice,
      .supports =
          [](const InferContext& ctx) {
            return require_elements(ctx, {1, 2, 3, 4});
          },
      .reference = reference_slice,
      .work = reads_what_it_gives,
      .samples =
          {
              {.name = "middle", .inputs = {f32({3, 17}), known_ints({1, 2}), known_ints({3, 9})}},
              {.name = "axes", .inputs = {f32({2, 3, 5}), known_ints({1}), known_ints({4}), known_ints({-1})}},
              {.name = "steps",
               .inputs = {f32({17, 3}), known_ints({1, 0}), known_ints({16, 3}), known_ints({0, 1}),
                          known_ints({3, 2})}},
              {.name = "reverse",
               .inputs = {f32({5, 3}), known_ints({-1}), known_ints({-9e18}), known_ints({0}), known_ints({-1})}},
              {.name = "backwards",
               .inputs = {f32({17}), known_ints({20}), known_ints({2}), known_ints({0}), known_ints({-4})}},
              {.name = "to_end", .inputs = {f32({7, 3}), known_ints({2}), known_ints({9e18}), known_ints({0})}},
              {.name = "last_ones", .inputs = {f32({7}), known_ints({-3}), known_ints({-1})}},
              {.name = "clamped", .inputs = {f32({7}), known_ints({-100}), known_ints({100})}},
              {.name = "nothing", .inputs = {f32({7, 2}), known_ints({5}), known_ints({3})}},
              {.name = "start_behind", .inputs = {f32({3, 2}), known_ints({10}), known_ints({20})}},
              {.name = "bools",
               .inputs = {in(kBool, {7}, 0, 1), known_ints({1}), known_ints({6}), known_ints({0}), known_ints({2})}},
              {.name = "lengths_differ",
               .inputs = {f32({7}), known_ints({1}), known_ints({6, 7})},
               .error_id = "shape-mismatch"},
              {.name = "step_zero",
               .inputs = {f32({7}), known_ints({1}), known_ints({6}), known_ints({0}), known_ints({0})},
               .error_id = "bad-step"},
              {.name = "axis_twice",
               .inputs = {f32({7, 3}), known_ints({1, 1}), known_ints({6, 2}), known_ints({0, -2})},
               .error_id = "duplicate-axis"},
          },
  };
}

}  // namespace tensmith::graph::ops
