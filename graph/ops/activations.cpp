#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/unary_rule.h"

namespace tensmith::graph::ops {

namespace {

using P = UnaryParams;

AttrSpec real(const char* name, double value, int since = 1) {
  return {.name = name, .kind = AttrKind::kFloat, .default_value = value, .since = since};
}
Expr zero(const Expr& x) { return make_zero(x.dtype()); }
Expr num(const Expr& x, double value) { return constant_like(x, value); }

double ref_silu(double x, double alpha) { return x / (1 + std::exp(-alpha * x)); }
double ref_softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
double ref_gelu(double x, const std::string& approximate) {
  if (approximate == "tanh") return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
}

}  // namespace

/// Activation functions: one row each.
std::vector<OpDef> activations() {
  return make_unary_table({
      {.name = "Celu",
       .since = 12,
       .doc = "max(0, x) + min(0, alpha (exp(x / alpha) - 1)).",
       .attrs = {real("alpha", 1)},
       .body = [](const Expr& x,
                  const P& p) { return select(x > zero(x), x, expm1(x / num(x, p.number[0])) * num(x, p.number[0])); },
       .reference = [](double x, const P& p) { return x > 0 ? x : p.number[0] * std::expm1(x / p.number[0]); },
       .work = 12,
       .more_samples = {{.name = "alpha", .inputs = {f32({9})}, .attrs = attrs({{"alpha", 2.0}})}}},
      {.name = "Elu",
       .since = 6,
       .doc = "x above 0, else alpha (exp(x) - 1).",
       .attrs = {real("alpha", 1)},
       .body = [](const Expr& x, const P& p) { return select(x > zero(x), x, expm1(x) * num(x, p.number[0])); },
       .reference = [](double x, const P& p) { return x > 0 ? x : p.number[0] * std::expm1(x); },
       .work = 12,
       .more_samples = {{.name = "alpha", .inputs = {f32({9})}, .attrs = attrs({{"alpha", 2.0}})}}},
      {.name = "Gelu",
       .since = 20,
       .doc = "x times the normal distribution function of x, by erf or by the tanh formula.",
       .attrs = {{.name = "approximate",
                  .kind = AttrKind::kString,
                  .default_value = std::string("none"),
                  .allowed = {"none", "tanh"}}},
       .body = [](const Expr& x, const P& p) { return p.text == "tanh" ? gelu_tanh(x) : gelu_erf(x); },
       .reference = [](double x, const P& p) { return ref_gelu(x, p.text); },
       .work = 14,
       .more_samples = {{.name = "tanh", .inputs = {f32({3, 7})}, .attrs = attrs({{"approximate", "tanh"}})},
                        {.name = "unknown_formula",
                         .inputs = {f32({3})},
                         .attrs = attrs({{"approximate", "sigmoid"}}),
                         .error_id = "bad-attribute"}}},
      {.name = "Gelu",
       .domain = "com.microsoft",
       .doc = "x times the normal distribution function of x, by erf.",
       .body = [](const Expr& x, const P&) { return gelu_erf(x); },
       .reference = [](double x, const P&) { return ref_gelu(x, "none"); },
       .work = 14},
      {.name = "HardSigmoid",
       .since = 6,
       .doc = "max(0, min(1, alpha x + beta)).",
       .attrs = {real("alpha", 0.2), real("beta", 0.5)},
       .body = [](const Expr& x,
                  const P& p) { return max(zero(x), min(num(x, 1), x * num(x, p.number[0]) + num(x, p.number[1]))); },
       .reference =
           [](double x, const P& p) {
             const double y = p.number[0] * x + p.number[1];
             return y < 0 ? 0 : y > 1 ? 1 : y;
           },
       .work = 4},
      {.name = "HardSwish",
       .since = 14,
       .doc = "x max(0, min(1, x / 6 + 0.5)).",
       .body = [](const Expr& x,
                  const P&) { return x * max(zero(x), min(num(x, 1), x * num(x, 1.0 / 6) + num(x, 0.5))); },
       .reference =
           [](double x, const P&) {
             const double y = x / 6 + 0.5;
             return x * (y < 0 ? 0 : y > 1 ? 1 : y);
           },
       .low = -5,
       .high = 5,
       .work = 5},
      {.name = "LeakyRelu",
       .since = 6,
       .doc = "x from 0 on, else alpha x.",
       .attrs = {real("alpha", 0.01)},
       .body = [](const Expr& x, const P& p) { return select(x < zero(x), x * num(x, p.number[0]), x); },
       .reference = [](double x, const P& p) { return x < 0 ? p.number[0] * x : x; },
       .work = 2},
      {.name = "Mish",
       .since = 18,
       .doc = "x tanh(log(1 + exp(x))).",
       .body =
           [](const Expr& x, const P&) {
             return with_value("v", x, [](const Expr& v) { return v * call(Intrinsic::kTanh, {softplus(v)}); });
           },
       .reference = [](double x, const P&) { return x * std::tanh(ref_softplus(x)); },
       .work = 30},
      {.name = "QuickGelu",
       .domain = "com.microsoft",
       .doc = "x sigmoid(alpha x).",
       .attrs = {real("alpha", 1.702)},
       .body = [](const Expr& x, const P& p) { return x * call(Intrinsic::kSigmoid, {x * num(x, p.number[0])}); },
       .reference = [](double x, const P& p) { return ref_silu(x, p.number[0]); },
       .work = 12},
      {.name = "Relu",
       .since = 6,
       .types = TypeSet::kNumeric,
       .doc = "max(0, x); NaN stays.",
       .body = [](const Expr& x, const P&) { return max(x, zero(x)); },
       .reference = [](double x, const P&) { return x < 0 ? 0 : x; },
       .int_reference = [](int64_t x, DType type) { return type.is_uint() || x > 0 ? x : 0; },
       .more_samples = {{.name = "special", .inputs = {given(kFloat32, {4}, {NAN, -INFINITY, INFINITY, -0.0})}}}},
      {.name = "Selu",
       .since = 6,
       .doc = "gamma x above 0, else gamma alpha (exp(x) - 1).",
       .attrs = {real("alpha", 1.67326319217681884765625), real("gamma", 1.05070102214813232421875)},
       .body =
           [](const Expr& x, const P& p) {
             return select(x > zero(x), x * num(x, p.number[1]), expm1(x) * num(x, p.number[0] * p.number[1]));
           },
       .reference = [](double x, const P& p) { return p.number[1] * (x > 0 ? x : p.number[0] * std::expm1(x)); },
       .work = 12},
      {.name = "Shrink",
       .since = 9,
       .types = TypeSet::kNumeric,
       .doc = "x + bias below -lambd, x - bias above lambd, 0 between.",
       .attrs = {real("bias", 0), real("lambd", 0.5)},
       .body =
           [](const Expr& value, const P& p) {
             // Integers are compared and shifted as float64, as numpy does.
             const DType type = value.dtype();
             const Expr x = type.is_float() ? value : cast(kFloat64, value);
             const Expr low = select(x < num(x, -p.number[1]), x + num(x, p.number[0]), num(x, 0));
             return cast(type, select(x > num(x, p.number[1]), x - num(x, p.number[0]), low));
           },
       .reference =
           [](double x, const P& p) {
             return x < -p.number[1] ? x + p.number[0] : x > p.number[1] ? x - p.number[0] : 0;
           },
       .work = 4,
       .more_samples =
           {{.name = "soft", .inputs = {f32({9})}, .attrs = attrs({{"bias", 1.5}, {"lambd", 1.5}})},
            {.name = "int", .inputs = {in(kInt32, {9}, -5, 5)}, .attrs = attrs({{"bias", 1.0}, {"lambd", 1.5}})}}},
      {.name = "Softplus",
       .doc = "log(1 + exp(x)).",
       .body = [](const Expr& x, const P&) { return softplus(x); },
       .reference = [](double x, const P&) { return ref_softplus(x); },
       .work = 24},
      {.name = "Softsign",
       .doc = "x / (1 + |x|).",
       .body = [](const Expr& x, const P&) { return x / (call(Intrinsic::kAbs, {x}) + num(x, 1)); },
       .reference = [](double x, const P&) { return x / (1 + std::fabs(x)); },
       .work = 3},
      {.name = "Swish",
       .since = 24,
       .doc = "x sigmoid(alpha x).",
       .attrs = {real("alpha", 1)},
       .body =
           [](const Expr& x, const P& p) {
             return p.number[0] == 1 ? silu(x) : x * call(Intrinsic::kSigmoid, {x * num(x, p.number[0])});
           },
       .reference = [](double x, const P& p) { return ref_silu(x, p.number[0]); },
       .work = 12},
      {.name = "ThresholdedRelu",
       .since = 10,
       .doc = "x above alpha, else 0.",
       .attrs = {real("alpha", 1)},
       .body = [](const Expr& x, const P& p) { return select(x > num(x, p.number[0]), x, zero(x)); },
       .reference = [](double x, const P& p) { return x > p.number[0] ? x : 0; },
       .work = 2},
  });
}

}  // namespace tensmith::graph::ops
