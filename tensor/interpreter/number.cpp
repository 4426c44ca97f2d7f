#include "tensor/interpreter/number.h"

#include <bit>
#include <cmath>
#include <limits>

#include "runtime/base/error.h"

namespace tensmith::interp {

namespace {

/// A binary float format. `magic` is a double whose last digit weighs as much as a subnormal's.
struct Format {
  int digits;
  double min_normal;
  double max;
  double magic;
};
constexpr Format kF16 = {11, 0x1p-14, 65504.0, 0x1.8p28};
constexpr Format kBF16 = {8, 0x1p-126, 0x1.fep127, 0x1.8p-81};

double round_to(const Format& format, double value) {
  constexpr int kDigits = 53;
  if (!(std::fabs(value) < std::numeric_limits<double>::infinity())) return value;
  double rounded;
  if (std::fabs(value) < format.min_normal) {
    // The addition rounds to the step of the subnormals, to nearest even.
    const double magic = std::copysign(format.magic, value);
    rounded = std::copysign((value + magic) - magic, value);
  } else {
    const int drop = kDigits - format.digits;
    uint64_t bits = std::bit_cast<uint64_t>(value);
    bits += ((uint64_t{1} << (drop - 1)) - 1) + ((bits >> drop) & 1);
    bits &= ~((uint64_t{1} << drop) - 1);
    rounded = std::bit_cast<double>(bits);
  }
  return std::fabs(rounded) > format.max ? std::copysign(std::numeric_limits<double>::infinity(), value) : rounded;
}

/// Sets the last bit of an inexact result, moved towards the exact one: it can then be rounded once more without harm.
double make_odd(double rounded, double error) {
  if (error == 0 || !std::isfinite(rounded)) return rounded;
  auto bits = std::bit_cast<uint64_t>(rounded);
  if (bits & 1) return rounded;
  if (rounded == 0) return error;  // cannot happen for normal sums; keeps the sign
  const bool away = (error > 0) == (rounded > 0);
  bits += away ? 1 : uint64_t{0} - 1;
  return std::bit_cast<double>(bits);
}

uint64_t encode(double value, int exponent_bits, int digits) {
  const uint64_t sign = std::signbit(value) ? 1 : 0;
  const int fraction_bits = digits - 1;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint64_t special = ((uint64_t{1} << exponent_bits) - 1) << fraction_bits;
  uint64_t rest;
  if (std::isnan(value)) rest = special | uint64_t{1} << (fraction_bits - 1);
  else if (std::isinf(value)) rest = special;
  else if (value == 0) rest = 0;
  else {
    int exponent;
    const double fraction = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
    const int biased = exponent - 1 + bias;
    if (biased >= 1)
      rest = static_cast<uint64_t>(biased - 1) * (uint64_t{1} << fraction_bits) +
             static_cast<uint64_t>(std::ldexp(fraction, digits));
    else rest = static_cast<uint64_t>(std::ldexp(std::fabs(value), fraction_bits - 1 + bias));
  }
  return sign << (exponent_bits + fraction_bits) | rest;
}

double decode(uint64_t bits, int exponent_bits, int digits) {
  const int fraction_bits = digits - 1;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint64_t fraction = bits & ((uint64_t{1} << fraction_bits) - 1);
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double sign = (bits >> (exponent_bits + fraction_bits)) & 1 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1)
    return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(static_cast<double>(fraction), 1 - bias - fraction_bits);
  return sign *
         std::ldexp(static_cast<double>(fraction | uint64_t{1} << fraction_bits), exponent - bias - fraction_bits);
}

}  // namespace

int64_t wrap_int(DType type, int64_t value) {
  if (type.is_bool()) return value != 0;
  if (type.bits >= 64) return value;
  const int shift = 64 - type.bits;
  const uint64_t up = static_cast<uint64_t>(value) << shift;
  return type.is_int() ? static_cast<int64_t>(up) >> shift : static_cast<int64_t>(up >> shift);
}

double round_f32(double value) { return static_cast<double>(static_cast<float>(value)); }
double round_f16(double value) { return round_to(kF16, value); }
double round_bf16(double value) { return round_to(kBF16, value); }

double round_float(DType type, double value) {
  if (type.bits == 64) return value;
  if (type.is_bfloat()) return round_bf16(value);
  return type.bits == 32 ? round_f32(value) : round_f16(value);
}

double odd_from_uint(uint64_t value) {
  if (value >> 53 == 0) return static_cast<double>(value);
  const int drop = 64 - std::countl_zero(value) - 53;
  const uint64_t lost = value & ((uint64_t{1} << drop) - 1);
  return std::ldexp(static_cast<double>((value >> drop) | (lost ? 1 : 0)), drop);
}

double odd_from_int(int64_t value) {
  return value < 0 ? -odd_from_uint(uint64_t{0} - static_cast<uint64_t>(value))
                   : odd_from_uint(static_cast<uint64_t>(value));
}

double odd_fma(double a, double b, double c) {
  const double product = a * b;  // exact: at most 48 digits
  const double sum = product + c;
  if (!std::isfinite(sum)) return sum;
  // Knuth's two-sum gives the rounding error exactly.
  const double back = sum - product;
  const double error = (product - (sum - back)) + (c - back);
  return make_odd(sum, error);
}

int64_t float_to_int(DType type, double value) {
  if (type.is_bool()) return value != 0;
  if (std::isnan(value)) return 0;
  const double truncated = std::trunc(value);
  if (type.is_int()) {
    const double limit = std::ldexp(1.0, type.bits - 1);
    if (truncated >= limit) return type.bits == 64 ? INT64_MAX : (int64_t{1} << (type.bits - 1)) - 1;
    if (truncated < -limit) return type.bits == 64 ? INT64_MIN : -(int64_t{1} << (type.bits - 1));
    return static_cast<int64_t>(truncated);
  }
  if (truncated <= 0) return 0;
  if (truncated >= std::ldexp(1.0, type.bits)) return type.bits == 64 ? -1 : (int64_t{1} << type.bits) - 1;
  return static_cast<int64_t>(static_cast<uint64_t>(truncated));
}

uint64_t to_bits(DType type, Cell cell) {
  if (!type.is_float())
    return type.bits == 64 ? static_cast<uint64_t>(cell.i)
                           : static_cast<uint64_t>(cell.i) & ((uint64_t{1} << type.bits) - 1);
  if (type.bits == 64) return std::bit_cast<uint64_t>(cell.f);
  if (type.bits == 32) return std::bit_cast<uint32_t>(static_cast<float>(cell.f));
  return type.is_bfloat() ? encode(round_bf16(cell.f), 8, 8) : encode(round_f16(cell.f), 5, 11);
}

Cell from_bits(DType type, uint64_t bits) {
  Cell cell;
  if (!type.is_float()) cell.i = wrap_int(type, static_cast<int64_t>(bits));
  else if (type.bits == 64) cell.f = std::bit_cast<double>(bits);
  else if (type.bits == 32) cell.f = static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  else cell.f = type.is_bfloat() ? decode(bits, 8, 8) : decode(bits, 5, 11);
  return cell;
}

}  // namespace tensmith::interp
