#include <cmath>
#include <limits>

#include "graph/ops/arith.h"
#include "graph/ops/attention_shape.h"
#include "graph/ops/op_list.h"
#include "graph/ops/reduced_shape.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Whether the mask may be shorter than the keys (positions behind its end are masked).
bool mask_may_be_short(const Shape& mask, const AttentionShape& s) { return !same_dim(mask.back(), s.total); }

/// The score with mask, causality and padding applied; what is masked becomes -infinity.
Expr masked(const ComputeContext& ctx, const AttentionShape& s, const Expr& score, const Indices& i) {
  const DType type = score.dtype();
  const Expr hidden = make_const(type, -kInfinity);
  const Expr &b = i[0], &q = i[2], &t = i[3];
  Expr result = score;
  if (ctx.has(kAttnMask)) {
    const Tensor& mask = ctx.input(kAttnMask);
    Indices at = broadcast_index(mask.shape(), i);
    if (is_const_int(mask.shape().back(), 1)) at.back() = 0;
    const Expr value = mask(at);
    Expr applied = mask.dtype().is_bool() ? select(value, score, hidden) : score + cast(type, value);
    if (mask_may_be_short(mask.shape(), s)) applied = select(t < mask.shape().back(), applied, hidden);
    result = applied;
  }
  if (s.causal) result = select(t > q + s.past, hidden, result);
  if (ctx.has(kNonpadLength)) result = select(t < cast(kInt64, ctx.input(kNonpadLength)(b)), result, hidden);
  return result;
}

std::vector<Tensor> compute_attention(const ComputeContext& ctx) {
  const AttentionShape s = resolve_attention(ctx.node, ctx.input_types).value();
  const DType type = ctx.input(kQuery).dtype();
  const DType wide = s.double_softmax ? kFloat64 : compute_type(type);
  const auto head = [&](const Tensor& x, const Expr& size, const Expr& b, const Expr& h, const Expr& p, const Expr& d) {
    return s.flat ? x(b, p, h * size + d) : x(b, h, p, d);
  };
  // Keys and values with the past in front, [B, H, total, size]; without a past they are read where they lie.
  const auto with_past = [&](const char* name, int past, int now, const Expr& size) {
    const Tensor& x = ctx.input(now);
    return compute(name, {s.batch, s.kv_heads, s.total, size}, [&](const Indices& i) {
      if (!ctx.has(past)) return head(x, size, i[0], i[1], i[2], i[3]);
      return select(i[2] < s.past, ctx.input(past)(i), head(x, size, i[0], i[1], i[2] - s.past, i[3]));
    });
  };
  const bool wants_present = ctx.node.types.size() > 1;
  Tensor present_key, present_value;
  if (ctx.has(kPastKey) || wants_present) present_key = with_past("present_key", kPastKey, kKey, s.head_size);
  if (ctx.has(kPastValue) || wants_present)
    present_value = with_past("present_value", kPastValue, kValue, s.value_size);
  const auto key = [&](const Expr& b, const Expr& h, const Expr& t, const Expr& d) {
    return present_key ? present_key(b, h, t, d) : head(ctx.input(kKey), s.head_size, b, h, t, d);
  };
  const auto value = [&](const Expr& b, const Expr& h, const Expr& t, const Expr& d) {
    return present_value ? present_value(b, h, t, d) : head(ctx.input(kValue), s.value_size, b, h, t, d);
  };
  const auto kv_head = [&](const Expr& h) { return floor_div(h, Expr(s.group)); };

  const Shape scores{s.batch, s.heads, s.queries, s.total};
  const Tensor product = sum("attention_product", scores, {s.head_size}, [&](const Indices& i, const Indices& r) {
    return cast(wide, head(ctx.input(kQuery), s.head_size, i[0], i[1], i[2], r[0])) *
           cast(wide, key(i[0], kv_head(i[1]), i[3], r[0]));
  });
  const Tensor scaled =
      compute("attention_scale", scores, [&](const Indices& i) { return product(i) * make_const(wide, s.scale); });
  Tensor capped = scaled;
  if (s.softcap > 0)
    capped = compute("attention_cap", scores, [&](const Indices& i) {
      return call(Intrinsic::kTanh, {scaled(i) / make_const(wide, s.softcap)}) * make_const(wide, s.softcap);
    });
  const Tensor biased =
      compute("attention_mask", scores, [&](const Indices& i) { return masked(ctx, s, capped(i), i); });
  const ReducedShape row(scores, {3}, /*keep_dims=*/true);
  const Tensor top = reduce_axes("attention_max", row, max_reducer(wide), [&](const Indices& i) { return biased(i); });
  const Tensor power = compute("attention_exp", scores, [&](const Indices& i) {
    return call(Intrinsic::kExp, {biased(i) - top(row.output_index(i))});
  });
  const Tensor total = sum_axes("attention_sum", row, [&](const Indices& i) { return power(i); });
  const Tensor weight =
      compute("attention_weight", scores, [&](const Indices& i) { return power(i) / total(row.output_index(i)); });

  const Tensor mixed = sum("attention", ctx.output_type().shape, {s.total}, [&](const Indices& i, const Indices& r) {
    const Expr h = s.flat ? floor_div(i[2], s.value_size) : i[1], p = s.flat ? i[1] : i[2],
               d = s.flat ? floor_mod(i[2], s.value_size) : i[3];
    return weight(i[0], h, p, r[0]) * cast(wide, value(i[0], kv_head(h), r[0], d));
  });
  std::vector<Tensor> outputs{narrow(mixed, type)};
  if (wants_present) outputs.push_back(present_key);
  if (ctx.node.types.size() > 2) outputs.push_back(present_value);
  if (ctx.node.types.size() > 3)
    outputs.push_back(narrow(s.score_output == 0   ? scaled
                             : s.score_output == 1 ? capped
                             : s.score_output == 2 ? biased
                                                   : weight,
                             type));
  return outputs;
}

