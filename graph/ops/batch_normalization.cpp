#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/moments.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

bool trains(const Node& node) { return node.attrs.get_int("training_mode", 0) != 0; }
double epsilon_of(const Node& node) { return node.attrs.get_float("epsilon", 1e-5); }
double momentum_of(const Node& node) { return node.attrs.get_float("momentum", 0.9); }

/// All axes but the channels'. A vector counts as one channel.
std::vector<int> statistics_axes(int rank) {
  std::vector<int> axes;
  for (int axis = 0; axis < rank; ++axis)
    if (axis != 1) axes.push_back(axis);
  return axes;
}

Result<std::vector<TensorType>> infer(const InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  if (Result<void> ok = check_rank(x, 2, 64, "input X"); !ok) return ok.failure();
  static constexpr const char* kNames[] = {"", "input scale", "input B", "input input_mean", "input input_var"};
  for (int k = 1; k < 5; ++k)
    if (Result<void> ok = check_shape(ctx.input(k), {x.shape[1]}, kNames[k]); !ok) return ok.failure();
  if (ctx.node.attrs.get_int("spatial", 1) != 1)
    return refuse("unsupported-attribute") << "attribute spatial: expected 1, got 0";
  std::vector<TensorType> types{{x.dtype, x.shape, {}}};
  // Outside training the further outputs of old opsets are the statistics unchanged.
  for (int k = 1; k < ctx.num_outputs; ++k) types.push_back({ctx.input(k % 2 ? 3 : 4).dtype, {x.shape[1]}, {}});
  return types;
}

std::vector<Tensor> compute_norm(const ComputeContext& ctx) {
  const Tensor &x = ctx.input(0), &scale = ctx.input(1), &bias = ctx.input(2), &mean = ctx.input(3),
               &variance = ctx.input(4);
  const DType type = x.dtype(), wide = compute_type(type);
  const double momentum = momentum_of(ctx.node);
  const auto wider = [&](const Expr& e) { return cast(wide, e); };
  Tensor center = mean, factor;
  std::vector<Tensor> statistics;
  if (trains(ctx.node)) {
    const ReducedShape part(x.shape(), statistics_axes(x.rank()), /*keep_dims=*/false);
    const Moments m = moments("batch_norm", part, epsilon_of(ctx.node), [&](const Indices& i) { return widen(x(i)); });
    center = m.mean;
    factor = compute("batch_norm_factor", scale.shape(),
                     [&](const Indices& c) { return wider(scale(c)) * m.inverse_deviation(c); });
    const auto running = [&](const Tensor& old, const Tensor& now) {
      return compute("batch_norm_running", old.shape(), [&](const Indices& c) {
        return cast(old.dtype(), wider(old(c)) * make_const(wide, momentum) + now(c) * make_const(wide, 1 - momentum));
      });
    };
    if (ctx.node.types.size() > 1) statistics.push_back(running(mean, m.mean));
    if (ctx.node.types.size() > 2) statistics.push_back(running(variance, m.variance));
  } else {
    factor = compute("batch_norm_factor", scale.shape(), [&](const Indices& c) {
      return wider(scale(c)) / call(Intrinsic::kSqrt, {wider(variance(c)) + make_const(wide, epsilon_of(ctx.node))});
    });
    for (size_t k = 1; k < ctx.node.types.size(); ++k) {
      const Tensor& old = k % 2 ? mean : variance;
      statistics.push_back(compute("identity", old.shape(), [&](const Indices& c) { return old(c); }));
    }
  }
  std::vector<Tensor> outputs{compute("batch_norm", x.shape(), [&](const Indices& i) {
    return cast(type, (widen(x(i)) - wider(center(i[1]))) * factor(i[1]) + wider(bias(i[1])));
  })};
  outputs.insert(outputs.end(), statistics.begin(), statistics.end());
  return outputs;
}

