#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

/// The common dim of broadcasting. Where it depends on symbols, the model's promise that the dims fit decides: a dim
/// that is known and not 1 is the result.
Expr common_dim(const Expr& a, const Expr& b) {
  if (is_const_int(a, 1) || same_dim(a, b)) return b;
  if (is_const_int(b, 1) || known(a)) return a;
  if (known(b)) return b;
  return select(a == 1, b, a);
}

Result<std::vector<TensorType>> infer_expand(const InferContext& ctx) {
  const TensorType& data = ctx.input(0);
  if (Result<void> ok = check_rank(ctx.input(1), 1, 1, "input shape"); !ok) return ok.failure();
  const auto wanted = int_elements(ctx, 1);
  TensorType type{data.dtype, {}, {}};
  if (!wanted) {
    const auto count = known(ctx.input(1).shape[0]);
    if (!count)
      return refuse("dynamic-rank") << "input shape: expected a known number of dims, got "
                                    << dim_to_string(ctx.input(1).shape[0]);
    type.shape = data_shape(ctx, 0, std::max(data.rank(), static_cast<int>(*count)));
    return std::vector<TensorType>{std::move(type)};
  }
  const size_t rank = std::max(data.shape.size(), wanted->size());
  for (size_t k = 0; k < rank; ++k) {
    const size_t from_back = rank - k;
    const Expr a = from_back <= data.shape.size() ? data.shape[data.shape.size() - from_back] : Expr(1);
    const Expr b = from_back <= wanted->size() ? (*wanted)[wanted->size() - from_back] : Expr(1);
    if (known(b).value_or(0) < 0)
      return refuse("shape-mismatch") << "input shape: expected dims of 0 or more, got " << *known(b);
    if (different_dim(a, b) && !is_const_int(a, 1) && !is_const_int(b, 1))
      return refuse("shape-mismatch") << "input shape: expected a shape that broadcasts with " << shape_text(data.shape)
                                      << ", got " << shape_text(*wanted);
    type.shape.push_back(common_dim(a, b));
  }
  if (data.is_static() && follows_elements(type)) {
    const Dims out = type.static_shape(), strides = broadcast_strides(data.static_shape(), out.size());
    pass_elements(ctx, 0, type, [&](int64_t flat) {
      int64_t at = 0;
      for (size_t k = out.size(); k-- > 0; flat /= out[k]) at += flat % out[k] * strides[k];
      return at;
    });
  }
  return std::vector<TensorType>{std::move(type)};
}

std::vector<Tensor> compute_expand(const ComputeContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Shape& shape = ctx.output_type().shape;
  return {injective("expand", ctx.output_type(), [&](const Indices& i) {
    Indices index;
    for (int k = 0; k < x.rank(); ++k) {
      const size_t at = shape.size() - static_cast<size_t>(x.rank() - k);
      const Expr& extent = x.shape()[k];
      // An axis that is either stretched or of equal size at run time: its last element is its only one when it is
      // stretched.
      index.push_back(is_const_int(extent, 1) ? Expr(0) : same_dim(extent, shape[at]) ? i[at] : min(i[at], extent - 1));
    }
    return x(index);
  })};
}

Result<void> reference_expand(ReferenceContext& ctx) {
  const RefTensor& x = ctx.input(0);
  Dims wanted = ctx.input(1).i, shape = x.shape;
  const size_t rank = std::max(wanted.size(), shape.size());
  wanted.insert(wanted.begin(), rank - wanted.size(), 1);
  shape.insert(shape.begin(), rank - shape.size(), 1);
  for (size_t k = 0; k < rank; ++k) {
    if (shape[k] == 1) shape[k] = wanted[k];
    else if (wanted[k] != 1 && wanted[k] != shape[k])
      return Failure{"shape-mismatch", "expand of " + std::to_string(shape[k]) + " to " + std::to_string(wanted[k])};
  }
  RefTensor& y = make_output(ctx, x.dtype, shape);
  for_each_broadcast<1>(shape, {&x.shape},
                        [&](int64_t k, const std::array<int64_t, 1>& at) { copy_element(y, k, x, at[0]); });
  return {};
}

