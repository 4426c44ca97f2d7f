#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

OpDef identity() {
  return OpDef{
      .name = "Identity",
      .doc = "The input.",
      .inputs = {{.name = "input"}},
      .fusion = FusionKind::kElementwise,
      .renames = true,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        return std::vector<TensorType>{ctx.input(0)};
      },
      .compute =
          [](const ComputeContext& ctx) {
            return std::vector<Tensor>{
                compute("identity", ctx.input(0).shape(), [&](const Indices& i) { return ctx.input(0)(i); })};
          },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        ctx.output() = ctx.input(0);
        return {};
      },
      .samples = {{.name = "matrix", .inputs = {f32({3, 5})}},
                  {.name = "scalar", .inputs = {f32({})}},
                  {.name = "bool", .inputs = {in(kBool, {5}, 0, 1)}},
                  {.name = "int64", .inputs = {in(kInt64, {2, 2}, -9, 9)}}},
  };
}

}  // namespace tensmith::graph::ops
