/// Results that may take the place of an operand.
#pragma once

#include <vector>

#include "schedule/lower/lowering.h"

namespace tensmith {

/// An output of a kernel that may be written over one of its inputs.
struct InPlacePair {
  int input = 0, output = 0;
};

/// The pairs of a scheduled kernel, found from its loops: same type, shape and layout; every read of the input is for
/// the element of the output that is stored next, by one stage whose loops store each element once. At most one input
/// for an output and the other way round, and only buffers that kMayOverlap has bits for.
std::vector<InPlacePair> in_place_pairs(const Schedule& schedule);

/// Tells the code generator which buffers may be the same memory (kMayOverlap).
void mark_in_place(LoweredKernel& kernel, const std::vector<InPlacePair>& pairs);

}  // namespace tensmith
