// Comparisons of integers. Of kInt64 scalars every order is `form >= 0` for a sum: decided by bounds and proofs, freed
// of divisions and of terms too small to matter, and printed as `small terms < large terms`.

#include "tensor/simplify/engine.h"

namespace tensmith::simplifier {

/// Rewrites the form into one that is at least zero exactly when the old one is. False when 64 bits do not suffice.
bool Engine::normalise(Linear& form) {
  for (int turn = 0; turn < 32; ++turn) {
    if (form.overflow) return false;
    if (form.terms.empty()) return true;
    // y / c + r >= 0 <=> y + c * r >= 0;  r - y / c >= 0 <=> c * r + c - 1 - y >= 0
    bool changed = false;
    for (uint32_t i = form.size(); i-- > 0 && !changed;) {
      const auto [value, coefficient] = form.terms[i];
      if (!value->is_op(BinaryOp::kFloorDiv) || (coefficient != 1 && coefficient != -1)) continue;
      Value* c = value->kids[1];
      if (!c->is(ValueKind::kInt) || c->number <= 0 || !tame(value->kids[0])) continue;
      Linear next = form;
      next.terms.erase(i);
      bool all_tame = true;
      for (const Term& term : next.terms) all_tame &= tame(term.value);
      next.scale(c->number);
      next.add(value->kids[0], coefficient);
      if (coefficient < 0) next.add_constant(c->number - 1);
      if (next.overflow || !all_tame) continue;
      form = Linear(sum(next));
      changed = true;
    }
    if (changed) continue;

    int64_t g = 0;
    for (const Term& term : form.terms) g = gcd(g, term.coefficient);
    if (g > 1) {
      for (Term& term : form.terms) term.coefficient /= g;
      form.constant = floor_div_int(form.constant, g);
      form = Linear(sum(form));
      continue;
    }
    // g * q + r >= 0 <=> q + r / g >= 0, where r / g is one number.
    for (uint32_t i = 0; i < form.size() && !changed; ++i) {
      const int64_t step = static_cast<int64_t>(magnitude(form.terms[i].coefficient));
      if (step == 1) continue;
      Linear quotient, rest;
      for (const Term& term : form.terms) {
        if (term.coefficient % step == 0) quotient.add(term.value, term.coefficient / step);
        else rest.add(term.value, term.coefficient);
      }
      if (rest.terms.empty()) continue;
      rest.constant = form.constant;
      const Range r = range(rest);
      if (r.lo == INT64_MIN || r.hi == INT64_MAX || floor_div_int(r.lo, step) != floor_div_int(r.hi, step)) continue;
      quotient.constant = floor_div_int(r.lo, step);
      form = quotient;
      changed = true;
    }
    if (!changed) return true;
  }
  return true;
}

/// min(a, b) >= 0 is a >= 0 && b >= 0; taken apart when at most one operand is left undecided. Null otherwise.
Value* Engine::one_operand_matters(const Linear& form) {
  const auto [chosen, coefficient] = form.terms[0];
  if (coefficient != 1 && coefficient != -1) return nullptr;
  const bool all = chosen->is_op(BinaryOp::kMin) == (coefficient == 1);
  Value* left_over = nullptr;
  for (uint32_t i = 0; i < chosen->count; ++i) {
    if (!tame(chosen->kids[i])) return nullptr;
    Linear operand;
    operand.constant = form.constant;
    operand.add(chosen->kids[i], coefficient);
    const Range r = range(operand);
    Value* part = r.lo >= 0 ? boolean(true) : r.hi < 0 ? boolean(false) : at_least_zero(operand);
    if (!part) return nullptr;
    if (part->is(ValueKind::kInt)) {
      if ((part->number != 0) != all) return boolean(!all);
    } else if (left_over) {
      return nullptr;
    } else {
      left_over = part;
    }
  }
  return left_over ? left_over : boolean(all);
}

Value* Engine::at_least_zero(Linear form) {
  if (form.overflow) return nullptr;
  const auto decided = [&]() -> Value* {
    const Range r = range(form);
    if (r.lo >= 0) return boolean(true);
    if (r.hi < 0) return boolean(false);
    return nullptr;
  };
  if (Value* known = decided()) return known;
  Value* whole = sum(form);
  if (whole->is(ValueKind::kInt)) return boolean(whole->number >= 0);
  if (whole->order_context != context_) {
    const uint32_t context = context_;
    whole->order = order_by_rules(whole);
    whole->order_context = context;
  }
  return whole->order;
}

Value* Engine::order_by_rules(Value* whole) {
  Linear form(whole);
  const auto decided = [&]() -> Value* {
    const Range r = range(form);
    if (r.lo >= 0) return boolean(true);
    if (r.hi < 0) return boolean(false);
    return nullptr;
  };
  if (!normalise(form)) return nullptr;
  if (form.terms.empty()) return boolean(form.constant >= 0);
  if (Value* known = decided()) return known;
  if (form.size() == 1 && form.terms[0].value->is_min_max())
    if (Value* simpler = one_operand_matters(form)) return simpler;
  if (prove_at_least_zero(form)) return boolean(true);
  Linear opposite = form;
  opposite.scale(-1);
  opposite.add_constant(-1);
  if (!opposite.overflow && prove_at_least_zero(opposite)) return boolean(false);

  Linear left, right;
  for (const Term& term : form.terms)
    (term.coefficient < 0 ? left : right).add(term.value, static_cast<int64_t>(magnitude(term.coefficient)));
  BinaryOp op = BinaryOp::kLT;
  if (left.terms.empty()) {  // -constant <= right
    if (form.constant == INT64_MIN) return nullptr;
    left.constant = -form.constant;
    op = BinaryOp::kLE;
  } else if (form.constant < 0) {  // left + (-constant - 1) < right
    left.constant = -(form.constant + 1);
  } else {  // left < right + constant + 1
    right.add_constant(form.constant);
    right.add_constant(1);
  }
  if (left.overflow || right.overflow) return nullptr;
  return settle(make_op(op, kBool, raw_sum(left), raw_sum(right)));
}

Value* Engine::compare_plain(BinaryOp op, Value* a, Value* b) {
  const DType type = a->dtype.element();
  const int lanes = a->dtype.lanes;
  int64_t ca, cb;
  const Range ra = range(a), rb = range(b);
  const auto greatest_known = [&](Range r) { return r.hi != INT64_MAX || (type.bits < 64); };
  if (type == kUInt64 && is_constant(a, &ca) && is_constant(b, &cb)) {
    const uint64_t ua = static_cast<uint64_t>(ca), ub = static_cast<uint64_t>(cb);
    if (op == BinaryOp::kLT) return boolean(ua < ub, lanes);
    if (op == BinaryOp::kLE) return boolean(ua <= ub, lanes);
  }
  switch (op) {
    case BinaryOp::kLT:
      if (a == b) return boolean(false, lanes);
      if (greatest_known(ra) && ra.hi < rb.lo) return boolean(true, lanes);
      if (greatest_known(rb) && rb.hi <= ra.lo) return boolean(false, lanes);
      break;
    case BinaryOp::kLE:
      if (a == b) return boolean(true, lanes);
      if (greatest_known(ra) && ra.hi <= rb.lo) return boolean(true, lanes);
      if (greatest_known(rb) && rb.hi < ra.lo) return boolean(false, lanes);
      break;
    default: {
      const bool equality = op == BinaryOp::kEQ;
      if (a == b) return boolean(equality, lanes);
      if ((greatest_known(ra) && ra.hi < rb.lo) || (greatest_known(rb) && rb.hi < ra.lo))
        return boolean(!equality, lanes);
      if (is_constant(a, &ca) && is_constant(b, &cb)) return boolean((ca == cb) == equality, lanes);
      if (before(b, a)) std::swap(a, b);
      break;
    }
  }
  return settle(make_op(op, kBool.with_lanes(lanes), a, b));
}

Value* Engine::compare_index(BinaryOp op, Value* a, Value* b) {
  if (!exact(a) || !exact(b)) return compare_plain(op, a, b);
  Linear form(b);
  form.add(a, -1);
  if (op == BinaryOp::kLT) form.add_constant(-1);
  if (form.overflow) return compare_plain(op, a, b);
  if (tame(a) && tame(b)) {
    Value* result = at_least_zero(form);
    return result ? result : compare_plain(op, a, b);
  }
  // Data: the comparison itself is of whole numbers, but moving terms across it could overflow.
  if (prove_at_least_zero(form)) return boolean(true);
  form.scale(-1);
  form.add_constant(-1);
  if (!form.overflow && prove_at_least_zero(form)) return boolean(false);
  return compare_plain(op, a, b);
}

Value* Engine::equal_index(BinaryOp op, Value* a, Value* b) {
  const bool equality = op == BinaryOp::kEQ;
  if (a == b) return boolean(equality);
  if (!tame(a) || !tame(b)) return compare_plain(op, a, b);
  Linear form(a);
  form.add(b, -1);
  if (form.overflow) return compare_plain(op, a, b);
  const Range wide = range(form);
  if (wide.lo > 0 || wide.hi < 0) return boolean(!equality);
  form = Linear(sum(form));
  if (form.overflow) return compare_plain(op, a, b);
  if (form.terms.empty()) return boolean((form.constant == 0) == equality);
  int64_t g = 0;
  for (const Term& term : form.terms) g = gcd(g, term.coefficient);
  if (g > 1) {
    if (form.constant % g != 0) return boolean(!equality);
    for (Term& term : form.terms) term.coefficient /= g;
    form.constant /= g;
  }
  const Range r = range(form);
  if (r.lo > 0 || r.hi < 0) return boolean(!equality);
  const Modulus m = modulus(form);
  if (m.modulus > 1 && m.remainder != 0) return boolean(!equality);
  Linear opposite = form;
  opposite.scale(-1);
  if (opposite.overflow) return compare_plain(op, a, b);
  const auto above = [](Linear f) {
    f.add_constant(-1);
    return f;
  };
  if (prove_at_least_zero(above(form)) || prove_at_least_zero(above(opposite))) return boolean(!equality);
  if (prove_at_least_zero(form) && prove_at_least_zero(opposite)) return boolean(equality);

  // One sign: the first term is on the left with a positive coefficient.
  if (form.terms[0].coefficient < 0) form.scale(-1);
  Linear left, right;
  for (const Term& term : form.terms)
    (term.coefficient > 0 ? left : right).add(term.value, static_cast<int64_t>(magnitude(term.coefficient)));
  right.add_constant(form.constant, -1);
  if (left.overflow || right.overflow) return compare_plain(op, a, b);
  return settle(make_op(op, kBool, raw_sum(left), raw_sum(right)));
}

/// The form of an order between whole numbers that `compare` states; false for anything else.
bool Engine::as_at_least_zero(Value* compare, Linear* form) {
  if (!compare->is(ValueKind::kOp)) return false;
  const BinaryOp op = compare->binary_op();
  if (op != BinaryOp::kLT && op != BinaryOp::kLE) return false;
  Value *a = compare->kids[0], *b = compare->kids[1];
  if (a->dtype != kInt64 || !exact(a) || !exact(b)) return false;
  form->add(b);
  form->add(a, -1);
  if (op == BinaryOp::kLT) form->add_constant(-1);
  return !form->overflow;
}

}  // namespace tensmith::simplifier
