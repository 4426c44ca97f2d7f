/// The layout of each value in memory.
#pragma once

#include <map>

#include "graph/graph.h"
#include "graph/partition/fuse.h"
#include "runtime/base/target.h"
#include "tensor/layout.h"

namespace tensmith::graph {

/// Layouts by value; values that are not in the map are row-major. Graph inputs and outputs always are. Spatial
/// operators (convolutions, pools) get and give channels last, so that the channels of one pixel are contiguous for
/// vectors and for the reduction alike; elementwise operators keep what they get.
using LayoutMap = std::map<Value, Layout>;
LayoutMap choose_layouts(const Graph& graph, const std::vector<Group>& groups, const Target& target);

}  // namespace tensmith::graph
