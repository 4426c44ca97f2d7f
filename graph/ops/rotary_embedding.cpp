#include "graph/ops/arith.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

namespace {

struct Rotary {
  Expr batch, heads, positions, size;
  int64_t rotated = 0;       ///< leading elements of a head that are rotated
  bool flat = false;         ///< input [batch, position, heads * size], else [batch, heads, position, size]
  bool interleaved = false;  ///< pairs lie side by side, else half a rotation apart
  bool indexed = false;      ///< caches are looked up by position_ids
};

Result<Rotary> resolve(const Node& node, const std::vector<const TensorType*>& inputs) {
  const TensorType &x = *inputs[0], &cosine = *inputs[1], &sine = *inputs[2];
  if (Result<void> ok = check_rank(x, 3, 4, "input X"); !ok) return ok.failure();
  Rotary r;
  r.flat = x.rank() == 3;
  r.interleaved = node.attrs.get_int("interleaved", 0) != 0;
  r.indexed = inputs.size() > 3 && inputs[3] != nullptr;
  r.batch = x.shape[0];
  const auto last = known(x.shape.back());
  if (!last)
    return refuse("dynamic-shape") << "input X: expected a last dim known at compile time, got " << shape_text(x.shape);
  if (r.flat) {
    const int64_t heads = node.attrs.get_int("num_heads", 0);
    if (heads < 1 || *last % heads != 0)
      return refuse("bad-attribute") << "attribute num_heads: expected a divisor of the last dim " << *last
                                     << " for an input of rank 3, got " << heads;
    r.positions = x.shape[1], r.heads = heads, r.size = *last / heads;
  } else {
    r.heads = x.shape[1], r.positions = x.shape[2], r.size = *last;
  }
  const int64_t size = known(r.size).value();
  r.rotated = node.attrs.get_int("rotary_embedding_dim", 0);
  if (r.rotated == 0) r.rotated = size;
  if (r.rotated < 0 || r.rotated > size || r.rotated % 2 != 0)
    return refuse("bad-attribute") << "attribute rotary_embedding_dim: expected an even number of up to " << size
                                   << ", got " << r.rotated;
  if (r.indexed) {
    if (Result<void> ok = check_shape(*inputs[3], {r.batch, r.positions}, "input position_ids"); !ok)
      return ok.failure();
    if (Result<void> ok = check_rank(cosine, 2, 2, "input cos_cache"); !ok) return ok.failure();
    if (Result<void> ok = check_shape(cosine, {cosine.shape[0], r.rotated / 2}, "input cos_cache"); !ok)
      return ok.failure();
  } else if (Result<void> ok = check_shape(cosine, {r.batch, r.positions, r.rotated / 2}, "input cos_cache"); !ok) {
    return ok.failure();
  }
  if (Result<void> ok = check_shape(sine, cosine.shape, "input sin_cache"); !ok) return ok.failure();
  return r;
}

std::vector<Tensor> compute_rotary(const ComputeContext& ctx) {
  const Rotary r = resolve(ctx.node, ctx.input_types).value();
  const Tensor& x = ctx.input(0);
  const int64_t half = r.rotated / 2;
  return {compute("rotary", x.shape(), [&](const Indices& i) {
    const Expr d = r.flat ? floor_mod(i[2], r.size) : i[3], position = r.flat ? i[1] : i[2];
    const Expr pair = r.interleaved ? floor_div(d, Expr(2)) : floor_mod(d, Expr(half));
    const auto cache = [&](const Tensor& table) {
      if (!r.indexed) return widen(table(i[0], position, pair));
      // Positions are data: kept inside the table.
      const Expr row = max(min(cast(kInt64, ctx.input(3)(i[0], position)), table.shape()[0] - 1), Expr(0));
      return widen(table(row, pair));
    };
    // The two elements of the pair, counted from the start of the head.
    const auto element = [&](const Expr& k) {
      Indices index = i;
      index.back() = r.flat ? floor_div(i[2], r.size) * r.size + k : k;
      return widen(x(index));
    };
    const Expr one = r.interleaved ? pair * Expr(2) : pair, two = one + Expr(r.interleaved ? 1 : half);
    const Expr is_first = r.interleaved ? floor_mod(d, Expr(2)) == Expr(0) : d < Expr(half);
    const Expr cosine = cache(ctx.input(1)), sine = cache(ctx.input(2));
    const Expr turned =
        select(is_first, element(one) * cosine - element(two) * sine, element(one) * sine + element(two) * cosine);
    return cast(x.dtype(), same_dim(r.size, r.rotated) ? turned : select(d < Expr(r.rotated), turned, widen(x(i))));
  })};
}

Result<void> reference(ReferenceContext& ctx) {
  std::vector<TensorType> types;
  for (const RefTensor* input : ctx.inputs)
    types.push_back(input ? static_type(input->dtype, input->shape) : TensorType{});
  std::vector<const TensorType*> pointers;
  for (size_t k = 0; k < types.size(); ++k) pointers.push_back(ctx.inputs[k] ? &types[k] : nullptr);
  const Result<Rotary> resolved = resolve(ctx.node, pointers);
  if (!resolved) return resolved.failure();
  const Rotary& r = *resolved;
  const RefTensor &x = ctx.input(0), &cosine = ctx.input(1), &sine = ctx.input(2);
  RefTensor& y = ctx.output();
  y.f = x.f;
  const int64_t batch = x.shape[0], heads = known(r.heads).value(), positions = known(r.positions).value(),
                size = known(r.size).value(), half = r.rotated / 2;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t p = 0; p < positions; ++p) {
        const int64_t base =
            r.flat ? (b * positions + p) * heads * size + h * size : ((b * heads + h) * positions + p) * size;
        int64_t row = b * positions + p;
        if (r.indexed) row = std::clamp<int64_t>(ctx.input(3).i[row], 0, cosine.shape[0] - 1);
        for (int64_t j = 0; j < half; ++j) {
          const int64_t one = base + (r.interleaved ? 2 * j : j), two = base + (r.interleaved ? 2 * j + 1 : j + half);
          const double c = cosine.f[row * half + j], s = sine.f[row * half + j];
          y.f[one] = c * x.f[one] - s * x.f[two];
          y.f[two] = s * x.f[one] + c * x.f[two];
        }
      }
  return {};
}

}  // namespace

