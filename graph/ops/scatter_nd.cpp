#include "graph/ops/injective.h"
#include "graph/ops/loop_builder.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/scatter_reduction.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

/// The shape that the updates must have.
Result<Shape> updates_shape(const InferContext& ctx) {
  const TensorType &data = ctx.input(0), &indices = ctx.input(1);
  const auto length = known(indices.shape.back());
  if (!length)
    return refuse("dynamic-rank") << "input indices: expected a known last dim, got shape "
                                  << shape_text(indices.shape);
  if (*length > data.rank())
    return refuse("shape-mismatch") << "input indices: expected a last dim of at most " << data.rank() << ", got shape "
                                    << shape_text(indices.shape);
  Shape shape(indices.shape.begin(), indices.shape.end() - 1);
  shape.insert(shape.end(), data.shape.begin() + *length, data.shape.end());
  return shape;
}

/// The elements of a vector after constant updates.
Result<void> follow(const InferContext& ctx, TensorType& type) {
  const auto numbers = known_numbers(ctx, 1);
  const auto old = any_elements(ctx, 0), fresh = any_elements(ctx, 2);
  if (!numbers || !old || !fresh || type.rank() != 1 || !known(type.shape[0]) ||
      ctx.node.attrs.get_string("reduction", "none") != "none")
    return {};
  Elements elements = *old;
  for (size_t k = 0; k < numbers->size(); ++k) {
    const Result<int64_t> at = wrap_number((*numbers)[k], static_cast<int64_t>(elements.size()), "input indices");
    if (!at) return at.failure();
    elements[static_cast<size_t>(*at)] = fresh->at(k);
  }
  set_elements(type, std::move(elements));
  return {};
}

Result<std::vector<TensorType>> infer_scatter_nd(const InferContext& ctx) {
  const TensorType &data = ctx.input(0), &indices = ctx.input(1), &updates = ctx.input(2);
  if (Result<void> ok = check_rank(data, 1, 64, "input data"); !ok) return ok.failure();
  if (Result<void> ok = check_rank(indices, 1, 64, "input indices"); !ok) return ok.failure();
  if (Result<void> ok = check_reduction(ctx.node.attrs, data.dtype); !ok) return ok.failure();
  const Result<Shape> wanted = updates_shape(ctx);
  if (!wanted) return wanted.failure();
  bool differs = wanted->size() != updates.shape.size();
  for (size_t k = 0; !differs && k < wanted->size(); ++k) differs = different_dim((*wanted)[k], updates.shape[k]);
  if (differs)
    return refuse("shape-mismatch") << "input updates: expected shape " << shape_text(*wanted) << ", got "
                                    << shape_text(updates.shape);
  for (int64_t k = 0; k < *known(indices.shape.back()); ++k)
    if (known(data.shape[k]) == 0 && !is_empty(updates.shape))
      return refuse("index-out-of-range")
             << "input data: expected elements along axis " << k << ", got shape " << shape_text(data.shape);
  TensorType type{data.dtype, data.shape, {}};
  if (Result<void> ok = follow(ctx, type); !ok) return ok.failure();
  return std::vector<TensorType>{std::move(type)};
}

Result<void> supports_scatter_nd(const InferContext& ctx) {
  const Shape wanted = updates_shape(ctx).value();
  for (size_t k = 0; k < wanted.size(); ++k)
    if (Result<void> ok =
            require_same_dim(wanted[k], ctx.input(2).shape[k], "input updates, axis " + std::to_string(k));
        !ok)
      return ok;
  return {};
}

std::vector<Tensor> compute_scatter_nd(const ComputeContext& ctx) {
  const Tensor &data = ctx.input(0), &indices = ctx.input(1), &updates = ctx.input(2);
  const AttrMap& attrs = ctx.node.attrs;
  const Shape& shape = data.shape();
  if (is_empty(shape)) return {injective("scatter_nd", ctx.output_type(), {})};
  const auto length = static_cast<size_t>(*known(indices.shape().back()));
  const Shape tuples(indices.shape().begin(), indices.shape().end() - 1),
      slice(shape.begin() + static_cast<ptrdiff_t>(length), shape.end());
  return imperative("scatter_nd", ctx.inputs, {shape}, {data.dtype()}, [&](const std::vector<Buffer>& outputs) {
    const Buffer& out = outputs[0];
    Expr filled(1);
    // Tuples one after the other, since they may meet; the elements of one slice side by side.
    const Stmt update = loop_nest(tuples, [&](const Indices& t) {
      std::vector<Var> position;
      for (size_t k = 0; k < length; ++k) position.emplace_back("at" + std::to_string(k));
      Stmt write = vector_nest(slice, [&](const Indices& s) {
        Indices to(position.begin(), position.end()), from = t;
        to.insert(to.end(), s.begin(), s.end());
        from.insert(from.end(), s.begin(), s.end());
        return Store::make(out, to, reduce_update(attrs, load(out, to), updates(from)));
      });
      for (size_t k = length; k-- > 0;) {
        Indices at = t;
        at.emplace_back(static_cast<int64_t>(k));
        write = LetStmt::make(position[k], wrap_index(indices(at), shape[k]), write);
        if (!known(shape[k])) filled = min(filled, shape[k]);
      }
      return write;
    });
    return Block::make({fill(out, [&](const Indices& i) { return data(i); }), unless_empty(filled, update)});
  });
}

