#include "graph/dim_facts.h"
#include "graph/ops/arith.h"
#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

/// What is added in front of and behind one axis; negative: cut off.
struct AxisPad {
  Expr before = Expr(0), after = Expr(0);
  bool none() const { return is_const_int(before, 0) && is_const_int(after, 0); }
};

/// One entry for each axis of the data; nothing when the pads are not known.
template <typename Context>
Result<std::optional<std::vector<AxisPad>>> axis_pads(const Context& ctx, int rank) {
  using Pads = std::optional<std::vector<AxisPad>>;
  const auto pads = int_elements(ctx, 1);
  std::vector<int64_t> axes;
  if (ctx.has(3)) {
    const auto numbers = known_numbers(ctx, 3);
    if (!numbers) return Pads{};
    axes = *numbers;
  } else {
    for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  if (!pads) return Pads{};
  const size_t count = axes.size();
  if (pads->size() != 2 * count)
    return refuse("shape-mismatch") << "input pads: expected two for each of " << count << " axes, got "
                                    << pads->size();
  std::vector<AxisPad> result(static_cast<size_t>(rank));
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (size_t k = 0; k < count; ++k) {
    const Result<int> axis = normalize_axis(axes[k], rank, "input axes");
    if (!axis) return axis.failure();
    if (seen[*axis])
      return refuse("duplicate-axis") << "input axes: expected each axis once, got axis " << *axis << " twice";
    seen[*axis] = true;
    result[*axis] = {(*pads)[k], (*pads)[k + count]};
  }
  return Pads{std::move(result)};
}

Result<std::vector<TensorType>> infer_pad(const InferContext& ctx) {
  const TensorType& data = ctx.input(0);
  const std::string mode = ctx.node.attrs.get_string("mode", "constant");
  if (Result<void> ok = check_rank(ctx.input(1), 1, 1, "input pads"); !ok) return ok.failure();
  if (ctx.has(2) && !ctx.input(2).shape.empty())
    if (Result<void> ok = check_shape(ctx.input(2), {Expr(1)}, "input constant_value"); !ok) return ok.failure();
  const auto pads = axis_pads(ctx, data.rank());
  if (!pads) return pads.failure();
  TensorType type{data.dtype, {}, {}};
  if (!*pads) {
    type.shape = data_shape(ctx, 0, data.rank());
    return std::vector<TensorType>{std::move(type)};
  }
  for (int axis = 0; axis < data.rank(); ++axis) {
    const AxisPad& pad = (**pads)[axis];
    type.shape.push_back(data.shape[axis] + pad.before + pad.after);
    if (mode != "constant" && known(data.shape[axis]) == 0 && !pad.none())
      return refuse("shape-mismatch") << "axis " << axis << ": expected elements to repeat, got shape "
                                      << shape_text(data.shape);
  }
  return std::vector<TensorType>{std::move(type)};
}

/// Whether what is added on either side is provably no longer than `most`.
bool adds_at_most(const AxisPad& pad, const Expr& most) {
  const Facts facts = dim_facts(pad.before + pad.after + most);
  return can_prove(pad.before <= most, facts) && can_prove(pad.after <= most, facts);
}

/// The index for position `at` before, inside or behind the axis, by any number of turns.
Expr wrapped_index(const std::string& mode, const Expr& at, const Expr& extent) {
  if (mode == "edge") return max(min(at, extent - 1), 0);
  if (mode == "wrap") return floor_mod(at, extent);
  if (is_const_int(extent, 1)) return 0;
  const Expr period = max((extent - 1) * 2, 1), in_period = floor_mod(at, period);
  return max(min(min(in_period, period - in_period), extent - 1), 0);
}

/// The element at `index`, each of whose padded axes holds a position that may lie outside. Where one turn is enough,
/// the parts before, inside and behind are cases of their own, so that loops can be parted there and the inner one
/// reads elements side by side.
class Repeated {
 public:
  Repeated(const Tensor& x, const std::string& mode, const std::vector<AxisPad>& pads)
      : x_(x), mode_(mode), pads_(pads) {
    for (int axis = 0; axis < x.rank(); ++axis) parted_ += pads[axis].none() ? 0 : 1;
  }

  Expr element(const Indices& index, int axis = 0) const {
    if (axis == x_.rank()) return x_(index);
    const AxisPad& pad = pads_[axis];
    if (pad.none()) return element(index, axis + 1);
    const Expr &extent = x_.shape()[axis], at = index[axis];
    const auto with = [&](const Expr& i) {
      Indices next = index;
      next[axis] = i;
      return element(next, axis + 1);
    };
    const bool single_turn = mode_ == "edge" || adds_at_most(pad, mode_ == "reflect" ? extent - 1 : extent);
    if (parted_ > kMostParted || !single_turn) return with(wrapped_index(mode_, at, extent));
    const Expr front = mode_ == "edge" ? Expr(0) : mode_ == "wrap" ? at + extent : -at;
    const Expr back = mode_ == "edge" ? extent - 1 : mode_ == "wrap" ? at - extent : (extent - 1) * 2 - at;
    Expr value = with(at);
    if (known(pad.after).value_or(1) > 0) value = select(at < extent, value, with(back));
    if (known(pad.before).value_or(1) > 0) value = select(at >= 0, value, with(front));
    return value;
  }

 private:
  /// Cases multiply by three with each axis.
  static constexpr int kMostParted = 2;
  const Tensor& x_;
  const std::string& mode_;
  const std::vector<AxisPad>& pads_;
  int parted_ = 0;
};

std::vector<Tensor> compute_pad(const ComputeContext& ctx) {
  const Tensor& x = ctx.input(0);
  const std::string mode = ctx.node.attrs.get_string("mode", "constant");
  const std::vector<AxisPad> pads = *axis_pads(ctx, x.rank()).value();
  const DType dtype = x.dtype();
  return {injective("pad", ctx.output_type(), [&](const Indices& i) {
    Indices index;
    Expr inside = make_bool(true);
    for (int axis = 0; axis < x.rank(); ++axis) {
      const AxisPad& pad = pads[axis];
      const Expr& extent = x.shape()[axis];
      const Expr at = i[axis] - pad.before;
      if (known(pad.before).value_or(1) > 0) inside = inside && at >= 0;
      if (known(pad.after).value_or(1) > 0) inside = inside && at < extent;
      index.push_back(at);
    }
    if (mode != "constant") return Repeated(x, mode, pads).element(index);
    const Expr value = ctx.has(2) ? ctx.input(2)(Indices(ctx.input(2).rank(), Expr(0))) : make_zero(dtype);
    if (is_empty(x.shape())) return value;
    return select(inside, x(index), value);
  })};
}

Result<void> reference_pad(ReferenceContext& ctx) {
  const RefTensor& x = ctx.input(0);
  const auto rank = static_cast<int64_t>(x.shape.size());
  const std::string mode = ctx.node.attrs.get_string("mode", "constant");
  Dims before(rank, 0), shape = x.shape;
  const Dims& pads = ctx.input(1).i;
  const size_t count = pads.size() / 2;
  for (size_t k = 0; k < count; ++k) {
    int64_t axis = ctx.has(3) ? ctx.input(3).i[k] : static_cast<int64_t>(k);
    if (axis < 0) axis += rank;
    before[axis] = pads[k];
    shape[axis] += pads[k] + pads[k + count];
    if (shape[axis] < 0) return Failure{"shape-mismatch", "pads cut off more than the axis has"};
  }
  RefTensor& y = make_output(ctx, x.dtype, shape);
  if (ctx.has(2)) {
    for (double& v : y.f) v = ctx.input(2).f[0];
    for (int64_t& v : y.i) v = ctx.input(2).i[0];
  }
  move_elements(y, x, [&](const Dims& index) -> int64_t {
    Dims at(index.size());
    for (size_t k = 0; k < index.size(); ++k) {
      const int64_t extent = x.shape[k];
      int64_t p = index[k] - before[k];
      if (mode == "constant" && (p < 0 || p >= extent)) return -1;
      if (mode == "edge") p = std::max<int64_t>(0, std::min(p, extent - 1));
      if (mode == "wrap") p = (p % extent + extent) % extent;
      // A ball that bounces between the first and the last element.
      while (mode == "reflect" && (p < 0 || p >= extent)) p = extent == 1 ? 0 : p < 0 ? -p : 2 * (extent - 1) - p;
      at[k] = p;
    }
    return flat_index(x.shape, at);
  });
  return {};
}

}  // namespace

