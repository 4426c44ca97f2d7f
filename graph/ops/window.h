/// Geometry of convolutions and pools: kernels that slide over the spatial dims.
#pragma once

#include <functional>

#include "graph/op_def.h"
#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

/// A sliding window, one entry per spatial dim. Position `o` covers inputs `o stride + k dilation - pad_begin` for k in
/// [0, kernel).
struct Window {
  Shape in, out;  ///< extents of the spatial dims
  std::vector<int64_t> kernel, stride, dilation;
  Shape pad_begin, pad_end;  ///< constants, or expressions over symbolic dims for auto_pad SAME
  bool ceil = false;         ///< the last window may stick out beyond the padding

  size_t rank() const { return kernel.size(); }
};

/// The attributes that all sliding operators have: auto_pad, dilations, kernel_shape, pads, strides.
std::vector<AttrSpec> window_attrs(bool kernel_required);
/// Resolves them for an input of the given spatial dims. `kernel`: from the weights, or the attribute kernel_shape.
/// Errors: `bad-attribute`.
Result<Window> resolve_window(const AttrMap& attrs, const Shape& spatial, const std::vector<int64_t>& kernel);

/// Whether taps of the window may fall outside the input in dim `d`.
bool may_leave_input(const Window& window, size_t d);
/// The input index that tap `k` of position `o` reads in dim `d`.
Expr tap_index(const Window& window, size_t d, const Expr& o, const Expr& k);
/// All taps inside the input, as a condition over output position and tap; null when that always holds.
Expr taps_inside(const Window& window, std::span<const Expr> o, std::span<const Expr> k);
/// How many taps of position `o` in dim `d` lie inside the input (`with_padding`: inside the padded input).
Expr count_taps(const Window& window, size_t d, const Expr& o, bool with_padding);

/// The window with numbers, brought to three dims by dims of extent 1 in front; for reference loops.
struct StaticWindow {
  struct Dim {
    int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad = 0, pad_end = 0;
  };
  std::array<Dim, 3> dims;
  int64_t in_size() const { return dims[0].in * dims[1].in * dims[2].in; }
  int64_t out_size() const { return dims[0].out * dims[1].out * dims[2].out; }
  int64_t kernel_size() const { return dims[0].kernel * dims[1].kernel * dims[2].kernel; }
};
StaticWindow to_static(const Window& window);

}  // namespace tensmith::graph::ops