/// One query at a time.
Result<void> reference(ReferenceContext& ctx) {
  std::vector<TensorType> types;
  for (const RefTensor* input : ctx.inputs)
    types.push_back(input ? static_type(input->dtype, input->shape) : TensorType{});
  std::vector<const TensorType*> pointers;
  for (size_t k = 0; k < types.size(); ++k) pointers.push_back(ctx.inputs[k] ? &types[k] : nullptr);
  const Result<AttentionShape> resolved = resolve_attention(ctx.node, pointers);
  if (!resolved) return resolved.failure();
  const AttentionShape& s = *resolved;
  const auto number = [](const Expr& e) { return known(e).value(); };
  const int64_t batch = number(s.batch), heads = number(s.heads), queries = number(s.queries),
                size = number(s.head_size), value_size = number(s.value_size), kv_heads = number(s.kv_heads),
                total = number(s.total), past = number(s.past), now = total - past;
  const auto head = [&](int input, int64_t b, int64_t h, int64_t p, int64_t d, int64_t all_heads, int64_t positions,
                        int64_t width) {
    return ctx.input(input).f[s.flat ? (b * positions + p) * all_heads * width + h * width + d
                                     : ((b * all_heads + h) * positions + p) * width + d];
  };
  const auto present = [&](int past_input, int input, int64_t b, int64_t h, int64_t t, int64_t d, int64_t width) {
    if (t < past) return ctx.input(past_input).f[((b * kv_heads + h) * past + t) * width + d];
    return head(input, b, h, t - past, d, kv_heads, now, width);
  };
  for (size_t k = 1; k < std::min<size_t>(3, ctx.outputs.size()); ++k) {
    const int64_t width = k == 1 ? size : value_size;
    int64_t at = 0;
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < kv_heads; ++h)
        for (int64_t t = 0; t < total; ++t)
          for (int64_t d = 0; d < width; ++d)
            ctx.outputs[k].f[at++] = present(k == 1 ? kPastKey : kPastValue, k == 1 ? kKey : kValue, b, h, t, d, width);
  }
  const auto mask_at = [&](int64_t b, int64_t h, int64_t q, int64_t t) -> double {
    if (!ctx.has(kAttnMask)) return 0;
    const RefTensor& mask = ctx.input(kAttnMask);
    if (t >= mask.shape.back()) return -kInfinity;
    const int64_t index[4] = {b, h, q, t};
    int64_t offset = 0;
    for (size_t d = 0; d < mask.shape.size(); ++d)
      offset = offset * mask.shape[d] + (mask.shape[d] == 1 ? 0 : index[4 - mask.shape.size() + d]);
    return mask.is_float() ? mask.f[offset] : mask.i[offset] ? 0 : -kInfinity;
  };
  std::vector<double> score(static_cast<size_t>(total));
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t q = 0; q < queries; ++q) {
        const int64_t row = ((b * heads + h) * queries + q) * total, kv = h / s.group;
        const auto report = [&](int mode, int64_t t, double value) {
          if (ctx.outputs.size() > 3 && s.score_output == mode) ctx.outputs[3].f[row + t] = value;
        };
        double top = -kInfinity, sum = 0;
        for (int64_t t = 0; t < total; ++t) {
          double dot = 0;
          for (int64_t d = 0; d < size; ++d)
            dot += head(kQuery, b, h, q, d, heads, queries, size) * present(kPastKey, kKey, b, kv, t, d, size);
          dot *= s.scale;
          report(0, t, dot);
          if (s.softcap > 0) dot = s.softcap * std::tanh(dot / s.softcap);
          report(1, t, dot);
          dot += mask_at(b, h, q, t);
          if (s.causal && t > q + past) dot = -kInfinity;
          if (ctx.has(kNonpadLength) && t >= ctx.input(kNonpadLength).i[b]) dot = -kInfinity;
          report(2, t, dot);
          score[t] = dot;
          top = std::isnan(dot) || dot > top ? dot : top;
        }
        for (int64_t t = 0; t < total; ++t) sum += score[t] = std::exp(score[t] - top);
        for (int64_t t = 0; t < total; ++t) report(3, t, score[t] /= sum);
        for (int64_t d = 0; d < value_size; ++d) {
          double mixed = 0;
          for (int64_t t = 0; t < total; ++t) mixed += score[t] * present(kPastValue, kValue, b, kv, t, d, value_size);
          ctx.output().f[s.flat ? (b * queries + q) * heads * value_size + h * value_size + d
                                : ((b * heads + h) * queries + q) * value_size + d] = mixed;
        }
      }
  return {};
}

