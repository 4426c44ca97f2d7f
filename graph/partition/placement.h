/// Values that lie in the memory of other values, so that nodes that only move elements need no kernel.
#pragma once

#include <map>
#include <set>
#include <string>

#include "graph/partition/layouts.h"

namespace tensmith::graph {

/// A value in the memory of another one.
struct Placement {
  Value base;          ///< whose memory it is; it lies in no other one's
  int64_t offset = 0;  ///< Units: elements
  Layout layout;       ///< from there on; its padding holds what belongs to others
};

struct PlacementPlan {
  std::map<Value, Placement> places;  ///< values that are not here have memory of their own
  std::set<NodeId> free;              ///< nodes that need no kernel
  /// Units: bytes. How far the padding of a placed value may reach beyond the end of its base: kernels may read it,
  /// though they make no use of it. Never for bases that belong to the caller.
  int64_t slack = 0;
};

/// Finds the nodes that only say where elements lie: parts and permutations of a value that its readers can walk
/// through as well, and values joined from others, which are then written where they belong. `layouts` are those of
/// values in memory of their own. A transposed order is left to readers that are contractions; others want the elements
/// of a row side by side. `explanation` (may be null) gets a line per node.
PlacementPlan place_values(const Graph& graph, const LayoutMap& layouts, std::string* explanation = nullptr);

}  // namespace tensmith::graph
