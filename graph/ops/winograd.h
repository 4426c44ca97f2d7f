/// Minimal filtering (Winograd, Toom-Cook): an m x m tile of a convolution with 3 x 3 weights from (m + 2)^2 products a
/// channel instead of 9 m^2.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/constant.h"

namespace tensmith::graph {

/// Y = A^T [(G w G^T) . (B^T d B)] A for tiles of `tile` outputs along each of two axes and 3 x 3 weights.
/// Source: Lavin and Gray, "Fast algorithms for convolutional neural networks" (2015); points by notes/cpu.md 4.1,
/// which keep the error of float32 at that of the direct sum.
struct Winograd {
  int tile;                                  ///< outputs along an axis: 2 or 4
  int points;                                ///< tile + 2: values along an axis after the transforms
  std::vector<std::vector<double>> input;    ///< B^T. Shapes: [points][points]
  std::vector<std::vector<double>> weights;  ///< G. Shapes: [points][3]
  std::vector<std::vector<double>> output;   ///< A^T. Shapes: [tile][points]
};

constexpr int kWinogradKernel = 3;

/// Tiles of 2 (points 0, 1, -1) or 4 (points 0, 5/8, -5/8, 3/2, -3/2), and infinity.
const Winograd& winograd(int tile);

/// G w G^T of every pair of channels, computed in double. Shapes: w [O, C, 3, 3] -> [points, points, C, O], of the
/// same type.
Constant winograd_weights(const Constant& w, const Winograd& transform);

}  // namespace tensmith::graph
