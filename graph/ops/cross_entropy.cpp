#include <cmath>
#include <limits>

#include "graph/ops/arith.h"
#include "graph/ops/op_list.h"
#include "graph/ops/reduced_shape.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

/// Inputs: scores [N, C, d...], labels [N, d...], weights [C] (optional).
Result<std::vector<TensorType>> infer(const InferContext& ctx, bool has_log_prob) {
  const TensorType &x = ctx.input(0), &labels = ctx.input(1);
  if (Result<void> ok = check_rank(x, 2, 64, "input scores"); !ok) return ok.failure();
  Shape expected = x.shape;
  expected.erase(expected.begin() + 1);
  if (Result<void> ok = check_shape(labels, expected, "input labels"); !ok) return ok.failure();
  if (ctx.has(2))
    if (Result<void> ok = check_shape(ctx.input(2), {x.shape[1]}, "input weights"); !ok) return ok.failure();
  const bool each = ctx.node.attrs.get_string("reduction", "mean") == "none";
  std::vector<TensorType> types{{x.dtype, each ? labels.shape : Shape{}, {}}};
  if (has_log_prob && ctx.num_outputs > 1) types.push_back(TensorType{x.dtype, x.shape, {}});
  return types;
}

/// What the label of position `i` selects.
struct Labels {
  const ComputeContext& ctx;
  DType wide;

  Expr counts(const Indices& i) const {  // null: always
    if (!ctx.node.attrs.has("ignore_index")) return {};
    const Tensor& labels = ctx.input(1);
    return labels(i) != make_const_int(labels.dtype(), ctx.node.attrs.get_int("ignore_index", -1));
  }
  /// Labels are data: kept inside the classes.
  Expr label(const Indices& i) const {
    return max(min(cast(kInt64, ctx.input(1)(i)), ctx.input(0).shape()[1] - 1), Expr(0));
  }
  Expr weight(const Indices& i) const {
    const Expr value = ctx.has(2) ? cast(wide, ctx.input(2)(label(i))) : make_const(wide, 1);
    const Expr counted = counts(i);
    return counted.get() ? select(counted, value, make_zero(wide)) : value;
  }
  bool weighs() const { return ctx.has(2) || ctx.node.attrs.has("ignore_index"); }
};

/// -weight * log probability of the label, reduced as asked. `log_prob` gives an element of [N, C, d...].
Tensor loss(const ComputeContext& ctx, DType wide, const std::function<Expr(const Indices&)>& log_prob) {
  const Labels labels{ctx, wide};
  const Shape& shape = ctx.input(1).shape();
  const std::string reduction = ctx.node.attrs.get_string("reduction", "mean");
  const auto each = [&](const Indices& i) {
    Indices at = i;
    at.insert(at.begin() + 1, labels.label(i));
    const Expr value = -log_prob(at);
    return labels.weighs() ? value * labels.weight(i) : value;
  };
  const DType type = ctx.output_type().dtype;
  if (reduction == "none") return compute("loss", shape, [&](const Indices& i) { return cast(type, each(i)); });
  const ReducedShape all(shape, axes_from(0, static_cast<int>(shape.size())), /*keep_dims=*/false);
  const Tensor total = sum_axes("loss_sum", all, each);
  if (reduction == "sum") return narrow(total, type);
  if (!labels.weighs())
    return compute("loss_mean", {}, [&](const Indices& i) { return cast(type, total(i) / cast(wide, all.count())); });
  const Tensor weight = sum_axes("loss_weight", all, [&](const Indices& i) { return labels.weight(i); });
  return compute("loss_mean", {}, [&](const Indices& i) { return cast(type, total(i) / weight(i)); });
}

std::vector<Tensor> compute_nll(const ComputeContext& ctx) {
  const DType wide = compute_type(ctx.input(0).dtype());
  return {loss(ctx, wide, [&](const Indices& i) { return widen(ctx.input(0)(i)); })};
}

std::vector<Tensor> compute_softmax_loss(const ComputeContext& ctx) {
  const Tensor& x = ctx.input(0);
  const DType wide = compute_type(x.dtype());
  const ReducedShape row(x.shape(), {1}, /*keep_dims=*/true);
  const Tensor top = reduce_axes("softmax_max", row, max_reducer(wide), [&](const Indices& i) { return widen(x(i)); });
  const auto shifted = [&](const Indices& i) { return widen(x(i)) - top(row.output_index(i)); };
  const Tensor total =
      sum_axes("softmax_sum", row, [&](const Indices& i) { return call(Intrinsic::kExp, {shifted(i)}); });
  const Tensor log =
      compute("softmax_log", row.out, [&](const Indices& i) { return call(Intrinsic::kLog, {total(i)}); });
  const auto log_prob = [&](const Indices& i) { return shifted(i) - log(row.output_index(i)); };
  std::vector<Tensor> outputs{loss(ctx, wide, log_prob)};
  if (ctx.node.types.size() > 1)
    outputs.push_back(compute("log_prob", x.shape(), [&](const Indices& i) { return cast(x.dtype(), log_prob(i)); }));
  return outputs;
}

