#include <algorithm>
#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/cubic.h"
#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/resize_axis.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

enum Input { kX, kRoi, kScales, kSizes };

/// Weights above this number a point mean a shrinking that would cost more than any use has.
constexpr int64_t kMaxTaps = 1 << 16;

std::string mode_of(const AttrMap& attrs) { return attrs.get_string("mode", "nearest"); }
bool is_antialiased(const AttrMap& attrs) { return attrs.get_int("antialias", 0) != 0 && mode_of(attrs) != "nearest"; }

Result<std::vector<int>> axes_of(const AttrMap& attrs, int rank) {
  std::vector<int> axes;
  if (!attrs.has("axes"))
    for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
  for (int64_t given : attrs.get_ints("axes")) {
    const Result<int> axis = normalize_axis(given, rank, "attribute axes");
    if (!axis) return axis.failure();
    if (std::count(axes.begin(), axes.end(), *axis))
      return refuse("duplicate-axis") << "attribute axes: expected each axis once, got " << given << " twice";
    axes.push_back(*axis);
  }
  return axes;
}

const TensorType* type_at(const InferContext& ctx, size_t k) { return k < ctx.inputs.size() ? ctx.inputs[k] : nullptr; }
const TensorType* type_at(const ComputeContext& ctx, size_t k) {
  return k < ctx.input_types.size() ? ctx.input_types[k] : nullptr;
}

/// floor(extent * scale): in float32 for numbers, as ONNX's own rule computes it. Nothing for a symbol and a scale that
/// is no simple fraction.
std::optional<Expr> scaled(const Expr& extent, double scale) {
  if (const auto number = known(extent))
    return Expr(static_cast<int64_t>(std::floor(static_cast<float>(*number) * static_cast<float>(scale))));
  const auto ratio = as_ratio(scale);
  if (!ratio) return {};
  return floor_div(extent * ratio->num, ratio->den);
}

/// Lengths under keep_aspect_ratio_policy, and the one scale of all axes.
std::pair<std::vector<int64_t>, double> keep_aspect(const std::string& policy, const std::vector<int64_t>& from,
                                                    const std::vector<int64_t>& sizes) {
  double scale = policy == "not_larger" ? INFINITY : 0;
  for (size_t k = 0; k < sizes.size(); ++k) {
    const double one = static_cast<double>(sizes[k]) / static_cast<double>(from[k]);
    scale = policy == "not_larger" ? std::min(scale, one) : std::max(scale, one);
  }
  std::vector<int64_t> lengths;
  for (int64_t extent : from)
    lengths.push_back(static_cast<int64_t>(std::floor(scale * static_cast<double>(extent) + 0.5)));
  return {std::move(lengths), scale};
}

