/// Index data that is only known when a model runs: which numbers it may hold.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"

namespace tensmith::graph {

/// The indices that a node reads, and what they index.
struct IndexLimits {
  NodeId node = -1;
  int input = 0;                 ///< of the node
  Value indices;                 ///< not a constant
  std::vector<int64_t> extents;  ///< one for all numbers, or one for each position along the last dim
};

/// The limits of the node's index data; nothing where it has none, or its numbers are constants inside them. All dims
/// must be known. Errors: UserError `index-out-of-range` for constants outside.
std::optional<IndexLimits> index_limits(const Graph& graph, NodeId id);
/// Whether that input of the node must lie in memory for `index_limits` to be checked.
bool is_checked_index(const Graph& graph, NodeId id, int input);

}  // namespace tensmith::graph
