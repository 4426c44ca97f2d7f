/// What the same algorithm needs to know of the precision it works in.
#pragma once

#include <span>

#include "tensor/expr.h"

namespace tensmith::math {

/// In what type and how closely a function is computed.
enum class Precision : uint8_t {
  kSingleFast,  ///< f32 within 3.5 ulp
  kSingle,      ///< f32 within 1 ulp
  kWide,        ///< f64 arithmetic with the short polynomials that an f32 result needs
  kDouble,      ///< f64 within 1 to 2 ulp
};

/// Constants and polynomials of one precision; those of exp and log, which other functions build on, stand here.
struct Format {
  Precision precision;
  DType type;
  int mantissa_bits;       ///< stored ones: 23, 52
  int exponent_bias;       ///< 127, 1023
  double rounder;          ///< 1.5 * 2^mantissa_bits: adding it leaves the nearest integer in the low bits of the sum
  double ln2_high;         ///< ln 2 with so few bits that its product with an exponent is exact
  double ln2_low;          ///< the rest
  double exp_low;          ///< e^x is 0 below
  double exp_high;         ///< e^x is infinite above
  int64_t sqrt_half_bits;  ///< the bits of sqrt(1/2)
  std::span<const double> exp;  ///< (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2
  std::span<const double> log;  ///< (log(1 + f) - f + f^2/2) / f^3 for 1 + f in [sqrt(1/2), sqrt(2)]
};

const Format& format_of(Precision precision);
/// The precision in which a function of this type (f32 or f64) is computed.
Precision precision_of(DType type, bool fast);
/// The polynomial of that precision; kSingleFast shares the one of kSingle.
std::span<const double> pick(Precision precision, std::span<const double> single, std::span<const double> wide,
                             std::span<const double> dbl);

}  // namespace tensmith::math
