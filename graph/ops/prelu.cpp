#include "graph/ops/arith.h"
#include "graph/ops/op_list.h"
#include "graph/ops/ref_loops.h"
#include "graph/ops/sample.h"
#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

OpDef prelu() {
  return OpDef{
      .name = "PRelu",
      .since = 7,
      .doc = "x from 0 on, else slope x; the slope is broadcast to the shape of x.",
      .inputs = {{.name = "X", .types = TypeSet::kNumeric},
                 {.name = "slope", .types = TypeSet::kNumeric, .same_type_as = "X"}},
      .fusion = FusionKind::kElementwise,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        if (Result<void> ok = check_broadcast_to(ctx.input(1).shape, ctx.input(0).shape, "input slope"); !ok)
          return ok.failure();
        return std::vector<TensorType>{TensorType{ctx.input(0).dtype, ctx.input(0).shape, {}}};
      },
      .compute =
          [](const ComputeContext& ctx) {
            const Tensor& x = ctx.input(0);
            return std::vector<Tensor>{compute("prelu", x.shape(), [&](const Indices& i) {
              return with_value("x", widen(x(i)), [&](const Expr& value) {
                const Expr scaled = value * widen(broadcast_load(ctx.input(1), i));
                return cast(x.dtype(),
                            x.dtype().is_uint() ? value : select(value < make_zero(value.dtype()), scaled, value));
              });
            })};
          },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const RefTensor &x = ctx.input(0), &slope = ctx.input(1);
        RefTensor& y = ctx.output();
        for_each_broadcast<2>(y.shape, {&x.shape, &slope.shape}, [&](int64_t k, const std::array<int64_t, 2>& at) {
          if (x.is_float()) y.f[k] = x.f[k] < 0 ? x.f[k] * slope.f[at[1]] : x.f[k];
          else y.i[k] = x.dtype.is_int() && x.i[k] < 0 ? wrap_int(x.dtype, x.i[k] * slope.i[at[1]]) : x.i[k];
        });
        return {};
      },
      .samples = {{.name = "same", .inputs = {f32({3, 17}), f32({3, 17})}},
                  {.name = "channel", .inputs = {f32({2, 3, 4}), f32({3, 1})}},
                  {.name = "scalar_slope", .inputs = {f32({5}), f32({1})}},
                  {.name = "int32", .inputs = {in(kInt32, {5}, -9, 9), in(kInt32, {5}, -9, 9)}},
                  {.name = "half", .inputs = {in(kFloat16, {5}), in(kFloat16, {5})}, .rtol = 2e-3, .atol = 1e-3},
                  {.name = "rank0", .inputs = {f32({}), f32({})}},
                  {.name = "slope_larger", .inputs = {f32({1}), f32({3})}, .error_id = "shape-mismatch"}},
  };
}

}  // namespace tensmith::graph::ops
