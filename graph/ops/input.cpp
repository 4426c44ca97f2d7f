#include "graph/ops/op_list.h"

namespace tensmith::graph::ops {

/// An input of the graph. Its type is part of the node, since symbolic dims cannot be attributes.
OpDef input() {
  return OpDef{
      .name = "Input",
      .domain = "tensmith",
      .doc = "A tensor that the caller gives.",
      .inputs = {},
      .is_source = true,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        if (ctx.node.types.size() != 1)
          return Failure{"graph-type", "an Input node needs its type: add it with add_input"};
        return ctx.node.types;
      },
  };
}

}  // namespace tensmith::graph::ops
