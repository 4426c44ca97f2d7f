/// Which nodes the compiler cannot serve, with the reason for each: the support query behind `tensmith check`.
#pragma once

#include "graph/graph.h"
#include "graph/import/report.h"

namespace tensmith::graph {

/// Nodes without a compute rule, with a rule that refuses them, or with dims that are not known. Asked after the
/// passes: what they fold or decompose needs no rule. Ids: `no-compute`, `dynamic-shape`, and those of the rules.
UnsupportedReport unsupported_nodes(const Graph& graph);

}  // namespace tensmith::graph