std::vector<Expr> index_extents(const InferContext& ctx) {
  const Shape& data = ctx.input(0).shape;
  return {data.begin(), data.begin() + *known(ctx.input(1).shape.back())};
}

Result<void> reference_scatter_nd(ReferenceContext& ctx) {
  const RefTensor &data = ctx.input(0), &indices = ctx.input(1), &updates = ctx.input(2);
  copy_elements(ctx, data.shape);
  RefTensor& y = ctx.output();
  const int64_t length = indices.shape.back(), inner = count_of(data.shape, static_cast<size_t>(length));
  const int64_t tuples = count_of(indices.shape, 0, indices.shape.size() - 1);
  for (int64_t tuple = 0; tuple < tuples; ++tuple) {
    int64_t at = 0;
    for (int64_t k = 0; k < length; ++k) {
      const Result<int64_t> index = wrap_number(indices.i[tuple * length + k], data.shape[k], "input indices");
      if (!index) return index.failure();
      at = at * data.shape[k] + *index;
    }
    for (int64_t k = 0; k < inner; ++k) reduce_update(ctx.node.attrs, y, at * inner + k, updates, tuple * inner + k);
  }
  return {};
}

}  // namespace

OpDef scatter_nd() {
  return OpDef{
      .name = "ScatterND",
      .since = 11,
      .doc =
          "The data with slices written at index tuples, which the last dim of the indices holds; of tuples that meet "
          "the last one wins.",
      .inputs = {{.name = "data"},
                 {.name = "indices", .types = TypeSet::kInt64},
                 {.name = "updates", .same_type_as = "data"}},
      .attrs = {reduction_attr()},
      .fusion = FusionKind::kOpaque,
      .infer = infer_scatter_nd,
      .compute = compute_scatter_nd,
      .index_input = 1,
      .index_extents = index_extents,
      .supports = supports_scatter_nd,
      .reference = reference_scatter_nd,
      .samples =
          {
              {.name = "elements", .inputs = {f32({3, 5}), given(kInt64, {3, 2}, {0, 1, 2, -1, -3, 3}), f32({3})}},
              {.name = "rows", .inputs = {f32({4, 5, 3}), given(kInt64, {2, 1}, {3, 0}), f32({2, 5, 3})}},
              {.name = "wide_rows", .inputs = {f32({4, 37}), given(kInt64, {2, 1, 1}, {-1, 0}), f32({2, 1, 37})}},
              {.name = "add",
               .inputs = {f32({4, 3}), in(kInt64, {7, 1}, -4, 3), f32({7, 3})},
               .attrs = attrs({{"reduction", "add"}})},
              {.name = "mul_integers",
               .inputs = {in(kInt8, {5}), in(kInt64, {9, 1}, -5, 4), in(kInt8, {9})},
               .attrs = attrs({{"reduction", "mul"}})},
              {.name = "max",
               .inputs = {f32({5}), in(kInt64, {9, 1}, -5, 4), f32({9})},
               .attrs = attrs({{"reduction", "max"}})},
              {.name = "min_brain",
               .inputs = {in(kBFloat16, {5}), in(kInt64, {9, 1}, -5, 4), in(kBFloat16, {9})},
               .attrs = attrs({{"reduction", "min"}}),
               .rtol = 1e-2},
              {.name = "no_tuples", .inputs = {f32({5}), in(kInt64, {0, 1}), f32({0})}},
              {.name = "updates_too_short",
               .inputs = {f32({5}), in(kInt64, {3, 1}, 0, 4), f32({2})},
               .error_id = "shape-mismatch"},
              {.name = "tuple_too_long",
               .inputs = {f32({5}), in(kInt64, {3, 2}, 0, 4), f32({3})},
               .error_id = "shape-mismatch"},
          },
  };
}

}  // namespace tensmith::graph::ops
