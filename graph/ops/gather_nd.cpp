#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

/// batch_dims and the length of one index tuple.
struct Tuples {
  int batch, length;
};

Result<Tuples> tuples(const AttrMap& attrs, const Shape& data, const Shape& indices) {
  const int64_t batch = attrs.get_int("batch_dims", 0);
  const auto data_rank = static_cast<int64_t>(data.size()), index_rank = static_cast<int64_t>(indices.size());
  if (batch < 0 || batch >= std::min(data_rank, index_rank))
    return refuse("bad-attribute") << "attribute batch_dims: expected 0 to below the ranks " << data_rank << " and "
                                   << index_rank << ", got " << batch;
  const auto length = known(indices.back());
  if (!length)
    return refuse("dynamic-rank") << "input indices: expected a known last dim, got shape " << shape_text(indices);
  if (*length < 1 || *length > data_rank - batch)
    return refuse("shape-mismatch") << "input indices: expected a last dim of 1 to " << data_rank - batch
                                    << ", got shape " << shape_text(indices);
  return Tuples{static_cast<int>(batch), static_cast<int>(*length)};
}

Result<std::vector<TensorType>> infer_gather_nd(const InferContext& ctx) {
  const TensorType &data = ctx.input(0), &indices = ctx.input(1);
  if (Result<void> ok = check_rank(data, 1, 64, "input data"); !ok) return ok.failure();
  if (Result<void> ok = check_rank(indices, 1, 64, "input indices"); !ok) return ok.failure();
  const Result<Tuples> t = tuples(ctx.node.attrs, data.shape, indices.shape);
  if (!t) return t.failure();
  for (int k = 0; k < t->batch; ++k)
    if (different_dim(data.shape[k], indices.shape[k]))
      return refuse("shape-mismatch") << "input indices: expected batch dim " << dim_to_string(data.shape[k])
                                      << " at axis " << k << ", got shape " << shape_text(indices.shape);
  TensorType type{data.dtype, Shape(indices.shape.begin(), indices.shape.end() - 1), {}};
  type.shape.insert(type.shape.end(), data.shape.begin() + t->batch + t->length, data.shape.end());
  for (int k = 0; k < t->length; ++k)
    if (known(data.shape[t->batch + k]) == 0 && !is_empty(type.shape))
      return refuse("index-out-of-range")
             << "input data: expected elements along axis " << t->batch + k << ", got shape " << shape_text(data.shape);
  const auto numbers = known_numbers(ctx, 1);
  if (numbers && t->batch == 0 && data.is_static() && follows_elements(type)) {
    const Dims from = data.static_shape();
    const int64_t inner = count_of(from, static_cast<size_t>(t->length));
    for (size_t k = 0; k < numbers->size(); ++k)
      if (const Result<int64_t> ok = wrap_number((*numbers)[k], from[k % t->length], "input indices"); !ok)
        return ok.failure();
    pass_elements(ctx, 0, type, [&](int64_t flat) {
      int64_t at = 0;
      for (int k = 0; k < t->length; ++k) {
        const int64_t number = (*numbers)[static_cast<size_t>(flat / inner * t->length + k)];
        at = at * from[k] + (number < 0 ? number + from[k] : number);
      }
      return at * inner + flat % inner;
    });
  }
  return std::vector<TensorType>{std::move(type)};
}

std::vector<Tensor> compute_gather_nd(const ComputeContext& ctx) {
  const Tensor &data = ctx.input(0), &indices = ctx.input(1);
  const Tuples t = tuples(ctx.node.attrs, data.shape(), indices.shape()).value();
  const int outer = indices.rank() - 1;
  return {injective("gather_nd", ctx.output_type(), [&](const Indices& i) {
    Indices index(i.begin(), i.begin() + t.batch);
    Expr filled(1);
    for (int k = 0; k < t.length; ++k) {
      Indices at(i.begin(), i.begin() + outer);
      at.push_back(k);
      const Expr& extent = data.shape()[t.batch + k];
      index.push_back(wrap_index(indices(at), extent));
      if (!known(extent)) filled = min(filled, extent);
    }
    index.insert(index.end(), i.begin() + outer, i.end());
    return unless_empty(filled, data(index));
  })};
}

