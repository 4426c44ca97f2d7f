/// The sum of products behind all convolutions.
#pragma once

#include "graph/ops/window.h"

namespace tensmith::graph::ops {

/// What the type rules of convolutions find out.
struct ConvShape {
  Window window;
  Shape out;  ///< [N, O, spatial...]
  int64_t group = 1;
};

/// Attributes of Conv and its relatives.
std::vector<AttrSpec> conv_attrs();
/// Errors: `rank-mismatch`, `shape-mismatch`, `dynamic-shape`, `bad-attribute`.
Result<ConvShape> resolve_conv(const AttrMap& attrs, const TensorType& x, const TensorType& w);
/// Errors: `shape-mismatch` unless the bias has one element per output channel.
Result<void> check_conv_bias(const TensorType& bias, const TensorType& w);

/// What is summed: `term(x, w, n, o)` makes the product of an input element and a weight (in the type of the sum);
/// `initial(o)`, if any, is where the sum of output channel `o` starts.
struct ConvTerms {
  std::function<Expr(const Expr& x, const Expr& w, const Expr& o)> term;
  std::function<Expr(const Expr& o)> initial = nullptr;
};
/// One reduction over (c, k...) with taps outside the input left out.
Tensor convolve(const std::string& name, const ConvShape& shape, const Tensor& x, const Tensor& w, DType sum_type,
                const ConvTerms& terms);

/// Units: floating-point operations (two per product).
double conv_flops(const ConvShape& shape, const TensorType& w);

/// The same as plain loops: y[n, o, ...] += sum of x w. Loops run along rows so that whole models can go through it.
template <typename T>
void reference_convolve(const StaticWindow& window, int64_t batch, int64_t in_channels, int64_t out_channels,
                        int64_t group, const T* x, const T* w, T* y) {
  auto [dz, dy, dx] = window.dims;
  const auto plain = [](const StaticWindow::Dim& d) {
    return d.kernel == 1 && d.stride == 1 && d.pad == 0 && d.pad_end == 0;
  };
  if (plain(dz) && plain(dy) && plain(dx)) {  // 1x1: a plane is one row
    dx.in = dx.out = dz.in * dy.in * dx.in;
    dz.in = dz.out = dy.in = dy.out = 1;
  }
  const int64_t per_group = in_channels / group, outs = out_channels / group;
  const int64_t in_size = window.in_size(), out_size = window.out_size(), taps = window.kernel_size();
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t o = 0; o < out_channels; ++o)
      for (int64_t c = 0; c < per_group; ++c) {
        const T* plane = x + (n * in_channels + o / outs * per_group + c) * in_size;
        const T* weights = w + (o * per_group + c) * taps;
        T* out = y + (n * out_channels + o) * out_size;
        for (int64_t kz = 0; kz < dz.kernel; ++kz)
          for (int64_t ky = 0; ky < dy.kernel; ++ky)
            for (int64_t kx = 0; kx < dx.kernel; ++kx) {
              const T weight = weights[(kz * dy.kernel + ky) * dx.kernel + kx];
              const int64_t shift = kx * dx.dilation - dx.pad;
              // Positions whose tap lies inside the row.
              const int64_t first = shift < 0 ? (-shift + dx.stride - 1) / dx.stride : 0;
              const int64_t last = shift >= dx.in ? 0 : std::min(dx.out, (dx.in - shift - 1) / dx.stride + 1);
              for (int64_t oz = 0; oz < dz.out; ++oz) {
                const int64_t iz = oz * dz.stride + kz * dz.dilation - dz.pad;
                if (iz < 0 || iz >= dz.in) continue;
                for (int64_t oy = 0; oy < dy.out; ++oy) {
                  const int64_t iy = oy * dy.stride + ky * dy.dilation - dy.pad;
                  if (iy < 0 || iy >= dy.in) continue;
                  const T* from = plane + (iz * dy.in + iy) * dx.in + shift;
                  T* to = out + (oz * dy.out + oy) * dx.out;
                  if (dx.stride == 1)
                    for (int64_t ox = first; ox < last; ++ox) to[ox] += weight * from[ox];
                  else
                    for (int64_t ox = first; ox < last; ++ox) to[ox] += weight * from[ox * dx.stride];
                }
              }
            }
      }
}

}  // namespace tensmith::graph::ops
