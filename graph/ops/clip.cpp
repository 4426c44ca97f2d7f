#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

namespace {

/// A limit is one element; some exporters write it with shape [1].
Result<void> check_limit(const InferContext& ctx, int input, const char* name) {
  if (!ctx.has(input)) return {};
  for (const Expr& dim : ctx.input(input).shape)
    if (!is_const_int(dim, 1))
      return refuse("shape-mismatch") << "input " << name << ": expected one element, got shape "
                                      << shape_text(ctx.input(input).shape);
  return {};
}

Expr only_element(const Tensor& tensor) { return tensor(Indices(static_cast<size_t>(tensor.rank()), Expr(0))); }

bool less(const RefTensor& a, int64_t i, const RefTensor& b, int64_t j) {
  if (a.is_float()) return a.f[i] < b.f[j];
  return a.dtype.is_uint() ? static_cast<uint64_t>(a.i[i]) < static_cast<uint64_t>(b.i[j]) : a.i[i] < b.i[j];
}

}  // namespace

OpDef clip() {
  return OpDef{
      .name = "Clip",
      .since = 11,
      .doc = "min(max(x, low), high); NaN stays, and where low > high the result is high.",
      .inputs = {{.name = "input", .types = TypeSet::kNumeric},
                 {.name = "min", .types = TypeSet::kNumeric, .optional = true, .same_type_as = "input"},
                 {.name = "max", .types = TypeSet::kNumeric, .optional = true, .same_type_as = "input"}},
      .attrs = {{.name = "min", .kind = AttrKind::kFloat, .no_default = true, .until = 10, .becomes_input = 1},
                {.name = "max", .kind = AttrKind::kFloat, .no_default = true, .until = 10, .becomes_input = 2}},
      .fusion = FusionKind::kElementwise,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        for (int k = 1; k < 3; ++k)
          if (Result<void> ok = check_limit(ctx, k, k == 1 ? "min" : "max"); !ok) return ok.failure();
        return std::vector<TensorType>{TensorType{ctx.input(0).dtype, ctx.input(0).shape, {}}};
      },
      .compute =
          [](const ComputeContext& ctx) {
            const Tensor& x = ctx.input(0);
            return std::vector<Tensor>{compute("clip", x.shape(), [&](const Indices& i) {
              Expr value = widen(x(i));
              // A limit known at compile time goes into the expression, so that it needs no load.
              const auto limit = [&](int k) {
                const Constant* known_limit = ctx.constants.at(k);
                if (!known_limit) return widen(only_element(ctx.input(k)));
                return value.dtype().is_float() ? make_const(value.dtype(), known_limit->float_at(0))
                                                : make_const_int(value.dtype(), known_limit->int_at(0));
              };
              if (ctx.has(1)) value = max(value, limit(1));
              if (ctx.has(2)) value = min(value, limit(2));
              return cast(x.dtype(), value);
            })};
          },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        RefTensor& y = ctx.output();
        y = ctx.input(0);
        const auto replace = [&](int64_t k, const RefTensor& by) {
          if (y.is_float()) y.f[k] = by.f[0];
          else y.i[k] = by.i[0];
        };
        for (int64_t k = 0, count = y.num_elements(); k < count; ++k) {
          if (ctx.has(1) && less(y, k, ctx.input(1), 0)) replace(k, ctx.input(1));
          if (ctx.has(2) && less(ctx.input(2), 0, y, k)) replace(k, ctx.input(2));
        }
        return {};
      },
      .samples = {{.name = "both", .inputs = {f32({3, 5}), known_scalar(kFloat32, -0.5), known_scalar(kFloat32, 1)}},
                  {.name = "min_only", .inputs = {f32({17}), known_scalar(kFloat32, 0)}},
                  {.name = "max_only", .inputs = {f32({17}), absent(), known_scalar(kFloat32, 0.25)}},
                  {.name = "neither", .inputs = {f32({3})}},
                  {.name = "limits_computed",
                   .inputs = {f32({9}), given(kFloat32, {}, {-1}), given(kFloat32, {1}, {1})}},
                  {.name = "limits_crossed",
                   .inputs = {f32({9}), known_scalar(kFloat32, 1), known_scalar(kFloat32, -1)}},
                  {.name = "nan",
                   .inputs = {given(kFloat32, {2}, {NAN, 5}), known_scalar(kFloat32, 0), known_scalar(kFloat32, 1)}},
                  {.name = "int8", .inputs = {in(kInt8, {5}, -9, 9), known_scalar(kInt8, -3), known_scalar(kInt8, 4)}},
                  {.name = "uint64",
                   .inputs = {given(kUInt64, {2}, {1e19, 1}), known_scalar(kUInt64, 2), known_scalar(kUInt64, 1.5e19)}},
                  {.name = "half",
                   .inputs = {in(kFloat16, {5}), known_scalar(kFloat16, 0), known_scalar(kFloat16, 1)},
                   .rtol = 1e-3},
                  {.name = "scalar", .inputs = {f32({}), known_scalar(kFloat32, 0), known_scalar(kFloat32, 6)}},
                  {.name = "limit_is_vector", .inputs = {f32({3}), f32({3})}, .error_id = "shape-mismatch"}},
  };
}

}  // namespace tensmith::graph::ops
