/// The two 16-bit float formats as bits.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace tensmith::graph {

/// The nearest (ties to even) value of a 16-bit format with `kMantissa` stored mantissa bits and exponent bias `kBias`.
template <int kMantissa, int kBias>
uint16_t to_16_bits(double value) {
  constexpr int kShift = 52 - kMantissa;
  constexpr uint16_t kInfinity = static_cast<uint16_t>(((1 << (15 - kMantissa)) - 1) << kMantissa);
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 63 << 15);
  const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  if (magnitude > 0x7ff0000000000000) return sign | kInfinity | static_cast<uint16_t>(1 << (kMantissa - 1));
  const double absolute = std::bit_cast<double>(magnitude);
  // Below the smallest normal number the step is constant; a result of 2^kMantissa is the smallest normal number's encoding.
  if (absolute < std::ldexp(1.0, 1 - kBias)) return sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(absolute, kBias - 1 + kMantissa)));
  const uint64_t rebiased = magnitude - (static_cast<uint64_t>(1023 - kBias) << 52);
  const uint64_t rounded = (rebiased + ((uint64_t{1} << (kShift - 1)) - 1) + ((rebiased >> kShift) & 1)) >> kShift;
  return sign | (rounded >= kInfinity ? kInfinity : static_cast<uint16_t>(rounded));
}

inline uint16_t to_f16_bits(double value) { return to_16_bits<10, 15>(value); }
inline uint16_t to_bf16_bits(double value) { return to_16_bits<7, 127>(value); }

/// The exact value.
inline float from_bf16_bits(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
inline float from_f16_bits(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits >> 15) << 31;
  const uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000 | ((magnitude & 0x3ff) << 13));
  // As float bits the value is too small by 2^112 (difference of the biases); the product is exact, also for subnormals.
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112f));
}

}  // namespace tensmith::graph
