#include "graph/ops/attention_shape.h"

#include <cmath>

#include "graph/dim_facts.h"

namespace tensmith::graph::ops {

namespace {

/// A hidden dim taken apart into heads. Errors: `shape-mismatch`, `dynamic-shape`.
Result<Expr> size_of_head(const Expr& hidden, int64_t heads, const char* name) {
  const auto size = known(hidden);
  if (!size)
    return refuse("dynamic-shape") << name << ": expected a last dim known at compile time, got "
                                   << dim_to_string(hidden);
  if (*size % heads != 0)
    return refuse("shape-mismatch") << name << ": expected a last dim divisible by " << heads << " heads, got "
                                    << *size;
  return Expr(*size / heads);
}

Result<void> check_mask(const TensorType& mask, const AttentionShape& s) {
  if (!mask.dtype.is_bool() && !mask.dtype.is_float())
    return refuse("unsupported-dtype") << "input attn_mask: expected bool or a float type, got "
                                       << to_string(mask.dtype);
  if (Result<void> ok = check_rank(mask, 1, 4, "input attn_mask"); !ok) return ok;
  const Shape target{s.batch, s.heads, s.queries};
  const Shape front(mask.shape.begin(), mask.shape.end() - 1);
  if (Result<void> ok = check_broadcast_to(front, target, "input attn_mask without its last dim"); !ok) return ok;
  const auto last = known(mask.shape.back()), total = known(s.total);
  if (last && total && *last > *total)
    return refuse("shape-mismatch") << "input attn_mask: expected a last dim of up to " << *total << ", got " << *last;
  return {};
}

}  // namespace

Result<AttentionShape> resolve_attention(const Node& node, const std::vector<const TensorType*>& inputs) {
  const auto has = [&](int k) {
    return k < static_cast<int>(inputs.size()) && inputs[static_cast<size_t>(k)] != nullptr;
  };
  const TensorType &q = *inputs[kQuery], &k = *inputs[kKey], &v = *inputs[kValue];
  if (Result<void> ok = check_rank(q, 3, 4, "input Q"); !ok) return ok.failure();
  for (const auto& [type, name] : {std::pair{&k, "input K"}, {&v, "input V"}})
    if (Result<void> ok = check_rank(*type, q.rank(), q.rank(), name); !ok) return ok.failure();
  AttentionShape s;
  s.flat = q.rank() == 3;
  s.causal = node.attrs.get_int("is_causal", 0) != 0;
  s.softcap = node.attrs.get_float("softcap", 0);
  s.score_output = node.attrs.get_int("qk_matmul_output_mode", 0);
  if (s.score_output < 0 || s.score_output > 3)
    return refuse("bad-attribute") << "attribute qk_matmul_output_mode: expected 0 to 3, got " << s.score_output;
  const int64_t precision = node.attrs.get_int("softmax_precision", 1);  // numbers of ONNX's element types
  if (precision != 1 && precision != 10 && precision != 11 && precision != 16)
    return refuse("bad-attribute") << "attribute softmax_precision: expected a float type (1, 10, 11 or 16), got "
                                   << precision;
  s.double_softmax = precision == 11 || q.dtype == kFloat64;
  s.batch = q.shape[0];
  Expr now, value_positions, value_heads;
  if (s.flat) {
    const int64_t heads = node.attrs.get_int("q_num_heads", 0), kv_heads = node.attrs.get_int("kv_num_heads", 0);
    if (heads < 1 || kv_heads < 1)
      return refuse("bad-attribute")
             << "attributes q_num_heads and kv_num_heads: expected 1 or more for inputs of rank 3, got " << heads
             << " and " << kv_heads;
    const auto size = size_of_head(q.shape[2], heads, "input Q"),
               key_size = size_of_head(k.shape[2], kv_heads, "input K"),
               value_size = size_of_head(v.shape[2], kv_heads, "input V");
    for (const auto* one : {&size, &key_size, &value_size})
      if (!*one) return one->failure();
    s.heads = heads, s.kv_heads = kv_heads, value_heads = kv_heads;
    s.queries = q.shape[1], now = k.shape[1], value_positions = v.shape[1];
    s.head_size = *size, s.value_size = *value_size;
    if (Result<void> ok = check_shape(k, {s.batch, now, k.shape[2]}, "input K"); !ok) return ok.failure();
    if (!same_dim(*size, *key_size))
      return refuse("shape-mismatch") << "input K: expected heads of " << dim_to_string(*size) << " elements as Q, got "
                                      << dim_to_string(*key_size);
  } else {
    s.heads = q.shape[1], s.queries = q.shape[2], s.head_size = q.shape[3];
    s.kv_heads = k.shape[1], now = k.shape[2];
    value_heads = v.shape[1], value_positions = v.shape[2], s.value_size = v.shape[3];
    if (Result<void> ok = check_shape(k, {s.batch, s.kv_heads, now, s.head_size}, "input K"); !ok) return ok.failure();
  }
  if (Result<void> ok = check_shape({v.dtype, {v.shape[0], value_heads, value_positions}, {}},
                                    {s.batch, s.kv_heads, now}, "input V: batch, heads and positions");
      !ok)
    return ok.failure();
  if (same_dim(s.heads, s.kv_heads)) {
    s.group = 1;
  } else {
    const auto heads = known(s.heads), kv_heads = known(s.kv_heads);
    if (!heads || !kv_heads)
      return refuse("dynamic-shape") << "inputs Q and K: expected numbers of heads known at compile time, got "
                                     << shape_text(q.shape) << " and " << shape_text(k.shape);
    if (*kv_heads == 0 || *heads % *kv_heads != 0)
      return refuse("shape-mismatch") << "input Q: expected a multiple of " << *kv_heads << " heads, got " << *heads;
    s.group = *heads / *kv_heads;
  }
  if (has(kPastKey) != has(kPastValue))
    return refuse("bad-arity") << "inputs past_key and past_value: expected both or neither";
  if (has(kPastKey)) {
    if (Result<void> ok = check_rank(*inputs[kPastKey], 4, 4, "input past_key"); !ok) return ok.failure();
    s.past = inputs[kPastKey]->shape[2];
    if (Result<void> ok = check_shape(*inputs[kPastKey], {s.batch, s.kv_heads, s.past, s.head_size}, "input past_key");
        !ok)
      return ok.failure();
    if (Result<void> ok =
            check_shape(*inputs[kPastValue], {s.batch, s.kv_heads, s.past, s.value_size}, "input past_value");
        !ok)
      return ok.failure();
  }
  s.total = simplify_dim(s.past + now);
  if (has(kAttnMask))
    if (Result<void> ok = check_mask(*inputs[kAttnMask], s); !ok) return ok.failure();
  if (has(kNonpadLength))
    if (Result<void> ok = check_shape(*inputs[kNonpadLength], {s.batch}, "input nonpad_kv_seqlen"); !ok)
      return ok.failure();
  const auto size = known(s.head_size);
  if (!size && !node.attrs.has("scale"))
    return refuse("dynamic-shape") << "input Q: expected a head size known at compile time, got "
                                   << shape_text(q.shape);
  s.scale = node.attrs.get_float("scale", size ? 1 / std::sqrt(static_cast<double>(*size)) : 1);
  return s;
}

}  // namespace tensmith::graph::ops
