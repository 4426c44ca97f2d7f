#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

enum Input { kX, kWeight, kBias, kPast };

/// Sizes that the rules need: the kernel's is a number, since the state is one shorter.
Result<int64_t> kernel_size(const TensorType& weight) {
  if (Result<void> ok = check_rank(weight, 3, 3, "input weight"); !ok) return ok.failure();
  const auto size = known(weight.shape[2]);
  if (!size)
    return refuse("dynamic-shape") << "input weight: expected a kernel of fixed size, got " << to_string(weight);
  if (*size < 1) return refuse("shape-mismatch") << "input weight: expected a kernel, got " << to_string(weight);
  return *size;
}

Result<std::vector<TensorType>> infer(const InferContext& ctx) {
  const TensorType& x = ctx.input(kX);
  if (Result<void> ok = check_rank(x, 3, 3, "input input"); !ok) return ok.failure();
  const Result<int64_t> kernel = kernel_size(ctx.input(kWeight));
  if (!kernel) return kernel.failure();
  const Shape state{x.shape[0], x.shape[1], Expr(*kernel - 1)};
  const std::pair<int, Shape> wanted[] = {
      {kWeight, {x.shape[1], Expr(1), Expr(*kernel)}}, {kBias, {x.shape[1]}}, {kPast, state}};
  for (const auto& [input, shape] : wanted)
    if (ctx.has(input))
      if (Result<void> ok =
              check_shape(ctx.input(input), shape, std::string("input ") + ctx.node.op->inputs[input].name);
          !ok)
        return ok.failure();
  return std::vector<TensorType>{{x.dtype, x.shape, {}}, {x.dtype, state, {}}};
}

bool has_silu(const AttrMap& attrs) { return attrs.get_string("activation", "none") != "none"; }

std::vector<Tensor> compute_conv(const ComputeContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const DType type = x.dtype();
  const int64_t kernel = kernel_size(*ctx.input_types[kWeight]).value(), kept = kernel - 1;
  // Element `at` of the state followed by the input.
  const auto joined = [&](const Expr& n, const Expr& c, const Expr& at) {
    const Expr now = x(n, c, max(at - kept, 0));
    if (kept == 0) return now;
    const Expr before = ctx.has(kPast) ? ctx.input(kPast)(n, c, min(at, kept - 1)) : make_zero(type);
    return select(at < kept, before, now);
  };
  const Tensor sums = sum("causal_conv", x.shape(), {Expr(kernel)}, [&](const Indices& i, const Indices& r) {
    return widen(joined(i[0], i[1], i[2] + r[0])) * widen(ctx.input(kWeight)(i[1], 0, r[0]));
  });
  std::vector<Tensor> outputs{compute("causal_conv_activation", x.shape(), [&](const Indices& i) {
    const Expr value = ctx.has(kBias) ? sums(i) + widen(ctx.input(kBias)(i[1])) : sums(i);
    return cast(type, has_silu(ctx.node.attrs) ? with_value("y", value, silu) : value);
  })};
  if (ctx.node.types.size() > 1)
    outputs.push_back(injective("causal_conv_state", ctx.output_type(1),
                                [&](const Indices& i) { return joined(i[0], i[1], i[2] + x.shape()[2]); }));
  return outputs;
}

Result<void> reference(ReferenceContext& ctx) {
  const RefTensor &x = ctx.input(kX), &w = ctx.input(kWeight);
  const int64_t channels = x.shape[1], length = x.shape[2], kept = w.shape[2] - 1;
  std::vector<double> line(static_cast<size_t>(kept + length));
  for (int64_t row = 0; row < x.shape[0] * channels; ++row) {
    const int64_t c = row % channels;
    for (int64_t k = 0; k < kept; ++k) line[k] = ctx.has(kPast) ? ctx.input(kPast).f[row * kept + k] : 0;
    for (int64_t t = 0; t < length; ++t) line[kept + t] = x.f[row * length + t];
    for (int64_t t = 0; t < length; ++t) {
      double y = ctx.has(kBias) ? ctx.input(kBias).f[c] : 0;
      for (int64_t k = 0; k <= kept; ++k) y += line[t + k] * w.f[c * (kept + 1) + k];
      ctx.output().f[row * length + t] = has_silu(ctx.node.attrs) ? y / (1 + std::exp(-y)) : y;
    }
    if (ctx.outputs.size() > 1)
      for (int64_t k = 0; k < kept; ++k) ctx.output(1).f[row * kept + k] = line[length + k];
  }
  return {};
}

}  // namespace

OpDef causal_conv_with_state() {
  const auto like_input = [](const char* name, bool optional) {
    return InputSpec{.name = name, .types = TypeSet::kFloat, .optional = optional, .same_type_as = "input"};
  };
  return OpDef{
      .name = "CausalConvWithState",
      .since = 27,
      .doc =
          "Depthwise convolution along the last axis over what was and what is; also gives what the next call needs.",
      .inputs = {{.name = "input", .types = TypeSet::kFloat},
                 like_input("weight", false),
                 like_input("bias", true),
                 like_input("past_state", true)},
      .attrs = {{.name = "activation",
                 .kind = AttrKind::kString,
                 .default_value = std::string("none"),
                 .allowed = {"none", "silu", "swish"}}},
      .min_outputs = 1,
      .max_outputs = 2,
      .infer = infer,
      .compute = compute_conv,
      .reference = reference,
      .flops =
          [](const InferContext& ctx) {
            const auto kernel = kernel_size(ctx.input(kWeight));
            const auto elements = known(product(ctx.input(kX).shape));
            return kernel && elements ? 2.0 * static_cast<double>(*kernel) * static_cast<double>(*elements) : 0.0;
          },
      .samples = {{.name = "no_state", .inputs = {f32({2, 3, 7}), f32({3, 1, 4})}, .num_outputs = 2},
                  {.name = "silu",
                   .inputs = {f32({2, 3, 7}), f32({3, 1, 4}), f32({3}), f32({2, 3, 3})},
                   .attrs = attrs({{"activation", "silu"}}),
                   .num_outputs = 2},
                  {.name = "shorter_than_state",
                   .inputs = {f32({1, 2, 2}), f32({2, 1, 5}), absent(), f32({1, 2, 4})},
                   .num_outputs = 2},
                  {.name = "kernel_of_one", .inputs = {f32({1, 2, 3}), f32({2, 1, 1})}},
                  {.name = "half",
                   .inputs = {in(kFloat16, {1, 2, 5}), in(kFloat16, {2, 1, 3}), in(kFloat16, {2})},
                   .rtol = 2e-3,
                   .atol = 2e-3},
                  {.name = "channels_differ", .inputs = {f32({1, 2, 3}), f32({3, 1, 2})}, .error_id = "shape-mismatch"},
                  {.name = "state_of_other_length",
                   .inputs = {f32({1, 2, 3}), f32({2, 1, 3}), absent(), f32({1, 2, 3})},
                   .error_id = "shape-mismatch"}},
  };
}

}  // namespace tensmith::graph::ops
