#include "graph/ops/op_list.h"
#include "graph/ops/ref_loops.h"
#include "graph/ops/sample.h"
#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

OpDef where() {
  return OpDef{
      .name = "Where",
      .since = 9,
      .doc = "Elements of X where the condition holds, else of Y; all three are broadcast against each other.",
      .inputs = {{.name = "condition", .types = TypeSet::kBool}, {.name = "X"}, {.name = "Y", .same_type_as = "X"}},
      .fusion = FusionKind::kElementwise,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        Result<Shape> shape = broadcast_shapes({&ctx.input(0).shape, &ctx.input(1).shape, &ctx.input(2).shape});
        if (!shape) return shape.failure();
        TensorType type{ctx.input(1).dtype, *shape, {}};
        propagate_values(ctx, type,
                         {.whole =
                              [](const std::vector<Expr>& args) {
                                const auto condition = known(args[0]);
                                if (condition) return *condition ? args[1] : args[2];
                                return same_dim(args[1], args[2]) ? args[1] : Expr();
                              },
                          .whole_of_floats = true});
        return std::vector<TensorType>{std::move(type)};
      },
      .compute =
          [](const ComputeContext& ctx) {
            return std::vector<Tensor>{compute("where", ctx.output_type().shape, [&](const Indices& i) {
              return select(broadcast_load(ctx.input(0), i), broadcast_load(ctx.input(1), i),
                            broadcast_load(ctx.input(2), i));
            })};
          },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const RefTensor &c = ctx.input(0), &x = ctx.input(1), &z = ctx.input(2);
        RefTensor& y = ctx.output();
        for_each_broadcast<3>(y.shape, {&c.shape, &x.shape, &z.shape},
                              [&](int64_t k, const std::array<int64_t, 3>& at) {
                                if (x.is_float()) y.f[k] = c.i[at[0]] ? x.f[at[1]] : z.f[at[2]];
                                else y.i[k] = c.i[at[0]] ? x.i[at[1]] : z.i[at[2]];
                              });
        return {};
      },
      .samples =
          {{.name = "same", .inputs = {in(kBool, {3, 5}, 0, 1), f32({3, 5}), f32({3, 5})}},
           {.name = "broadcast", .inputs = {in(kBool, {3, 1}, 0, 1), f32({1, 4}), f32({})}},
           {.name = "mask", .inputs = {in(kBool, {1, 3}, 0, 1), f32({2, 3, 3}), known_scalar(kFloat32, -1e9)}},
           {.name = "int64", .inputs = {in(kBool, {17}, 0, 1), in(kInt64, {17}, -9, 9), in(kInt64, {17}, -9, 9)}},
           {.name = "scalar", .inputs = {in(kBool, {}, 0, 1), f32({}), f32({})}},
           {.name = "dims_differ", .inputs = {in(kBool, {2}, 0, 1), f32({3}), f32({3})}, .error_id = "shape-mismatch"}},
  };
}

}  // namespace tensmith::graph::ops
