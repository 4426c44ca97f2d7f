/// Products of one value with several weights become one product, and factors behind products move into the weights.
#pragma once

#include "graph/passes/rewrite.h"

namespace tensmith::graph {

/// `MatMul(x, A) [+ a], MatMul(x, B) [+ b] ... --> Split(MatMul(x, [A B ...]) [+ [a b ...]])` for constant weights of
/// two dims, and the same for convolutions of one place (1x1) with equal attributes: the query, key and value of
/// attention, the branches of an Inception block. The parts of a split need no memory of their own
/// (partition/placement.h). Left alone: weights that others use, parts that are joined again or go to the caller, and
/// anything that would not come in one piece. Returns how many products were taken into others.
int merge_products(GraphEditor& edit, const PassOptions& options);

std::span<const Rule> fold_scale_rules();
/// Moves one number by which a product is multiplied, behind transposes, reshapes and a split, into its weights: the
/// 1 / sqrt(head size) of attention.
int fold_scale(GraphEditor& edit, const PassOptions& options);

}  // namespace tensmith::graph
