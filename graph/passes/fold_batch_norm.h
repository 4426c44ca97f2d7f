/// Normalisation with known statistics, and factors and terms by channel, in the weights in front of them.
#pragma once

#include "graph/passes/rewrite.h"

namespace tensmith::graph {

/// Folds BatchNormalization into the Conv or ConvTranspose in front; one without such a node becomes a product and a
/// sum. Also folds Mul and Add by constants for each channel behind Conv into its weights and bias.
int fold_batch_norm(GraphEditor& edit, const PassOptions& options);
std::span<const Rule> fold_batch_norm_rules();

}  // namespace tensmith::graph
