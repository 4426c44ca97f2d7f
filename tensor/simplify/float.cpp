// Floats: only rules that keep every result bit for bit (any NaN counts as the same, as does the sign of the zero of
// min(-0, +0)).

#include <bit>
#include <cmath>

#include "tensor/simplify/engine.h"

namespace tensmith::simplifier {

namespace {

bool is_number(const Value* v, double* number) {
  if (v->is(ValueKind::kBroadcast)) v = v->kids[0];
  if (v->is(ValueKind::kFloat)) *number = std::bit_cast<double>(v->number);
  return v->is(ValueKind::kFloat);
}

/// The smallest exponent e such that 2^e is normal in the type.
int min_exponent(DType type) {
  if (type.bits == 64) return -1022;
  return type.bits == 32 || type.is_bfloat() ? -126 : -14;
}

}  // namespace

Value* Engine::binary_float(BinaryOp op, Value* a, Value* b) {
  const DType type = a->dtype.element();
  const int lanes = a->dtype.lanes;
  const auto number = [&](double value) { return broadcast(floating(type, value), lanes); };
  double x = 0, y = 0;
  const bool a_constant = is_number(a, &x), b_constant = is_number(b, &y);
  if (is_compare(op)) {
    if (a_constant && b_constant) {
      switch (op) {
        case BinaryOp::kEQ: return boolean(x == y, lanes);
        case BinaryOp::kNE: return boolean(x != y, lanes);
        case BinaryOp::kLT: return boolean(x < y, lanes);
        default: return boolean(x <= y, lanes);
      }
    }
    if (a == b && op == BinaryOp::kLT) return boolean(false, lanes);  // also of NaN
    if ((op == BinaryOp::kEQ || op == BinaryOp::kNE) && before(b, a)) std::swap(a, b);
    return settle(make_op(op, kBool.with_lanes(lanes), a, b));
  }
  if (a_constant && b_constant) {
    // One operation in double, rounded to a type with less than half of its digits, is rounded as if done in that type.
    switch (op) {
      case BinaryOp::kAdd: return number(x + y);
      case BinaryOp::kSub: return number(x - y);
      case BinaryOp::kMul: return number(x * y);
      case BinaryOp::kDiv: return number(x / y);
      case BinaryOp::kMin: return number(std::isnan(x) || std::isnan(y) ? NAN : x < y ? x : y);
      case BinaryOp::kMax: return number(std::isnan(x) || std::isnan(y) ? NAN : x > y ? x : y);
      default: break;
    }
  }
  switch (op) {
    case BinaryOp::kAdd:
      // x + -0 is x; x + 0 is not, for x = -0.
      if (b_constant && y == 0 && std::signbit(y)) return a;
      if (a_constant && x == 0 && std::signbit(x)) return b;
      break;
    case BinaryOp::kSub:
      if (b_constant && y == 0 && !std::signbit(y)) return a;
      break;
    case BinaryOp::kMul:
      if (b_constant && y == 1) return a;
      if (a_constant && x == 1) return b;
      break;
    case BinaryOp::kDiv:
      if (!b_constant) break;
      if (y == 1) return a;
      // Division by a power of two is exact multiplication with its reciprocal.
      if (std::isfinite(y) && y != 0) {
        int exponent;
        if (std::fabs(std::frexp(y, &exponent)) == 0.5 && exponent - 1 <= -min_exponent(type) &&
            exponent - 1 >= min_exponent(type))
          return binary_float(BinaryOp::kMul, a, number(1 / y));
      }
      break;
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      if (a == b) return a;
      // Operands are not swapped: which zero or NaN comes out may show in its sign (copysign).
      if (a->is_op(op) && a->count == 2) {
        if (a->kids[1] == b || a->kids[0] == b) return a;  // max(max(x, y), y)
        double inner;
        if (b_constant && is_number(a->kids[1], &inner))
          return binary_float(op, a->kids[0], binary_float(op, a->kids[1], b));
      }
      if (b->is_op(op) && b->count == 2 && (b->kids[0] == a || b->kids[1] == a)) return b;
      break;
    default: break;
  }
  return make_op(op, a->dtype, a, b);
}

}  // namespace tensmith::simplifier
