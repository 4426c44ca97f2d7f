/// Element types of tensors and of loop IR expressions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tensmith {

/// A scalar type with a number of lanes. Codes and widths follow DLPack's numbering so that a DLDataType converts field
/// by field.
struct DType {
  enum class Code : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kHandle = 3, kBFloat = 4, kBool = 6 };

  Code code = Code::kInt;
  uint8_t bits = 0;
  uint16_t lanes = 1;

  friend bool operator==(const DType&, const DType&) = default;
  friend auto operator<=>(const DType&, const DType&) = default;

  bool is_float() const { return code == Code::kFloat || code == Code::kBFloat; }
  bool is_bfloat() const { return code == Code::kBFloat; }
  bool is_int() const { return code == Code::kInt; }
  bool is_uint() const { return code == Code::kUInt; }
  bool is_integral() const { return is_int() || is_uint(); }
  bool is_bool() const { return code == Code::kBool; }
  bool is_handle() const { return code == Code::kHandle; }
  bool is_scalar() const { return lanes == 1; }

  /// The same type with another number of lanes.
  DType with_lanes(int n) const { return {code, bits, static_cast<uint16_t>(n)}; }
  /// The scalar type.
  DType element() const { return with_lanes(1); }
  /// Units: bytes in memory of one lane (bool is 1; int4 is rounded up to 1).
  int64_t bytes() const { return (bits + 7) / 8; }
};

inline constexpr DType kBool{DType::Code::kBool, 8, 1};
inline constexpr DType kInt4{DType::Code::kInt, 4, 1};
inline constexpr DType kInt8{DType::Code::kInt, 8, 1};
inline constexpr DType kInt16{DType::Code::kInt, 16, 1};
inline constexpr DType kInt32{DType::Code::kInt, 32, 1};
inline constexpr DType kInt64{DType::Code::kInt, 64, 1};
inline constexpr DType kUInt4{DType::Code::kUInt, 4, 1};
inline constexpr DType kUInt8{DType::Code::kUInt, 8, 1};
inline constexpr DType kUInt16{DType::Code::kUInt, 16, 1};
inline constexpr DType kUInt32{DType::Code::kUInt, 32, 1};
inline constexpr DType kUInt64{DType::Code::kUInt, 64, 1};
inline constexpr DType kFloat16{DType::Code::kFloat, 16, 1};
inline constexpr DType kFloat32{DType::Code::kFloat, 32, 1};
inline constexpr DType kFloat64{DType::Code::kFloat, 64, 1};
inline constexpr DType kBFloat16{DType::Code::kBFloat, 16, 1};
inline constexpr DType kHandle{DType::Code::kHandle, 64, 1};

/// Text form: `bool`, `i8`, `u64`, `f16`, `bf16`, `f32`, `handle`, with `x16` behind it for 16 lanes.
std::string to_string(DType type);
/// The type that `to_string` printed; also accepts numpy's names (`float32`, `int64`, `uint8`).
Result<DType> parse_dtype(std::string_view text);

}  // namespace tensmith
