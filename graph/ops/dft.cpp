#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/fourier.h"
#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

/// Longest transform that is compiled.
constexpr int64_t kMaxLength = int64_t{1} << 24;

bool is_inverse(const AttrMap& attrs) { return attrs.get_int("inverse", 0) != 0; }

/// What the inputs say: the axis and the length of the transform (an expression).
struct Transform {
  int axis;
  Expr length;
  bool inverse, onesided;

  /// Elements of the result along the axis.
  Expr bins() const { return onesided && !inverse ? floor_div(length, 2) + 1 : length; }
  bool gives_real() const { return onesided && inverse; }
};

template <typename Context>
Result<std::optional<Transform>> transform_of(const Context& ctx, const Shape& shape) {
  using Found = std::optional<Transform>;
  const int rank = static_cast<int>(shape.size());
  int64_t wanted = -2;
  if (ctx.has(2)) {
    const auto given = known_numbers(ctx, 2);
    if (!given || given->size() != 1)
      return refuse("dynamic-shape") << "input axis: expected a constant, got data; make it a constant";
    wanted = given->front();
  }
  const Result<int> axis = normalize_axis(wanted, rank, "input axis");
  if (!axis) return axis.failure();
  if (*axis == rank - 1)
    return refuse("axis-out-of-range")
           << "input axis: expected an axis before that of the real and imaginary parts, got " << wanted;
  Transform t{*axis, shape[*axis], is_inverse(ctx.node.attrs), ctx.node.attrs.get_int("onesided", 0) != 0};
  if (t.gives_real()) t.length = (shape[*axis] - 1) * 2;
  if (ctx.has(1)) {
    const auto given = int_elements(ctx, 1);
    if (!given) return Found{};
    if (given->size() != 1)
      return refuse("shape-mismatch") << "input dft_length: expected one number, got " << given->size();
    t.length = given->front();
  }
  if (const auto number = known(t.length); number && (*number < 1 || *number > kMaxLength))
    return refuse("bad-size") << "input dft_length: expected 1 to " << kMaxLength << ", got " << *number;
  return Found{t};
}

Result<void> check_parts(const TensorType& type, const char* what) {
  const auto parts = known(type.shape.back());
  if (parts == 1 || parts == 2) return {};
  if (!parts)
    return refuse("dynamic-shape") << what << ": expected a known last dim, 1 (real) or 2 (complex), got shape "
                                   << shape_text(type.shape) << "; give the dim a size with --dim";
  return refuse("shape-mismatch") << what << ": expected a last dim of 1 (real) or 2 (complex), got shape "
                                  << shape_text(type.shape);
}

Result<std::vector<TensorType>> infer_dft(const InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  if (Result<void> ok = check_rank(x, 2, 64, "input"); !ok) return ok.failure();
  if (Result<void> ok = check_parts(x, "input"); !ok) return ok.failure();
  const auto t = transform_of(ctx, x.shape);
  if (!t) return t.failure();
  TensorType type{x.dtype, x.shape, {}};
  type.shape.back() = is_inverse(ctx.node.attrs) && ctx.node.attrs.get_int("onesided", 0) ? 1 : 2;
  if (*t) {
    type.shape[(*t)->axis] = (*t)->bins();
  } else {
    const auto axis = known_numbers(ctx, 2);
    const int at = normalize_axis(axis ? axis->front() : -2, x.rank()).value();
    type.shape[at] = ctx.data_dim(0, at);
  }
  return std::vector<TensorType>{std::move(type)};
}

Result<void> supports_dft(const InferContext& ctx) {
  const auto t = transform_of(ctx, ctx.input(0).shape);
  if (!t) return t.failure();
  if (*t && known((*t)->length)) return {};
  return refuse("dynamic-shape") << "length of the transform: expected a number, got "
                                 << (*t ? dim_to_string((*t)->length) : "data")
                                 << "; give dft_length, or the dim a size with --dim";
}

