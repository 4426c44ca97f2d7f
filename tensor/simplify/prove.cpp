// Proofs that a sum is at least zero.
//
// First by constant bounds. Then terms are replaced, innermost first, by something that makes the sum no larger: a
// division by what it divides, a minimum by an operand, a term of a known inequality by the rest of that inequality (an
// elimination step of Fourier and Motzkin). Sums are kept whole by multiplying them: the search proves scale * form >
// -scale. Each attempt counts against a budget, so a failing proof costs a few microseconds.

#include "tensor/simplify/engine.h"

namespace tensmith::simplifier {

namespace {

constexpr int kProofBudget = 48;
constexpr int kMaxProofDepth = 2;  // of proofs inside the simplification that a proof does

bool is_constant_division(const Value* v) {
  return v->is_op(BinaryOp::kFloorDiv) && v->kids[1]->is(ValueKind::kInt) && v->kids[1]->number > 0;
}

}  // namespace

bool Engine::prove_le(Value* a, Value* b, int64_t slack) {
  if (a == b) return slack >= 0;
  if (range(a).hi <= range(b).lo && slack >= 0) return range(a).hi != INT64_MAX || range(b).lo != INT64_MIN;
  if (!exact(a) || !exact(b)) return false;
  Linear form(b);
  form.add(a, -1);
  form.add_constant(slack);
  return !form.overflow && prove_at_least_zero(form);
}

bool Engine::prove_at_least_zero(Linear form) {
  if (form.overflow) return false;
  const Range r = range(form);
  if (r.lo >= 0) return true;
  if (r.hi < 0 || form.terms.empty()) return false;
  bool any = false;
  for (const Term& term : form.terms) any |= has_option(term);
  if (!any || proof_depth_ >= kMaxProofDepth) return false;
  Value* key = raw_sum(form);
  if (key->proof_context == context_) return key->proof;
  const int budget = proof_budget_;
  proof_budget_ = kProofBudget;
  ++proof_depth_;
  const bool proven = search(form, 1);
  --proof_depth_;
  proof_budget_ = budget;
  key->proof_context = context_;
  key->proof = proven;
  return proven;
}

bool Engine::has_option(const Term& term) const {
  const Value* v = term.value;
  if (v->in_facts || is_constant_division(v) || v->is_min_max() || v->is(ValueKind::kSelect)) return true;
  if (v->is(ValueKind::kProduct)) return true;
  return false;
}

bool Engine::search(const Linear& form, int64_t scale) {
  if (form.overflow || --proof_budget_ < 0) return false;
  const Range r = range(form);
  if (r.lo != INT64_MIN && r.lo > -scale) return true;
  if (r.hi <= -scale) return false;
  for (uint32_t i = form.size(); i-- > 0;) {
    const Term term = form.terms[i];
    if (!has_option(term)) continue;
    if (try_structure(form, scale, term) || try_facts(form, scale, term) || try_factors(form, scale, term)) return true;
    if (proof_budget_ < 0) return false;
    // Where the innermost term with a choice has no bound but these, nothing else will help.
    const Range bounds = range(term.value);
    if (term.coefficient > 0 ? bounds.lo == INT64_MIN : bounds.hi == INT64_MAX) {
      bool cancels = false;
      for (uint32_t j = 0; j < form.size() && !cancels; ++j) cancels = j != i && has_option(form.terms[j]);
      if (!cancels) return false;
    }
  }
  return false;
}

bool Engine::try_structure(const Linear& form, int64_t scale, const Term& term) {
  const auto [value, coefficient] = term;
  const auto replaced = [&](Value* by) {
    Linear next = form;
    next.add(value, -coefficient);
    next.add(by, coefficient);
    return next;
  };
  if (is_constant_division(value)) {
    // y - (c - 1) <= c * (y / c) <= y
    Value* y = value->kids[0];
    const int64_t c = value->kids[1]->number;
    if (!exact(y)) return false;
    const int64_t factor = coefficient % c == 0 ? 1 : c / gcd(c, coefficient);
    int64_t scaled, k;
    if (__builtin_mul_overflow(scale, factor, &scaled) || __builtin_mul_overflow(coefficient, factor, &k)) return false;
    Linear next = form;
    next.add(value, -coefficient);
    next.scale(factor);
    next.add(y, k / c);
    if (k > 0) next.add_constant(c - 1, -(k / c));
    return search(next, scaled);
  }
  if (value->is_min_max()) {
    const bool any = value->is_op(BinaryOp::kMin) == (coefficient < 0);
    for (uint32_t i = 0; i < value->count; ++i) {
      const bool proven = exact(value->kids[i]) && search(replaced(value->kids[i]), scale);
      if (proven == any) return any;
    }
    return !any;
  }
  if (value->is(ValueKind::kSelect)) {
    return exact(value->kids[1]) && exact(value->kids[2]) && search(replaced(value->kids[1]), scale) &&
           search(replaced(value->kids[2]), scale);
  }
  return false;
}

bool Engine::try_facts(const Linear& form, int64_t scale, const Term& term) {
  const auto [value, coefficient] = term;
  if (!value->in_facts) return false;
  // Newest first: facts of inner loops are in terms of outer ones.
  for (size_t f = facts_.size(); f-- > 0;) {
    Value* fact = facts_[f];
    for (uint32_t i = 0; i < fact->count; ++i) {
      if (fact->kids[i] != value) continue;
      const int64_t k = fact->coefficients[i];
      if ((k > 0) != (coefficient > 0)) break;
      const int64_t g = gcd(k, coefficient);
      const int64_t factor = static_cast<int64_t>(magnitude(k)) / g,
                    take = static_cast<int64_t>(magnitude(coefficient)) / g;
      int64_t scaled;
      if (__builtin_mul_overflow(scale, factor, &scaled)) break;
      Linear next = form;
      next.scale(factor);
      next.add(fact, -take);
      if (search(next, scaled)) return true;
      if (proof_budget_ < 0) return false;
      break;
    }
  }
  return false;
}

/// A product x * y with y >= 0: bounds and facts of x, multiplied by y.
bool Engine::try_factors(const Linear& form, int64_t scale, const Term& term) {
  const auto [value, coefficient] = term;
  if (!value->is(ValueKind::kProduct)) return false;
  for (uint32_t i = 0; i < value->count; ++i) {
    Value* x = value->kids[i];
    if (i > 0 && x == value->kids[i - 1]) continue;
    Value* y = divide_product(value, x);
    if (!y || range(y).lo < 0) continue;
    // Facts first: they lead to fewer terms than a constant does.
    for (size_t f = x->in_facts ? facts_.size() : 0; f-- > 0;) {
      Value* fact = facts_[f];
      for (uint32_t j = 0; j < fact->count; ++j) {
        if (fact->kids[j] != x) continue;
        const int64_t k = fact->coefficients[j];
        if ((k > 0) != (coefficient > 0)) break;
        const int64_t factor = static_cast<int64_t>(magnitude(k)), take = static_cast<int64_t>(magnitude(coefficient));
        int64_t scaled;
        if (__builtin_mul_overflow(scale, factor, &scaled)) break;
        Linear next = form;
        next.scale(factor);
        for (uint32_t n = 0; n < fact->count && !next.overflow; ++n) {
          Value* both = product(fact->kids[n], y);
          int64_t c;
          if (!both || __builtin_mul_overflow(fact->coefficients[n], take, &c)) next.overflow = true;
          else next.add(both, -c);
        }
        int64_t c;
        if (__builtin_mul_overflow(fact->number, take, &c)) break;
        next.add(y, -c);
        if (search(next, scaled)) return true;
        if (proof_budget_ < 0) return false;
        break;
      }
    }
    const Range bounds = range(x);
    const int64_t bound = coefficient > 0 ? bounds.lo : bounds.hi;
    if (bound != INT64_MIN && bound != INT64_MAX) {
      Linear next = form;
      next.add(value, -coefficient);
      int64_t k;
      if (!__builtin_mul_overflow(coefficient, bound, &k)) {
        next.add(y, k);
        if (search(next, scale)) return true;
      }
    }
  }
  return false;
}

}  // namespace tensmith::simplifier
