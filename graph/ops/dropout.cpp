#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

/// Whether the node drops elements: training mode with a ratio that is not known to be 0.
bool drops(const InferContext& ctx) {
  const bool training = ctx.has(2) && !(ctx.constants.at(2) && ctx.constants[2]->int_at(0) == 0);
  if (!training) return false;
  if (!ctx.has(1)) return true;
  return !(ctx.constants.at(1) && ctx.constants[1]->float_at(0) == 0);
}

}  // namespace

OpDef dropout() {
  return OpDef{
      .name = "Dropout",
      .since = 12,
      .doc = "The input, and a mask of ones: nothing is dropped outside training.",
      .inputs = {{.name = "data", .types = TypeSet::kFloat},
                 {.name = "ratio", .types = TypeSet::kFloat, .optional = true},
                 {.name = "training_mode", .types = TypeSet::kBool, .optional = true}},
      .attrs = {{.name = "ratio", .kind = AttrKind::kFloat, .default_value = 0.5, .until = 11, .becomes_input = 1},
                {.name = "seed", .kind = AttrKind::kInt, .default_value = int64_t{0}, .since = 12}},
      .min_outputs = 1,
      .max_outputs = 2,
      .fusion = FusionKind::kElementwise,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        std::vector<TensorType> types{{ctx.input(0).dtype, ctx.input(0).shape, {}}};
        if (ctx.num_outputs > 1) types.push_back({kBool, ctx.input(0).shape, {}});
        return types;
      },
      .compute =
          [](const ComputeContext& ctx) {
            const Tensor& x = ctx.input(0);
            std::vector<Tensor> outputs{compute("identity", x.shape(), [&](const Indices& i) { return x(i); })};
            if (ctx.node.types.size() > 1)
              outputs.push_back(compute("ones", x.shape(), [](const Indices&) { return make_bool(true); }));
            return outputs;
          },
      .supports = [](const InferContext& ctx) -> Result<void> {
        if (drops(ctx))
          return Failure{"unsupported-training",
                         "input training_mode: expected false (or ratio 0), got true or a computed value; export the "
                         "model for inference"};
        return {};
      },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const bool training = ctx.has(2) && ctx.input(2).i.at(0) != 0 && !(ctx.has(1) && ctx.input(1).f.at(0) == 0);
        if (training)
          return Failure{"unsupported-training", "training mode drops elements at random, which has no reference"};
        ctx.output(0) = ctx.input(0);
        if (ctx.outputs.size() > 1)
          for (int64_t& mask : ctx.output(1).i) mask = 1;
        return {};
      },
      .samples = {{.name = "default", .inputs = {f32({3, 5})}},
                  {.name = "with_mask", .inputs = {f32({3, 5}), known_scalar(kFloat32, 0.1)}, .num_outputs = 2},
                  {.name = "training_without_ratio",
                   .inputs = {f32({3}), known_scalar(kFloat32, 0), known_scalar(kBool, 1)},
                   .num_outputs = 2}},
  };
}

}  // namespace tensmith::graph::ops
