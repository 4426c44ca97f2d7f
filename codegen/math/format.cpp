#include "codegen/math/format.h"

#include "codegen/math/coefficients.h"
#include "runtime/base/error.h"

namespace tensmith::math {

namespace {

// The first parts of ln 2 hold 15 and 42 bits: exponents have up to 9 and 11.
constexpr Format kFormats[] = {
    {Precision::kSingleFast, kFloat32, 23, 127, 0x1.8p23, kLn2Parts32[0], kLn2Parts32[1], -104, 89, 0x3f3504f3,
     kExpFast, kLogFast},
    {Precision::kSingle, kFloat32, 23, 127, 0x1.8p23, kLn2Parts32[0], kLn2Parts32[1], -104, 89, 0x3f3504f3, kExp, kLog},
    {Precision::kWide, kFloat64, 52, 1023, 0x1.8p52, kLn2Parts64[0], kLn2Parts64[1], -746, 710, 0x3fe6a09e667f3bcd,
     kExpWide, kLogWide},
    {Precision::kDouble, kFloat64, 52, 1023, 0x1.8p52, kLn2Parts64[0], kLn2Parts64[1], -746, 710, 0x3fe6a09e667f3bcd,
     kExp64, kLog64},
};

}  // namespace

const Format& format_of(Precision precision) { return kFormats[static_cast<int>(precision)]; }

Precision precision_of(DType type, bool fast) {
  TS_CHECK(type.is_float() && !type.is_bfloat() && type.bits >= 32) << to_string(type);
  if (type.bits == 64) return Precision::kDouble;
  return fast ? Precision::kSingleFast : Precision::kSingle;
}

std::span<const double> pick(Precision precision, std::span<const double> single, std::span<const double> wide,
                             std::span<const double> dbl) {
  switch (precision) {
    case Precision::kWide: return wide;
    case Precision::kDouble: return dbl;
    default: return single;
  }
}

}  // namespace tensmith::math