/// The axes that change, in the order in which they are resized; nothing when their lengths are not known.
template <typename Context>
Result<std::optional<std::vector<ResizeAxis>>> resized_axes(const Context& ctx, const Shape& shape) {
  using Axes = std::optional<std::vector<ResizeAxis>>;
  const AttrMap& attrs = ctx.node.attrs;
  const Result<std::vector<int>> axes = axes_of(attrs, static_cast<int>(shape.size()));
  if (!axes) return axes.failure();
  if (ctx.has(kScales) == ctx.has(kSizes))
    return refuse("bad-arity") << "inputs scales, sizes: expected exactly one of them, got "
                               << (ctx.has(kScales) ? "both" : "none");
  const Coordinates coordinates = coordinates_of(attrs.get_string("coordinate_transformation_mode", "half_pixel"));
  std::vector<ResizeAxis> result;
  for (size_t k = 0; k < axes->size(); ++k)
    result.push_back({(*axes)[k], shape[(*axes)[k]], {}, {}, {}, {}, coordinates});
  if (ctx.has(kScales)) {
    const auto scales = known_floats(type_at(ctx, kScales), constant_at(ctx, kScales));
    if (!scales) return Axes{};
    if (scales->size() != axes->size())
      return refuse("shape-mismatch") << "input scales: expected one for each of " << axes->size() << " axes, got "
                                      << scales->size();
    for (size_t k = 0; k < result.size(); ++k) {
      const double scale = (*scales)[k];
      if (!(scale > 0 && scale < 1e6))
        return refuse("bad-scale") << "input scales: expected numbers above 0, got " << scale;
      const auto out = scaled(result[k].in, scale);
      if (!out) return Axes{};
      result[k].out = *out;
      result[k].scale = scale;
    }
  } else {
    const auto sizes = int_elements(ctx, kSizes);
    if (!sizes) return Axes{};
    if (sizes->size() != axes->size())
      return refuse("shape-mismatch") << "input sizes: expected one for each of " << axes->size() << " axes, got "
                                      << sizes->size();
    const std::string policy = attrs.get_string("keep_aspect_ratio_policy", "stretch");
    std::vector<int64_t> from, to;
    for (size_t k = 0; k < result.size(); ++k) {
      result[k].out = (*sizes)[k];
      if (known(result[k].in)) from.push_back(*known(result[k].in));
      if (known(result[k].out)) to.push_back(*known(result[k].out));
      if (known(result[k].out).value_or(0) < 0)
        return refuse("shape-mismatch") << "input sizes: expected lengths of 0 or more, got " << *known(result[k].out);
    }
    if (policy != "stretch") {
      if (from.size() != result.size() || to.size() != result.size()) return Axes{};
      const auto [lengths, scale] = keep_aspect(policy, from, to);
      for (size_t k = 0; k < result.size(); ++k) {
        result[k].out = lengths[k];
        result[k].scale = scale;
      }
    }
  }
  for (const ResizeAxis& axis : result)
    if (known(axis.in) == 0 && known(axis.out) != 0)
      return refuse("shape-mismatch") << "input X: expected elements along axis " << axis.axis << ", got shape "
                                      << shape_text(shape);
  return Axes{std::move(result)};
}

Result<std::vector<TensorType>> infer_resize(const InferContext& ctx) {
  const TensorType& x = ctx.input(kX);
  const bool crops = coordinates_of(ctx.node.attrs.get_string("coordinate_transformation_mode", "half_pixel")) ==
                     Coordinates::kCropAndResize;
  const auto axes = resized_axes(ctx, x.shape);
  if (!axes) return axes.failure();
  const std::vector<int> chosen = axes_of(ctx.node.attrs, x.rank()).value();
  const auto count = static_cast<int64_t>(chosen.size());
  if (crops && !ctx.has(kRoi))
    return refuse("bad-arity") << "input roi: expected a value for tf_crop_and_resize, got none";
  if (crops)
    if (Result<void> ok = check_shape(ctx.input(kRoi), {Expr(2 * count)}, "input roi"); !ok) return ok.failure();
  TensorType type{x.dtype, x.shape, {}};
  if (*axes) {
    for (const ResizeAxis& axis : **axes) type.shape[axis.axis] = axis.out;
  } else {
    for (int axis : chosen) type.shape[axis] = ctx.data_dim(0, axis);
  }
  return std::vector<TensorType>{std::move(type)};
}

/// How many pixels on each side the filter reaches, and by what distances shrink for it.
struct Filter {
  int64_t reach;
  double stretch;
};

/// The filter of an axis; nothing when an antialiasing filter depends on symbols.
std::optional<Filter> filter_of(const AttrMap& attrs, const ResizeAxis& axis) {
  const int64_t reach = mode_of(attrs) == "cubic" ? 2 : 1;
  if (!is_antialiased(attrs)) return Filter{reach, 1};
  double scale = 1;
  if (axis.scale) scale = *axis.scale;
  else if (known(axis.in) && known(axis.out))
    scale = static_cast<double>(*known(axis.out)) / static_cast<double>(*known(axis.in));
  else return {};
  scale = std::min(scale, 1.0);
  const double wide = std::ceil(static_cast<double>(reach) / scale);
  if (!(wide * 2 <= static_cast<double>(kMaxTaps))) return {};
  return Filter{static_cast<int64_t>(wide), scale};
}

