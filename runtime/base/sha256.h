/// SHA-256 of bytes and files: digests of models, weights and libraries.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tensmith {

/// Computes a digest piece by piece. Source: FIPS 180-4.
class Sha256 {
 public:
  Sha256();
  void update(const void* data, size_t size);
  void update(std::string_view text) { update(text.data(), text.size()); }
  /// The 32 bytes; the object must not be updated after.
  std::array<uint8_t, 32> digest();
  /// The same as 64 hexadecimal digits.
  std::string hex();

 private:
  void block(const uint8_t* bytes);

  uint32_t state_[8];
  uint8_t buffer_[64];
  uint64_t total_ = 0;
};

/// Digest of a text in hexadecimal.
std::string sha256_hex(std::string_view data);
/// Digest of a file in hexadecimal. Errors: cannot-read.
Result<std::string> sha256_file(const std::string& path);

}  // namespace tensmith