Result<std::vector<TensorType>> infer_tile(const InferContext& ctx) {
  const TensorType& data = ctx.input(0);
  if (Result<void> ok = check_shape(ctx.input(1), {Expr(data.rank())}, "input repeats"); !ok) return ok.failure();
  const auto repeats = int_elements(ctx, 1);
  TensorType type{data.dtype, {}, {}};
  if (!repeats) {
    type.shape = data_shape(ctx, 0, data.rank());
    return std::vector<TensorType>{std::move(type)};
  }
  for (int k = 0; k < data.rank(); ++k) {
    if (known((*repeats)[k]).value_or(0) < 0)
      return refuse("shape-mismatch") << "input repeats: expected counts of 0 or more, got " << *known((*repeats)[k]);
    type.shape.push_back(data.shape[k] * (*repeats)[k]);
  }
  if (data.is_static() && follows_elements(type)) {
    const Dims out = type.static_shape(), from = data.static_shape();
    pass_elements(ctx, 0, type, [&](int64_t flat) {
      Dims index(from.size());
      for (size_t k = out.size(); k-- > 0; flat /= out[k]) index[k] = flat % out[k] % from[k];
      return flat_index(from, index);
    });
  }
  return std::vector<TensorType>{std::move(type)};
}

std::vector<Tensor> compute_tile(const ComputeContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Elements repeats = *int_elements(ctx, 1);
  return {injective("tile", ctx.output_type(), [&](const Indices& i) {
    Indices index;
    for (int k = 0; k < x.rank(); ++k)
      index.push_back(is_const_int(repeats[k], 1) ? i[k] : floor_mod(i[k], x.shape()[k]));
    return x(index);
  })};
}

}  // namespace

OpDef expand() {
  return OpDef{
      .name = "Expand",
      .since = 8,
      .doc = "The tensor broadcast against a shape (in both directions: a 1 in the shape keeps the tensor's dim).",
      .inputs = {{.name = "input"}, {.name = "shape", .types = TypeSet::kInt64}},
      .fusion = FusionKind::kInjective,
      .infer = infer_expand,
      .compute = compute_expand,
      .supports = [](const InferContext& ctx) { return require_elements(ctx, {1}); },
      .reference = reference_expand,
      .samples =
          {
              {.name = "stretch", .inputs = {f32({3, 1}), known_ints({3, 17})}},
              {.name = "more_dims", .inputs = {f32({3, 1}), known_ints({2, 1, 5})}},
              {.name = "fewer_dims", .inputs = {f32({2, 1, 3}), known_ints({4, 1})}},
              {.name = "scalar", .inputs = {f32({}), known_ints({2, 3})}},
              {.name = "to_scalar", .inputs = {in(kInt32, {}), known_ints({})}},
              {.name = "to_empty", .inputs = {f32({1, 3}), known_ints({0, 3})}},
              {.name = "dims_differ", .inputs = {f32({3, 2}), known_ints({3, 4})}, .error_id = "shape-mismatch"},
          },
  };
}

OpDef tile() {
  return OpDef{
      .name = "Tile",
      .since = 6,
      .doc = "The tensor repeated along each axis.",
      .inputs = {{.name = "input"}, {.name = "repeats", .types = TypeSet::kInt64}},
      .fusion = FusionKind::kInjective,
      .infer = infer_tile,
      .compute = compute_tile,
      .supports = [](const InferContext& ctx) { return require_elements(ctx, {1}); },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const RefTensor& x = ctx.input(0);
        Dims shape = x.shape;
        for (size_t k = 0; k < shape.size(); ++k) shape[k] *= ctx.input(1).i[k];
        move_elements(make_output(ctx, x.dtype, shape), x, [&](const Dims& index) {
          Dims at = index;
          for (size_t k = 0; k < at.size(); ++k) at[k] %= x.shape[k];
          return flat_index(x.shape, at);
        });
        return {};
      },
      .samples =
          {
              {.name = "both", .inputs = {f32({2, 3}), known_ints({3, 2})}},
              {.name = "once", .inputs = {f32({2, 3, 5}), known_ints({1, 1, 4})}},
              {.name = "from_one", .inputs = {f32({1, 3}), known_ints({17, 1})}},
              {.name = "never", .inputs = {in(kInt64, {2, 3}), known_ints({0, 2})}},
              {.name = "scalar", .inputs = {f32({}), known_ints({})}},
              {.name = "wrong_count", .inputs = {f32({2, 3}), known_ints({2})}, .error_id = "shape-mismatch"},
          },
  };
}

}  // namespace tensmith::graph::ops