std::vector<Expr> index_extents(const InferContext& ctx) {
  const Shape& data = ctx.input(0).shape;
  const Tuples t = tuples(ctx.node.attrs, data, ctx.input(1).shape).value();
  return {data.begin() + t.batch, data.begin() + t.batch + t.length};
}

Result<void> reference_gather_nd(ReferenceContext& ctx) {
  const RefTensor &data = ctx.input(0), &indices = ctx.input(1);
  const auto batch = static_cast<size_t>(ctx.node.attrs.get_int("batch_dims", 0));
  const auto length = static_cast<size_t>(indices.shape.back());
  Dims shape(indices.shape.begin(), indices.shape.end() - 1);
  shape.insert(shape.end(), data.shape.begin() + static_cast<ptrdiff_t>(batch + length), data.shape.end());
  RefTensor& y = make_output(ctx, data.dtype, shape);
  const int64_t tuples_count = count_of(indices.shape, 0, indices.shape.size() - 1);
  const int64_t batches = count_of(data.shape, 0, batch), inner = count_of(data.shape, batch + length);
  const int64_t per_batch = batches ? tuples_count / batches : 0, block = count_of(data.shape, batch);
  for (int64_t tuple = 0; tuple < tuples_count; ++tuple) {
    int64_t at = 0;
    for (size_t k = 0; k < length; ++k) {
      const Result<int64_t> index =
          wrap_number(indices.i[tuple * static_cast<int64_t>(length) + static_cast<int64_t>(k)], data.shape[batch + k],
                      "input indices");
      if (!index) return index.failure();
      at = at * data.shape[batch + k] + *index;
    }
    for (int64_t k = 0; k < inner; ++k)
      copy_element(y, tuple * inner + k, data, tuple / per_batch * block + at * inner + k);
  }
  return {};
}

}  // namespace

OpDef gather_nd() {
  return OpDef{
      .name = "GatherND",
      .since = 11,
      .doc =
          "Slices of the data at index tuples: the last dim of the indices holds one tuple, which leads into the axes "
          "after batch_dims.",
      .inputs = {{.name = "data"}, {.name = "indices", .types = TypeSet::kInt64}},
      .attrs = {{.name = "batch_dims", .kind = AttrKind::kInt, .default_value = int64_t{0}, .since = 12}},
      .fusion = FusionKind::kInjective,
      .infer = infer_gather_nd,
      .compute = compute_gather_nd,
      .index_input = 1,
      .index_extents = index_extents,
      .supports = [](const InferContext& ctx) -> Result<void> {
        for (int64_t k = 0; k < ctx.node.attrs.get_int("batch_dims", 0); ++k)
          if (Result<void> ok =
                  require_same_dim(ctx.input(0).shape[k], ctx.input(1).shape[k], "batch dim " + std::to_string(k));
              !ok)
            return ok;
        return {};
      },
      .reference = reference_gather_nd,
      .work = reads_what_it_gives,
      .samples =
          {
              {.name = "elements", .inputs = {f32({3, 5}), in(kInt64, {4, 2}, -3, 2)}},
              {.name = "rows", .inputs = {f32({3, 5, 2}), in(kInt64, {2, 3, 1}, -3, 2)}},
              {.name = "one_tuple", .inputs = {f32({3, 4, 5}), in(kInt64, {2}, 0, 2)}},
              {.name = "batched",
               .inputs = {f32({2, 3, 4}), in(kInt64, {2, 5, 1}, -3, 2)},
               .attrs = attrs({{"batch_dims", 1}})},
              {.name = "batched_rows",
               .inputs = {f32({2, 3, 4}), in(kInt64, {2, 1}, -3, 2)},
               .attrs = attrs({{"batch_dims", 1}})},
              {.name = "two_batches",
               .inputs = {f32({2, 3, 4}), in(kInt64, {2, 3, 1}, -4, 3)},
               .attrs = attrs({{"batch_dims", 2}})},
              {.name = "tuple_too_long",
               .inputs = {f32({3, 5}), in(kInt64, {4, 3}, 0, 2)},
               .error_id = "shape-mismatch"},
              {.name = "batch_differs",
               .inputs = {f32({2, 3}), in(kInt64, {3, 1}, 0, 1)},
               .attrs = attrs({{"batch_dims", 1}}),
               .error_id = "shape-mismatch"},
          },
  };
}

}  // namespace tensmith::graph::ops
