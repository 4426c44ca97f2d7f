/// Lays constants out as kernels want them, at compile time.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/constant.h"
#include "tensor/layout.h"

namespace tensmith {

/// Units: bytes of the constant in this layout.
int64_t packed_bytes(const graph::Constant& constant, const Layout& layout);
/// Writes the constant in the layout to `out` (packed_bytes long); padding is zero. Cost: about a copy.
void pack(const graph::Constant& constant, const Layout& layout, uint8_t* out);
/// The other way round: the elements of a tensor in the layout, in row-major order, to `out`.
void unpack(const uint8_t* data, const Layout& layout, DType dtype, const std::vector<int64_t>& shape, uint8_t* out);

}  // namespace tensmith
