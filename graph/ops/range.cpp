#include <cmath>

#include "graph/dim_facts.h"
#include "graph/ops/arith.h"
#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

/// The number that a float input holds, where it is known.
template <typename Context>
std::optional<double> float_at(const Context& ctx, const TensorType* type, int input) {
  const auto numbers = known_floats(type, constant_at(ctx, input));
  return numbers && numbers->size() == 1 ? std::optional(numbers->front()) : std::nullopt;
}

/// Numbers from start towards limit. Errors: `bad-step` for a delta of 0.
Result<int64_t> float_count(double start, double limit, double delta) {
  if (delta == 0 || std::isnan(start + limit + delta))
    return refuse("bad-step") << "input delta: expected a step other than 0, got " << delta;
  const double count = std::ceil((limit - start) / delta);
  if (count > 1e15) return refuse("too-large") << "inputs: expected fewer than 1e15 numbers, got " << count;
  return std::max<int64_t>(0, static_cast<int64_t>(count));
}

Result<std::vector<TensorType>> infer_range(const InferContext& ctx) {
  const DType dtype = ctx.input(0).dtype;
  for (int k = 0; k < 3; ++k)
    if (const TensorType& type = ctx.input(k);
        !type.shape.empty() && !(type.rank() == 1 && is_const_int(type.shape[0], 1)))
      return refuse("rank-mismatch") << "input " << ctx.node.op->inputs[k].name << ": expected a scalar, got shape "
                                     << shape_text(type.shape);
  TensorType type{dtype, {ctx.data_dim(0, 0)}, {}};
  if (dtype.is_float()) {
    const auto start = float_at(ctx, ctx.inputs[0], 0), limit = float_at(ctx, ctx.inputs[1], 1),
               delta = float_at(ctx, ctx.inputs[2], 2);
    if (!start || !limit || !delta) return std::vector<TensorType>{std::move(type)};
    const Result<int64_t> count = float_count(*start, *limit, *delta);
    if (!count) return count.failure();
    type.shape[0] = *count;
    return std::vector<TensorType>{std::move(type)};
  }
  const auto start = int_elements(ctx, 0), limit = int_elements(ctx, 1), delta = int_elements(ctx, 2);
  if (!start || !limit || !delta || !known((*delta)[0])) return std::vector<TensorType>{std::move(type)};
  const int64_t step = *known((*delta)[0]);
  if (step == 0 || step == INT64_MIN)
    return refuse("bad-step") << "input delta: expected a step other than 0, got " << step;
  const Expr span = step > 0 ? (*limit)[0] - (*start)[0] : (*start)[0] - (*limit)[0];
  type.shape[0] = simplify_dim(max(ceil_div(span, std::abs(step)), 0));
  if (follows_elements(type)) {
    Elements elements;
    for (int64_t k = 0; k < *known(type.shape[0]); ++k) elements.push_back((*start)[0] + k * step);
    set_elements(type, std::move(elements));
  }
  return std::vector<TensorType>{std::move(type)};
}

Result<void> supports_range(const InferContext& ctx) {
  if (!ctx.input(0).dtype.is_float()) {
    if (Result<void> ok = require_elements(ctx, {0, 1, 2}); !ok) return ok;
    if (known((*int_elements(ctx, 2))[0])) return {};
  } else if (float_at(ctx, ctx.inputs[0], 0) && float_at(ctx, ctx.inputs[1], 1) && float_at(ctx, ctx.inputs[2], 2)) {
    return {};
  }
  return refuse("dynamic-shape")
         << "inputs: expected numbers known at compile time, got values that only the data gives; make them constants";
}

std::vector<Tensor> compute_range(const ComputeContext& ctx) {
  const DType dtype = ctx.output_type().dtype;
  // stash_type: 16-bit floats are computed in float32 in any case.
  const auto number = [&](int input) {
    if (dtype.is_float()) return make_const(compute_type(dtype), *float_at(ctx, ctx.input_types[input], input));
    return cast(dtype, (*int_elements(ctx, input))[0]);
  };
  return {compute("range", ctx.output_type().shape, [&](const Indices& i) {
    return cast(dtype, number(0) + cast(compute_type(dtype), i[0]) * number(2));
  })};
}

Result<void> reference_range(ReferenceContext& ctx) {
  const RefTensor &start = ctx.input(0), &limit = ctx.input(1), &delta = ctx.input(2);
  if (start.is_float()) {
    const Result<int64_t> count = float_count(start.f[0], limit.f[0], delta.f[0]);
    if (!count) return count.failure();
    RefTensor& y = make_output(ctx, start.dtype, {*count});
    for (int64_t k = 0; k < *count; ++k) y.f[k] = start.f[0] + static_cast<double>(k) * delta.f[0];
    return {};
  }
  const int64_t step = delta.i[0];
  if (step == 0) return Failure{"bad-step", "a range with step 0"};
  Dims values;
  for (int64_t v = start.i[0]; step > 0 ? v < limit.i[0] : v > limit.i[0];) {
    values.push_back(v);
    if (__builtin_add_overflow(v, step, &v)) break;
    if (values.size() > (size_t{1} << 30)) return Failure{"too-large", "a range of more than 2^30 numbers"};
  }
  make_output(ctx, start.dtype, {static_cast<int64_t>(values.size())}).i = std::move(values);
  return {};
}

}  // namespace

OpDef range() {
  const auto numbers = [](DType dtype, double start, double limit, double delta) {
    return std::vector<OpSample::Input>{known_scalar(dtype, start), known_scalar(dtype, limit),
                                        known_scalar(dtype, delta)};
  };
  return OpDef{
      .name = "Range",
      .since = 11,
      .doc = "The numbers start, start + delta, ... before limit.",
      .inputs = {{.name = "start", .types = TypeSet::kNumeric},
                 {.name = "limit", .types = TypeSet::kNumeric, .same_type_as = "start"},
                 {.name = "delta", .types = TypeSet::kNumeric, .same_type_as = "start"}},
      .attrs = {{.name = "stash_type", .kind = AttrKind::kInt, .default_value = int64_t{1}, .since = 27}},
      .fusion = FusionKind::kInjective,
      .infer = infer_range,
      .compute = compute_range,
      .supports = supports_range,
      .reference = reference_range,
      .samples =
          {
              {.name = "up", .inputs = numbers(kInt64, 1, 18, 1)},
              {.name = "down", .inputs = numbers(kInt32, 10, 3, -3)},
              {.name = "floats", .inputs = numbers(kFloat32, 1, 5, 0.75)},
              {.name = "half", .inputs = numbers(kFloat16, 0, 1, 0.125)},
              {.name = "nothing", .inputs = numbers(kInt64, 3, 3, 1)},
              {.name = "wrong_way", .inputs = numbers(kFloat64, 3, 5, -1)},
              {.name = "step_zero", .inputs = numbers(kInt64, 0, 3, 0), .error_id = "bad-step"},
              {.name = "vector",
               .inputs = {known_ints({1, 2}), known_scalar(kInt64, 5), known_scalar(kInt64, 1)},
               .error_id = "rank-mismatch"},
          },
  };
}

}  // namespace tensmith::graph::ops
