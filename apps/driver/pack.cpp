#include "apps/driver/pack.h"

namespace tensmith {

int64_t packed_bytes(const graph::Constant& constant, const Layout& layout) {
  return packed_bytes(constant.shape(), constant.dtype(), layout);
}

void pack(const graph::Constant& constant, const Layout& layout, uint8_t* out) {
  pack(static_cast<const uint8_t*>(constant.data()), constant.shape(), constant.dtype(), layout, out);
}

}  // namespace tensmith