Result<void> supports_resize(const InferContext& ctx) {
  const auto axes = resized_axes(ctx, ctx.input(kX).shape);
  if (!axes) return axes.failure();
  if (!*axes)
    return refuse("dynamic-shape") << "inputs scales, sizes: expected sizes made of dims, or constant scales (simple "
                                      "fractions for symbolic dims), got what "
                                      "only the data gives; make them constants, or give the dims a size with --dim";
  for (const ResizeAxis& axis : **axes)
    if (!filter_of(ctx.node.attrs, axis))
      return refuse("dynamic-shape") << "attribute antialias: expected known lengths and a scale above "
                                     << 4.0 / kMaxTaps << ", got " << dim_to_string(axis.in) << " to "
                                     << dim_to_string(axis.out) << "; give the dims a size with --dim";
  return {};
}

/// Interpolation along one axis as a weighted sum of neighbours. Weights and positions are tables over the axis.
Tensor interpolate(const ComputeContext& ctx, const Tensor& x, const ResizeAxis& axis) {
  const AttrMap& attrs = ctx.node.attrs;
  const Filter filter = *filter_of(attrs, axis);
  const int64_t taps = 2 * filter.reach, first = 1 - filter.reach;
  const double a = attrs.get_float("cubic_coeff_a", -0.75);
  const bool cubic = mode_of(attrs) == "cubic", exclude = attrs.get_int("exclude_outside", 0) != 0;
  const bool crops = axis.coordinates == Coordinates::kCropAndResize;
  const DType wide = x.dtype();
  const auto c = [](double value) { return make_const(kFloat64, value); };
  // The pixel below the position, near the axis even for data that asks for one far away.
  const auto below = [&](const Expr& o) {
    const Expr whole = cast(kInt64, call(Intrinsic::kFloor, {source_position(axis, o)}));
    return crops ? max(min(whole, axis.in + taps), -taps) : whole;
  };
  const Tensor base = compute("resize_base", {axis.out}, [&](const Indices& i) { return below(i[0]); });
  const Tensor raw = compute("resize_raw_weights", {axis.out, taps}, [&](const Indices& i) {
    const Expr at = source_position(axis, i[0]);
    const Expr distance = (cast(kFloat64, i[1] + first) - (at - call(Intrinsic::kFloor, {at}))) * c(filter.stretch);
    const Expr weight = cubic ? cubic_kernel(distance, a) : max(c(1) - call(Intrinsic::kAbs, {distance}), c(0));
    if (!exclude) return weight;
    const Expr pixel = base(i[0]) + i[1] + first;
    return select(pixel >= 0 && pixel < axis.in, weight, c(0));
  });
  Tensor weights = raw;
  if (exclude || is_antialiased(attrs)) {
    const Tensor total = sum("resize_weight_sum", {axis.out}, {Expr(taps)},
                             [&](const Indices& i, const Indices& r) { return raw(i[0], r[0]); });
    weights = compute("resize_weights", raw.shape(), [&](const Indices& i) {
      return cast(wide, select(total(i[0]) == c(0), c(0), raw(i) / total(i[0])));
    });
  } else {
    weights = compute("resize_weights", raw.shape(), [&](const Indices& i) { return cast(wide, raw(i)); });
  }
  Shape shape = x.shape();
  shape[axis.axis] = axis.out;
  const auto term = [&](const Indices& i, const Expr& tap) {
    Indices index = i;
    index[axis.axis] = max(min(base(i[axis.axis]) + tap + first, axis.in - 1), 0);
    return x(index) * weights(i[axis.axis], tap);
  };
  const std::string name = "resize_axis_" + std::to_string(axis.axis);
  const Expr outside_value = make_const(wide, attrs.get_float("extrapolation_value", 0));
  const auto finished = [&](const Indices& i, const Expr& value) {
    return crops ? select(is_outside(axis, i[axis.axis]), outside_value, value) : value;
  };
  if (taps <= 4)
    return compute(name, shape, [&](const Indices& i) {
      Expr value = term(i, 0);
      for (int64_t tap = 1; tap < taps; ++tap) value = value + term(i, tap);
      return finished(i, value);
    });
  const Tensor total =
      sum(name, shape, {Expr(taps)}, [&](const Indices& i, const Indices& r) { return term(i, r[0]); });
  if (!crops) return total;
  return compute(name + "_cropped", shape, [&](const Indices& i) { return finished(i, total(i)); });
}

