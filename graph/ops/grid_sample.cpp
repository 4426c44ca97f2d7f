#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/cubic.h"
#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

constexpr double kCubicCoefficient = -0.75;

/// The attributes, resolved.
struct GridParams {
  std::string mode, padding;
  bool align;

  explicit GridParams(const AttrMap& attrs)
      : mode(attrs.get_string("mode", "linear")),
        padding(attrs.get_string("padding_mode", "zeros")),
        align(attrs.get_int("align_corners", 0) != 0) {}
  /// Pixels read along each axis, and the first of them relative to the one below the position.
  int64_t taps() const { return mode == "nearest" ? 1 : mode == "linear" ? 2 : 4; }
  int64_t first() const { return mode == "cubic" ? -1 : 0; }
};

Result<std::vector<TensorType>> infer_grid_sample(const InferContext& ctx) {
  const TensorType &x = ctx.input(0), &grid = ctx.input(1);
  if (Result<void> ok = check_rank(x, 3, 64, "input X"); !ok) return ok.failure();
  if (Result<void> ok = check_rank(grid, x.rank(), x.rank(), "input grid"); !ok) return ok.failure();
  Shape wanted = grid.shape;
  wanted.front() = x.shape[0];
  wanted.back() = x.rank() - 2;
  if (Result<void> ok = check_shape(grid, wanted, "input grid"); !ok) return ok.failure();
  const GridParams p(ctx.node.attrs);
  if (p.mode != "nearest" && !x.dtype.is_float())
    return refuse("unsupported-dtype") << "input X: expected a float type for mode " << p.mode << ", got "
                                       << to_string(x.dtype) << "; insert a Cast";
  TensorType type{x.dtype, {x.shape[0], x.shape[1]}, {}};
  type.shape.insert(type.shape.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
  for (size_t k = 2; k < x.shape.size(); ++k)
    if (known(x.shape[k]) == 0 && !is_empty(type.shape))
      return refuse("shape-mismatch") << "input X: expected pixels, got shape " << shape_text(x.shape);
  return std::vector<TensorType>{std::move(type)};
}

/// Position between `low` and `high` by reflection at these borders.
Expr reflected(const Expr& at, const Expr& low, const Expr& high) {
  const Expr period = (high - low) * constant_like(at, 2);
  const Expr from_low = at - low, turns = call(Intrinsic::kFloor, {from_low / period});
  const Expr in_period = from_low - turns * period;
  return select(period > constant_like(at, 0), low + min(in_period, period - in_period), low);
}

/// The pixel that stands for pixel `i`, or -1 for one that counts as zero.
Expr pixel(const GridParams& p, const Expr& i, const Expr& extent) {
  if (p.padding == "zeros") return select(i >= 0 && i < extent, i, -1);
  if (p.padding == "border") return max(min(i, extent - 1), 0);
  // Reflection at the centres of the outer pixels, or at their edges.
  const Expr period = p.align ? max((extent - 1) * 2, 1) : extent * 2;
  const Expr in_period = floor_mod(i, period);
  return max(min(min(in_period, p.align ? (extent - 1) * 2 - in_period : period - 1 - in_period), extent - 1), 0);
}

/// The position in pixels for a grid value.
Expr position(const GridParams& p, const Expr& value, const Expr& extent) {
  const auto c = [&](double number) { return constant_like(value, number); };
  const Expr length = cast(value.dtype(), extent);
  Expr at = p.align ? (value + c(1)) * c(0.5) * (length - c(1)) : ((value + c(1)) * length - c(1)) * c(0.5);
  if (p.mode == "nearest") at = call(Intrinsic::kRoundEven, {at});
  if (p.padding == "zeros") return at;
  const Expr low = c(p.align ? 0 : -0.5), high = length - c(p.align ? 1 : 0.5);
  return with_value("at", at, [&](const Expr& v) {
    const Expr moved = p.padding == "border" ? max(min(v, length - c(1)), c(0)) : reflected(v, low, high);
    return select(v < low || v > high, moved, v);
  });
}

/// Which pixel each tap of an output position reads along one axis, and its weight: tables of shape [taps, batch,
/// positions ...], shared by all channels, whose inner dims are read side by side.
std::vector<Tensor> axis_taps(const ComputeContext& ctx, const GridParams& p, int axis, DType wide) {
  const Tensor& grid = ctx.input(1);
  const Expr& extent = ctx.input(0).shape()[2 + axis];
  const int axes = ctx.input(0).rank() - 2;
  Shape shape{Expr(p.taps())};
  shape.insert(shape.end(), grid.shape().begin(), grid.shape().end() - 1);
  return compute_multi("grid_taps_" + std::to_string(axis), shape, [&](const Indices& i) {
    Indices at(i.begin() + 1, i.end());
    at.emplace_back(axes - 1 - axis);  // the grid names the innermost axis first
    const Expr where = position(p, cast(wide, grid(at)), extent);
    const Expr whole = p.mode == "nearest" ? where : call(Intrinsic::kFloor, {where});
    // Positions far outside are brought near, so that integers cannot overflow; every tap stays outside.
    const Expr base = max(min(cast(kInt64, whole), extent + 4), -4), tap = i[0] + p.first();
    Expr weight = constant_like(where, 1);
    if (p.mode != "nearest") {
      const Expr distance = cast(wide, tap) - (where - whole);
      weight = p.mode == "linear" ? constant_like(where, 1) - call(Intrinsic::kAbs, {distance})
                                  : cubic_kernel(distance, kCubicCoefficient);
    }
    return std::vector<Expr>{pixel(p, base + tap, extent), weight};
  });
}

/// Up to this many taps of all axes together are written out; more are a reduction.
constexpr int64_t kMostWritten = 16;

std::vector<Tensor> compute_grid_sample(const ComputeContext& ctx) {
  const Tensor& x = ctx.input(0);
  const GridParams p(ctx.node.attrs);
  const TensorType& type = ctx.output_type();
  if (is_empty(type.shape)) return {injective("grid_sample", type, {})};
  const int axes = x.rank() - 2;
  const DType wide = type.dtype.is_float() ? compute_type(type.dtype) : kFloat32;
  std::vector<std::vector<Tensor>> tables;
  int64_t all_taps = 1;
  for (int axis = 0; axis < axes; ++axis) {
    tables.push_back(axis_taps(ctx, p, axis, wide));
    all_taps *= p.taps();
  }
  const auto entry = [&](int table, const Indices& i, int axis, const Expr& tap) {
    Indices index{tap, i[0]};
    index.insert(index.end(), i.begin() + 2, i.end());
    return tables[axis][table](index);
  };
  const auto inside = [&](const Indices& i, const Indices& taps) {
    Expr all = make_bool(true);
    for (int axis = 0; axis < axes; ++axis) all = all && entry(0, i, axis, taps[axis]) >= 0;
    return all;
  };
  const auto element = [&](const Indices& i, const Indices& taps) {
    Indices index{i[0], i[1]};
    // Table entries come back as data; the bounds are stated again so that they can be seen.
    for (int axis = 0; axis < axes; ++axis)
      index.push_back(max(min(entry(0, i, axis, taps[axis]), x.shape()[2 + axis] - 1), 0));
    return x(index);
  };
  const bool zeros = p.padding == "zeros";
  if (p.mode == "nearest") {
    const Indices first(static_cast<size_t>(axes), Expr(0));
    return {compute("grid_sample", type.shape, [&](const Indices& i) {
      return zeros ? select(inside(i, first), element(i, first), make_zero(type.dtype)) : element(i, first);
    })};
  }
  const auto weighted = [&](const Indices& i, const Indices& taps) {
    Expr weight = entry(1, i, 0, taps[0]);
    for (int axis = 1; axis < axes; ++axis) weight = weight * entry(1, i, axis, taps[axis]);
    return widen(element(i, taps)) * weight;
  };
  if (all_taps > kMostWritten) {
    std::function<Expr(const Indices&, const Indices&)> where;
    if (zeros) where = inside;
    const std::vector<Expr> extents(static_cast<size_t>(axes), Expr(p.taps()));
    return {narrow(reduce("grid_sample", type.shape, extents, sum_reducer(wide), weighted, where), type.dtype)};
  }
  return {compute("grid_sample", type.shape, [&](const Indices& i) {
    Expr total = make_zero(wide);
    for (int64_t number = 0; number < all_taps; ++number) {
      Indices taps(static_cast<size_t>(axes));
      int64_t rest = number;
      for (int axis = axes; axis-- > 0; rest /= p.taps()) taps[axis] = rest % p.taps();
      const Expr term = zeros ? select(inside(i, taps), weighted(i, taps), make_zero(wide)) : weighted(i, taps);
      total = number == 0 ? term : total + term;
    }
    return cast(type.dtype, total);
  })};
}

Result<void> reference_grid_sample(ReferenceContext& ctx) {
  const RefTensor &x = ctx.input(0), &grid = ctx.input(1);
  const GridParams p(ctx.node.attrs);
  const size_t axes = x.shape.size() - 2;
  Dims shape{x.shape[0], x.shape[1]};
  shape.insert(shape.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
  RefTensor& y = make_output(ctx, x.dtype, shape);
  // numpy's reflection by steps: the part that sticks out, folded at the near border, the far one, and so on.
  const auto reflect = [](double at, double low, double high) {
    const double range = high - low;
    if (range <= 0) return low;
    if (at >= low && at <= high) return at;
    const double out = at < low ? low - at : at - high, folds = std::floor(out / range), rest = out - folds * range;
    const bool from_low = (at < low) == (std::fmod(folds, 2) == 0);
    return from_low ? low + rest : high - rest;
  };
  for_each_index(shape, [&](int64_t to, const Dims& index) {
    Dims where{index[0]};
    where.insert(where.end(), index.begin() + 2, index.end());
    std::vector<double> at(axes), low(axes), high(axes);
    for (size_t k = 0; k < axes; ++k) {
      const auto extent = static_cast<double>(x.shape[2 + k]);
      Dims g = where;
      g.push_back(static_cast<int64_t>(axes - 1 - k));
      const double n = grid.f[flat_index(grid.shape, g)];
      low[k] = p.align ? 0 : -0.5, high[k] = p.align ? extent - 1 : extent - 0.5;
      at[k] = p.align ? (n + 1) / 2 * (extent - 1) : ((n + 1) * extent - 1) / 2;
      if (p.mode == "nearest") at[k] = std::nearbyint(at[k]);
      if (at[k] < low[k] || at[k] > high[k]) {
        if (p.padding == "border") at[k] = std::max(0.0, std::min(at[k], extent - 1));
        if (p.padding == "reflection") at[k] = reflect(at[k], low[k], high[k]);
      }
    }
    double total = 0;
    for_each_index(Dims(axes, p.taps()), [&](int64_t, const Dims& tap) {
      double weight = 1;
      Dims from{index[0], index[1]};
      bool zero = false;
      for (size_t k = 0; k < axes; ++k) {
        const double whole = std::floor(at[k]), fraction = at[k] - whole;
        double pixel = whole + static_cast<double>(tap[k] + p.first());
        if (p.mode == "linear") weight *= tap[k] == 0 ? 1 - fraction : fraction;
        if (p.mode == "cubic") weight *= cubic_kernel(static_cast<double>(tap[k] - 1) - fraction, kCubicCoefficient);
        const auto extent = static_cast<double>(x.shape[2 + k]);
        if (p.padding == "zeros") zero = zero || !(pixel >= 0 && pixel < extent);
        else if (p.padding == "border") pixel = std::max(0.0, std::min(pixel, extent - 1));
        else pixel = std::trunc(reflect(pixel, low[k], high[k]));
        from.push_back(zero ? 0 : static_cast<int64_t>(pixel));
      }
      if (!zero && p.mode == "nearest") copy_element(y, to, x, flat_index(x.shape, from));
      else if (!zero) total += weight * x.f[flat_index(x.shape, from)];
    });
    if (p.mode != "nearest") y.f[to] = total;
  });
  return {};
}

}  // namespace

OpDef grid_sample() {
  const auto with = [](const char* mode, const char* padding, int align) {
    return attrs({{"mode", mode}, {"padding_mode", padding}, {"align_corners", align}});
  };
  std::vector<OpSample> samples;
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (int align : {0, 1})
        samples.push_back({.name = std::string(mode) + "_" + padding + (align ? "_corners" : ""),
                           .inputs = {f32({2, 3, 4, 5}), f32({2, 3, 2, 2}, -1.6, 1.6)},
                           .attrs = with(mode, padding, align),
                           .rtol = 1e-4,
                           .atol = 1e-4});
  samples.push_back({.name = "volume",
                     .inputs = {f32({1, 2, 3, 4, 3}), f32({1, 2, 3, 1, 3}, -1.2, 1.2)},
                     .rtol = 1e-4,
                     .atol = 1e-4});
  samples.push_back({.name = "line",
                     .inputs = {f32({1, 1, 17}), f32({1, 5, 1}, -1.2, 1.2)},
                     .attrs = with("cubic", "zeros", 0),
                     .rtol = 1e-4,
                     .atol = 1e-4});
  samples.push_back({.name = "one_pixel",
                     .inputs = {f32({1, 1, 1, 1}), f32({1, 2, 2, 2}, -3, 3)},
                     .attrs = with("linear", "reflection", 1),
                     .rtol = 1e-4,
                     .atol = 1e-4});
  samples.push_back({.name = "integers",
                     .inputs = {in(kInt32, {1, 1, 4, 4}), f32({1, 3, 3, 2}, -1.5, 1.5)},
                     .attrs = with("nearest", "zeros", 0)});
  samples.push_back({.name = "integers_linear",
                     .inputs = {in(kInt32, {1, 1, 4, 4}), f32({1, 3, 3, 2})},
                     .error_id = "unsupported-dtype"});
  samples.push_back(
      {.name = "three_coordinates", .inputs = {f32({1, 1, 4, 4}), f32({1, 3, 3, 3})}, .error_id = "shape-mismatch"});
  return OpDef{
      .name = "GridSample",
      .since = 16,
      .doc =
          "Pixels at the positions that a grid gives, from -1 to 1 over each axis, interpolated; outside: zeros, the "
          "border, or the mirror image.",
      .inputs = {{.name = "X"}, {.name = "grid", .types = TypeSet::kFloat}},
      .attrs = {{.name = "align_corners", .kind = AttrKind::kInt, .default_value = int64_t{0}},
                {.name = "mode",
                 .kind = AttrKind::kString,
                 .default_value = std::string("linear"),
                 .allowed = {"linear", "nearest", "cubic"}},
                {.name = "padding_mode",
                 .kind = AttrKind::kString,
                 .default_value = std::string("zeros"),
                 .allowed = {"zeros", "border", "reflection"}}},
      .fusion = FusionKind::kOpaque,
      .infer = infer_grid_sample,
      .compute = compute_grid_sample,
      .reference = reference_grid_sample,
      .samples = std::move(samples),
  };
}

}  // namespace tensmith::graph::ops
