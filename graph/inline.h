/// Subgraphs in place.
#pragma once

#include "graph/graph.h"

namespace tensmith::graph {

/// Copies the nodes of `subgraph` into the graph with `inputs` in the place of its inputs. Returns what its outputs
/// have become. Names get `prefix` in front.
std::vector<Value> inline_graph(GraphEditor& edit, const Graph& subgraph, const std::vector<Value>& inputs,
                                const std::string& prefix);

}  // namespace tensmith::graph
