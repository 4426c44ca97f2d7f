#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/op_list.h"
#include "graph/ops/ref_loops.h"
#include "graph/ops/sample.h"
#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

namespace {

OpDef make(const char* name, bool bias_optional, bool by_tanh) {
  OpDef op{
      .name = name,
      .domain = "com.microsoft",
      .doc = by_tanh ? "Gelu by the tanh formula of x + bias." : "Gelu by erf of x + bias.",
      .inputs = {{.name = "X", .types = TypeSet::kFloat},
                 {.name = "bias", .types = TypeSet::kFloat, .optional = bias_optional, .same_type_as = "X"}},
      .fusion = FusionKind::kElementwise,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        const TensorType& x = ctx.input(0);
        if (ctx.has(1)) {
          if (Result<void> ok = check_rank(x, 1, 64, "input X"); !ok) return ok.failure();
          if (Result<void> ok = check_shape(ctx.input(1), {x.shape.back()}, "input bias"); !ok) return ok.failure();
        }
        return std::vector<TensorType>{{x.dtype, x.shape, {}}};
      },
      .samples = {{.name = "bias", .inputs = {f32({3, 17}, -4, 4), f32({17})}},
                  {.name = "vector", .inputs = {f32({5}), f32({5})}},
                  {.name = "half", .inputs = {in(kFloat16, {3, 5}), in(kFloat16, {5})}, .rtol = 3e-3, .atol = 2e-3},
                  {.name = "bias_of_other_length", .inputs = {f32({3, 5}), f32({3})}, .error_id = "shape-mismatch"}},
  };
  if (bias_optional) op.samples.push_back({.name = "no_bias", .inputs = {f32({3, 5})}});
  op.compute = [by_tanh](const ComputeContext& ctx) {
    const Tensor& x = ctx.input(0);
    return std::vector<Tensor>{compute(by_tanh ? "fast_gelu" : "bias_gelu", x.shape(), [&](const Indices& i) {
      Expr value = widen(x(i));
      if (ctx.has(1)) value = value + widen(ctx.input(1)(i.back()));
      return cast(x.dtype(), by_tanh ? gelu_tanh(value) : gelu_erf(value));
    })};
  };
  op.reference = [by_tanh](ReferenceContext& ctx) -> Result<void> {
    const RefTensor& x = ctx.input(0);
    const int64_t columns = x.shape.empty() ? 1 : x.shape.back();
    for (int64_t k = 0; k < x.num_elements(); ++k) {
      const double v = x.f[k] + (ctx.has(1) ? ctx.input(1).f[k % columns] : 0);
      ctx.output().f[k] = by_tanh ? 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)))
                                  : 0.5 * v * std::erfc(-v / std::sqrt(2.0));
    }
    return {};
  };
  return op;
}

}  // namespace

/// BiasGelu and FastGelu of com.microsoft.
std::vector<OpDef> bias_gelu() { return {make("BiasGelu", false, false), make("FastGelu", true, true)}; }

}  // namespace tensmith::graph::ops
