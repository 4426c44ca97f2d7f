/// The layout of each value in memory.
#pragma once

#include <map>
#include <string>

#include "graph/choice.h"
#include "graph/graph.h"
#include "runtime/base/target.h"
#include "tensor/layout.h"

namespace tensmith::graph {

/// Layouts by value, those included that will have no memory; values that are not in the map are row-major. Graph
/// inputs and outputs always are.
using LayoutMap = std::map<Value, Layout>;

/// How the layouts of chains of spatial operators are decided.
enum class LayoutChoice : uint8_t {
  kPriced,        ///< the cheapest by an analytic model of the target
  kChannelsLast,  ///< the channels of one place contiguous
  kBlocked,       ///< channels in blocks of the target's vector, the blocks outside of space
};

/// Operators that carry channels (LayoutRole::kChannels), and those that follow them, form chains: values that share
/// one layout, so that nothing is converted inside. For each chain every candidate is priced: the products at the rate
/// that the target reaches with it, blocks that are not full, bytes that move, and conversions where the chain meets
/// others. `explanation` (may be null) gets a line per chain with the figures. What is priced can be decided otherwise
/// by `chooser` for chains with products.
LayoutMap choose_layouts(const Graph& graph, const Target& target, LayoutChoice choice = LayoutChoice::kPriced,
                         std::string* explanation = nullptr, const Chooser& chooser = nullptr);

}  // namespace tensmith::graph