/// Whether an axis is copied as it is.
bool keeps(const ResizeAxis& axis) {
  return axis.coordinates != Coordinates::kCropAndResize && same_dim(axis.in, axis.out) &&
         (!axis.scale || *axis.scale == 1);
}

std::vector<ResizeAxis> changing_axes(const ComputeContext& ctx) {
  std::vector<ResizeAxis> changing;
  const std::vector<ResizeAxis> axes = *resized_axes(ctx, ctx.input(kX).shape()).value();
  const Constant* roi = constant_at(ctx, kRoi);
  for (size_t k = 0; k < axes.size(); ++k) {
    ResizeAxis axis = axes[k];
    if (axis.coordinates == Coordinates::kCropAndResize) {
      const auto at = [&](size_t n) {
        return roi ? make_const(kFloat64, roi->float_at(static_cast<int64_t>(n)))
                   : cast(kFloat64, ctx.input(kRoi)(static_cast<int64_t>(n)));
      };
      axis.roi_start = at(k);
      axis.roi_end = at(k + axes.size());
      if (same_dim(axis.in, axis.out) && is_const_float(axis.roi_start, 0) && is_const_float(axis.roi_end, 1)) continue;
    }
    if (!keeps(axis)) changing.push_back(axis);
  }
  // Outer axes first: the long inner rows are read side by side, and the last step works on the fewest rows when
  // shrinking.
  std::sort(changing.begin(), changing.end(), [](const ResizeAxis& a, const ResizeAxis& b) { return a.axis < b.axis; });
  return changing;
}

std::vector<Tensor> compute_resize(const ComputeContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const AttrMap& attrs = ctx.node.attrs;
  const TensorType& type = ctx.output_type();
  if (is_empty(type.shape)) return {injective("resize", type, {})};
  const std::vector<ResizeAxis> axes = changing_axes(ctx);
  if (mode_of(attrs) == "nearest") {
    const Nearest rounding = nearest_of(attrs.get_string("nearest_mode", "round_prefer_floor"));
    const DType dtype = type.dtype;
    return {compute("resize", type.shape, [&](const Indices& i) {
      Indices index = i;
      Expr outside = make_bool(false);
      for (const ResizeAxis& axis : axes) {
        index[axis.axis] = nearest_element(axis, i[axis.axis], rounding);
        if (axis.coordinates == Coordinates::kCropAndResize) outside = outside || is_outside(axis, i[axis.axis]);
      }
      return select(outside, make_const(dtype, attrs.get_float("extrapolation_value", 0)), x(index));
    })};
  }
  const DType wide = type.dtype.is_float() ? compute_type(type.dtype) : kFloat32;
  Tensor value = x;
  if (x.dtype() != wide && !axes.empty())
    value = compute("resize_input", x.shape(), [&](const Indices& i) { return cast(wide, x(i)); });
  for (const ResizeAxis& axis : axes) value = interpolate(ctx, value, axis);
  if (axes.empty()) return {compute("resize", type.shape, [&](const Indices& i) { return x(i); })};
  if (type.dtype.is_float()) return {narrow(value, type.dtype)};
  return {compute("resize_round", type.shape, [&](const Indices& i) { return round_saturate(value(i), type.dtype); })};
}

/// One axis of the reference: output element o as (pixel, weight) pairs.
using Taps = std::vector<std::pair<int64_t, double>>;

