#include "graph/ops/resize_axis.h"

#include <cmath>
#include <numeric>

#include "graph/ops/arith.h"
#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

namespace {

constexpr int64_t kMaxRatioTerm = int64_t{1} << 20;

/// A position as (o * slope + offset) / den, den > 0, in index arithmetic.
struct Rational {
  Expr slope, offset, den;
};

/// The position as a fraction, where it is one.
std::optional<Rational> rational_position(const ResizeAxis& a) {
  if (a.coordinates == Coordinates::kCropAndResize) return {};
  if (a.coordinates == Coordinates::kAlignCorners) {
    if (is_const_int(a.out, 1)) return Rational{0, 0, 1};
    return Rational{a.in - 1, 0, known(a.out) ? a.out - 1 : max(a.out - 1, 1)};
  }
  if (a.coordinates == Coordinates::kPytorchHalfPixel && is_const_int(a.out, 1)) return Rational{0, 0, 1};
  Expr p = a.out, q = a.in;  // scale = p / q
  if (a.scale) {
    const auto ratio = as_ratio(*a.scale);
    if (!ratio) return {};
    p = ratio->num, q = ratio->den;
  }
  if (a.coordinates == Coordinates::kAsymmetric) return Rational{q, 0, p};
  // (o + 1/2) q/p - 1/2 = ((2o + 1) q - p) / 2p
  Rational position{q * 2, q - p, p * 2};
  // Moved by in/2 - out q / 2p, which is half of what the output is shorter than in * scale.
  if (a.coordinates == Coordinates::kHalfPixelSymmetric) position.offset = position.offset + (a.in * p - a.out * q);
  if (a.coordinates == Coordinates::kPytorchHalfPixel && !known(a.out)) {
    position.slope = select(a.out > 1, position.slope, 0);
    position.offset = select(a.out > 1, position.offset, 0);
  }
  return position;
}

/// floor((o * slope + offset) / den) in lowest terms where they are numbers, clamped to [0, in) unless both ends are
/// inside anyway.
Expr floor_clamped(const Rational& r, const Expr& o, const ResizeAxis& a) {
  const auto slope = known(r.slope), offset = known(r.offset), den = known(r.den), in = known(a.in), out = known(a.out);
  if (!slope || !offset || !den) return max(min(floor_div(o * r.slope + r.offset, r.den), a.in - 1), 0);
  const int64_t common = std::gcd(*slope, *den);
  const auto floor_of = [](int64_t x, int64_t y) { return x / y - (x % y < 0 ? 1 : 0); };
  // common | slope and den, so only the whole part of offset / common counts.
  const int64_t s = *slope / common, d = *den / common, f = floor_of(*offset, common);
  const Expr at = floor_div(o * s + f, d);
  const bool inside = in && out && floor_of(f, d) >= 0 && floor_of((*out - 1) * s + f, d) < *in;
  return inside ? at : max(min(at, a.in - 1), 0);
}

Expr f64(const Expr& e) { return cast(kFloat64, e); }
Expr f64(double value) { return make_const(kFloat64, value); }

}  // namespace

std::optional<Ratio> as_ratio(double scale) {
  if (!(scale > 0) || !std::isfinite(scale)) return {};
  const auto target = static_cast<float>(scale);
  // Continued fraction: its convergents are the best fractions for their size.
  double rest = scale;
  int64_t num = 1, den = 0, last_num = 0, last_den = 1;
  for (int step = 0; step < 40; ++step) {
    const double whole = std::floor(rest);
    if (whole > static_cast<double>(kMaxRatioTerm)) return {};
    const auto digit = static_cast<int64_t>(whole);
    const int64_t next_num = digit * num + last_num, next_den = digit * den + last_den;
    if (next_num > kMaxRatioTerm || next_den > kMaxRatioTerm) return {};
    last_num = num, last_den = den;
    num = next_num, den = next_den;
    if (num > 0 && static_cast<float>(static_cast<double>(num) / static_cast<double>(den)) == target)
      return Ratio{num, den};
    if (rest == whole) return {};
    rest = 1 / (rest - whole);
  }
  return {};
}

