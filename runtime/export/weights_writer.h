/// Writes the file of weights that lies beside an exported library.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/result.h"

namespace tensmith {

/// Writes header and data (see weights_file.h) and returns the data's SHA-256 for the model's description.
/// Errors: cannot-write; then no partial file is left.
Result<std::array<uint8_t, 32>> write_weights_file(const std::string& path, std::span<const std::byte> data);

}  // namespace tensmith