Taps reference_taps(const AttrMap& attrs, double at, int64_t in, double scale) {
  const std::string mode = mode_of(attrs);
  const auto inside = [&](double pixel) {
    return static_cast<int64_t>(std::max(0.0, std::min(pixel, static_cast<double>(in - 1))));
  };
  if (mode == "nearest") {
    // Ties and whole numbers are meant exactly, not as the float32 scale puts them.
    if (const double twice = std::round(at * 2); std::fabs(at * 2 - twice) < 1e-5) at = twice / 2;
    const Nearest rounding = nearest_of(attrs.get_string("nearest_mode", "round_prefer_floor"));
    const double pixel = rounding == Nearest::kFloor              ? std::floor(at)
                         : rounding == Nearest::kCeil             ? std::ceil(at)
                         : rounding == Nearest::kRoundPreferFloor ? std::ceil(at - 0.5)
                                                                  : std::floor(at + 0.5);
    return {{inside(pixel), 1.0}};
  }
  const bool antialias = is_antialiased(attrs), exclude = attrs.get_int("exclude_outside", 0) != 0;
  const double stretch = antialias ? std::min(scale, 1.0) : 1, reach = std::ceil((mode == "cubic" ? 2 : 1) / stretch),
               a = attrs.get_float("cubic_coeff_a", -0.75);
  Taps taps;
  double total = 0;
  for (double pixel = std::floor(at) + 1 - reach; pixel <= std::floor(at) + reach; ++pixel) {
    const double distance = std::fabs(pixel - at) * stretch;
    double weight = mode == "cubic" ? cubic_kernel(distance, a) : std::max(0.0, 1 - distance);
    if (exclude && (pixel < 0 || pixel > static_cast<double>(in - 1))) weight = 0;
    taps.emplace_back(inside(pixel), weight);
    total += weight;
  }
  if (antialias || exclude)
    for (auto& [pixel, weight] : taps) weight = total == 0 ? 0 : weight / total;
  return taps;
}

Result<void> reference_resize(ReferenceContext& ctx) {
  const RefTensor& x = ctx.input(kX);
  const AttrMap& attrs = ctx.node.attrs;
  const std::vector<int> axes = axes_of(attrs, static_cast<int>(x.shape.size())).value();
  const Coordinates coordinates = coordinates_of(attrs.get_string("coordinate_transformation_mode", "half_pixel"));
  Dims from, lengths;
  std::vector<double> scales;
  for (int axis : axes) from.push_back(x.shape[axis]);
  for (size_t k = 0; k < axes.size(); ++k) {
    if (ctx.has(kScales)) {
      scales.push_back(ctx.input(kScales).f[k]);
      lengths.push_back(static_cast<int64_t>(std::floor(static_cast<float>(from[k]) * static_cast<float>(scales[k]))));
    } else {
      lengths.push_back(ctx.input(kSizes).i[k]);
      scales.push_back(static_cast<double>(lengths[k]) / static_cast<double>(from[k]));
    }
  }
  if (const std::string policy = attrs.get_string("keep_aspect_ratio_policy", "stretch");
      policy != "stretch" && ctx.has(kSizes)) {
    const auto [kept, scale] = keep_aspect(policy, from, ctx.input(kSizes).i);
    lengths = kept;
    std::fill(scales.begin(), scales.end(), scale);
  }
  RefTensor value = x;
  for (size_t k = 0; k < axes.size(); ++k) {
    const bool crops = coordinates == Coordinates::kCropAndResize;
    const double start = crops ? ctx.input(kRoi).f[k] : 0, end = crops ? ctx.input(kRoi).f[k + axes.size()] : 1;
    if (lengths[k] == from[k] && scales[k] == 1 && (!crops || (start == 0 && end == 1))) continue;
    Dims shape = value.shape;
    shape[axes[k]] = lengths[k];
    // Intermediate results stay in double for integers too.
    RefTensor next = make_ref_tensor(mode_of(attrs) == "nearest" ? x.dtype : kFloat64, shape);
    const AxisView in(value.shape, static_cast<size_t>(axes[k])), out(shape, static_cast<size_t>(axes[k]));
    for (int64_t o = 0; o < out.axis; ++o) {
      const double at = source_position(coordinates, o, in.axis, out.axis, scales[k], start, end);
      const bool outside = crops && (at < 0 || at > static_cast<double>(in.axis - 1));
      const Taps taps = reference_taps(attrs, at, in.axis, scales[k]);
      for (int64_t row = 0; row < out.outer; ++row)
        for (int64_t inner = 0; inner < out.inner; ++inner) {
          const int64_t to = (row * out.axis + o) * out.inner + inner;
          const auto source = [&](int64_t pixel) { return (row * in.axis + pixel) * in.inner + inner; };
          if (outside) {
            next.set(to, attrs.get_float("extrapolation_value", 0));
          } else if (mode_of(attrs) == "nearest") {
            copy_element(next, to, value, source(taps[0].first));
          } else {
            for (const auto& [pixel, weight] : taps) next.f[to] += weight * value.get(source(pixel));
          }
        }
    }
    value = std::move(next);
  }
  RefTensor& y = make_output(ctx, x.dtype, value.shape);
  for (int64_t k = 0; k < y.num_elements(); ++k) {
    if (y.is_float()) y.f[k] = value.get(k);
    else if (!value.is_float()) y.i[k] = value.i[k];
    else
      y.i[k] =
          static_cast<int64_t>(std::max(lowest_of(y.dtype), std::min(std::nearbyint(value.f[k]), highest_of(y.dtype))));
  }
  return {};
}

