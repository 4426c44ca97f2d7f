/// Groups nodes into kernels: which operators are computed together.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace tensmith::graph {

/// Nodes that become one kernel.
struct Group {
  std::vector<NodeId> nodes;   ///< producers first
  std::vector<Value> inputs;   ///< values from outside, constants included, each once, in order of use
  std::vector<Value> outputs;  ///< values that others or the caller read
  bool is_view = false;        ///< one node that only renames the elements of its input (a reshape of row-major data)
};

struct FuseOptions {
  bool enabled = true;  ///< false: one group per node
};

/// All nodes but Input and Constant in groups, producers first. `explanation` (may be null) gets a line per edge:
/// fused, or why not.
std::vector<Group> fuse(const Graph& graph, const FuseOptions& options = {}, std::string* explanation = nullptr);

}  // namespace tensmith::graph