std::vector<OpSample> samples() {
  const auto x = [](std::vector<int64_t> shape) { return f32(std::move(shape), -1, 1); };
  const NamedAttr causal("is_causal", 1), heads("q_num_heads", 4), kv_heads("kv_num_heads", 2);
  return {
      {.name = "plain", .inputs = {x({2, 3, 4, 8}), x({2, 3, 5, 8}), x({2, 3, 5, 8})}},
      {.name = "value_size",
       .inputs = {x({1, 2, 3, 4}), x({1, 2, 5, 4}), x({1, 2, 5, 6})},
       .attrs = attrs({{"scale", 0.3}})},
      {.name = "grouped", .inputs = {x({1, 4, 3, 4}), x({1, 2, 5, 4}), x({1, 2, 5, 4})}},
      {.name = "flat", .inputs = {x({2, 3, 16}), x({2, 5, 8}), x({2, 5, 8})}, .attrs = attrs({heads, kv_heads})},
      {.name = "causal", .inputs = {x({1, 1, 4, 4}), x({1, 1, 5, 4}), x({1, 1, 5, 4})}, .attrs = attrs({causal})},
      {.name = "float_mask", .inputs = {x({2, 2, 3, 4}), x({2, 2, 5, 4}), x({2, 2, 5, 4}), x({3, 5})}},
      {.name = "bool_mask",
       .inputs = {x({2, 2, 3, 4}), x({2, 2, 5, 4}), x({2, 2, 5, 4}),
                  given(kBool, {2, 1, 1, 5}, {1, 1, 0, 1, 0, 1, 0, 1, 1, 1})}},
      {.name = "short_mask", .inputs = {x({1, 2, 3, 4}), x({1, 2, 5, 4}), x({1, 2, 5, 4}), x({3, 3})}},
      {.name = "past",
       .inputs = {x({1, 2, 3, 4}), x({1, 2, 2, 4}), x({1, 2, 2, 4}), x({3, 5}), x({1, 2, 3, 4}), x({1, 2, 3, 4})},
       .attrs = attrs({causal}),
       .num_outputs = 3},
      {.name = "softcap",
       .inputs = {x({1, 2, 3, 4}), x({1, 2, 5, 4}), x({1, 2, 5, 4})},
       .attrs = attrs({{"softcap", 2.0}, {"qk_matmul_output_mode", 1}}),
       .num_outputs = 4},
      {.name = "weights",
       .inputs = {x({1, 2, 3, 4}), x({1, 2, 5, 4}), x({1, 2, 5, 4})},
       .attrs = attrs({{"qk_matmul_output_mode", 3}}),
       .num_outputs = 4},
      {.name = "nonpad",
       .inputs = {x({2, 2, 3, 4}), x({2, 2, 5, 4}), x({2, 2, 5, 4}), absent(), absent(), absent(),
                  given(kInt64, {2}, {3, 5})}},
      {.name = "half",
       .inputs = {in(kFloat16, {1, 2, 3, 4}, -1, 1), in(kFloat16, {1, 2, 5, 4}, -1, 1),
                  in(kFloat16, {1, 2, 5, 4}, -1, 1)},
       .rtol = 3e-3,
       .atol = 3e-3},
      {.name = "heads_not_multiple",
       .inputs = {x({1, 3, 3, 4}), x({1, 2, 5, 4}), x({1, 2, 5, 4})},
       .error_id = "shape-mismatch"},
      {.name = "flat_without_heads",
       .inputs = {x({2, 3, 16}), x({2, 5, 8}), x({2, 5, 8})},
       .error_id = "bad-attribute"},
      {.name = "past_key_alone",
       .inputs = {x({1, 2, 3, 4}), x({1, 2, 2, 4}), x({1, 2, 2, 4}), absent(), x({1, 2, 3, 4})},
       .error_id = "bad-arity"},
  };
}

}  // namespace

