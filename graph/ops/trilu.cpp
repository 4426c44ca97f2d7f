#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

std::vector<Tensor> compute_trilu(const ComputeContext& ctx) {
  const Tensor& x = ctx.input(0);
  const bool upper = ctx.node.attrs.get_int("upper", 1) != 0;
  return {injective("trilu", ctx.output_type(), [&](const Indices& i) {
    const Expr row = i[i.size() - 2], column = i[i.size() - 1];
    Expr diagonal(0);
    if (ctx.has(1)) {
      const auto known_diagonal = int_elements(ctx, 1);
      diagonal = known_diagonal ? (*known_diagonal)[0] : ctx.input(1)(Indices(ctx.input(1).rank(), Expr(0)));
    }
    const Expr keep = upper ? column - row >= diagonal : column - row <= diagonal;
    return select(keep, x(i), make_zero(x.dtype()));
  })};
}

}  // namespace

OpDef trilu() {
  return OpDef{
      .name = "Trilu",
      .since = 14,
      .doc = "The upper or lower triangle of matrices from the k-th diagonal on, zero elsewhere.",
      .inputs = {{.name = "input"}, {.name = "k", .types = TypeSet::kInt64, .optional = true}},
      .attrs = {{.name = "upper", .kind = AttrKind::kInt, .default_value = int64_t{1}}},
      .fusion = FusionKind::kInjective,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        const TensorType& data = ctx.input(0);
        if (Result<void> ok = check_rank(data, 2, 64, "input"); !ok) return ok.failure();
        if (ctx.has(1) && !ctx.input(1).shape.empty())
          if (Result<void> ok = check_shape(ctx.input(1), {Expr(1)}, "input k"); !ok) return ok.failure();
        return std::vector<TensorType>{{data.dtype, data.shape, {}}};
      },
      .compute = compute_trilu,
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const RefTensor& x = ctx.input(0);
        const int64_t k = ctx.has(1) ? ctx.input(1).i[0] : 0;
        const bool upper = ctx.node.attrs.get_int("upper", 1) != 0;
        move_elements(make_output(ctx, x.dtype, x.shape), x, [&](const Dims& index) {
          const int64_t above = index[index.size() - 1] - index[index.size() - 2];
          return (upper ? above >= k : above <= k) ? flat_index(x.shape, index) : -1;
        });
        return {};
      },
      .samples =
          {
              {.name = "upper", .inputs = {f32({3, 5})}},
              {.name = "lower", .inputs = {f32({2, 5, 3})}, .attrs = attrs({{"upper", 0}})},
              {.name = "above", .inputs = {f32({5, 5}), known_scalar(kInt64, 2)}},
              {.name = "below",
               .inputs = {in(kInt64, {3, 17}), known_scalar(kInt64, -1)},
               .attrs = attrs({{"upper", 0}})},
              {.name = "data_diagonal", .inputs = {in(kBool, {4, 4}, 0, 1), given(kInt64, {}, {1})}},
              {.name = "nothing_left", .inputs = {f32({3, 3}), known_scalar(kInt64, 9)}},
              {.name = "vector", .inputs = {f32({3})}, .error_id = "rank-mismatch"},
          },
  };
}

}  // namespace tensmith::graph::ops
