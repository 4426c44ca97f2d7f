/// What all pools share: their type rule, the shape of their reduction, and reference loops over windows.
#pragma once

#include "graph/ops/window.h"

namespace tensmith::graph::ops {

/// Attributes of pools: those of a window and ceil_mode, with the opsets that brought dilations and ceil_mode.
std::vector<AttrSpec> pool_attrs(int dilations_since, int ceil_mode_since);
/// The window of a pool over `x`. Errors: `rank-mismatch`, `bad-attribute`, `shape-mismatch`.
Result<Window> resolve_pool(const AttrMap& attrs, const TensorType& x);
/// [N, C, spatial...].
Shape pool_output(const Window& window, const TensorType& x);

/// A reduction over the taps with those outside the input left out; reducer and body are the caller's. `window` must
/// outlive it.
Reduction pool_reduction(const Window& window);
/// The index into the input that tap `r` of output `i` reads.
Indices pool_input_index(const Window& window, const Indices& i, const Indices& r);

/// Units: floating-point operations: one a tap.
double pool_flops(const InferContext& ctx);

/// The taps of one window position that lie inside the input.
struct PoolTaps {
  struct Range {
    int64_t begin, end, step;
  };
  std::array<Range, 3> ranges;
  template <typename Fn>
  void for_each(Fn fn) const {
    for (int64_t z = ranges[0].begin; z < ranges[0].end; z += ranges[0].step)
      for (int64_t y = ranges[1].begin; y < ranges[1].end; y += ranges[1].step)
        for (int64_t x = ranges[2].begin; x < ranges[2].end; x += ranges[2].step) fn(z, y, x);
  }
};

/// Calls `fn(position, taps)` for each position of the window in row-major order.
template <typename Fn>
void for_each_window(const StaticWindow& window, Fn fn) {
  const auto range = [](const StaticWindow::Dim& d, int64_t o) {
    int64_t begin = o * d.stride - d.pad;
    const int64_t end = std::min(d.in, begin + (d.kernel - 1) * d.dilation + 1);
    if (begin < 0) begin += (-begin + d.dilation - 1) / d.dilation * d.dilation;
    return PoolTaps::Range{begin, end, d.dilation};
  };
  const auto& [dz, dy, dx] = window.dims;
  int64_t position = 0;
  for (int64_t z = 0; z < dz.out; ++z)
    for (int64_t y = 0; y < dy.out; ++y)
      for (int64_t x = 0; x < dx.out; ++x) fn(position++, PoolTaps{{range(dz, z), range(dy, y), range(dx, x)}});
}

}  // namespace tensmith::graph::ops
