/// Folding of large weights on their stored bytes, without the detour over the interpreter's doubles.
#pragma once

#include <optional>

#include "graph/op_def.h"

namespace tensmith::graph {

/// The only output of a node on constant inputs, for changes of shape and order, Cast, DequantizeLinear and float32
/// arithmetic; nothing for other nodes. The result is what the interpreter gives, bit by bit.
std::optional<Constant> fold_natively(const Node& node, const std::vector<const Constant*>& inputs);

/// The constant in another order of axes. Cost: memory speed, by blocks.
Constant transpose(const Constant& value, const std::vector<int64_t>& perm);

}  // namespace tensmith::graph
