/// Cuts nodes out of a graph, so that they can be compiled, interpreted and shown alone.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace tensmith {

/// The nodes as a graph of their own: `inputs` become its inputs in this order, constants come along (they are shared,
/// not copied), `outputs` its outputs. Names stay. Errors: a Failure when a node needs a value that is neither given
/// nor constant, or types cannot be inferred without the rest.
Result<graph::Graph> cut_subgraph(const graph::Graph& graph, const std::vector<graph::NodeId>& nodes,
                                  const std::vector<graph::Value>& inputs, const std::vector<graph::Value>& outputs);

}  // namespace tensmith
