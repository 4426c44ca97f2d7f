/// Small values that do not depend on the inputs.
#pragma once

#include <optional>

#include "graph/graph.h"

namespace tensmith::graph {

/// The content of a value when it can be computed from constants and fixed sizes alone, through at most `max_nodes`
/// nodes with small results. Nothing changes in the graph.
std::optional<Constant> known_value(const Graph& graph, Value value, int max_nodes = 100);

}  // namespace tensmith::graph