OpDef pad() {
  return OpDef{
      .name = "Pad",
      .since = 2,
      .doc =
          "Elements added at the ends of axes: a constant, the mirror image (reflect), the last element (edge), or the "
          "tensor "
          "from its other end (wrap). Negative pads cut off.",
      .inputs = {{.name = "data"},
                 {.name = "pads", .types = TypeSet::kInt64},
                 {.name = "constant_value", .optional = true, .same_type_as = "data"},
                 {.name = "axes", .types = TypeSet::kIndex, .optional = true}},
      .attrs = {{.name = "mode",
                 .kind = AttrKind::kString,
                 .default_value = std::string("constant"),
                 .allowed = {"constant", "reflect", "edge", "wrap"}},
                {.name = "pads", .kind = AttrKind::kInts, .required = true, .until = 10, .becomes_input = 1},
                {.name = "value", .kind = AttrKind::kFloat, .default_value = 0.0, .until = 10, .becomes_input = 2}},
      .fusion = FusionKind::kInjective,
      .layout = LayoutRole::kFollows,
      .infer = infer_pad,
      .compute = compute_pad,
      .supports =
          [](const InferContext& ctx) {
            return require_elements(ctx, {1, 3});
          },
      .reference = reference_pad,
      .samples =
          {
              {.name = "constant", .inputs = {f32({2, 3}), known_ints({1, 0, 2, 17})}},
              {.name = "value", .inputs = {f32({3, 1}), known_ints({0, 2, 1, 1}), given(kFloat32, {}, {1.5})}},
              {.name = "axes", .inputs = {f32({2, 3, 4}), known_ints({1, 2}), absent(), known_ints({-1})}},
              {.name = "cut", .inputs = {f32({5, 6}), known_ints({-1, 2, -2, -3})}},
              {.name = "reflect",
               .inputs = {f32({1, 3, 5}), known_ints({0, 2, 3, 0, 1, 4})},
               .attrs = attrs({{"mode", "reflect"}})},
              {.name = "reflect_far",
               .inputs = {f32({3, 1}), known_ints({5, 2, 9, 3})},
               .attrs = attrs({{"mode", "reflect"}})},
              {.name = "reflect_cut", .inputs = {f32({7}), known_ints({-2, 3})}, .attrs = attrs({{"mode", "reflect"}})},
              {.name = "edge", .inputs = {f32({2, 3}), known_ints({1, 4, 2, 0})}, .attrs = attrs({{"mode", "edge"}})},
              {.name = "wrap", .inputs = {f32({2, 3}), known_ints({1, 4, 2, 5})}, .attrs = attrs({{"mode", "wrap"}})},
              {.name = "integers", .inputs = {in(kInt8, {3}), known_ints({1, 1})}},
              {.name = "from_empty", .inputs = {f32({0, 2}), known_ints({1, 0, 1, 0})}},
              {.name = "scalar", .inputs = {f32({}), known_ints({})}},
              {.name = "wrong_count", .inputs = {f32({2, 3}), known_ints({1, 1})}, .error_id = "shape-mismatch"},
              {.name = "edge_of_nothing",
               .inputs = {f32({0}), known_ints({1, 1})},
               .attrs = attrs({{"mode", "edge"}}),
               .error_id = "shape-mismatch"},
          },
  };
}

}  // namespace tensmith::graph::ops
