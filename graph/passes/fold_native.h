/// Folding of large weights on their stored bytes, without the detour over the interpreter's doubles.
#pragma once

#include <optional>

#include "graph/op_def.h"

namespace tensmith::graph {

/// The only output of a node on constant inputs, when the operator renames its elements or has a rule of its own for
/// them (OpDef::fold); nothing for other nodes. The result is what the interpreter gives, bit by bit.
std::optional<Constant> fold_natively(const Node& node, const std::vector<const Constant*>& inputs);

}  // namespace tensmith::graph
