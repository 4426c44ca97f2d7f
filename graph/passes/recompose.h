/// Composite operators that exporters took apart.
#pragma once

#include "graph/passes/rewrite.h"

namespace tensmith::graph {

/// Finds LayerNormalization, RMSNormalization, Softmax, Gelu (both formulas), Swish, HardSwish, HardSigmoid, Sigmoid,
/// Mish and Softplus written out as arithmetic, and puts the operator in their place: one kernel instead of several
/// passes over the data.
int recompose(GraphEditor& edit, const PassOptions& options);
std::span<const Rule> recompose_rules();

}  // namespace tensmith::graph