/// The element of a tensor with parts in its last dim, in the compute type; 0 behind the end of the axis.
Complex element_at(const Tensor& x, int axis, Indices index, const Expr& n, int64_t length) {
  const DType wide = compute_type(x.dtype());
  const Expr& extent = x.shape()[axis];
  index[axis] = n;
  const bool all_inside = known(extent).value_or(0) >= length;
  const auto part = [&](int k) {
    index.back() = k;
    const Expr value = widen(x(index));
    return all_inside ? value : select(n < extent, value, make_zero(wide));
  };
  return {part(0), is_const_int(x.shape().back(), 2) ? part(1) : Expr()};
}

std::vector<Tensor> compute_dft(const ComputeContext& ctx) {
  const Tensor& x = ctx.input(0);
  const TensorType& type = ctx.output_type();
  if (is_empty(type.shape)) return {injective("dft", type, {})};
  const Transform t = *transform_of(ctx, x.shape()).value();
  const int64_t length = *known(t.length);
  Fourier fourier{.batch = {},
                  .length = length,
                  .bins = *known(t.bins()),
                  .inverse = t.inverse,
                  .dtype = compute_type(type.dtype),
                  .element = nullptr};
  for (int k = 0; k < x.rank() - 1; ++k)
    if (k != t.axis) fourier.batch.push_back(x.shape()[k]);
  fourier.element = [&](const Indices& batch, const Expr& n) {
    Indices index = batch;
    index.insert(index.begin() + t.axis, Expr(0));
    index.emplace_back(0);
    if (!t.gives_real()) return element_at(x, t.axis, index, n, length);
    // Only the first half is given: the other one is its mirror image, conjugated. The parts that must be real are
    // taken as such.
    const Expr mirrored = n * 2 > length;
    const Complex half = element_at(x, t.axis, index, min(min(n, length - n), length / 2), length / 2 + 1);
    if (half.imaginary.get() == nullptr) return half;
    const Expr zero = make_zero(fourier.dtype), self = n == 0 || n * 2 == length;
    return Complex{half.real, select(self, zero, select(mirrored, -half.imaginary, half.imaginary))};
  };
  const std::vector<Tensor> parts = fourier_transform(fourier);
  return {compute("dft", type.shape, [&](const Indices& i) {
    Indices index(i.begin(), i.end() - 1);
    const Expr k = index[t.axis];
    index.erase(index.begin() + t.axis);
    index.push_back(k);
    Expr value = t.gives_real() ? parts[0](index) : select(i.back() == 0, parts[0](index), parts[1](index));
    if (t.inverse) value = value * make_const(fourier.dtype, 1.0 / static_cast<double>(length));
    return cast(type.dtype, value);
  })};
}

/// sum of (re + j im)(n) * exp(sign 2 pi j n k / length), by the definition.
void slow_transform(const std::vector<double>& re, const std::vector<double>& im, bool inverse, int64_t k, double* real,
                    double* imaginary) {
  const auto length = static_cast<int64_t>(re.size());
  *real = *imaginary = 0;
  for (int64_t n = 0; n < length; ++n) {
    const double angle = (inverse ? 2 : -2) * M_PI * static_cast<double>(n * k % length) / static_cast<double>(length);
    *real += re[n] * std::cos(angle) - im[n] * std::sin(angle);
    *imaginary += re[n] * std::sin(angle) + im[n] * std::cos(angle);
  }
}

