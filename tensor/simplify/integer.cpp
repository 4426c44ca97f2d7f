// Integers that wrap: all types but kInt64, and the operations on kInt64 that are no index arithmetic.

#include <algorithm>

#include "runtime/base/error.h"
#include "tensor/simplify/engine.h"

namespace tensmith::simplifier {

namespace {

/// The result of an operation on constants, by the semantics of expr.h.
int64_t fold(BinaryOp op, DType type, int64_t a, int64_t b) {
  const uint64_t ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  const bool is_unsigned = type.is_uint();
  const int bits = type.bits;
  const auto wrap = [&](uint64_t value) { return wrap_int(type, static_cast<int64_t>(value)); };
  const auto less = [&](int64_t x, int64_t y) {
    return is_unsigned ? static_cast<uint64_t>(x) < static_cast<uint64_t>(y) : x < y;
  };
  switch (op) {
    case BinaryOp::kAdd: return wrap(ua + ub);
    case BinaryOp::kSub: return wrap(ua - ub);
    case BinaryOp::kMul: return wrap(ua * ub);
    case BinaryOp::kFloorDiv:
      if (is_unsigned) return b == 0 ? 0 : wrap(ua / ub);
      return wrap(static_cast<uint64_t>(floor_div_int(a, b)));
    case BinaryOp::kFloorMod:
      if (is_unsigned) return b == 0 ? 0 : wrap(ua % ub);
      return wrap(static_cast<uint64_t>(floor_mod_int(a, b)));
    case BinaryOp::kTruncDiv:
      if (b == 0) return 0;
      if (is_unsigned) return wrap(ua / ub);
      return b == -1 ? wrap(-ua) : wrap(static_cast<uint64_t>(a / b));
    case BinaryOp::kTruncMod:
      if (b == 0 || (b == -1 && !is_unsigned)) return 0;
      return is_unsigned ? wrap(ua % ub) : a % b;
    case BinaryOp::kMin: return less(a, b) ? a : b;
    case BinaryOp::kMax: return less(a, b) ? b : a;
    case BinaryOp::kAnd: return a & b;
    case BinaryOp::kOr: return a | b;
    case BinaryOp::kXor: return wrap(ua ^ ub);
    case BinaryOp::kShl: return ub >= static_cast<uint64_t>(bits) ? 0 : wrap(ua << ub);
    case BinaryOp::kShr:
      if (ub >= static_cast<uint64_t>(bits)) return !is_unsigned && a < 0 ? -1 : 0;
      return is_unsigned ? static_cast<int64_t>(ua >> ub) : a >> ub;
    default: break;
  }
  TS_UNREACHABLE() << "operation " << static_cast<int>(op);
}

bool commutes(BinaryOp op) {
  return op == BinaryOp::kAdd || op == BinaryOp::kMul || op == BinaryOp::kMin || op == BinaryOp::kMax ||
         op == BinaryOp::kAnd || op == BinaryOp::kOr || op == BinaryOp::kXor;
}

}  // namespace

Value* Engine::binary_integer(BinaryOp op, Value* a, Value* b) {
  const DType type = a->dtype;
  if (is_compare(op)) return compare_plain(op, a, b);
  const DType element = type.element();
  int64_t ca = 0, c = 0, inner;
  const bool a_constant = is_constant(a, &ca), b_constant = is_constant(b, &c);
  if (a_constant && b_constant) return constant(type, fold(op, element, ca, c));
  if (a_constant && commutes(op)) return binary_integer(op, b, a);
  const int64_t all_ones = wrap_int(element, -1);
  if (b_constant) {
    // (x op c1) op c2 --> x op (c1 op c2): associative modulo 2^n.
    if (commutes(op) && a->is_op(op) && a->count == 2 && is_constant(a->kids[1], &inner))
      return binary_integer(op, a->kids[0], constant(type, fold(op, element, inner, c)));
    switch (op) {
      case BinaryOp::kAdd:
      case BinaryOp::kOr:
      case BinaryOp::kXor:
        if (c == 0) return a;
        if (op == BinaryOp::kOr && c == all_ones) return b;
        break;
      case BinaryOp::kSub:
        if (c == 0) return a;
        return binary_integer(BinaryOp::kAdd, a, constant(type, fold(BinaryOp::kSub, element, 0, c)));
      case BinaryOp::kMul:
        if (c == 0) return b;
        if (c == 1) return a;
        break;
      case BinaryOp::kAnd:
        if (c == 0) return b;
        if (c == all_ones) return a;
        break;
      case BinaryOp::kShl:
      case BinaryOp::kShr:
        if (c == 0) return a;
        if (op == BinaryOp::kShl && static_cast<uint64_t>(c) >= type.bits) return constant(type, 0);
        break;
      case BinaryOp::kFloorDiv:
      case BinaryOp::kTruncDiv:
        if (c == 0) return b;
        if (c == 1) return a;
        break;
      case BinaryOp::kFloorMod:
      case BinaryOp::kTruncMod:
        if (c == 0 || c == 1) return constant(type, 0);
        break;
      default: break;
    }
  }
  if (a_constant && ca == 0 && op != BinaryOp::kSub) return a;  // 0 / x, 0 % x, 0 << x, 0 >> x; the others commute
  if (a == b) {
    switch (op) {
      case BinaryOp::kSub:
      case BinaryOp::kXor:
      case BinaryOp::kFloorMod:
      case BinaryOp::kTruncMod: return constant(type, 0);
      case BinaryOp::kAnd:
      case BinaryOp::kOr:
      case BinaryOp::kMin:
      case BinaryOp::kMax: return a;
      default: break;
    }
  }
  const Range ra = range(a), rb = range(b);
  const bool ends_known = element != kUInt64 || (ra.hi != INT64_MAX && rb.hi != INT64_MAX);
  switch (op) {
    case BinaryOp::kMin:
      if (ends_known && ra.hi <= rb.lo) return a;
      if (ends_known && rb.hi <= ra.lo) return b;
      break;
    case BinaryOp::kMax:
      if (ends_known && ra.hi <= rb.lo) return b;
      if (ends_known && rb.hi <= ra.lo) return a;
      break;
    case BinaryOp::kTruncDiv:
    case BinaryOp::kTruncMod:
      // With non-negative operands both roundings agree; the floor form is the canonical one.
      if (ends_known && ra.lo >= 0 && rb.lo >= 0)
        return binary(op == BinaryOp::kTruncDiv ? BinaryOp::kFloorDiv : BinaryOp::kFloorMod, a, b);
      break;
    case BinaryOp::kFloorDiv:
      if (ends_known && ra.lo >= 0 && ra.hi < rb.lo) return constant(type, 0);
      break;
    case BinaryOp::kFloorMod:
      if (ends_known && ra.lo >= 0 && ra.hi < rb.lo) return a;
      break;
    case BinaryOp::kAnd:
      // x & (2^k - 1) with x already below 2^k
      if (b_constant && c > 0 && ((magnitude(c) + 1) & magnitude(c)) == 0 && ra.lo >= 0 && ra.hi <= c && ends_known)
        return a;
      break;
    default: break;
  }
  // (x min c1) max ... and the like stay; nested minima of one kind are flat where a constant can be dropped (above).
  return settle(make_op(op, type, a, b));
}

}  // namespace tensmith::simplifier
