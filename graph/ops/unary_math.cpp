#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/unary_rule.h"

namespace tensmith::graph::ops {

namespace {

using P = UnaryParams;

/// A row whose body is one intrinsic.
UnaryRow function(const char* name, int since, const char* doc, Intrinsic id, double (*reference)(double),
                  double low = -3, double high = 3) {
  return {.name = name,
          .since = since,
          .doc = doc,
          .body = [id](const Expr& x, const P&) { return call(id, {x}); },
          .reference = [reference](double x, const P&) { return reference(x); },
          .low = low,
          .high = high,
          .work = 10};
}

/// The same for one machine instruction that rounds to whole numbers.
UnaryRow rounding(const char* name, int since, const char* doc, Intrinsic id, double (*reference)(double)) {
  UnaryRow row = function(name, since, doc, id, reference);
  row.keeps_whole = true;
  row.work = 1;
  return row;
}

Expr sign_of(const Expr& value) {
  return with_value("x", value, [](const Expr& x) {
    const Expr zero = make_zero(x.dtype()), one = make_const_int(x.dtype(), 1);
    // NaN and zero give themselves.
    const Expr not_above = x.dtype().is_uint() ? x : select(x < zero, make_const_int(x.dtype(), -1), x);
    return select(x > zero, one, not_above);
  });
}

double round_half_even(double x) { return std::nearbyint(x); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

/// Elementary functions: one row each.
std::vector<OpDef> unary_math() {
  return make_unary_table({
      {.name = "Abs",
       .since = 6,
       .types = TypeSet::kNumeric,
       .doc = "The absolute value; the lowest signed integer stays.",
       .body = [](const Expr& x, const P&) { return x.dtype().is_uint() ? x : call(Intrinsic::kAbs, {x}); },
       .reference = [](double x, const P&) { return std::fabs(x); },
       .int_reference =
           [](int64_t x, DType type) {
             return type.is_uint() || x >= 0 ? x : static_cast<int64_t>(-static_cast<uint64_t>(x));
           }},
      function("Acos", 7, "The arc cosine in radians.", Intrinsic::kAcos, std::acos, -1, 1),
      function("Acosh", 9, "The inverse hyperbolic cosine.", Intrinsic::kAcosh, std::acosh, 1, 5),
      function("Asin", 7, "The arc sine in radians.", Intrinsic::kAsin, std::asin, -1, 1),
      function("Asinh", 9, "The inverse hyperbolic sine.", Intrinsic::kAsinh, std::asinh),
      function("Atan", 7, "The arc tangent in radians.", Intrinsic::kAtan, std::atan),
      function("Atanh", 9, "The inverse hyperbolic tangent.", Intrinsic::kAtanh, std::atanh, -0.9, 0.9),
      rounding("Ceil", 6, "The least integer not below x.", Intrinsic::kCeil, std::ceil),
      function("Cos", 7, "The cosine of radians.", Intrinsic::kCos, std::cos),
      function("Cosh", 9, "The hyperbolic cosine.", Intrinsic::kCosh, std::cosh),
      function("Erf", 9, "The Gauss error function.", Intrinsic::kErf, std::erf),
      function("Exp", 6, "e to the power of x.", Intrinsic::kExp, std::exp),
      rounding("Floor", 6, "The greatest integer not above x.", Intrinsic::kFloor, std::floor),
      function("Log", 6, "The natural logarithm.", Intrinsic::kLog, std::log, 0.1, 4),
      {.name = "Neg",
       .since = 6,
       .types = TypeSet::kSigned,
       .doc = "-x.",
       .body = [](const Expr& x, const P&) { return -x; },
       .reference = [](double x, const P&) { return -x; },
       .int_reference = [](int64_t x, DType) { return static_cast<int64_t>(-static_cast<uint64_t>(x)); }},
      {.name = "Reciprocal",
       .since = 6,
       .doc = "1 / x.",
       .body = [](const Expr& x, const P&) { return constant_like(x, 1) / x; },
       .reference = [](double x, const P&) { return 1 / x; },
       .low = 0.5},
      rounding("Round", 11, "The nearest integer; halves go to the even one.", Intrinsic::kRoundEven, round_half_even),
      function("Sigmoid", 6, "1 / (1 + exp(-x)).", Intrinsic::kSigmoid, sigmoid),
      {.name = "Sign",
       .since = 9,
       .types = TypeSet::kNumeric,
       .doc = "-1, 0 or 1; NaN stays.",
       .body = [](const Expr& x, const P&) { return sign_of(x); },
       .reference = [](double x, const P&) { return x > 0   ? 1
                                                    : x < 0 ? -1
                                                            : x; },
       .int_reference = [](int64_t x, DType type) -> int64_t { return x == 0                    ? 0
                                                                      : type.is_uint() || x > 0 ? 1
                                                                                                : -1; }},
      function("Sin", 7, "The sine of radians.", Intrinsic::kSin, std::sin),
      function("Sinh", 9, "The hyperbolic sine.", Intrinsic::kSinh, std::sinh),
      function("Sqrt", 6, "The square root; NaN for negative numbers.", Intrinsic::kSqrt, std::sqrt, 0, 4),
      function("Tan", 7, "The tangent of radians.", Intrinsic::kTan, std::tan, -1.4, 1.4),
      function("Tanh", 6, "The hyperbolic tangent.", Intrinsic::kTanh, std::tanh),
      {.name = "BitwiseNot",
       .since = 18,
       .types = TypeSet::kInteger,
       .doc = "Every bit turned.",
       .body = [](const Expr& x, const P&) { return Not::make(x); },
       .int_reference = [](int64_t x, DType) { return ~x; }},
      {.name = "IsInf",
       .since = 10,
       .doc = "Whether x is infinite, of the signs asked for.",
       .attrs = {{.name = "detect_negative", .kind = AttrKind::kInt, .default_value = int64_t{1}},
                 {.name = "detect_positive", .kind = AttrKind::kInt, .default_value = int64_t{1}}},
       .body =
           [](const Expr& x, const P& p) {
             if (p.number[0] != 0 && p.number[1] != 0) return call(Intrinsic::kIsInf, {x});
             if (p.number[0] == 0 && p.number[1] == 0) return make_bool(false);
             return x == (p.number[0] != 0 ? min_value(x.dtype()) : max_value(x.dtype()));
           },
       .reference = [](double x, const P& p) -> double { return std::isinf(x) && p.number[x < 0 ? 0 : 1] != 0; },
       .gives_bool = true,
       .more_samples = {{.name = "signs", .inputs = {given(kFloat32, {5}, {1, INFINITY, -INFINITY, NAN, 0})}},
                        {.name = "negative",
                         .inputs = {given(kFloat32, {3}, {INFINITY, -INFINITY, NAN})},
                         .attrs = attrs({{"detect_positive", 0}})},
                        {.name = "neither",
                         .inputs = {f32({3})},
                         .attrs = attrs({{"detect_positive", 0}, {"detect_negative", 0}})}}},
      {.name = "IsNaN",
       .since = 9,
       .doc = "Whether x is not a number.",
       .body = [](const Expr& x, const P&) { return call(Intrinsic::kIsNan, {x}); },
       .reference = [](double x, const P&) -> double { return std::isnan(x); },
       .gives_bool = true,
       .more_samples = {{.name = "some", .inputs = {given(kFloat32, {4}, {1, NAN, -INFINITY, 0})}}}},
      {.name = "Not",
       .types = TypeSet::kBool,
       .doc = "Logical not.",
       .body = [](const Expr& x, const P&) { return logical_not(x); },
       .int_reference = [](int64_t x, DType) -> int64_t { return x == 0; }},
  });
}

}  // namespace tensmith::graph::ops