OpSample::Input scales(std::vector<double> values) {
  const auto count = static_cast<int64_t>(values.size());
  return {.dtype = kFloat32, .shape = {count}, .values = std::move(values), .constant = true};
}

std::vector<OpSample> resize_samples() {
  std::vector<OpSample> samples;
  const auto add = [&](std::string name, OpSample::Input x, OpSample::Input by, AttrMap with,
                       OpSample::Input roi = absent()) {
    OpSample sample{.name = std::move(name),
                    .inputs = {std::move(x), std::move(roi)},
                    .attrs = std::move(with),
                    .rtol = 1e-4,
                    .atol = 1e-4};
    if (by.dtype == kInt64) sample.inputs.push_back(absent());
    sample.inputs.push_back(std::move(by));
    samples.push_back(std::move(sample));
  };
  for (const char* coordinates :
       {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"}) {
    for (const char* rounding : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) {
      const AttrMap with = attrs({{"coordinate_transformation_mode", coordinates}, {"nearest_mode", rounding}});
      add(std::string("nearest_up_") + coordinates + "_" + rounding, f32({1, 2, 3, 5}), scales({1, 1, 2, 3}), with);
      add(std::string("nearest_down_") + coordinates + "_" + rounding, f32({1, 1, 7, 10}), scales({1, 1, 0.6, 0.5}),
          with);
    }
    for (const char* mode : {"linear", "cubic"}) {
      const AttrMap with = attrs({{"coordinate_transformation_mode", coordinates}, {"mode", mode}});
      add(std::string(mode) + "_up_" + coordinates, f32({1, 2, 3, 4}), scales({1, 1, 2, 1.7}), with);
      add(std::string(mode) + "_sizes_" + coordinates, f32({1, 1, 7, 9}), known_ints({1, 1, 1, 4}), with);
    }
  }
  add("nearest_integers", in(kInt64, {3, 5}), known_ints({7, 4}), {});
  add("linear_integers", in(kUInt8, {4, 5}, 0, 255), known_ints({6, 3}), attrs({{"mode", "linear"}}));
  add("linear_half", in(kFloat16, {1, 1, 4, 4}), scales({1, 1, 2, 2}), attrs({{"mode", "linear"}}));
  samples.back().rtol = 2e-3, samples.back().atol = 2e-3;
  add("cubic_excluded", f32({1, 1, 4, 4}), scales({1, 1, 0.8, 2}),
      attrs({{"mode", "cubic"}, {"exclude_outside", 1}, {"cubic_coeff_a", -0.5}}));
  add("linear_antialiased", f32({1, 1, 9, 8}), scales({1, 1, 0.4, 0.6}), attrs({{"mode", "linear"}, {"antialias", 1}}));
  add("cubic_antialiased", f32({1, 1, 8, 9}), known_ints({1, 1, 3, 12}), attrs({{"mode", "cubic"}, {"antialias", 1}}));
  const auto roi =
      OpSample::Input{.dtype = kFloat32, .shape = {8}, .values = {0, 0, 0.4, 0.6, 1, 1, 1.2, 1.7}, .constant = true};
  for (const char* mode : {"nearest", "linear", "cubic"})
    add(std::string("crop_") + mode, f32({1, 1, 4, 4}), known_ints({1, 1, 3, 3}),
        attrs(
            {{"mode", mode}, {"coordinate_transformation_mode", "tf_crop_and_resize"}, {"extrapolation_value", 10.0}}),
        roi);
  add("axes", f32({1, 3, 4, 2}), known_ints({5, 6}), attrs({{"mode", "linear"}, {"axes", ints({2, -3})}}));
  add("not_larger", f32({1, 1, 4, 6}), known_ints({7, 8}),
      attrs({{"axes", ints({2, 3})}, {"keep_aspect_ratio_policy", "not_larger"}}));
  add("not_smaller", f32({1, 1, 4, 6}), known_ints({7, 8}),
      attrs({{"mode", "linear"}, {"axes", ints({2, 3})}, {"keep_aspect_ratio_policy", "not_smaller"}}));
  add("same_size", f32({1, 1, 4, 6}), known_ints({1, 1, 4, 6}), attrs({{"mode", "cubic"}}));
  add("three_scales", f32({1, 1, 4, 6}), scales({1, 2, 2}), {});
  samples.back().error_id = "shape-mismatch";
  add("negative_scale", f32({1, 4}), scales({1, -2}), {});
  samples.back().error_id = "bad-scale";
  return samples;
}

}  // namespace

