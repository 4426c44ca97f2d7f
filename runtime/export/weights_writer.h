/// Writes the file of weights that lies beside an exported library.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/files.h"
#include "runtime/base/result.h"
#include "runtime/base/sha256.h"

namespace tensmith {

/// Digests of a written file of weights.
struct WeightsDigests {
  std::array<uint8_t, 32> weights = {};  ///< as the model's description and the end of the file have it
  std::array<uint8_t, 32> file = {};     ///< of the whole file
};

/// Writes the file (see weights_file.h) piece by piece and computes its digests meanwhile, on a thread of its own.
class WeightsWriter {
 public:
  /// Errors: cannot-write.
  static Result<WeightsWriter> create(const std::string& path, int64_t data_bytes);

  /// Appends data. Errors: cannot-write.
  Result<void> write(std::span<const uint8_t> data);
  /// Ends the file, which then is there under its name. Errors: cannot-write; then no partial file is left.
  Result<WeightsDigests> finish();

 private:
  explicit WeightsWriter(AtomicFile file) : file_(std::move(file)) {}

  AtomicFile file_;
  Sha256 hash_;
  int64_t left_ = 0;  ///< Units: bytes of data to come
};

/// Writes a file of these weights at once and gives the digest for the model's description.
/// Errors: cannot-write; then no partial file is left.
Result<std::array<uint8_t, 32>> write_weights_file(const std::string& path, std::span<const std::byte> data);

}  // namespace tensmith