Result<void> reference_dft(ReferenceContext& ctx) {
  const RefTensor& x = ctx.input(0);
  int64_t axis = ctx.has(2) ? ctx.input(2).i[0] : -2;
  if (axis < 0) axis += static_cast<int64_t>(x.shape.size());
  const bool inverse = is_inverse(ctx.node.attrs), onesided = ctx.node.attrs.get_int("onesided", 0) != 0,
             real_result = inverse && onesided;
  const int64_t parts = x.shape.back();
  Dims lines(x.shape.begin(), x.shape.end() - 1);
  const AxisView view(lines, static_cast<size_t>(axis));
  const int64_t length = ctx.has(1) ? ctx.input(1).i[0] : real_result ? 2 * (view.axis - 1) : view.axis;
  const int64_t bins = onesided && !inverse ? length / 2 + 1 : length, out_parts = real_result ? 1 : 2;
  Dims shape = x.shape;
  shape[axis] = bins;
  shape.back() = out_parts;
  RefTensor& y = make_output(ctx, x.dtype, shape);
  for (int64_t line = 0; line < view.outer * view.inner; ++line) {
    const auto at = [&](int64_t extent, int64_t n) {
      return (line / view.inner * extent + n) * view.inner + line % view.inner;
    };
    std::vector<double> re(static_cast<size_t>(length), 0), im(static_cast<size_t>(length), 0);
    const int64_t given = real_result ? std::min(view.axis, length / 2 + 1) : std::min(view.axis, length);
    for (int64_t n = 0; n < given; ++n) {
      re[n] = x.f[at(view.axis, n) * parts];
      im[n] = parts == 2 ? x.f[at(view.axis, n) * 2 + 1] : 0;
    }
    if (real_result) {
      for (int64_t n = length / 2 + 1; n < length; ++n) re[n] = re[length - n], im[n] = -im[length - n];
      im[0] = 0;
      if (length % 2 == 0) im[length / 2] = 0;
    }
    for (int64_t k = 0; k < bins; ++k) {
      double real, imaginary;
      slow_transform(re, im, inverse, k, &real, &imaginary);
      const double scale = inverse ? 1.0 / static_cast<double>(length) : 1;
      y.f[at(bins, k) * out_parts] = real * scale;
      if (out_parts == 2) y.f[at(bins, k) * 2 + 1] = imaginary * scale;
    }
  }
  return {};
}

/// The numbers of a short-time transform.
struct Frames {
  int64_t step, length, window;
};

template <typename Context>
Result<std::optional<Frames>> frames_of(const Context& ctx, const Shape& signal, const Shape* window) {
  using Found = std::optional<Frames>;
  const auto step = known_numbers(ctx, 1);
  std::optional<int64_t> length = window ? known((*window)[0]) : known(signal[1]);
  if (ctx.has(3)) {
    const auto given = known_numbers(ctx, 3);
    length = given && given->size() == 1 ? std::optional(given->front()) : std::nullopt;
  }
  const std::optional<int64_t> window_length = window ? known((*window)[0]) : length;
  if (!step || step->size() != 1 || !length || !window_length) return Found{};
  if (step->front() < 1) return refuse("bad-size") << "input frame_step: expected 1 or more, got " << step->front();
  if (*length < 1 || *length > kMaxLength)
    return refuse("bad-size") << "input frame_length: expected 1 to " << kMaxLength << ", got " << *length;
  if (*window_length > *length)
    return refuse("shape-mismatch") << "input window: expected at most " << *length << " elements, got "
                                    << *window_length;
  return Found{Frames{step->front(), *length, *window_length}};
}

Result<std::vector<TensorType>> infer_stft(const InferContext& ctx) {
  const TensorType& signal = ctx.input(0);
  if (Result<void> ok = check_rank(signal, 3, 3, "input signal"); !ok) return ok.failure();
  if (Result<void> ok = check_parts(signal, "input signal"); !ok) return ok.failure();
  if (ctx.has(2))
    if (Result<void> ok = check_rank(ctx.input(2), 1, 1, "input window"); !ok) return ok.failure();
  const auto frames = frames_of(ctx, signal.shape, ctx.has(2) ? &ctx.input(2).shape : nullptr);
  if (!frames) return frames.failure();
  TensorType type{signal.dtype, {signal.shape[0], ctx.data_dim(0, 1), ctx.data_dim(0, 2), 2}, {}};
  if (*frames) {
    if (const auto samples = known(signal.shape[1]); samples && *samples < (*frames)->length)
      return refuse("shape-mismatch") << "input signal: expected at least the " << (*frames)->length
                                      << " samples of a frame, got shape " << shape_text(signal.shape);
    type.shape[1] = floor_div(signal.shape[1] - (*frames)->length, (*frames)->step) + 1;
    type.shape[2] = ctx.node.attrs.get_int("onesided", 1) ? (*frames)->length / 2 + 1 : (*frames)->length;
  }
  return std::vector<TensorType>{std::move(type)};
}