Result<void> reference(ReferenceContext& ctx, bool softmax) {
  const RefTensor &x = ctx.input(0), &labels = ctx.input(1);
  const int64_t batch = x.shape[0], classes = x.shape[1], inner = count_of(x.shape, 2);
  std::vector<double> log_prob = x.f;
  for (int64_t p = 0; softmax && p < batch * inner; ++p) {
    double* column = log_prob.data() + p / inner * classes * inner + p % inner;
    double top = -std::numeric_limits<double>::infinity(), total = 0;
    for (int64_t c = 0; c < classes; ++c) top = std::max(top, column[c * inner]);
    for (int64_t c = 0; c < classes; ++c) total += std::exp(column[c * inner] - top);
    for (int64_t c = 0; c < classes; ++c) column[c * inner] -= top + std::log(total);
  }
  if (ctx.outputs.size() > 1) ctx.output(1).f = log_prob;
  const std::string reduction = ctx.node.attrs.get_string("reduction", "mean");
  const bool ignores = ctx.node.attrs.has("ignore_index");
  const int64_t ignored = ctx.node.attrs.get_int("ignore_index", -1);
  double total = 0, weights = 0;
  for (int64_t p = 0; p < batch * inner; ++p) {
    const int64_t label = std::clamp<int64_t>(labels.i[p], 0, classes - 1);
    const double weight = ignores && labels.i[p] == ignored ? 0 : ctx.has(2) ? ctx.input(2).f[label] : 1;
    const double value = weight == 0 ? 0 : -weight * log_prob[(p / inner * classes + label) * inner + p % inner];
    if (reduction == "none") ctx.output(0).f[p] = value;
    total += value;
    weights += weight;
  }
  if (reduction != "none") ctx.output(0).f[0] = reduction == "sum" ? total : total / weights;
  return {};
}

std::vector<OpSample> samples(bool softmax) {
  const auto label = [](std::vector<int64_t> shape) { return in(kInt64, std::move(shape), 0, 4); };
  const NamedAttr none("reduction", "none"), sum("reduction", "sum"), ignore("ignore_index", 1);
  std::vector<OpSample> list = {
      {.name = "mean", .inputs = {f32({3, 5}), label({3})}},
      {.name = "none", .inputs = {f32({3, 5}), label({3})}, .attrs = attrs({none})},
      {.name = "sum", .inputs = {f32({3, 5, 2}), label({3, 2})}, .attrs = attrs({sum})},
      {.name = "weighted", .inputs = {f32({3, 5, 2}), label({3, 2}), f32({5}, 0.1, 1)}},
      {.name = "ignored", .inputs = {f32({3, 5, 2, 2}), label({3, 2, 2}), f32({5}, 0.1, 1)}, .attrs = attrs({ignore})},
      {.name = "ignored_outside",
       .inputs = {f32({3, 5}), given(kInt64, {3}, {-1, 2, 4})},
       .attrs = attrs({{"ignore_index", -1}, none})},
      {.name = "int32_labels", .inputs = {f32({3, 5}), in(kInt32, {3}, 0, 4)}},
      {.name = "half", .inputs = {in(kFloat16, {3, 5}), label({3})}, .rtol = 3e-3, .atol = 3e-3},
      {.name = "labels_of_other_shape", .inputs = {f32({3, 5}), label({5})}, .error_id = "shape-mismatch"},
      {.name = "unknown_reduction",
       .inputs = {f32({3, 5}), label({3})},
       .attrs = attrs({{"reduction", "max"}}),
       .error_id = "bad-attribute"},
  };
  if (softmax) {
    list.push_back({.name = "log_prob", .inputs = {f32({3, 5, 2}), label({3, 2})}, .num_outputs = 2});
    list.push_back({.name = "large_scores", .inputs = {f32({3, 5}, 500, 900), label({3})}, .attrs = attrs({none})});
  }
  return list;
}

OpDef make(const char* name, bool softmax) {
  OpDef op{
      .name = name,
      .since = 12,
      .doc = softmax ? "The negative logarithm of the softmax at each label, weighted by class and reduced."
                     : "The negative of the input at each label, weighted by class and reduced.",
      .inputs = {{.name = "scores", .types = TypeSet::kFloat},
                 {.name = "labels", .types = TypeSet::kIndex},
                 {.name = "weights", .types = TypeSet::kFloat, .optional = true, .same_type_as = "scores"}},
      .attrs = {{.name = "ignore_index", .kind = AttrKind::kInt, .no_default = true},
                {.name = "reduction",
                 .kind = AttrKind::kString,
                 .default_value = std::string("mean"),
                 .allowed = {"mean", "none", "sum"}}},
      .min_outputs = 1,
      .max_outputs = softmax ? 2 : 1,
      .fusion = FusionKind::kReduction,
      .infer = [softmax](const InferContext& ctx) { return infer(ctx, softmax); },
      .samples = samples(softmax),
  };
  op.compute = softmax ? compute_softmax_loss : compute_nll;
  op.reference = [softmax](ReferenceContext& ctx) { return reference(ctx, softmax); };
  return op;
}

}  // namespace

/// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
std::vector<OpDef> cross_entropy() {
  return {make("NegativeLogLikelihoodLoss", false), make("SoftmaxCrossEntropyLoss", true)};
}

}  // namespace tensmith::graph::ops
