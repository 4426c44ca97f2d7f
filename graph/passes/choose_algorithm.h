/// The choice among ways to compute the same, by what they cost on the target.
#pragma once

#include "graph/passes/rewrite.h"

namespace tensmith::graph {

/// Turns convolutions with constant 3 x 3 weights into tensmith.WinogradConv where that costs fewer cycles: its
/// products are a fraction (4/9 or 1/4), but its weights are larger and its tiles may reach beyond the image. Does
/// nothing without a target or when the options say so. Cost: some operations for each weight of what it changes.
int choose_algorithm(GraphEditor& edit, const PassOptions& options);

/// Units: cycles of one core. What a convolution costs directly and by Winograd tiles.
struct ConvSize {
  int64_t batch, channels, outs, rows, columns;  ///< of the output, whose rows and columns are 1 apart
  int64_t element_bytes;
};
double direct_cycles(const ConvSize& size, const Target& target);
double winograd_cycles(const ConvSize& size, int tile, const Target& target);

}  // namespace tensmith::graph