std::vector<Tensor> compute_stft(const ComputeContext& ctx) {
  const Tensor& signal = ctx.input(0);
  const TensorType& type = ctx.output_type();
  if (is_empty(type.shape)) return {injective("stft", type, {})};
  const Frames frames = *frames_of(ctx, signal.shape(), ctx.has(2) ? &ctx.input(2).shape() : nullptr).value();
  Fourier fourier{.batch = {type.shape[0], type.shape[1]},
                  .length = frames.length,
                  .bins = *known(type.shape[2]),
                  .inverse = false,
                  .dtype = compute_type(type.dtype),
                  .element = nullptr};
  fourier.element = [&](const Indices& batch, const Expr& n) {
    Complex x;
    const auto part = [&](int k) {
      Expr value = widen(signal(batch[0], batch[1] * frames.step + n, k));
      if (ctx.has(2)) value = value * widen(ctx.input(2)(n));
      return frames.window == frames.length ? value : select(n < frames.window, value, make_zero(fourier.dtype));
    };
    return Complex{part(0), is_const_int(signal.shape().back(), 2) ? part(1) : Expr()};
  };
  const std::vector<Tensor> parts = fourier_transform(fourier);
  return {compute("stft", type.shape, [&](const Indices& i) {
    const Indices index(i.begin(), i.end() - 1);
    return cast(type.dtype, select(i.back() == 0, parts[0](index), parts[1](index)));
  })};
}

Result<void> reference_stft(ReferenceContext& ctx) {
  const RefTensor& signal = ctx.input(0);
  const int64_t step = ctx.input(1).i[0], samples = signal.shape[1], parts = signal.shape[2];
  const int64_t length = ctx.has(3) ? ctx.input(3).i[0] : ctx.has(2) ? ctx.input(2).shape[0] : samples;
  const int64_t window = ctx.has(2) ? ctx.input(2).shape[0] : length;
  const int64_t frames = (samples - length) / step + 1,
                bins = ctx.node.attrs.get_int("onesided", 1) ? length / 2 + 1 : length;
  RefTensor& y = make_output(ctx, signal.dtype, {signal.shape[0], frames, bins, 2});
  for (int64_t row = 0; row < signal.shape[0] * frames; ++row) {
    std::vector<double> re(static_cast<size_t>(length), 0), im(static_cast<size_t>(length), 0);
    for (int64_t n = 0; n < window; ++n) {
      const double weight = ctx.has(2) ? ctx.input(2).f[n] : 1;
      const int64_t at = (row / frames * samples + row % frames * step + n) * parts;
      re[n] = weight * signal.f[at];
      im[n] = parts == 2 ? weight * signal.f[at + 1] : 0;
    }
    for (int64_t k = 0; k < bins; ++k)
      slow_transform(re, im, false, k, &y.f[(row * bins + k) * 2], &y.f[(row * bins + k) * 2 + 1]);
  }
  return {};
}

}  // namespace