OpDef attention() {
  const auto attr = [](const char* name, int64_t value) {
    return AttrSpec{.name = name, .kind = AttrKind::kInt, .default_value = value};
  };
  return OpDef{
      .name = "Attention",
      .since = 23,
      .doc =
          "Scaled dot product attention: softmax(Q K' scale + mask) V, with grouped heads, causal masking, soft cap, "
          "and keys and values of the past in front.",
      .inputs = {{.name = "Q", .types = TypeSet::kFloat},
                 {.name = "K", .types = TypeSet::kFloat, .same_type_as = "Q"},
                 {.name = "V", .types = TypeSet::kFloat},
                 {.name = "attn_mask", .optional = true},
                 {.name = "past_key", .types = TypeSet::kFloat, .optional = true, .same_type_as = "K"},
                 {.name = "past_value", .types = TypeSet::kFloat, .optional = true, .same_type_as = "V"},
                 {.name = "nonpad_kv_seqlen", .types = TypeSet::kInt64, .optional = true}},
      .attrs = {attr("is_causal", 0),
                attr("kv_num_heads", 0),
                attr("q_num_heads", 0),
                attr("qk_matmul_output_mode", 0),
                {.name = "scale", .kind = AttrKind::kFloat, .no_default = true},
                {.name = "softcap", .kind = AttrKind::kFloat, .default_value = 0.0},
                {.name = "softmax_precision", .kind = AttrKind::kInt, .no_default = true}},
      .min_outputs = 1,
      .max_outputs = 4,
      .fusion = FusionKind::kOpaque,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        const Result<AttentionShape> resolved = resolve_attention(ctx.node, ctx.inputs);
        if (!resolved) return resolved.failure();
        const AttentionShape& s = *resolved;
        const DType type = ctx.input(kQuery).dtype, value_type = ctx.input(kValue).dtype;
        const Shape out = s.flat ? Shape{s.batch, s.queries, s.heads * s.value_size}
                                 : Shape{s.batch, s.heads, s.queries, s.value_size};
        return std::vector<TensorType>{{type, out, {}},
                                       {type, {s.batch, s.kv_heads, s.total, s.head_size}, {}},
                                       {value_type, {s.batch, s.kv_heads, s.total, s.value_size}, {}},
                                       {type, {s.batch, s.heads, s.queries, s.total}, {}}};
      },
      .compute = compute_attention,
      .reference = reference,
      .flops =
          [](const InferContext& ctx) {
            const Result<AttentionShape> s = resolve_attention(ctx.node, ctx.inputs);
            double total = 2;
            if (s)
              for (const Expr& dim : {s->batch, s->heads, s->queries, s->total, s->head_size + s->value_size})
                total *= static_cast<double>(known(dim).value_or(1));
            return total;
          },
      .samples = samples(),
  };
}

}  // namespace tensmith::graph::ops
