/// Numbers as protobuf writes them.
#pragma once

#include <cstdint>
#include <optional>

namespace tensmith::graph {

/// The number at `at`, which moves behind it; nothing when the bytes end first or it is longer than ten of them.
inline std::optional<uint64_t> read_varint(const uint8_t*& at, const uint8_t* end) {
  uint64_t value = 0;
  for (int shift = 0; shift < 70 && at < end; shift += 7) {
    const uint8_t byte = *at++;
    if (shift < 64) value |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128) return value;
  }
  return std::nullopt;
}

}  // namespace tensmith::graph
