#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

OpDef eye_like() {
  return OpDef{
      .name = "EyeLike",
      .since = 9,
      .doc = "A matrix of the shape of the input with ones on the k-th diagonal and zeros elsewhere.",
      .inputs = {{.name = "input"}},
      .attrs = {{.name = "dtype", .kind = AttrKind::kType, .no_default = true},
                {.name = "k", .kind = AttrKind::kInt, .default_value = int64_t{0}}},
      .fusion = FusionKind::kInjective,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        if (Result<void> ok = check_rank(ctx.input(0), 2, 2, "input"); !ok) return ok.failure();
        return std::vector<TensorType>{{ctx.node.attrs.get_dtype("dtype", ctx.input(0).dtype), ctx.input(0).shape, {}}};
      },
      .compute = [](const ComputeContext& ctx) -> std::vector<Tensor> {
        const DType dtype = ctx.output_type().dtype;
        const int64_t k = ctx.node.attrs.get_int("k", 0);
        return {compute("eye", ctx.output_type().shape, [&](const Indices& i) {
          return select(i[1] - i[0] == k, make_const_int(dtype, 1), make_zero(dtype));
        })};
      },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const RefTensor& x = ctx.input(0);
        RefTensor& y = make_output(ctx, ctx.node.attrs.get_dtype("dtype", x.dtype), x.shape);
        const int64_t k = ctx.node.attrs.get_int("k", 0);
        // A difference of positions fits; row + k need not.
        for (int64_t row = 0; row < x.shape[0]; ++row)
          if (k >= -row && k < x.shape[1] - row) y.set(row * x.shape[1] + row + k, 1);
        return {};
      },
      .samples =
          {
              {.name = "square", .inputs = {f32({5, 5})}},
              {.name = "above",
               .inputs = {in(kInt32, {3, 17})},
               .attrs = attrs({{"k", 2}, {"dtype", AttrValue(kFloat64)}})},
              {.name = "below", .inputs = {f32({4, 3})}, .attrs = attrs({{"k", -2}})},
              {.name = "outside", .inputs = {f32({2, 2})}, .attrs = attrs({{"k", 5}})},
              {.name = "far_outside", .inputs = {f32({2, 2})}, .attrs = attrs({{"k", AttrValue(int64_t{INT64_MAX})}})},
              {.name = "vector", .inputs = {f32({3})}, .error_id = "rank-mismatch"},
          },
  };
}

}  // namespace tensmith::graph::ops
