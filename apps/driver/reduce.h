/// Makes a graph smaller while it keeps a fault.
#pragma once

#include <functional>
#include <string_view>

#include "graph/graph.h"

namespace tensmith {

/// The smallest run of nodes (in topological order) found for which `fails` holds: first the end is moved forward, then
/// the beginning back, each by halving, so about 2 log2(n) trials. What the run needs from before becomes inputs. A
/// copy of the whole when `fails` does not hold for it or `seconds` are over before anything smaller was found.
graph::Graph reduce_graph(const graph::Graph& graph, const std::function<bool(const graph::Graph&)>& fails,
                          double seconds);

/// The same for what `run` throws: a part fails when that is an InternalError with this very message. A message that
/// names what is not in the part leaves the graph larger; a mere likeness would keep another fault.
graph::Graph reduce_to_failure(const graph::Graph& graph, const std::function<void(const graph::Graph&)>& run,
                               std::string_view message, double seconds);

}  // namespace tensmith
