/// Weights of products in the narrow types that hold them exactly.
#pragma once

#include "graph/passes/rewrite.h"

namespace tensmith::graph {

/// Weights in a type that takes fewer bytes, and what its elements are multiplied with.
struct NarrowWeights {
  Constant values;  ///< int8, int16, float16 or bfloat16, in the shape of the weights
  Constant scale;   ///< one number for each column; none when the values are the weights
};

/// Weights [steps, columns] of float32 in the narrowest type that holds them: small integers times a number for each
/// column (whatever was quantised and scaled back), or 16-bit floats. Values times scale may differ from the weights by
/// some units of the last place. Nothing when there is no such type. Cost: ordinary weights are refused after some
/// elements.
std::optional<NarrowWeights> narrow(const Constant& weights);

/// Units: cycles of one core for each vector of weights that come from beyond L2 and that `rows` rows are multiplied
/// with, when they lie in memory as `type` and are widened in the register tile.
double cycles_of_weights(int64_t rows, DType type, const Target& target);

/// MatMul(x, weights) --> MatMul(x, Cast(narrow weights)) * scale, where the rows are so few that reading the weights
/// takes longer than widening them; with more rows the weights stay as they are. All weights together must be too large
/// to stay in L2 from one run to the next. Looks at the elements alone: how an exporter wrote them (Cast and Mul,
/// DequantizeLinear, folded by somebody before) makes no difference, and the passes in front see ordinary weights.
int narrow_weights(GraphEditor& edit, const PassOptions& options);

}  // namespace tensmith::graph
