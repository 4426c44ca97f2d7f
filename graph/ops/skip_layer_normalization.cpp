#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/moments.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

enum Input { kX, kSkip, kGamma, kBeta, kBias };  // without mean: kX, kSkip, kGamma, then kBias at position 3

int bias_input(bool centered) { return centered ? kBias : 3; }

Result<std::vector<TensorType>> infer(const InferContext& ctx) {
  const TensorType& x = ctx.input(kX);
  if (Result<void> ok = check_rank(x, 2, 3, "input input"); !ok) return ok.failure();
  if (Result<void> ok = check_broadcast_to(ctx.input(kSkip).shape, x.shape, "input skip"); !ok) return ok.failure();
  for (size_t k = kGamma; k < ctx.inputs.size(); ++k)
    if (ctx.inputs[k])
      if (Result<void> ok =
              check_shape(*ctx.inputs[k], {x.shape.back()}, "input " + std::string(ctx.node.op->inputs[k].name));
          !ok)
        return ok.failure();
  Shape rows = x.shape;
  rows.back() = 1;
  return std::vector<TensorType>{
      {x.dtype, x.shape, {}}, {kFloat32, rows, {}}, {kFloat32, rows, {}}, {x.dtype, x.shape, {}}};
}

std::vector<Tensor> compute_norm(const ComputeContext& ctx, bool centered) {
  const Tensor& x = ctx.input(kX);
  const DType type = x.dtype(), wide = compute_type(type);
  const int bias = bias_input(centered);
  const double epsilon = ctx.node.attrs.get_float("epsilon", 1e-12);
  const Tensor total = compute("skip_sum", x.shape(), [&](const Indices& i) {
    Expr value = widen(x(i)) + widen(broadcast_load(ctx.input(kSkip), i));
    if (ctx.has(bias)) value = value + widen(ctx.input(bias)(i.back()));
    return value;
  });
  const ReducedShape row(x.shape(), {x.rank() - 1}, /*keep_dims=*/true);
  const auto load = [&](const Indices& i) { return total(i); };
  Tensor mean, inverse;
  if (centered) {
    const Moments m = moments("skip_norm", row, epsilon, load);
    mean = m.mean, inverse = m.inverse_deviation;
  } else {
    mean = compute("zero", row.out, [&](const Indices&) { return make_zero(wide); });
    inverse = inverse_root_mean_square("skip_norm", row, epsilon, load);
  }
  std::vector<Tensor> outputs{compute("skip_norm", x.shape(), [&](const Indices& i) {
    const Indices at = row.output_index(i);
    Expr y = (centered ? total(i) - mean(at) : total(i)) * inverse(at) * widen(ctx.input(kGamma)(i.back()));
    if (centered && ctx.has(kBeta)) y = y + widen(ctx.input(kBeta)(i.back()));
    return cast(type, y);
  })};
  if (ctx.node.types.size() > 1) outputs.push_back(narrow(mean, kFloat32));
  if (ctx.node.types.size() > 2) outputs.push_back(narrow(inverse, kFloat32));
  if (ctx.node.types.size() > 3) outputs.push_back(narrow(total, type));
  return outputs;
}

Result<void> reference(ReferenceContext& ctx, bool centered) {
  const RefTensor& x = ctx.input(kX);
  const int64_t columns = x.shape.back(), rows = columns ? x.num_elements() / columns : 0;
  const int bias = bias_input(centered);
  const double epsilon = ctx.node.attrs.get_float("epsilon", 1e-12);
  std::vector<double> total(x.f.size());
  for_each_broadcast<1>(x.shape, {&ctx.input(kSkip).shape}, [&](int64_t k, const std::array<int64_t, 1>& at) {
    total[k] = x.f[k] + ctx.input(kSkip).f[at[0]] + (ctx.has(bias) ? ctx.input(bias).f[k % columns] : 0);
  });
  for (int64_t r = 0; r < rows; ++r) {
    double mean = 0, variance = 0;
    for (int64_t c = 0; centered && c < columns; ++c) mean += total[r * columns + c] / static_cast<double>(columns);
    for (int64_t c = 0; c < columns; ++c)
      variance += std::pow(total[r * columns + c] - mean, 2) / static_cast<double>(columns);
    const double inverse = 1 / std::sqrt(variance + epsilon);
    for (int64_t c = 0; c < columns; ++c)
      ctx.output().f[r * columns + c] = (total[r * columns + c] - mean) * inverse * ctx.input(kGamma).f[c] +
                                        (centered && ctx.has(kBeta) ? ctx.input(kBeta).f[c] : 0);
    if (ctx.outputs.size() > 1) ctx.output(1).f[r] = mean;
    if (ctx.outputs.size() > 2) ctx.output(2).f[r] = inverse;
  }
  if (ctx.outputs.size() > 3) ctx.output(3).f = total;
  return {};
}

OpDef make(bool centered) {
  const auto parameter = [](const char* name, bool optional) {
    return InputSpec{.name = name, .types = TypeSet::kFloat, .optional = optional, .same_type_as = "input"};
  };
  OpDef op{
      .name = centered ? "SkipLayerNormalization" : "SkipSimplifiedLayerNormalization",
      .domain = "com.microsoft",
      .doc = centered ? "LayerNormalization over the last axis of input + skip + bias; also gives that sum."
                      : "RMSNormalization over the last axis of input + skip + bias; also gives that sum.",
      .inputs = {parameter("input", false), parameter("skip", false), parameter("gamma", false)},
      .attrs = {{.name = "epsilon", .kind = AttrKind::kFloat, .default_value = 1e-12}},
      .min_outputs = 1,
      .max_outputs = 4,
      .fusion = FusionKind::kReduction,
      .infer = infer,
      .samples = {{.name = "plain",
                   .inputs = {f32({2, 3, 17}), f32({2, 3, 17}), f32({17})},
                   .attrs = attrs({{"epsilon", 1e-5}})},
                  {.name = "half",
                   .inputs = {in(kFloat16, {2, 9}), in(kFloat16, {2, 9}), in(kFloat16, {9})},
                   .rtol = 3e-3,
                   .atol = 3e-3},
                  {.name = "skip_broadcast", .inputs = {f32({2, 3, 4}), f32({1, 3, 4}), f32({4})}, .num_outputs = 4},
                  {.name = "gamma_of_other_length",
                   .inputs = {f32({2, 3, 4}), f32({2, 3, 4}), f32({3})},
                   .error_id = "shape-mismatch"}},
  };
  if (centered) op.inputs.push_back(parameter("beta", true));
  op.inputs.push_back(parameter("bias", true));
  std::vector<OpSample::Input> all{f32({2, 3, 5}), f32({2, 3, 5}), f32({5})};
  while (all.size() < op.inputs.size()) all.push_back(f32({5}));
  op.samples.push_back({.name = "all", .inputs = all, .num_outputs = 4});
  op.compute = [centered](const ComputeContext& ctx) { return compute_norm(ctx, centered); };
  op.reference = [centered](ReferenceContext& ctx) { return reference(ctx, centered); };
  return op;
}

}  // namespace

/// SkipLayerNormalization and SkipSimplifiedLayerNormalization of com.microsoft.
std::vector<OpDef> skip_layer_normalization() { return {make(true), make(false)}; }

}  // namespace tensmith::graph::ops
