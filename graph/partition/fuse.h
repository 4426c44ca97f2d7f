/// Groups nodes into kernels: which operators are computed together.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace tensmith::graph {

/// Nodes that become one kernel.
struct Group {
  std::vector<NodeId> nodes;   ///< producers first
  std::vector<Value> inputs;   ///< values from outside, constants included, each once, in order of use
  std::vector<Value> outputs;  ///< values that others or the caller read
};

struct FuseOptions {
  bool enabled = true;         ///< false: one group per node
  std::set<NodeId> free = {};  ///< nodes that need no kernel: in no group
  /// Units: bytes. What a near cache holds: a product whose result is at least as large shares a kernel with what reads
  /// it in windows, and two products with the reduction of rows between them (attention) share one when some rows of
  /// what lies between them fit; unset: no products share kernels.
  std::optional<int64_t> near_bytes = {};
};

/// All nodes but sources and free ones in groups, producers first. `explanation` (may be null) gets a line per edge:
/// fused, or why not.
std::vector<Group> fuse(const Graph& graph, const FuseOptions& options = {}, std::string* explanation = nullptr);

}  // namespace tensmith::graph
