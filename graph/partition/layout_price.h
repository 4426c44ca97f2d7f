/// What a layout costs: an analytic model over the target.
#pragma once

#include "graph/op_def.h"
#include "runtime/base/target.h"

namespace tensmith::graph {

/// How the channel axis of a chain of values is stored: block 0 means all channels of one place contiguous.
struct ChannelForm {
  int64_t block = 0;
};

/// Units: cycles of one core. The node when the values of its chain have this form.
double price_of_node(const Graph& graph, const Node& node, ChannelForm form, const Target& target);
/// Units: cycles of one core. To bring a value of this form into row-major order, or the other way round.
double price_of_conversion(const TensorType& type, ChannelForm form);

}  // namespace tensmith::graph