OpDef resize() {
  return OpDef{
      .name = "Resize",
      .since = 10,
      .doc =
          "Axes made longer or shorter by nearest, linear or cubic interpolation, to given sizes or by given scales.",
      .inputs = {{.name = "X", .types = TypeSet::kNumeric},
                 {.name = "roi", .types = TypeSet::kFloat, .optional = true},
                 {.name = "scales", .types = TypeSet::kFloat, .optional = true},
                 {.name = "sizes", .types = TypeSet::kInt64, .optional = true}},
      .attrs = {{.name = "antialias", .kind = AttrKind::kInt, .default_value = int64_t{0}, .since = 18},
                {.name = "axes", .kind = AttrKind::kInts, .no_default = true, .since = 18},
                {.name = "coordinate_transformation_mode",
                 .kind = AttrKind::kString,
                 .default_value = std::string("half_pixel"),
                 .since = 11,
                 .allowed = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                             "tf_crop_and_resize"}},
                {.name = "cubic_coeff_a", .kind = AttrKind::kFloat, .default_value = -0.75, .since = 11},
                {.name = "exclude_outside", .kind = AttrKind::kInt, .default_value = int64_t{0}, .since = 11},
                {.name = "extrapolation_value", .kind = AttrKind::kFloat, .default_value = 0.0, .since = 11},
                {.name = "keep_aspect_ratio_policy",
                 .kind = AttrKind::kString,
                 .default_value = std::string("stretch"),
                 .since = 18,
                 .allowed = {"stretch", "not_larger", "not_smaller"}},
                {.name = "mode",
                 .kind = AttrKind::kString,
                 .default_value = std::string("nearest"),
                 .allowed = {"nearest", "linear", "cubic"}},
                {.name = "nearest_mode",
                 .kind = AttrKind::kString,
                 .default_value = std::string("round_prefer_floor"),
                 .since = 11,
                 .allowed = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}}},
      .fusion = FusionKind::kInjective,
      .layout = LayoutRole::kChannels,
      .infer = infer_resize,
      .compute = compute_resize,
      .supports = supports_resize,
      .reference = reference_resize,
      .samples = resize_samples(),
  };
}

}  // namespace tensmith::graph::ops
