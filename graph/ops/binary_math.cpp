#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/binary_rule.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

namespace {

using A = AttrMap;

uint64_t u(int64_t x) { return static_cast<uint64_t>(x); }

/// Truncating division: the definition of ONNX's Div on integers; by zero gives 0, as in the loop IR.
int64_t divide(int64_t a, int64_t b, DType type) {
  if (b == 0) return 0;
  if (type.is_uint()) return static_cast<int64_t>(u(a) / u(b));
  return b == -1 ? static_cast<int64_t>(-u(a)) : a / b;
}

/// Remainder with the sign of the divisor (fmod = 0) or of the dividend (fmod = 1).
int64_t remainder(int64_t a, int64_t b, DType type, bool truncate) {
  if (b == 0) return 0;
  if (type.is_uint()) return static_cast<int64_t>(u(a) % u(b));
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return !truncate && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

bool less(int64_t a, int64_t b, DType type) { return type.is_uint() ? u(a) < u(b) : a < b; }

/// 0 or 1 when the comparison of two index expressions is decided, else null.
Expr decided(const Expr& a, const Expr& b, bool (*compare)(int64_t, int64_t)) {
  const auto x = known(a), y = known(b);
  return x && y ? Expr(int64_t{compare(*x, *y)}) : Expr();
}

OpSample two(const char* name, DType type, std::vector<double> a, std::vector<double> b, AttrMap attributes = {}) {
  const auto n = static_cast<int64_t>(a.size());
  return {.name = name,
          .inputs = {given(type, {n}, std::move(a)), given(type, {n}, std::move(b))},
          .attrs = std::move(attributes)};
}

Expr remainder_body(const Expr& a, const Expr& b, const A& attrs) {
  if (a.dtype().is_float()) return float_remainder(a, b);
  return attrs.get_int("fmod", 0) ? trunc_mod(a, b) : floor_mod(a, b);
}

}  // namespace

/// Arithmetic on two tensors: one row each.
std::vector<OpDef> binary_math() {
  return make_binary_table({
      {.name = "Add",
       .doc = "a + b; integers wrap.",
       .body = [](const Expr& a, const Expr& b, const A&) { return a + b; },
       .reference = [](double a, double b, const A&) { return a + b; },
       .int_reference = [](int64_t a, int64_t b, DType, const A&) { return static_cast<int64_t>(u(a) + u(b)); },
       .known_value = [](const Expr& a, const Expr& b) { return a + b; },
       .whole_of_floats = true},
      {.name = "Div",
       .doc = "a / b; integers truncate.",
       .body = [](const Expr& a, const Expr& b, const A&) { return a.dtype().is_float() ? a / b : trunc_div(a, b); },
       .reference = [](double a, double b, const A&) { return a / b; },
       .int_reference = [](int64_t a, int64_t b, DType type, const A&) { return divide(a, b, type); },
       .known_value =
           [](const Expr& a, const Expr& b) {
             const auto divisor = known(b);
             if (!divisor || *divisor == 0) return Expr();
             return *divisor > 0 && non_negative(a) ? floor_div(a, b) : trunc_div(a, b);
           },
       .low_b = 1,
       .high_b = 4,
       .more_samples = {two("signs", kInt32, {7, -7, 7, -7, 5}, {2, 2, -2, -2, 0}),
                        two("double", kFloat64, {1, -1}, {3, 3})}},
      {.name = "Mod",
       .since = 10,
       .doc = "The remainder with the sign of b (fmod=0, integers) or of a (fmod=1).",
       .attrs = {{.name = "fmod", .kind = AttrKind::kInt, .default_value = int64_t{0}}},
       .body = remainder_body,
       .reference = [](double a, double b, const A&) { return std::fmod(a, b); },
       .int_reference = [](int64_t a, int64_t b, DType type,
                           const A& attrs) { return remainder(a, b, type, attrs.get_int("fmod", 0) != 0); },
       .check = [](const InferContext& ctx) -> Result<void> {
         if (!ctx.input(0).dtype.is_float() || ctx.node.attrs.get_int("fmod", 0) == 1) return {};
         return refuse("bad-attribute") << "attribute fmod: expected 1 for " << to_string(ctx.input(0).dtype)
                                        << ", got 0";
       },
       .low_b = 1,
       .high_b = 4,
       .sample_attrs = attrs({{"fmod", 1}}),
       .more_samples = {two("signs", kInt64, {7, -7, 7, -7, 5}, {3, 3, -3, -3, 0}),
                        two("truncate", kInt8, {7, -7, 7, -7}, {3, 3, -3, -3}, attrs({{"fmod", 1}})),
                        two("float", kFloat32, {7.5, -7.5, 7.5, -4.25, 1e6, 2, 3, INFINITY, 3},
                            {3, 3, -3, 2, 0.7, INFINITY, 1, 2, 0}, attrs({{"fmod", 1}})),
                        two("half", kFloat16, {7.5, -7.5, 7.5}, {3, 3, -2.5}, attrs({{"fmod", 1}})),
                        {.name = "float_without_fmod", .inputs = {f32({2}), f32({2})}, .error_id = "bad-attribute"}}},
      {.name = "Mul",
       .doc = "a b; integers wrap.",
       .body = [](const Expr& a, const Expr& b, const A&) { return a * b; },
       .reference = [](double a, double b, const A&) { return a * b; },
       .int_reference = [](int64_t a, int64_t b, DType, const A&) { return static_cast<int64_t>(u(a) * u(b)); },
       .known_value = [](const Expr& a, const Expr& b) { return a * b; },
       .whole_of_floats = true},
      {.name = "Sub",
       .doc = "a - b; integers wrap.",
       .body = [](const Expr& a, const Expr& b, const A&) { return a - b; },
       .reference = [](double a, double b, const A&) { return a - b; },
       .int_reference = [](int64_t a, int64_t b, DType, const A&) { return static_cast<int64_t>(u(a) - u(b)); },
       .known_value = [](const Expr& a, const Expr& b) { return a - b; },
       .whole_of_floats = true},
      {.name = "BitShift",
       .since = 11,
       .types = TypeSet::kInteger,
       .doc = "a shifted by b bits to the left or right; a count of the width or more gives 0.",
       .attrs = {{.name = "direction", .kind = AttrKind::kString, .required = true, .allowed = {"LEFT", "RIGHT"}}},
       .body =
           [](const Expr& a, const Expr& b, const A& attrs) {
             return Binary::make(attrs.get_string("direction", "") == "LEFT" ? BinaryOp::kShl : BinaryOp::kShr, a, b);
           },
       .int_reference = [](int64_t a, int64_t b, DType type, const A& attrs) -> int64_t {
         if (u(b) >= type.bits) return 0;
         return attrs.get_string("direction", "") == "LEFT" ? static_cast<int64_t>(u(a) << b)
                                                            : static_cast<int64_t>(u(a) >> b);
       },
       .low_b = 1,
       .high_b = 7,
       .sample_attrs = attrs({{"direction", "LEFT"}}),
       .more_samples = {two("left", kUInt8, {1, 255, 3, 7}, {1, 4, 0, 9}, attrs({{"direction", "LEFT"}})),
                        two("right", kUInt32, {16, 4e9, 3, 7}, {1, 4, 0, 40}, attrs({{"direction", "RIGHT"}}))}},
      {.name = "BitwiseAnd",
       .since = 18,
       .types = TypeSet::kInteger,
       .doc = "Bits set in both.",
       .body = [](const Expr& a, const Expr& b, const A&) { return Binary::make(BinaryOp::kAnd, a, b); },
       .int_reference = [](int64_t a, int64_t b, DType, const A&) { return a & b; }},
      {.name = "BitwiseOr",
       .since = 18,
       .types = TypeSet::kInteger,
       .doc = "Bits set in either.",
       .body = [](const Expr& a, const Expr& b, const A&) { return Binary::make(BinaryOp::kOr, a, b); },
       .int_reference = [](int64_t a, int64_t b, DType, const A&) { return a | b; }},
      {.name = "BitwiseXor",
       .since = 18,
       .types = TypeSet::kInteger,
       .doc = "Bits set in one of both.",
       .body = [](const Expr& a, const Expr& b, const A&) { return Binary::make(BinaryOp::kXor, a, b); },
       .int_reference = [](int64_t a, int64_t b, DType, const A&) { return a ^ b; }},
      {.name = "And",
       .types = TypeSet::kBool,
       .doc = "Logical and.",
       .body = [](const Expr& a, const Expr& b, const A&) { return a && b; },
       .int_reference = [](int64_t a, int64_t b, DType, const A&) { return a & b; },
       .known_value =
           [](const Expr& a, const Expr& b) {
             return decided(a, b, [](int64_t x, int64_t y) { return x != 0 && y != 0; });
           }},
      {.name = "Or",
       .types = TypeSet::kBool,
       .doc = "Logical or.",
       .body = [](const Expr& a, const Expr& b, const A&) { return a || b; },
       .int_reference = [](int64_t a, int64_t b, DType, const A&) { return a | b; },
       .known_value =
           [](const Expr& a, const Expr& b) {
             return decided(a, b, [](int64_t x, int64_t y) { return x != 0 || y != 0; });
           }},
      {.name = "Xor",
       .types = TypeSet::kBool,
       .doc = "Logical exclusive or.",
       .body = [](const Expr& a, const Expr& b, const A&) { return Binary::make(BinaryOp::kXor, a, b); },
       .int_reference = [](int64_t a, int64_t b, DType, const A&) { return a ^ b; }},
      {.name = "Equal",
       .types = TypeSet::kAny,
       .doc = "Whether a equals b; false with NaN.",
       .body = [](const Expr& a, const Expr& b, const A&) { return a == b; },
       .reference = [](double a, double b, const A&) -> double { return a == b; },
       .int_reference = [](int64_t a, int64_t b, DType, const A&) -> int64_t { return a == b; },
       .known_value =
           [](const Expr& a, const Expr& b) {
             if (same_dim(a, b)) return Expr(1);
             // A dim is never negative, so it differs from the -1 that Reshape uses as a sign.
             const auto x = known(a), y = known(b);
             if ((x && *x < 0 && non_negative(b)) || (y && *y < 0 && non_negative(a))) return Expr(0);
             return decided(a, b, [](int64_t p, int64_t q) { return p == q; });
           },
       .gives_bool = true,
       .more_samples = {two("special", kFloat32, {NAN, INFINITY, 0, 1}, {NAN, INFINITY, -0.0, 2}),
                        two("ties", kInt64, {1, 2, 3}, {1, 3, 3})}},
      {.name = "Greater",
       .doc = "Whether a > b; false with NaN.",
       .body = [](const Expr& a, const Expr& b, const A&) { return a > b; },
       .reference = [](double a, double b, const A&) -> double { return a > b; },
       .int_reference = [](int64_t a, int64_t b, DType type, const A&) -> int64_t { return less(b, a, type); },
       .known_value = [](const Expr& a,
                         const Expr& b) { return decided(a, b, [](int64_t x, int64_t y) { return x > y; }); },
       .gives_bool = true,
       .more_samples = {two("large_unsigned", kUInt64, {1.0e19, 3}, {3, 1.0e19}),
                        two("special", kFloat32, {NAN, 1, INFINITY}, {1, NAN, 1})}},
      {.name = "GreaterOrEqual",
       .since = 12,
       .doc = "Whether a >= b; false with NaN.",
       .body = [](const Expr& a, const Expr& b, const A&) { return a >= b; },
       .reference = [](double a, double b, const A&) -> double { return a >= b; },
       .int_reference = [](int64_t a, int64_t b, DType type, const A&) -> int64_t { return !less(a, b, type); },
       .known_value = [](const Expr& a,
                         const Expr& b) { return decided(a, b, [](int64_t x, int64_t y) { return x >= y; }); },
       .gives_bool = true,
       .more_samples = {two("ties", kFloat32, {1, 2, NAN}, {1, 3, NAN})}},
      {.name = "Less",
       .doc = "Whether a < b; false with NaN.",
       .body = [](const Expr& a, const Expr& b, const A&) { return a < b; },
       .reference = [](double a, double b, const A&) -> double { return a < b; },
       .int_reference = [](int64_t a, int64_t b, DType type, const A&) -> int64_t { return less(a, b, type); },
       .known_value = [](const Expr& a,
                         const Expr& b) { return decided(a, b, [](int64_t x, int64_t y) { return x < y; }); },
       .gives_bool = true},
      {.name = "LessOrEqual",
       .since = 12,
       .doc = "Whether a <= b; false with NaN.",
       .body = [](const Expr& a, const Expr& b, const A&) { return a <= b; },
       .reference = [](double a, double b, const A&) -> double { return a <= b; },
       .int_reference = [](int64_t a, int64_t b, DType type, const A&) -> int64_t { return !less(b, a, type); },
       .known_value = [](const Expr& a,
                         const Expr& b) { return decided(a, b, [](int64_t x, int64_t y) { return x <= y; }); },
       .gives_bool = true,
       .more_samples = {two("ties", kInt32, {1, 2, 3}, {1, 3, 2})}},
  });
}

}  // namespace tensmith::graph::ops
