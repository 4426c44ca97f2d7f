/// Lays constants out as kernels want them, at compile time.
#pragma once

#include "graph/constant.h"
#include "tensor/pack.h"

namespace tensmith {

/// Units: bytes of the constant in this layout.
int64_t packed_bytes(const graph::Constant& constant, const Layout& layout);
/// Writes the constant in the layout to `out` (packed_bytes long); padding is zero. Cost: about a copy.
void pack(const graph::Constant& constant, const Layout& layout, uint8_t* out);

}  // namespace tensmith
