/// float16 and bfloat16 as bit patterns: conversions with one rounding, to nearest, ties to even.
#pragma once

#include <bit>
#include <cstdint>

namespace tensmith {

namespace detail {

/// Rounds a double to a binary format with the given exponent and fraction bits. NaN stays a quiet NaN with its upper
/// payload bits; too large becomes infinity; small becomes subnormal or zero, always with one rounding.
template <int kExponentBits, int kFractionBits>
constexpr uint16_t narrow(double value) {
  constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  constexpr uint64_t kMaxExponent = (1u << kExponentBits) - 1;
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 63 << 15);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  uint64_t fraction = bits & 0xfffffffffffffull;
  if (exponent == 1024) {
    const uint64_t payload = fraction ? fraction >> (52 - kFractionBits) | 1u << (kFractionBits - 1) : 0;
    return static_cast<uint16_t>(sign | kMaxExponent << kFractionBits | payload);
  }
  if (exponent < -kBias - kFractionBits - 1) return sign;  // below half of the smallest subnormal
  fraction |= 1ull << 52;                                  // a double that is subnormal never gets here
  // Subnormals of the narrow format keep fewer bits.
  const int shift = 52 - kFractionBits + (exponent < 1 - kBias ? 1 - kBias - exponent : 0);
  const uint64_t kept = fraction >> shift, rest = fraction & ((1ull << shift) - 1), half = 1ull << (shift - 1);
  uint64_t result = kept + (rest > half || (rest == half && (kept & 1)));
  // The leading one adds 1 to the exponent field, so a carry out of the fraction is right by itself.
  if (exponent >= 1 - kBias) result += static_cast<uint64_t>(exponent + kBias - 1) << kFractionBits;
  if (result >= kMaxExponent << kFractionBits) result = kMaxExponent << kFractionBits;
  return static_cast<uint16_t>(sign | result);
}

}  // namespace detail

/// Nearest float16. From double, so that doubles are rounded once.
constexpr uint16_t to_float16_bits(double value) { return detail::narrow<5, 10>(value); }
/// Nearest bfloat16.
constexpr uint16_t to_bfloat16_bits(double value) { return detail::narrow<8, 7>(value); }

/// Exact value of a bfloat16.
constexpr float from_bfloat16_bits(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

/// Exact value of a float16.
constexpr float from_float16_bits(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

}  // namespace tensmith
