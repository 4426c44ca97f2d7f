/// From a group of nodes to the workload of its kernel.
#pragma once

#include "graph/op_def.h"
#include "graph/partition/fuse.h"

namespace tensmith::graph {

/// A workload and how its parameters map to the graph.
struct GroupWorkload {
  Workload workload;
  std::vector<Value> inputs;   ///< by workload input; constants of one element are part of the expressions instead
  std::vector<Value> outputs;  ///< by workload output
};

/// Builds the workload by calling each node's compute rule. Errors: UnsupportedError when a node has no compute rule.
GroupWorkload make_group_workload(const Graph& graph, const Group& group, const std::string& name);

}  // namespace tensmith::graph
