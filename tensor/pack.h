/// Moves the elements of tensors into and out of layouts.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/dtype.h"
#include "tensor/layout.h"

namespace tensmith {

/// Units: bytes of a tensor in this layout (a default-constructed one stands for row-major).
int64_t packed_bytes(const std::vector<int64_t>& shape, DType dtype, const Layout& layout);
/// Writes row-major data in the layout to `out` (packed_bytes long); padding is zero. Cost: about a copy.
void pack(const uint8_t* data, const std::vector<int64_t>& shape, DType dtype, const Layout& layout, uint8_t* out);
/// The other way round: the elements of a tensor in the layout, in row-major order, to `out`.
void unpack(const uint8_t* data, const Layout& layout, DType dtype, const std::vector<int64_t>& shape, uint8_t* out);

}  // namespace tensmith
