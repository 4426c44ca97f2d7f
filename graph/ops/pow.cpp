#include <cmath>
#include <optional>

#include "graph/ops/arith.h"
#include "graph/ops/binary_rule.h"
#include "graph/ops/op_list.h"
#include "graph/ops/ref_loops.h"
#include "graph/ops/sample.h"
#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

namespace {

/// b to the power e for integers, by squaring over the six lowest bits of e (from 2^6 on all but trivial powers have
/// wrapped anyway). A negative exponent gives 1 / b^|e| truncated: 0 unless b is 1 or -1.
Expr int_power(const Expr& base, const Expr& exponent) {
  const DType type = base.dtype();
  const Expr one = make_const_int(type, 1), zero = make_zero(type);
  return with_value("b", base, [&](const Expr& b) {
    return with_value("e", cast(kInt64, exponent), [&](const Expr& e) {
      const auto bit = [&](int k) { return Binary::make(BinaryOp::kAnd, e, Expr(int64_t{1} << k)) != Expr(0); };
      std::function<Expr(int, const Expr&, const Expr&)> step = [&](int k, const Expr& power,
                                                                    const Expr& result) -> Expr {
        const Expr next = select(bit(k), result * power, result);
        if (k == 5) return next;
        return with_value("r", next, [&](const Expr& r) {
          return with_value("p", power * power, [&](const Expr& p) { return step(k + 1, p, r); });
        });
      };
      const Expr odd = bit(0);
      const Expr minus_one = type.is_uint() ? make_bool(false) : b == make_const_int(type, -1);
      const Expr inverse = select(b == one, one, select(minus_one, select(odd, b, one), zero));
      return select(e < Expr(0), inverse, step(0, b, one));
    });
  });
}

int64_t int_power_reference(int64_t base, int64_t exponent, DType type) {
  const bool minus_one = type.is_int() && base == -1;
  if (exponent < 0) return base == 1 ? 1 : minus_one ? (exponent & 1 ? -1 : 1) : 0;
  uint64_t result = 1, power = static_cast<uint64_t>(base);
  for (int64_t e = exponent & 63; e; e >>= 1, power *= power)
    if (e & 1) result *= power;
  return static_cast<int64_t>(result);
}

/// The exponent when it is one number known at compile time.
std::optional<double> constant_exponent(const Constant* exponent) {
  if (!exponent || exponent->num_elements() != 1) return {};
  return exponent->float_at(0);
}

/// Small powers without a call; each is exact or rounds once more than pow does.
Expr known_power(const Expr& value, double e, Expr fallback) {
  return with_value("x", value, [&](const Expr& x) {
    const Expr one = constant_like(x, 1);
    if (e == 0) return one;
    if (e == 1) return x;
    if (e == 2) return x * x;
    if (e == 3) return x * x * x;
    if (e == 4) return with_value("s", x * x, [](const Expr& s) { return s * s; });
    if (e == -1) return one / x;
    if (e == -2) return one / (x * x);
    // pow(-inf, 0.5) is +inf where sqrt gives NaN.
    if (e == 0.5) return select(x == min_value(x.dtype()), max_value(x.dtype()), call(Intrinsic::kSqrt, {x}));
    return fallback;
  });
}

/// Both operands are brought to the wider float type, as numpy does; the result is rounded to the base's type.
Expr power(const Expr& base, const Expr& exponent, std::optional<double> known_exponent) {
  const DType b = base.dtype(), e = exponent.dtype();
  if (b.is_integral() && e.is_integral()) return int_power(base, exponent);
  DType type = compute_type(b);
  if (!b.is_float()) type = kFloat64;
  else if (e.is_float() && compute_type(e).bits > type.bits) type = compute_type(e);
  const Expr wide = cast(type, base);
  Expr general = call(Intrinsic::kPow, {wide, cast(type, exponent)});
  if (known_exponent) general = known_power(wide, *known_exponent, general);
  return cast(b, general);
}

}  // namespace

OpDef pow() {
  return OpDef{
      .name = "Pow",
      .since = 7,
      .doc = "a to the power b, of the type of a. Integer powers wrap; their exponent is taken modulo 64.",
      .inputs = {{.name = "X", .types = TypeSet::kNumeric}, {.name = "Y", .types = TypeSet::kNumeric}},
      .fusion = FusionKind::kElementwise,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        Result<TensorType> type = infer_broadcast(ctx, ctx.input(0).dtype);
        if (!type) return type.failure();
        return std::vector<TensorType>{*type};
      },
      .compute =
          [](const ComputeContext& ctx) {
            const auto exponent = constant_exponent(ctx.constants.at(1));
            return std::vector<Tensor>{compute("pow", ctx.output_type().shape, [&](const Indices& i) {
              return power(broadcast_load(ctx.input(0), i), broadcast_load(ctx.input(1), i), exponent);
            })};
          },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const RefTensor &a = ctx.input(0), &b = ctx.input(1);
        RefTensor& y = ctx.output();
        for_each_broadcast<2>(y.shape, {&a.shape, &b.shape}, [&](int64_t k, const std::array<int64_t, 2>& at) {
          if (!a.is_float() && !b.is_float())
            y.i[k] = wrap_int(y.dtype, int_power_reference(a.i[at[0]], b.i[at[1]], a.dtype));
          else y.set(k, std::pow(a.get(at[0]), b.get(at[1])));
        });
        return {};
      },
      .flops =
          [](const InferContext& ctx) {
            double count = 20;
            for (const Expr& dim : ctx.input(0).shape) count *= static_cast<double>(known(dim).value_or(1));
            return count;
          },
      .samples =
          {{.name = "float", .inputs = {f32({3, 5}, 0.1, 3), f32({5})}},
           {.name = "square", .inputs = {f32({17}), known_scalar(kFloat32, 2)}},
           {.name = "root", .inputs = {f32({4}, 0, 4), known_scalar(kFloat32, 0.5)}},
           {.name = "cube", .inputs = {f32({4}), known_scalar(kFloat32, 3)}},
           {.name = "inverse_square", .inputs = {f32({4}, 1, 2), known_scalar(kFloat32, -2)}},
           {.name = "other", .inputs = {f32({4}, 0.5, 2), known_scalar(kFloat32, 1.7)}},
           {.name = "int_exponent", .inputs = {f32({4}), in(kInt64, {4}, 0, 5)}},
           {.name = "int",
            .inputs = {given(kInt32, {6}, {2, 3, -2, 1, -1, 5}), given(kInt32, {6}, {10, 4, 3, -5, -3, -1})}},
           {.name = "int64_exact", .inputs = {given(kInt64, {2}, {3, -7}), given(kInt64, {2}, {39, 21})}},
           {.name = "int_base_float_exponent", .inputs = {in(kInt32, {4}, 1, 9), f32({4}, 0, 3)}},
           {.name = "half", .inputs = {in(kFloat16, {4}, 0.1, 2), in(kFloat16, {4})}, .rtol = 2e-3, .atol = 1e-3},
           {.name = "scalars", .inputs = {f32({}, 1, 2), f32({})}},
           {.name = "dims_differ", .inputs = {f32({2, 3}), f32({2})}, .error_id = "shape-mismatch"}},
  };
}

}  // namespace tensmith::graph::ops