Result<void> reference(ReferenceContext& ctx) {
  const RefTensor& x = ctx.input(0);
  std::vector<double> mean = ctx.input(3).f, variance = ctx.input(4).f;
  const double epsilon = epsilon_of(ctx.node), momentum = momentum_of(ctx.node);
  if (trains(ctx.node)) {
    std::vector<bool> reduced(x.shape.size(), true);
    reduced[1] = false;
    ReferenceMoments now = reference_moments(x, reduced_strides(x.shape, reduced), x.shape[1]);
    for (size_t c = 0; c < mean.size(); ++c) {
      if (ctx.outputs.size() > 1) ctx.output(1).f[c] = mean[c] * momentum + now.mean[c] * (1 - momentum);
      if (ctx.outputs.size() > 2) ctx.output(2).f[c] = variance[c] * momentum + now.variance[c] * (1 - momentum);
    }
    mean = std::move(now.mean), variance = std::move(now.variance);
  } else {
    for (size_t k = 1; k < ctx.outputs.size(); ++k) ctx.outputs[k].f = k % 2 ? mean : variance;
  }
  const int64_t channels = x.shape[1], spatial = count_of(x.shape, 2);
  for (int64_t p = 0; p < x.shape[0] * channels; ++p) {
    const int64_t c = p % channels;
    const double factor = ctx.input(1).f[c] / std::sqrt(variance[c] + epsilon);
    for (int64_t k = p * spatial; k < (p + 1) * spatial; ++k)
      ctx.output().f[k] = (x.f[k] - mean[c]) * factor + ctx.input(2).f[c];
  }
  return {};
}

std::vector<OpSample::Input> inputs(std::vector<int64_t> shape, DType type = kFloat32) {
  const int64_t c = shape.size() > 1 ? shape[1] : 1;
  return {in(type, std::move(shape)), in(type, {c}), in(type, {c}), in(type, {c}), in(type, {c}, 0.1, 2)};
}

}  // namespace

OpDef batch_normalization() {
  OpDef op{
      .name = "BatchNormalization",
      .since = 7,
      .doc =
          "scale (x - mean) / sqrt(var + epsilon) + B for each channel, with given statistics or (training_mode) those "
          "of the input, which also update the running ones.",
      .inputs = {{.name = "X", .types = TypeSet::kFloat},
                 {.name = "scale", .types = TypeSet::kFloat},
                 {.name = "B", .types = TypeSet::kFloat},
                 {.name = "input_mean", .types = TypeSet::kFloat},
                 {.name = "input_var", .types = TypeSet::kFloat}},
      .attrs = {{.name = "epsilon", .kind = AttrKind::kFloat, .default_value = 1e-5},
                {.name = "momentum", .kind = AttrKind::kFloat, .default_value = 0.9},
                {.name = "spatial", .kind = AttrKind::kInt, .default_value = int64_t{1}, .until = 8},
                {.name = "training_mode", .kind = AttrKind::kInt, .default_value = int64_t{0}, .since = 14}},
      .min_outputs = 1,
      .max_outputs = 5,
      .fusion = FusionKind::kElementwise,
      .layout = LayoutRole::kChannels,
      .infer = infer,
      .compute = compute_norm,
      .reference = reference,
      .samples = {{.name = "image", .inputs = inputs({2, 3, 4, 5})},
                  {.name = "matrix", .inputs = inputs({5, 3}), .attrs = attrs({{"epsilon", 0.1}})},
                  {.name = "line", .inputs = inputs({1, 1, 17})},
                  {.name = "training",
                   .inputs = inputs({4, 3, 5}),
                   .attrs = attrs({{"training_mode", 1}, {"momentum", 0.75}}),
                   .num_outputs = 3},
                  {.name = "half", .inputs = inputs({2, 3, 4}, kFloat16), .rtol = 3e-3, .atol = 3e-3},
                  {.name = "double", .inputs = inputs({2, 3, 4}, kFloat64)},
                  {.name = "channels_differ",
                   .inputs = {f32({2, 3, 4}), f32({2}), f32({3}), f32({3}), f32({3}, 0.1, 1)},
                   .error_id = "shape-mismatch"},
                  {.name = "vector", .inputs = inputs({3}), .error_id = "rank-mismatch"}},
  };
  return op;
}

}  // namespace tensmith::graph::ops