OpDef dft() {
  const auto sample = [](std::string name, std::vector<OpSample::Input> inputs, AttrMap with = {}) {
    return OpSample{
        .name = std::move(name), .inputs = std::move(inputs), .attrs = std::move(with), .rtol = 1e-4, .atol = 1e-4};
  };
  std::vector<OpSample> samples = {
      sample("real", {f32({2, 17, 1})}),
      sample("complex", {f32({1, 60, 2})}),
      sample("middle_axis", {f32({2, 12, 3, 1}), absent(), known_scalar(kInt64, 1)}),
      sample("first_axis", {f32({36, 2, 2}), absent(), known_scalar(kInt64, 0)}, attrs({{"inverse", 1}})),
      sample("prime", {f32({1, 37, 1})}),
      sample("padded", {f32({1, 50, 1}), known_scalar(kInt64, 64)}),
      sample("cut", {f32({2, 50, 1}), known_scalar(kInt64, 40)}, attrs({{"onesided", 1}})),
      sample("onesided", {f32({2, 35, 1})}, attrs({{"onesided", 1}})),
      sample("real_inverse", {f32({1, 19, 2})}, attrs({{"onesided", 1}, {"inverse", 1}})),
      sample("real_inverse_odd", {f32({1, 19, 2}), known_scalar(kInt64, 37)}, attrs({{"onesided", 1}, {"inverse", 1}})),
      sample("double", {in(kFloat64, {1, 8, 2})}, attrs({{"inverse", 1}})),
      sample("one", {f32({3, 1, 1})}),
      sample("three_parts", {f32({1, 8, 3})}),
      sample("parts_axis", {f32({1, 8, 2}), absent(), known_scalar(kInt64, -1)}),
  };
  samples[samples.size() - 2].error_id = "shape-mismatch";
  samples.back().error_id = "axis-out-of-range";
  return OpDef{
      .name = "DFT",
      .since = 17,
      .doc =
          "The discrete Fourier transform along one axis, or its inverse; the last dim holds real and imaginary parts.",
      .inputs = {{.name = "input", .types = TypeSet::kFloat},
                 {.name = "dft_length", .types = TypeSet::kIndex, .optional = true},
                 {.name = "axis", .types = TypeSet::kInt64, .optional = true}},
      .attrs = {{.name = "inverse", .kind = AttrKind::kInt, .default_value = int64_t{0}},
                {.name = "onesided", .kind = AttrKind::kInt, .default_value = int64_t{0}}},
      .fusion = FusionKind::kOpaque,
      .infer = infer_dft,
      .compute = compute_dft,
      .supports = supports_dft,
      .reference = reference_dft,
      .samples = std::move(samples),
  };
}

OpDef stft() {
  const auto sample = [](std::string name, std::vector<OpSample::Input> inputs, AttrMap with = {}) {
    return OpSample{
        .name = std::move(name), .inputs = std::move(inputs), .attrs = std::move(with), .rtol = 1e-4, .atol = 1e-4};
  };
  std::vector<OpSample> samples = {
      sample("window", {f32({2, 70, 1}), known_scalar(kInt64, 9), f32({40}, 0, 1)}),
      sample("no_window", {f32({1, 33, 1}), known_scalar(kInt64, 4), absent(), known_scalar(kInt64, 16)}),
      sample("complex", {f32({1, 40, 2}), known_scalar(kInt64, 8), f32({16}, 0, 1)}, attrs({{"onesided", 0}})),
      sample("short_window", {f32({1, 40, 1}), known_scalar(kInt64, 8), f32({10}, 0, 1), known_scalar(kInt64, 16)}),
      sample("signal_too_short", {f32({1, 10, 1}), known_scalar(kInt64, 8), f32({16}, 0, 1)}),
  };
  samples.back().error_id = "shape-mismatch";
  return OpDef{
      .name = "STFT",
      .since = 17,
      .doc = "The Fourier transforms of frames of a signal, each multiplied by a window.",
      .inputs = {{.name = "signal", .types = TypeSet::kFloat},
                 {.name = "frame_step", .types = TypeSet::kIndex},
                 {.name = "window", .types = TypeSet::kFloat, .optional = true, .same_type_as = "signal"},
                 {.name = "frame_length", .types = TypeSet::kIndex, .optional = true}},
      .attrs = {{.name = "onesided", .kind = AttrKind::kInt, .default_value = int64_t{1}}},
      .fusion = FusionKind::kOpaque,
      .infer = infer_stft,
      .compute = compute_stft,
      .supports = [](const InferContext& ctx) -> Result<void> {
        const auto frames = frames_of(ctx, ctx.input(0).shape, ctx.has(2) ? &ctx.input(2).shape : nullptr);
        if (!frames) return frames.failure();
        if (*frames) return {};
        return refuse("dynamic-shape") << "frames: expected a step and a length known at compile time, got data; make "
                                          "them constants, or give the dims a size with --dim";
      },
      .reference = reference_stft,
      .samples = std::move(samples),
  };
}

}  // namespace tensmith::graph::ops
