/// NumPy's .npy files, read and written without Python. Files are input from outside: every field is checked.
#pragma once

#include <string>
#include <string_view>

#include "runtime/tensor.h"

namespace tensmith {

/// Reads a tensor: format versions 1 to 3, C and Fortran order, little and big endian, bool, signed and unsigned
/// integers, float16, float32, float64, and bfloat16 (two-byte void, as ml_dtypes writes it). The result is row-major
/// in the machine's byte order. Errors: bad-npy (says what was expected), cannot-read, file-too-large, shape-overflow.
Result<HostTensor> read_npy(const std::string& path, int64_t limit = int64_t{1} << 36);
/// The same from memory; `where` stands in front of messages.
Result<HostTensor> parse_npy(std::string_view bytes, const std::string& where);

/// Writes format version 1 (2 for a long header), C order; the file appears whole or not at all.
/// Errors: cannot-write; bad-npy for types that NumPy lacks (int4).
Result<void> write_npy(const std::string& path, const HostTensor& tensor);
/// The bytes of that file.
Result<std::string> npy_bytes(const HostTensor& tensor);

}  // namespace tensmith
