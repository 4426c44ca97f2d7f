// Bools and choices.

#include "tensor/simplify/engine.h"

namespace tensmith::simplifier {

namespace {
constexpr uint32_t kMaxOperands = 32;
}

Value* Engine::logical_not(Value* a) {
  if (a->is(ValueKind::kInt)) return a->dtype.is_bool() ? boolean(!a->number) : integer(a->dtype, ~a->number);
  if (a->is(ValueKind::kBroadcast)) return broadcast(logical_not(a->kids[0]), a->dtype.lanes);
  if (a->is(ValueKind::kNot)) return a->kids[0];
  if (a->dtype.is_bool() && a->is(ValueKind::kOp)) {
    const DType type = a->kids[0]->dtype;
    switch (a->binary_op()) {
      // Right for NaN as well.
      case BinaryOp::kEQ: return binary(BinaryOp::kNE, a->kids[0], a->kids[1]);
      case BinaryOp::kNE: return binary(BinaryOp::kEQ, a->kids[0], a->kids[1]);
      case BinaryOp::kLT:
        if (!type.is_float() && !type.is_handle()) return binary(BinaryOp::kLE, a->kids[1], a->kids[0]);
        break;
      case BinaryOp::kLE:
        if (!type.is_float() && !type.is_handle()) return binary(BinaryOp::kLT, a->kids[1], a->kids[0]);
        break;
      default: break;
    }
  }
  return settle(make_unary(ValueKind::kNot, a->dtype, a));
}

Value* Engine::logical(BinaryOp op, Value* a, Value* b) {
  const int lanes = a->dtype.lanes;
  const bool conjunction = op == BinaryOp::kAnd;  // x && true = x, x && false = false; || the other way round
  InlineVector<Value*, 8> flat, kept;
  for (Value* v : {a, b}) {
    if (v->is_op(op))
      for (uint32_t i = 0; i < v->count; ++i) flat.push_back(v->kids[i]);
    else flat.push_back(v);
  }
  for (Value* v : flat) {
    const int known = truth(v);
    if (known == !conjunction) return boolean(!conjunction, lanes);
    if (known == conjunction) continue;
    bool superfluous = false;
    Linear form;
    const bool order = as_at_least_zero(v, &form);
    for (uint32_t i = 0; i < kept.size() && !superfluous;) {
      superfluous = kept[i] == v;
      Linear other;
      if (!superfluous && order && as_at_least_zero(kept[i], &other)) {
        // form = other + d with a constant d: the smaller form is the stronger condition.
        Linear difference = form;
        difference.add(other, -1);
        if (!difference.overflow && difference.terms.empty()) {
          const bool weaker = difference.constant >= 0;
          if (weaker == conjunction) {
            superfluous = true;
          } else {
            kept.erase(i);
            continue;
          }
        }
      }
      ++i;
    }
    if (!superfluous) kept.push_back(v);
  }
  if (kept.empty()) return boolean(conjunction, lanes);
  if (kept.size() == 1) return kept[0];
  if (kept.size() > kMaxOperands) return settle(make_op(op, a->dtype, a, b));
  return settle(make_op(op, a->dtype, {kept.data(), kept.size()}));
}

Value* Engine::binary_bool(BinaryOp op, Value* a, Value* b) {
  if (op == BinaryOp::kAnd || op == BinaryOp::kOr) return logical(op, a, b);
  const int lanes = a->dtype.lanes;
  int64_t number;
  if (is_constant(a, &number)) {
    // Constants last, as far as the operation allows.
    if (op == BinaryOp::kXor || op == BinaryOp::kEQ || op == BinaryOp::kNE || op == BinaryOp::kMin ||
        op == BinaryOp::kMax)
      std::swap(a, b);
  }
  switch (op) {
    case BinaryOp::kMin: return logical(BinaryOp::kAnd, a, b);
    case BinaryOp::kMax: return logical(BinaryOp::kOr, a, b);
    case BinaryOp::kXor:
    case BinaryOp::kNE:
    case BinaryOp::kEQ: {
      const bool flips = op != BinaryOp::kEQ;  // true beside x gives !x
      if (a == b) return boolean(!flips, lanes);
      if (is_constant(b, &number)) return (number != 0) == flips ? logical_not(a) : a;
      break;
    }
    case BinaryOp::kLT:
      if (a == b) return boolean(false, lanes);
      if (is_constant(a, &number)) return number ? boolean(false, lanes) : b;               // false < b
      if (is_constant(b, &number)) return number ? logical_not(a) : boolean(false, lanes);  // a < true
      break;
    case BinaryOp::kLE:
      if (a == b) return boolean(true, lanes);
      if (is_constant(a, &number)) return number ? b : boolean(true, lanes);               // true <= b
      if (is_constant(b, &number)) return number ? boolean(true, lanes) : logical_not(a);  // a <= false
      break;
    default: break;
  }
  return settle(make_op(op, a->dtype, a, b));
}

Value* Engine::select(Value* cond, Value* a, Value* b) {
  if (a == b && !(a->flags & kHasEffect)) return a;
  const int lanes = a->dtype.lanes;
  if (const int known = truth(cond); known != -1) return known ? a : b;
  if (cond->is(ValueKind::kBroadcast)) cond = cond->kids[0];
  if (cond->is(ValueKind::kNot)) return select(cond->kids[0], b, a);
  if (cond->dtype.lanes == 1 && a->is(ValueKind::kBroadcast) && b->is(ValueKind::kBroadcast))
    return broadcast(select(cond, a->kids[0], b->kids[0]), lanes);
  if (a->dtype.is_bool() && a->dtype.lanes == cond->dtype.lanes) {
    const int ka = truth(a), kb = truth(b);
    if (ka == 1) return kb == 0 ? cond : binary(BinaryOp::kOr, cond, b);
    if (ka == 0) return kb == 1 ? logical_not(cond) : binary(BinaryOp::kAnd, logical_not(cond), b);
    if (kb == 0) return binary(BinaryOp::kAnd, cond, a);
    if (kb == 1) return binary(BinaryOp::kOr, logical_not(cond), a);
  }
  Value* kids[] = {cond, a, b};
  Value probe(ValueKind::kSelect, a->dtype);
  return settle(make(probe, kids));
}

}  // namespace tensmith::simplifier
