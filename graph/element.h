/// Element types at compile time: one visitor that turns a DType into a type with its storage and conversions.
#pragma once

#include <cstring>
#include <limits>

#include "runtime/base/dtype.h"
#include "runtime/base/error.h"
#include "runtime/base/half.h"

namespace tensmith::graph {

/// Float to integer as the loop IR casts: truncates, saturates, NaN gives 0.
template <typename Int>
Int saturate(double value) {
  if (!(value == value)) return 0;
  // The upper bound as a double may be one above the largest integer, hence >=.
  if (value >= static_cast<double>(std::numeric_limits<Int>::max())) return std::numeric_limits<Int>::max();
  if (value <= static_cast<double>(std::numeric_limits<Int>::min())) return std::numeric_limits<Int>::min();
  return static_cast<Int>(value);
}

/// Integers that fill their storage type. Unsigned 64-bit values travel as their bit pattern in int64_t.
template <typename Int>
struct IntElement {
  using Stored = Int;
  static constexpr bool kFloat = false;
  static Int from_int(int64_t value) { return static_cast<Int>(value); }
  static Int from_float(double value) { return saturate<Int>(value); }
  static int64_t to_int(Int stored) { return static_cast<int64_t>(stored); }
  static double to_float(Int stored) { return static_cast<double>(stored); }
};

/// 4-bit integers, one to a byte.
template <bool kSigned>
struct NibbleElement {
  using Stored = std::conditional_t<kSigned, int8_t, uint8_t>;
  static constexpr bool kFloat = false;
  static Stored from_int(int64_t value) {
    const int low = static_cast<int>(value & 15);
    return static_cast<Stored>(kSigned && low > 7 ? low - 16 : low);
  }
  static Stored from_float(double value) {
    const int wide = saturate<int>(value);
    const int lo = kSigned ? -8 : 0, hi = kSigned ? 7 : 15;
    return static_cast<Stored>(wide < lo ? lo : wide > hi ? hi : wide);
  }
  static int64_t to_int(Stored stored) { return stored; }
  static double to_float(Stored stored) { return stored; }
};

struct BoolElement {
  using Stored = uint8_t;
  static constexpr bool kFloat = false;
  static uint8_t from_int(int64_t value) { return value != 0; }
  static uint8_t from_float(double value) { return value != 0; }
  static int64_t to_int(uint8_t stored) { return stored != 0; }
  static double to_float(uint8_t stored) { return stored != 0; }
};

template <typename Float>
struct FloatElement {
  using Stored = Float;
  static constexpr bool kFloat = true;
  static Float from_int(int64_t value) { return static_cast<Float>(value); }
  static Float from_float(double value) { return static_cast<Float>(value); }
  static int64_t to_int(Float stored) { return saturate<int64_t>(stored); }
  static double to_float(Float stored) { return stored; }
};

struct HalfElement {
  using Stored = uint16_t;
  static constexpr bool kFloat = true;
  static uint16_t from_int(int64_t value) { return to_float16_bits(static_cast<double>(value)); }
  static uint16_t from_float(double value) { return to_float16_bits(value); }
  static int64_t to_int(uint16_t stored) { return saturate<int64_t>(from_float16_bits(stored)); }
  static double to_float(uint16_t stored) { return from_float16_bits(stored); }
};

struct BFloatElement {
  using Stored = uint16_t;
  static constexpr bool kFloat = true;
  static uint16_t from_int(int64_t value) { return to_bfloat16_bits(static_cast<double>(value)); }
  static uint16_t from_float(double value) { return to_bfloat16_bits(value); }
  static int64_t to_int(uint16_t stored) { return saturate<int64_t>(from_bfloat16_bits(stored)); }
  static double to_float(uint16_t stored) { return from_bfloat16_bits(stored); }
};

/// Reads an element that may be unaligned (data in a mapped file).
template <typename E>
typename E::Stored load_element(const void* data, int64_t index) {
  typename E::Stored value;
  std::memcpy(&value, static_cast<const char*>(data) + index * static_cast<int64_t>(sizeof(value)), sizeof(value));
  return value;
}

/// Calls `fn` with an object of the element type that belongs to `dtype`: `with_element_type(t, [&]<typename E>(E) {
/// ... })`.
template <typename Fn>
decltype(auto) with_element_type(DType dtype, Fn&& fn) {
  using Code = DType::Code;
  if (dtype.code == Code::kFloat) {
    if (dtype.bits == 32) return fn(FloatElement<float>{});
    if (dtype.bits == 64) return fn(FloatElement<double>{});
    if (dtype.bits == 16) return fn(HalfElement{});
  } else if (dtype.code == Code::kBFloat && dtype.bits == 16) {
    return fn(BFloatElement{});
  } else if (dtype.code == Code::kBool) {
    return fn(BoolElement{});
  } else if (dtype.code == Code::kInt) {
    switch (dtype.bits) {
      case 4: return fn(NibbleElement<true>{});
      case 8: return fn(IntElement<int8_t>{});
      case 16: return fn(IntElement<int16_t>{});
      case 32: return fn(IntElement<int32_t>{});
      case 64: return fn(IntElement<int64_t>{});
    }
  } else if (dtype.code == Code::kUInt) {
    switch (dtype.bits) {
      case 4: return fn(NibbleElement<false>{});
      case 8: return fn(IntElement<uint8_t>{});
      case 16: return fn(IntElement<uint16_t>{});
      case 32: return fn(IntElement<uint32_t>{});
      case 64: return fn(IntElement<uint64_t>{});
    }
  }
  TS_UNREACHABLE() << "tensors of " << to_string(dtype);
}

}  // namespace tensmith::graph
