/// Where the elements of a resized axis come from.
#pragma once

#include <optional>

#include "graph/op_def.h"

namespace tensmith::graph::ops {

/// A fraction in lowest terms.
struct Ratio {
  int64_t num, den;
};
/// The simplest fraction that rounds to the same float32 (0.6f is 3/5). Nothing when its terms would exceed 2^20.
std::optional<Ratio> as_ratio(double scale);

enum class Coordinates : uint8_t {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kCropAndResize
};
Coordinates coordinates_of(const std::string& mode);
enum class Nearest : uint8_t { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil };
Nearest nearest_of(const std::string& mode);

/// One axis of a resize.
struct ResizeAxis {
  int axis;
  Expr in, out;                 ///< lengths
  std::optional<double> scale;  ///< as given; none: out / in
  Expr roi_start, roi_end;      ///< kFloat64, for kCropAndResize
  Coordinates coordinates;
};

/// The position in the input that output element `o` lies at, as a kFloat64 expression.
Expr source_position(const ResizeAxis& axis, const Expr& o);
/// The input element nearest to it, clamped into the axis; in integers wherever the position is a fraction, so that no
/// rounding moves a tie, and as simple as `floor_div(o, 2)` where the sizes allow.
Expr nearest_element(const ResizeAxis& axis, const Expr& o, Nearest rounding);
/// Whether the position lies outside of the input (only with kCropAndResize).
Expr is_outside(const ResizeAxis& axis, const Expr& o);

/// The same for the reference, in double; `scale` as given or out / in.
double source_position(Coordinates coordinates, int64_t o, int64_t in, int64_t out, double scale, double roi_start,
                       double roi_end);

}  // namespace tensmith::graph::ops
