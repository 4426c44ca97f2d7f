/// The dims and options of an Attention node.
#pragma once

#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

/// Input positions of Attention.
enum AttentionInput { kQuery, kKey, kValue, kAttnMask, kPastKey, kPastValue, kNonpadLength };

/// Dims and options, resolved.
struct AttentionShape {
  Expr batch, heads, queries, head_size;  ///< of Q
  Expr kv_heads, total, value_size;       ///< `total`: positions of keys and values, the past included
  Expr past = 0;
  int64_t group = 1;  ///< query heads that share a key head
  bool flat = false;  ///< inputs of rank 3: [batch, position, heads * size]
  bool causal = false, double_softmax = false;
  double scale = 1, softcap = 0;
  int64_t score_output = 0;  ///< which scores the fourth output shows
};
/// Errors: `rank-mismatch`, `shape-mismatch`, `dynamic-shape`, `bad-attribute`, `bad-arity`, `unsupported-attribute`.
Result<AttentionShape> resolve_attention(const Node& node, const std::vector<const TensorType*>& inputs);

}  // namespace tensmith::graph::ops
