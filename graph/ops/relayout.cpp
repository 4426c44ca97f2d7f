#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

/// An internal operator that a pass puts where channels meet rows: the same elements, in a kernel of its own.
OpDef relayout(const char* name, const char* doc, LayoutRole role) {
  return OpDef{
      .name = name,
      .domain = "tensmith",
      .doc = doc,
      .inputs = {{.name = "input"}},
      .fusion = FusionKind::kOpaque,
      .layout = role,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        return std::vector<TensorType>{ctx.input(0)};
      },
      .compute =
          [](const ComputeContext& ctx) {
            return std::vector<Tensor>{
                compute("relayout", ctx.input(0).shape(), [&](const Indices& i) { return ctx.input(0)(i); })};
          },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        ctx.output() = ctx.input(0);
        return {};
      },
      .samples = {{.name = "image", .inputs = {f32({1, 5, 3, 4})}},
                  {.name = "int64", .inputs = {in(kInt64, {2, 3, 2}, -9, 9)}}},
  };
}

}  // namespace

OpDef to_channels() {
  return relayout("ToChannels", "The input, where operators with channels find it as they like it.",
                  LayoutRole::kChannels);
}
OpDef to_rows() { return relayout("ToRows", "The input in the order of the model.", LayoutRole::kRowMajor); }

}  // namespace tensmith::graph::ops