OpDef rotary_embedding() {
  const auto attr = [](const char* name) {
    return AttrSpec{.name = name, .kind = AttrKind::kInt, .default_value = int64_t{0}};
  };
  const auto unit = [](std::vector<int64_t> shape) { return f32(std::move(shape), -1, 1); };
  return OpDef{
      .name = "RotaryEmbedding",
      .since = 23,
      .doc =
          "Rotates pairs of elements of each head by angles given as cosines and sines, by position or looked up by "
          "position_ids.",
      .inputs = {{.name = "X", .types = TypeSet::kFloat},
                 {.name = "cos_cache", .types = TypeSet::kFloat, .same_type_as = "X"},
                 {.name = "sin_cache", .types = TypeSet::kFloat, .same_type_as = "X"},
                 {.name = "position_ids", .types = TypeSet::kInt64, .optional = true}},
      .attrs = {attr("interleaved"), attr("num_heads"), attr("rotary_embedding_dim")},
      .fusion = FusionKind::kInjective,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        if (Result<Rotary> r = resolve(ctx.node, ctx.inputs); !r) return r.failure();
        return std::vector<TensorType>{{ctx.input(0).dtype, ctx.input(0).shape, {}}};
      },
      .compute = compute_rotary,
      .reference = reference,
      .samples = {{.name = "heads", .inputs = {f32({2, 3, 4, 8}), unit({2, 4, 4}), unit({2, 4, 4})}},
                  {.name = "interleaved",
                   .inputs = {f32({1, 2, 3, 6}), unit({1, 3, 3}), unit({1, 3, 3})},
                   .attrs = attrs({{"interleaved", 1}})},
                  {.name = "flat",
                   .inputs = {f32({2, 3, 8}), unit({2, 3, 2}), unit({2, 3, 2})},
                   .attrs = attrs({{"num_heads", 2}})},
                  {.name = "position_ids",
                   .inputs = {f32({1, 2, 3, 4}), unit({9, 2}), unit({9, 2}), given(kInt64, {1, 3}, {7, 0, 8})}},
                  {.name = "partial",
                   .inputs = {f32({1, 2, 3, 8}), unit({1, 3, 2}), unit({1, 3, 2})},
                   .attrs = attrs({{"rotary_embedding_dim", 4}})},
                  {.name = "partial_interleaved_flat",
                   .inputs = {f32({1, 3, 12}), unit({5, 1}), unit({5, 1}), given(kInt64, {1, 3}, {4, 1, 2})},
                   .attrs = attrs({{"rotary_embedding_dim", 2}, {"num_heads", 3}, {"interleaved", 1}})},
                  {.name = "cache_of_other_size",
                   .inputs = {f32({1, 2, 3, 8}), unit({1, 3, 2}), unit({1, 3, 2})},
                   .error_id = "shape-mismatch"},
                  {.name = "flat_without_heads",
                   .inputs = {f32({2, 3, 8}), unit({2, 3, 2}), unit({2, 3, 2})},
                   .error_id = "bad-attribute"}},
  };
}

}  // namespace tensmith::graph::ops
