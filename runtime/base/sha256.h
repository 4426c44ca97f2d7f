/// SHA-256 of bytes and files: digests of models, weights and libraries.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/base/sha256_core.h"

namespace tensmith {

/// Computes a digest piece by piece.
class Sha256 {
 public:
  Sha256() { tensmith_sha256_init(&hash_); }
  void update(const void* data, size_t size) { tensmith_sha256_update(&hash_, data, size); }
  void update(std::string_view text) { update(text.data(), text.size()); }
  /// The 32 bytes; the object must not be updated after.
  std::array<uint8_t, 32> digest();
  /// The same as 64 hexadecimal digits.
  std::string hex();

 private:
  tensmith_sha256 hash_;
};

/// A digest as 64 hexadecimal digits.
std::string sha256_text(const std::array<uint8_t, 32>& digest);
/// Digest of a text in hexadecimal.
std::string sha256_hex(std::string_view data);
/// Digest of a file in hexadecimal. Errors: cannot-read.
Result<std::string> sha256_file(const std::string& path);

}  // namespace tensmith
