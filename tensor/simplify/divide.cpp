// Floor division and remainder of kInt64 scalars.
//
// By a constant c, x = c * Q + R with all multiples of c in Q: x / c = Q + R / c and x % c = R % c. What is left of R
// is decided by its bounds, by a factor that R shares with c, or stays.

#include "tensor/simplify/engine.h"

namespace tensmith::simplifier {

namespace {

bool is_division(const Value* v, BinaryOp op) {
  return v->is_op(op) && v->kids[1]->is(ValueKind::kInt) && v->kids[1]->number > 0;
}

struct Split {
  Linear quotient, rest;  ///< value = divisor * quotient + rest, 0 <= rest.constant < divisor
};

Split split_by(const Linear& form, int64_t divisor) {
  Split result;
  for (const Term& term : form.terms) {
    if (term.coefficient % divisor == 0) result.quotient.add(term.value, term.coefficient / divisor);
    else result.rest.add(term.value, term.coefficient);
  }
  result.quotient.constant = floor_div_int(form.constant, divisor);
  result.rest.constant = floor_mod_int(form.constant, divisor);
  return result;
}

/// Whether all values of the range have the same quotient by a positive divisor.
bool same_quotient(Range range, int64_t divisor, int64_t* quotient) {
  if (range.lo == INT64_MIN || range.hi == INT64_MAX) return false;
  *quotient = floor_div_int(range.lo, divisor);
  return *quotient == floor_div_int(range.hi, divisor);
}

/// The divisors g > 1 that some term shares with c, largest first.
InlineVector<int64_t, 8> common_factors(const Linear& form, int64_t c) {
  InlineVector<int64_t, 8> result;
  for (const Term& term : form.terms) {
    const int64_t g = gcd(term.coefficient, c);
    if (g <= 1) continue;
    uint32_t at = 0;
    while (at < result.size() && result[at] > g) ++at;
    if (at == result.size() || result[at] != g) result.insert(at, g);
  }
  return result;
}

}  // namespace

Value* Engine::floor_div(Value* a, Value* b) {
  if (b->is(ValueKind::kInt)) {
    const int64_t c = b->number;
    if (c == 0) return index(0);
    if (c == 1) return a;
    if (a->is(ValueKind::kInt)) return index(floor_div_int(a->number, c));
    if (c > 0) return floor_div_constant(a, c);
    if (c != INT64_MIN && tame(a)) {
      Linear negated;
      negated.add(a, -1);
      if (!negated.overflow) return c == -1 ? sum(negated) : floor_div_constant(sum(negated), -c);
    }
    return settle(make_op(BinaryOp::kFloorDiv, kInt64, a, b));
  }
  if (a->is_int(0)) return a;
  return floor_div_symbolic(a, b);
}

Value* Engine::floor_mod(Value* a, Value* b) {
  if (b->is(ValueKind::kInt)) {
    const int64_t c = b->number;
    if (c == 0 || c == 1 || c == -1) return index(0);
    if (a->is(ValueKind::kInt)) return index(floor_mod_int(a->number, c));
    if (c > 0) return floor_mod_constant(a, c);
    return settle(make_op(BinaryOp::kFloorMod, kInt64, a, b));
  }
  if (a->is_int(0)) return a;
  return floor_mod_symbolic(a, b);
}

Value* Engine::floor_div_constant(Value* a, int64_t divisor) {
  if (divisor == 1) return a;
  if (a->is(ValueKind::kInt)) return index(floor_div_int(a->number, divisor));
  Value* raw = make_op(BinaryOp::kFloorDiv, kInt64, a, index(divisor));
  if (raw->simplified_context != context_) {
    const uint32_t context = context_;
    raw->simplified = floor_div_by_rules(a, divisor);
    raw->simplified_context = context;
  }
  return raw->simplified;
}

Value* Engine::floor_div_by_rules(Value* a, int64_t divisor) {
  int64_t quotient;
  if (same_quotient(range(a), divisor, &quotient)) return index(quotient);
  const auto opaque = [&] { return settle(make_op(BinaryOp::kFloorDiv, kInt64, a, index(divisor))); };
  if (!exact(a)) return opaque();
  Split split = split_by(Linear(a), divisor);
  Linear& rest = split.rest;
  const auto with_quotient = [&](Value* other) {
    split.quotient.add(other);
    return split.quotient.overflow ? opaque() : sum(split.quotient);
  };
  if (rest.terms.empty()) return sum(split.quotient);
  if (same_quotient(range(rest), divisor, &quotient)) return with_quotient(index(quotient));

  // (g * x + y) / (g * d) = (x + y / g) / d when y / g is one number.
  for (const int64_t g : common_factors(rest, divisor)) {
    Split inner = split_by(rest, g);
    if (inner.quotient.terms.empty() || !same_quotient(range(inner.rest), g, &quotient)) continue;
    inner.quotient.add_constant(quotient);
    if (inner.quotient.overflow) continue;
    return with_quotient(floor_div_constant(sum(inner.quotient), divisor / g));
  }

  // Terms known to be multiples of the divisor (M with M % 16 == 0): apart when that decides the others.
  Linear multiples, others;
  for (const Term& term : rest.terms) {
    Linear alone;
    alone.add(term.value, term.coefficient);
    const Modulus m = modulus(alone);
    (m.modulus % divisor == 0 && m.remainder % divisor == 0 ? multiples : others).add(term.value, term.coefficient);
  }
  others.constant = rest.constant;
  if (!multiples.terms.empty() && same_quotient(range(others), divisor, &quotient) &&
      (!others.terms.empty() || others.constant != 0 || multiples.size() > 1)) {
    for (const Term& term : multiples.terms) {
      Linear alone;
      alone.add(term.value, term.coefficient);
      split.quotient.add(floor_div_constant(sum(alone), divisor));
    }
    return with_quotient(index(quotient));
  }

  if (rest.size() == 1 && rest.terms[0].coefficient == 1) {
    Value* x = rest.terms[0].value;
    // (y / a + k) / c = (y + a * k) / (a * c)
    if (is_division(x, BinaryOp::kFloorDiv) && exact(x->kids[0])) {
      const int64_t inner = x->kids[1]->number;
      Linear y(x->kids[0]);
      y.add_constant(rest.constant, inner);
      int64_t both;
      if (!y.overflow && !__builtin_mul_overflow(inner, divisor, &both)) {
        Value* numerator = sum(y);
        if (rest.constant == 0 || tame(numerator)) return with_quotient(floor_div_constant(numerator, both));
      }
    }
    // (y % m) / c = (y / c) % (m / c)
    if (is_division(x, BinaryOp::kFloorMod) && rest.constant == 0 && x->kids[1]->number % divisor == 0)
      return with_quotient(floor_mod_constant(floor_div_constant(x->kids[0], divisor), x->kids[1]->number / divisor));
    // min(a, b) / c = min(a / c, b / c) where that saves a division
    if (x->is_min_max()) {
      InlineVector<Value*, 8> operands;
      bool saves = false;
      for (uint32_t i = 0; i < x->count; ++i) {
        Linear operand(x->kids[i]);
        operand.add_constant(rest.constant);
        Value* numerator = operand.overflow || !exact(x->kids[i]) ? nullptr : sum(operand);
        if (!numerator || (rest.constant != 0 && !tame(numerator))) {
          saves = false;
          break;
        }
        Value* q = floor_div_constant(numerator, divisor);
        saves |= Linear(q).size() == 0 || !Linear(q).terms.back().value->is_op(BinaryOp::kFloorDiv);
        operands.push_back(q);
      }
      if (saves && tame(x)) return with_quotient(min_max(x->binary_op(), {operands.data(), operands.size()}));
    }
  }
  // A part of a sum may have a shorter form than it had inside.
  Value *numerator = raw_sum(rest), *shorter = sum(rest);
  if (shorter != numerator) return with_quotient(floor_div_constant(shorter, divisor));
  return with_quotient(settle(make_op(BinaryOp::kFloorDiv, kInt64, numerator, index(divisor))));
}

/// Adds value * coefficient as far as it counts modulo the divisor: y % m is as good as y when the divisor divides m,
/// and terms that are known multiples do not count. `alone`: there are no other terms, so that data cannot overflow by
/// being added.
void Engine::add_modulo(Linear& form, Value* value, int64_t coefficient, int64_t divisor, bool alone) {
  if (value->is(ValueKind::kSum)) {
    for (uint32_t i = 0; i < value->count; ++i) {
      int64_t k;
      if (__builtin_mul_overflow(value->coefficients[i], coefficient, &k)) form.overflow = true;
      else add_modulo(form, value->kids[i], k, divisor, false);
    }
    form.add_constant(floor_mod_int(value->number, divisor), coefficient % divisor);
    return;
  }
  if (is_division(value, BinaryOp::kFloorMod)) {
    Value* y = value->kids[0];
    int64_t whole;
    if (!__builtin_mul_overflow(value->kids[1]->number, coefficient, &whole) && whole % divisor == 0 && exact(y) &&
        (tame(y) || (alone && coefficient == 1)))
      return add_modulo(form, y, coefficient, divisor, alone);
  }
  Linear single;
  single.add(value, coefficient);
  const Modulus m = modulus(single);
  if (m.modulus % divisor == 0) form.add_constant(m.remainder % divisor);
  else form.add(value, coefficient);
}

Value* Engine::floor_mod_constant(Value* a, int64_t divisor) {
  if (divisor == 1) return index(0);
  if (a->is(ValueKind::kInt)) return index(floor_mod_int(a->number, divisor));
  Value* raw = make_op(BinaryOp::kFloorMod, kInt64, a, index(divisor));
  if (raw->simplified_context != context_) {
    const uint32_t context = context_;
    raw->simplified = floor_mod_by_rules(a, divisor);
    raw->simplified_context = context;
  }
  return raw->simplified;
}

Value* Engine::floor_mod_by_rules(Value* a, int64_t divisor) {
  const auto opaque = [&](Value* x) { return settle(make_op(BinaryOp::kFloorMod, kInt64, x, index(divisor))); };
  if (!exact(a)) return opaque(a);
  Linear form(a);
  Linear kept;
  for (const Term& term : form.terms)
    add_modulo(kept, term.value, term.coefficient, divisor, form.size() == 1 && form.constant == 0);
  kept.add_constant(floor_mod_int(form.constant, divisor));
  if (kept.overflow) return opaque(a);
  Split split = split_by(kept, divisor);
  Linear& rest = split.rest;
  if (rest.terms.empty()) return index(rest.constant);
  int64_t quotient;
  if (same_quotient(range(rest), divisor, &quotient)) {
    int64_t multiple;
    if (__builtin_mul_overflow(quotient, divisor, &multiple)) return opaque(a);
    rest.add_constant(multiple, -1);
    return rest.overflow ? opaque(a) : sum(rest);
  }
  // (g * x + y) % (g * d) = g * ((x + e) % d) + y - g * e when e = y / g is one number.
  for (const int64_t g : common_factors(rest, divisor)) {
    Split inner = split_by(rest, g);
    if (inner.quotient.terms.empty() || !same_quotient(range(inner.rest), g, &quotient)) continue;
    inner.quotient.add_constant(quotient);
    inner.rest.add_constant(quotient, -g);
    if (inner.quotient.overflow || inner.rest.overflow) continue;
    inner.rest.add(floor_mod_constant(sum(inner.quotient), divisor / g), g);
    return inner.rest.overflow ? opaque(a) : sum(inner.rest);
  }
  Value *numerator = raw_sum(rest), *shorter = sum(rest);
  return shorter != numerator ? floor_mod_constant(shorter, divisor) : opaque(numerator);
}

Value* Engine::divide_product(Value* t, Value* m) {
  if (t == m) return index(1);
  InlineVector<Value*, 8> factors;
  if (t->is(ValueKind::kProduct))
    for (uint32_t i = 0; i < t->count; ++i) factors.push_back(t->kids[i]);
  else factors.push_back(t);
  const auto remove = [&](Value* factor) {
    for (uint32_t i = 0; i < factors.size(); ++i)
      if (factors[i] == factor) {
        factors.erase(i);
        return true;
      }
    return false;
  };
  if (m->is(ValueKind::kProduct)) {
    for (uint32_t i = 0; i < m->count; ++i)
      if (!remove(m->kids[i])) return nullptr;
  } else if (!remove(m)) {
    return nullptr;
  }
  if (factors.empty()) return index(1);
  Value* result = factors[0];
  for (uint32_t i = 1; i < factors.size(); ++i) result = product(result, factors[i]);
  return result;
}

bool Engine::prove_positive(Value* value) {
  if (range(value).lo >= 1) return true;
  Linear form(value);
  form.add_constant(-1);
  return !form.overflow && exact(value) && prove_at_least_zero(form);
}

void Engine::split_multiples(Value* value, Value* divisor, Linear* quotient, Linear* rest) {
  *rest = Linear(value);
  const Linear d(divisor);
  if (d.terms.empty() || d.overflow) return;
  const Term lead = d.terms.back();
  // Each turn removes a term that the divisor's leading term divides; the others' number may only fall.
  for (uint32_t i = 0; i < rest->size();) {
    const Term term = rest->terms[i];
    Value* ratio = term.coefficient % lead.coefficient == 0 ? divide_product(term.value, lead.value) : nullptr;
    if (!ratio) {
      ++i;
      continue;
    }
    const int64_t coefficient = term.coefficient / lead.coefficient;
    Linear next = *rest;
    for (const Term& part : d.terms) {
      Value* both = ratio->is_int(1) ? part.value : product(part.value, ratio);
      int64_t k;
      if (!both || __builtin_mul_overflow(part.coefficient, coefficient, &k)) {
        next.overflow = true;
        break;
      }
      next.add(both, -k);
    }
    int64_t k;
    if (__builtin_mul_overflow(d.constant, coefficient, &k)) next.overflow = true;
    else next.add(ratio, -k);
    if (next.overflow || next.size() >= rest->size()) {
      ++i;
      continue;
    }
    quotient->add(ratio, coefficient);
    *rest = next;
    i = 0;
  }
}

Value* Engine::floor_div_symbolic(Value* a, Value* divisor) {
  const auto opaque = [&](Value* x) { return settle(make_op(BinaryOp::kFloorDiv, kInt64, x, divisor)); };
  if (!exact(a) || !tame(divisor) || !prove_positive(divisor)) return opaque(a);
  Linear quotient, rest;
  split_multiples(a, divisor, &quotient, &rest);
  if (quotient.overflow || rest.overflow) return opaque(a);
  Linear below(divisor);  // divisor - 1 - rest >= 0
  below.add(rest, -1);
  below.add_constant(-1);
  if (!below.overflow && prove_at_least_zero(rest) && prove_at_least_zero(below)) return sum(quotient);
  Linear above = rest, negative;  // -divisor <= rest <= -1
  above.add(divisor);
  negative.add(rest, -1);
  negative.add_constant(-1);
  if (!above.overflow && !negative.overflow && prove_at_least_zero(above) && prove_at_least_zero(negative)) {
    quotient.add_constant(-1);
    return sum(quotient);
  }
  quotient.add(opaque(sum(rest)));
  return quotient.overflow ? opaque(a) : sum(quotient);
}

Value* Engine::floor_mod_symbolic(Value* a, Value* divisor) {
  const auto opaque = [&](Value* x) { return settle(make_op(BinaryOp::kFloorMod, kInt64, x, divisor)); };
  if (a == divisor) return index(0);
  if (!exact(a) || !tame(divisor) || !prove_positive(divisor)) return opaque(a);
  Linear quotient, rest;
  split_multiples(a, divisor, &quotient, &rest);
  if (quotient.overflow || rest.overflow) return opaque(a);
  Linear below(divisor);
  below.add(rest, -1);
  below.add_constant(-1);
  if (!below.overflow && prove_at_least_zero(rest) && prove_at_least_zero(below)) return sum(rest);
  return opaque(sum(rest));
}

}  // namespace tensmith::simplifier
