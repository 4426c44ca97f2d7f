#include <algorithm>
#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/binary_rule.h"
#include "graph/ops/op_list.h"
#include "graph/ops/ref_loops.h"
#include "graph/ops/sample.h"
#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

namespace {

struct Row {
  const char* name;
  int since;
  TypeSet types;
  const char* doc;
  Expr (*body)(const Expr& a, const Expr& b);
  double (*reference)(double a, double b);
  int64_t (*int_reference)(int64_t a, int64_t b, DType type);
  bool average = false;
};

bool less(int64_t a, int64_t b, DType type) {
  return type.is_uint() ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b;
}

std::vector<OpSample> samples(const Row& row) {
  std::vector<OpSample> list = {
      {.name = "one", .inputs = {f32({3})}},
      {.name = "two_broadcast", .inputs = {f32({3, 1}), f32({4})}},
      {.name = "three", .inputs = {f32({2, 3}), f32({3}), f32({})}},
      {.name = "four", .inputs = {f32({17}), f32({17}), f32({1}), f32({17})}},
      {.name = "half", .inputs = {in(kFloat16, {5}), in(kFloat16, {5}), in(kFloat16, {5})}, .rtol = 2e-3, .atol = 1e-3},
      {.name = "special", .inputs = {given(kFloat32, {3}, {NAN, 1, INFINITY}), given(kFloat32, {3}, {1, NAN, 2})}},
      {.name = "dims_differ", .inputs = {f32({3}), f32({4})}, .error_id = "shape-mismatch"},
  };
  if (row.int_reference) {
    list.push_back({.name = "int", .inputs = {in(kInt32, {4}, -9, 9), in(kInt32, {4}, -9, 9)}});
    list.push_back({.name = "uint64", .inputs = {given(kUInt64, {2}, {1e19, 3}), given(kUInt64, {2}, {5, 1e19})}});
  }
  return list;
}

OpDef make(const Row& row) {
  OpDef op{
      .name = row.name,
      .since = row.since,
      .doc = row.doc,
      .inputs = {{.name = "data", .types = row.types, .variadic = true, .same_type_as = "data"}},
      .fusion = FusionKind::kElementwise,
      .infer = nullptr,
      .samples = samples(row),
  };
  op.infer = [body = row.body, average = row.average](const InferContext& ctx) -> Result<std::vector<TensorType>> {
    Result<TensorType> type = infer_broadcast(ctx, ctx.input(0).dtype);
    if (!type) return type.failure();
    TensorType result = *type;
    if (!average && !result.dtype.is_uint())
      propagate_values(ctx, result,
                       {.whole =
                            [&](const std::vector<Expr>& args) {
                              Expr value = args[0];
                              for (size_t k = 1; k < args.size(); ++k) value = body(value, args[k]);
                              return value;
                            },
                        .whole_of_floats = true});
    return std::vector<TensorType>{std::move(result)};
  };
  op.compute = [row](const ComputeContext& ctx) {
    const DType result = ctx.output_type().dtype;
    return std::vector<Tensor>{compute(row.name, ctx.output_type().shape, [&](const Indices& i) {
      Expr value = widen(broadcast_load(ctx.input(0), i));
      for (size_t k = 1; k < ctx.inputs.size(); ++k) value = row.body(value, widen(broadcast_load(ctx.inputs[k], i)));
      if (row.average && ctx.inputs.size() > 1)
        value = value / constant_like(value, static_cast<double>(ctx.inputs.size()));
      return cast(result, value);
    })};
  };
  op.reference = [row](ReferenceContext& ctx) -> Result<void> {
    RefTensor& y = ctx.output();
    for (size_t n = 0; n < ctx.inputs.size(); ++n) {
      const RefTensor& x = *ctx.inputs[n];
      for_each_broadcast<1>(y.shape, {&x.shape}, [&](int64_t k, const std::array<int64_t, 1>& at) {
        if (x.is_float()) y.f[k] = n == 0 ? x.f[at[0]] : row.reference(y.f[k], x.f[at[0]]);
        else y.i[k] = n == 0 ? x.i[at[0]] : row.int_reference(y.i[k], x.i[at[0]], x.dtype);
      });
    }
    if (row.average)
      for (double& value : y.f) value /= static_cast<double>(ctx.inputs.size());
    return {};
  };
  op.flops = [](const InferContext& ctx) {
    double total = 0;
    for (const TensorType* input : ctx.inputs) {
      double count = 1;
      for (const Expr& dim : input->shape) count *= static_cast<double>(known(dim).value_or(1));
      total = std::max(total, count);
    }
    return total * static_cast<double>(ctx.inputs.size());
  };
  return op;
}

}  // namespace

/// Elementwise operators of any number of tensors.
std::vector<OpDef> variadic() {
  const Row rows[] = {
      {"Max", 8, TypeSet::kNumeric, "The greatest of all inputs; NaN if one is.",
       [](const Expr& a, const Expr& b) { return max(a, b); },
       [](double a, double b) { return a != a || a > b ? a : b; },
       [](int64_t a, int64_t b, DType type) { return less(a, b, type) ? b : a; }},
      {"Mean", 8, TypeSet::kFloat, "The mean of all inputs.", [](const Expr& a, const Expr& b) { return a + b; },
       [](double a, double b) { return a + b; }, nullptr, true},
      {"Min", 8, TypeSet::kNumeric, "The least of all inputs; NaN if one is.",
       [](const Expr& a, const Expr& b) { return min(a, b); },
       [](double a, double b) { return a != a || a < b ? a : b; },
       [](int64_t a, int64_t b, DType type) { return less(a, b, type) ? a : b; }},
      {"Sum", 8, TypeSet::kFloat, "The sum of all inputs.", [](const Expr& a, const Expr& b) { return a + b; },
       [](double a, double b) { return a + b; }, nullptr},
  };
  std::vector<OpDef> list;
  for (const Row& row : rows) list.push_back(make(row));
  return list;
}

}  // namespace tensmith::graph::ops
