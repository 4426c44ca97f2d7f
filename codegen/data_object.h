/// Objects that hold no code: constant data, and stand-ins for the C libraries.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "codegen/artifact.h"
#include "runtime/base/result.h"

namespace tensmith {

/// An object that defines `symbol` as read-only data with these bytes. Written directly: one copy of the bytes, no
/// compiler. Units: alignment in bytes, a power of two. Errors: UserError "data-too-large" from 2 GiB on (32-bit
/// displacements reach no further).
ObjectCode make_data_object(const std::string& symbol, std::span<const uint8_t> bytes, int64_t alignment,
                            const Target& target);

/// Calls its argument with pieces of data in order.
using DataPieces = std::function<void(const std::function<void(std::span<const uint8_t>)>& take)>;
/// The same object as a file, for the linker (LinkOptions::object_files): the data, `size` bytes of them, are never in
/// memory as a whole. Errors: "data-too-large" as above; cannot-write.
Result<void> write_data_object(const std::string& path, const std::string& symbol, int64_t size, int64_t alignment,
                               const Target& target, const DataPieces& pieces);

/// An object that defines these functions at nowhere; only good for making a shared library to link against.
ObjectCode make_stub_object(const std::vector<std::string>& functions, const Target& target);

}  // namespace tensmith
