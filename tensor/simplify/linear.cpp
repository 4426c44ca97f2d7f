// Sums and products of kInt64 scalars. Both are rings modulo 2^64, so merging terms is right for wrapping data as well.

#include <tuple>

#include "tensor/simplify/engine.h"

namespace tensmith::simplifier {

namespace {

constexpr uint32_t kMaxProductTerms = 12;  // of a product of two sums that is multiplied out
constexpr uint32_t kMaxFactors = 8;

bool is_constant_division(const Value* v, BinaryOp op) {
  return v->is_op(op) && v->kids[1]->is(ValueKind::kInt) && v->kids[1]->number > 0;
}

uint32_t find(const Linear& form, const Value* value) {
  uint32_t i = 0;
  while (i < form.size() && form.terms[i].value != value) ++i;
  return i;
}

/// Whether the form and the value read as a sum have a term in common.
bool shares_term(const Linear& form, const Value* value) {
  if (!value->is(ValueKind::kSum)) return find(form, value) < form.size();
  for (uint32_t i = 0; i < value->count; ++i)
    if (find(form, value->kids[i]) < form.size()) return true;
  return false;
}

}  // namespace

Value* Engine::raw_sum(const Linear& form) {
  if (form.terms.empty()) return index(form.constant);
  if (form.size() == 1 && form.constant == 0 && form.terms[0].coefficient == 1) return form.terms[0].value;
  Value* kids[kMaxTerms];
  int64_t coefficients[kMaxTerms];
  for (uint32_t i = 0; i < form.size(); ++i) kids[i] = form.terms[i].value, coefficients[i] = form.terms[i].coefficient;
  Value probe(ValueKind::kSum, kInt64);
  probe.number = form.constant;
  probe.coefficients = coefficients;
  return make(probe, {kids, form.size()});
}

Value* Engine::sum(Linear& form) {
  const auto worth_rules = [&] {
    bool division = false, choice = false;
    for (const Term& term : form.terms) {
      division |= term.value->is_op(BinaryOp::kFloorDiv) || term.value->is_op(BinaryOp::kFloorMod);
      choice |= term.value->is_min_max();
    }
    return std::pair(division, choice);
  };
  Value* raw = raw_sum(form);
  if (!raw->is(ValueKind::kSum)) return settle(raw);
  auto [division, choice] = worth_rules();
  if (!division && !choice) return settle(raw);
  // Remembered, because operands of nested minima come here again and again.
  if (raw->simplified_context == context_) return raw->simplified;
  const uint32_t context = context_;
  // Each rule removes a term or a division, so the loop ends; the bound only guards against a mistake in that
  // reasoning.
  for (int turn = 0; turn < 16 && (division || choice); ++turn) {
    const bool changed = (division && (merge_divisions(form) || merge_remainders(form))) ||
                         (choice && form.size() > 1 && (cancel_min_max(form) || merge_min_max(form)));
    if (!changed) break;
    std::tie(division, choice) = worth_rules();
  }
  raw->simplified = settle(raw_sum(form));
  raw->simplified_context = context;
  return raw->simplified;
}

Value* Engine::add_index(Value* a, Value* b, int64_t coefficient) {
  if (b->is_int(0)) return a;
  Linear form(a);
  form.add(b, coefficient);
  if (a->is(ValueKind::kInt) && b->is(ValueKind::kInt)) {
    const uint64_t x = static_cast<uint64_t>(a->number), y = static_cast<uint64_t>(b->number);
    return index(static_cast<int64_t>(coefficient == 1 ? x + y : x - y));
  }
  const bool far = !form.terms.empty() && magnitude(form.constant) > uint64_t{1} << 62;
  if (form.overflow || far) return settle(make_op(coefficient == 1 ? BinaryOp::kAdd : BinaryOp::kSub, kInt64, a, b));
  return sum(form);
}

Value* Engine::product(Value* a, Value* b) {
  InlineVector<Value*, kMaxFactors> factors;
  for (Value* v : {a, b}) {
    if (v->is(ValueKind::kProduct))
      for (uint32_t i = 0; i < v->count; ++i) factors.push_back(v->kids[i]);
    else factors.push_back(v);
  }
  if (factors.size() > kMaxFactors) return nullptr;
  for (uint32_t i = 1; i < factors.size(); ++i)
    for (uint32_t j = i; j > 0 && before(factors[j], factors[j - 1]); --j) std::swap(factors[j], factors[j - 1]);
  Value probe(ValueKind::kProduct, kInt64);
  return settle(make(probe, {factors.data(), factors.size()}));
}

Value* Engine::mul_index(Value* a, Value* b) {
  if (a->is(ValueKind::kInt)) std::swap(a, b);
  if (b->is(ValueKind::kInt)) {
    if (b->number == 1) return a;
    if (a->is(ValueKind::kInt))
      return index(static_cast<int64_t>(static_cast<uint64_t>(a->number) * static_cast<uint64_t>(b->number)));
    Linear form;
    form.add(a, b->number);
    if (form.overflow) return settle(make_op(BinaryOp::kMul, kInt64, a, b));
    return sum(form);
  }
  const auto opaque = [&] {
    if (before(b, a)) std::swap(a, b);
    return settle(make_op(BinaryOp::kMul, kInt64, a, b));
  };
  const Linear x(a), y(b);
  if (x.overflow || y.overflow || x.size() * y.size() > kMaxProductTerms) return opaque();
  Linear form;
  for (const Term& s : x.terms)
    for (const Term& t : y.terms) {
      Value* both = product(s.value, t.value);
      int64_t coefficient;
      if (!both || __builtin_mul_overflow(s.coefficient, t.coefficient, &coefficient)) return opaque();
      form.add(both, coefficient);
    }
  for (const Term& s : x.terms) {
    int64_t coefficient;
    if (__builtin_mul_overflow(s.coefficient, y.constant, &coefficient)) return opaque();
    form.add(s.value, coefficient);
  }
  for (const Term& t : y.terms) {
    int64_t coefficient;
    if (__builtin_mul_overflow(t.coefficient, x.constant, &coefficient)) return opaque();
    form.add(t.value, coefficient);
  }
  form.add_constant(x.constant, y.constant);
  if (form.overflow) return opaque();
  return sum(form);
}

/// c * (y / c) + y % c --> y, y - c * (y / c) --> y % c, with any common factor.
bool Engine::merge_divisions(Linear& form) {
  for (uint32_t i = 0; i < form.size(); ++i) {
    const auto [division, coefficient] = form.terms[i];
    if (!is_constant_division(division, BinaryOp::kFloorDiv)) continue;
    Value* y = division->kids[0];
    const int64_t divisor = division->kids[1]->number;
    if (coefficient % divisor != 0 || !exact(y)) continue;
    // The remainder costs a look only where something can cancel.
    bool promising = shares_term(form, y);
    for (uint32_t j = 0; j < form.size() && !promising; ++j)
      promising = form.terms[j].value->is_op(BinaryOp::kFloorMod);
    if (!promising) {
      const Modulus m = modulus(y);
      promising = m.modulus % divisor == 0;
      if (!promising) continue;
    }
    Value* remainder = floor_mod_constant(y, divisor);
    Linear merged = form;
    merged.add(division, -coefficient);
    merged.add(y, coefficient / divisor);
    merged.add(remainder, -(coefficient / divisor));
    if (merged.overflow) continue;
    const bool shorter = merged.size() < form.size();
    if (!shorter && !(remainder->is(ValueKind::kInt) && merged.size() == form.size())) continue;
    form = merged;
    return true;
  }
  return false;
}

/// c * ((y / c) % n) + y % c --> y % (c * n), with any common factor.
bool Engine::merge_remainders(Linear& form) {
  for (uint32_t i = 0; i < form.size(); ++i) {
    const auto [upper, coefficient] = form.terms[i];
    if (!is_constant_division(upper, BinaryOp::kFloorMod) || !is_constant_division(upper->kids[0], BinaryOp::kFloorDiv))
      continue;
    Value* y = upper->kids[0]->kids[0];
    const int64_t n = upper->kids[1]->number, c = upper->kids[0]->kids[1]->number;
    int64_t whole;
    if (coefficient % c != 0 || __builtin_mul_overflow(n, c, &whole) || form.size() < 2 || !exact(y)) continue;
    Linear merged = form;
    merged.add(upper, -coefficient);
    merged.add(floor_mod_constant(y, c), -(coefficient / c));
    if (merged.overflow || merged.size() + 2 > form.size()) continue;
    merged.add(floor_mod_constant(y, whole), coefficient / c);
    if (merged.overflow || merged.size() >= form.size()) continue;
    form = merged;
    return true;
  }
  return false;
}

/// min(a, b) - min(c, d) --> a - c when b - d is the same.
bool Engine::cancel_min_max(Linear& form) {
  for (uint32_t i = 0; i < form.size(); ++i) {
    const auto [x, k] = form.terms[i];
    if (!x->is_min_max()) continue;
    for (uint32_t j = i + 1; j < form.size(); ++j) {
      const auto [y, l] = form.terms[j];
      if (y->op != x->op || !y->is_min_max() || k != -l || x->count != y->count) continue;
      if (!tame(x) || !tame(y)) continue;
      // The operands are sorted by an order that a common offset keeps, except where it turns a constant into a sum; of
      // two operands the other pairing is tried as well.
      for (int pairing = 0; pairing < (x->count == 2 ? 2 : 1); ++pairing) {
        Value* difference = nullptr;
        for (uint32_t o = 0; o < x->count; ++o) {
          Linear d(x->kids[o]);
          d.add(y->kids[pairing ? x->count - 1 - o : o], -1);
          Value* same = d.overflow ? nullptr : raw_sum(d);
          if (!same || (difference && same != difference)) {
            difference = nullptr;
            break;
          }
          difference = same;
        }
        if (!difference) continue;
        Linear merged = form;
        merged.add(x, -k);
        merged.add(y, -l);
        merged.add(difference, k);
        if (merged.overflow) continue;
        form = merged;
        return true;
      }
    }
  }
  return false;
}

/// min(a, b) + r + s --> min(a + r, b + r) + s where the terms of r cancel in some operand and that saves terms.
bool Engine::merge_min_max(Linear& form) {
  for (uint32_t i = 0; i < form.size(); ++i) {
    const auto [chosen, coefficient] = form.terms[i];
    if (!chosen->is_min_max() || (coefficient != 1 && coefficient != -1) || !tame(chosen)) continue;
    Linear inside, outside;
    outside.constant = form.constant;
    for (uint32_t t = 0; t < form.size(); ++t) {
      if (t == i) continue;
      const Term term = form.terms[t];
      bool cancels = false;
      for (uint32_t o = 0; o < chosen->count && !cancels; ++o) {
        const Linear operand(chosen->kids[o]);
        const uint32_t at = find(operand, term.value);
        cancels = at < operand.size() && operand.terms[at].coefficient == -coefficient * term.coefficient;
      }
      (cancels && tame(term.value) ? inside : outside).add(term.value, term.coefficient);
    }
    if (inside.terms.empty()) continue;
    uint32_t size_before = inside.size(), size_after = 0;
    InlineVector<Value*, 8> operands;
    bool fits = true;
    for (uint32_t o = 0; o < chosen->count && fits; ++o) {
      const Linear operand(chosen->kids[o]);
      Linear merged = inside;
      merged.add(operand, coefficient);
      size_before += operand.size();
      size_after += merged.size();
      fits = !merged.overflow && tame(chosen->kids[o]);
      if (!fits) break;
      operands.push_back(sum(merged));
      fits = tame(operands.back());
    }
    if (!fits || size_after >= size_before) continue;
    const bool is_min = chosen->is_op(BinaryOp::kMin) == (coefficient == 1);
    outside.add(min_max(is_min ? BinaryOp::kMin : BinaryOp::kMax, {operands.data(), operands.size()}));
    if (outside.overflow) continue;
    form = outside;
    return true;
  }
  return false;
}

}  // namespace tensmith::simplifier
