/// What accesses touch while some of their loops run.
#pragma once

#include <vector>

#include "autotune/cost_model/loop_tree.h"

namespace tensmith {

/// What one access touches. Units: bytes, counts.
struct Footprint {
  double bytes = 0;  ///< distinct
  double lines = 0, pages = 0;
  double low = 0, high = 0;  ///< the bytes of the buffer between which all of it lies, outer loops at their start
  /// Separate pieces and how far apart they are; 1 and 0 when it is all in one.
  double pieces = 1, piece_stride = 0;
};

/// Of the loops of `path` from depth `first` on; the others stand still.
Footprint footprint_of(const LoopTree& tree, const TreeAccess& access, const std::vector<int>& path, size_t first,
                       const Target& target);

/// Distinct bytes of all accesses to memory in one turn of a loop, by loop; the root's entry is for the whole kernel.
/// Registers do not count. Of a loop that is shared out, for the thread with most turns.
std::vector<double> working_sets(const LoopTree& tree, const Target& target);

}  // namespace tensmith