Coordinates coordinates_of(const std::string& mode) {
  if (mode == "half_pixel_symmetric") return Coordinates::kHalfPixelSymmetric;
  if (mode == "pytorch_half_pixel") return Coordinates::kPytorchHalfPixel;
  if (mode == "align_corners") return Coordinates::kAlignCorners;
  if (mode == "asymmetric") return Coordinates::kAsymmetric;
  if (mode == "tf_crop_and_resize") return Coordinates::kCropAndResize;
  return Coordinates::kHalfPixel;
}

Nearest nearest_of(const std::string& mode) {
  return mode == "floor"               ? Nearest::kFloor
         : mode == "ceil"              ? Nearest::kCeil
         : mode == "round_prefer_ceil" ? Nearest::kRoundPreferCeil
                                       : Nearest::kRoundPreferFloor;
}

Expr source_position(const ResizeAxis& a, const Expr& o) {
  if (const auto r = rational_position(a)) return (f64(o * r->slope + r->offset)) / f64(r->den);
  const Expr last = f64(a.in) - f64(1);
  if (a.coordinates == Coordinates::kCropAndResize) {
    if (is_const_int(a.out, 1)) return f64(0.5) * (a.roi_start + a.roi_end) * last;
    return a.roi_start * last + f64(o) * (a.roi_end - a.roi_start) * last / max(f64(a.out) - f64(1), f64(1));
  }
  const Expr scale = f64(*a.scale);
  if (a.coordinates == Coordinates::kAsymmetric) return f64(o) / scale;
  const Expr half = (f64(o) + f64(0.5)) / scale - f64(0.5);
  if (a.coordinates == Coordinates::kPytorchHalfPixel) return select(a.out > 1, half, f64(0));
  if (a.coordinates == Coordinates::kHalfPixelSymmetric)
    return half + f64(a.in) * f64(0.5) * (f64(1) - f64(a.out) / (f64(a.in) * scale));
  return half;
}

Expr nearest_element(const ResizeAxis& a, const Expr& o, Nearest rounding) {
  if (const auto r = rational_position(a)) {
    switch (rounding) {
      case Nearest::kFloor: return floor_clamped(*r, o, a);
      case Nearest::kCeil: return floor_clamped({r->slope, r->offset + (r->den - 1), r->den}, o, a);
      // ceil(x - 1/2) and floor(x + 1/2)
      case Nearest::kRoundPreferFloor:
        return floor_clamped({r->slope * 2, r->offset * 2 + (r->den - 1), r->den * 2}, o, a);
      case Nearest::kRoundPreferCeil: return floor_clamped({r->slope * 2, r->offset * 2 + r->den, r->den * 2}, o, a);
    }
  }
  const Expr at = source_position(a, o);
  const auto rounded = [&] {
    switch (rounding) {
      case Nearest::kFloor: return call(Intrinsic::kFloor, {at});
      case Nearest::kCeil: return call(Intrinsic::kCeil, {at});
      case Nearest::kRoundPreferFloor: return call(Intrinsic::kCeil, {at - f64(0.5)});
      case Nearest::kRoundPreferCeil: break;
    }
    return call(Intrinsic::kFloor, {at + f64(0.5)});
  };
  return max(min(cast(kInt64, rounded()), a.in - 1), 0);
}

Expr is_outside(const ResizeAxis& a, const Expr& o) {
  const Expr at = source_position(a, o);
  return at < f64(0) || at > f64(a.in) - f64(1);
}

double source_position(Coordinates coordinates, int64_t o, int64_t in, int64_t out, double scale, double roi_start,
                       double roi_end) {
  const auto x = static_cast<double>(o), length = static_cast<double>(in), resized = static_cast<double>(out);
  switch (coordinates) {
    case Coordinates::kHalfPixel: return (x + 0.5) / scale - 0.5;
    case Coordinates::kHalfPixelSymmetric:
      return length / 2 * (1 - resized / (length * scale)) + (x + 0.5) / scale - 0.5;
    case Coordinates::kPytorchHalfPixel: return out > 1 ? (x + 0.5) / scale - 0.5 : 0;
    case Coordinates::kAlignCorners: return out > 1 ? x * (length - 1) / (resized - 1) : 0;
    case Coordinates::kAsymmetric: return x / scale;
    case Coordinates::kCropAndResize:
      return out > 1 ? roi_start * (length - 1) + x * (roi_end - roi_start) * (length - 1) / (resized - 1)
                     : 0.5 * (roi_start + roi_end) * (length - 1);
  }
  return 0;
}

}  // namespace tensmith::graph::ops
