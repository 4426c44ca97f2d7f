// Facts: what a context knows of variables, terms and conditions.

#include "tensor/simplify/engine.h"

namespace tensmith::simplifier {

namespace {

constexpr size_t kMaxFacts = 64;

/// The end of [lo, hi] after adding; stays "unknown" once it was.
int64_t saturating_add(int64_t a, int64_t b) {
  if (a == INT64_MIN || a == INT64_MAX) return a;
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return b < 0 ? INT64_MIN : INT64_MAX;
  return sum;
}

}  // namespace

void Engine::remember(Value* value) {
  undo_.push_back({value, value->limit, value->limit_modulus, value->known, value->replacement});
}

void Engine::restore(const Scope::Mark& mark) {
  while (undo_.size() > mark.undo) {
    const Undo& undo = undo_.back();
    undo.value->limit = undo.limit;
    undo.value->limit_modulus = undo.limit_modulus;
    undo.value->known = undo.known;
    undo.value->replacement = undo.replacement;
    undo_.pop_back();
  }
  while (facts_.size() > mark.facts) {
    Value* fact = facts_.back();
    for (uint32_t i = 0; i < fact->count; ++i) {
      Value* term = fact->kids[i];
      --term->in_facts;
      if (term->is(ValueKind::kProduct))
        for (uint32_t j = 0; j < term->count; ++j) --term->kids[j]->in_facts;
    }
    facts_.pop_back();
  }
  context_ = mark.context;
  contradiction_ = mark.contradiction;
}

Value* Engine::base_var(const VarNode* var, bool bound) {
  Value probe(ValueKind::kVar, var->dtype);
  probe.object = var;
  const uint32_t order = known_facts_ ? known_facts_->order(var) : 0;
  probe.rank = bound && order == 0 ? next_rank_ : order;
  Value* value = make(probe, {});
  if (value->seen) return value;
  value->seen = true;
  if (value->rank == next_rank_) ++next_rank_;
  if (order != 0 && !bound) {
    const VarFacts facts = known_facts_->of(var);
    if (facts.lo) value->limit.lo = std::max(value->limit.lo, *facts.lo);
    if (facts.hi) value->limit.hi = std::min(value->limit.hi, *facts.hi);
    if (value->limit.lo > value->limit.hi) value->limit = type_range(var->dtype);
    if (facts.modulus > 1) value->limit_modulus = {facts.modulus, floor_mod_int(facts.remainder, facts.modulus)};
    if (known_facts_->is_data(var)) {
      probe.number = 1;
      probe.flags = kWildLow | kWildHigh;
      Value* twin = make(probe, {});
      twin->limit = value->limit;
      twin->limit_modulus = value->limit_modulus;
      value->replacement = twin;
    }
  }
  return value;
}

Value* Engine::var_value(const VarNode* var) {
  Value* value = base_var(var, /*bound=*/false);
  return value->replacement ? value->replacement : value;
}

Value* Engine::rebind(const VarNode* var) {
  const uint32_t rank = next_rank_;
  Value* value = base_var(var, /*bound=*/true);
  // Results from an earlier binding of the same variable must not be found again.
  if (next_rank_ == rank) renew_context();
  remember(value);
  value->replacement = nullptr;
  value->limit = type_range(value->dtype);
  value->limit_modulus = {};
  value->context = 0;
  return value;
}

void Engine::bind_replacement(const VarNode* var, Value* replacement) { rebind(var)->replacement = replacement; }

void Engine::bind_loop(const VarNode* var, Value* min, Value* extent) {
  Linear last(min);
  last.add(extent);
  last.add_constant(-1);
  const bool fits = !last.overflow && exact(min) && exact(extent);
  if (!fits) {
    const Range low = range(min), count = range(extent);
    Value* value = rebind(var);
    if (low.hi != INT64_MAX && count.hi != INT64_MAX)
      value->limit.hi = saturating_add(saturating_add(low.hi, count.hi), -1);
    value->limit.lo = low.lo;
    if (value->limit.lo > value->limit.hi) contradiction_ = true, value->limit = {};
    return;
  }
  bind_interval(var, min, sum(last));
}

void Engine::bind_interval(const VarNode* var, Value* lo, Value* hi) {
  Range bounds;
  if (lo) bounds.lo = range(lo).lo;
  if (hi) bounds.hi = range(hi).hi;
  // What may change between here and a use (a load) must not become a fact.
  const auto symbolic = [&](Value* v) { return v && !v->is(ValueKind::kInt) && !(v->flags & kHasLoad) && exact(v); };
  const bool has_lo = symbolic(lo), has_hi = symbolic(hi);
  Value* value = rebind(var);
  value->limit = bounds;
  if (bounds.lo > bounds.hi) {
    value->limit = {};
    contradiction_ = true;
  }
  if (!has_lo && !has_hi) return;
  // The facts together may say something of the ends alone (that the interval is not empty).
  renew_context();
  for (const bool upper : {false, true}) {
    if (!(upper ? has_hi : has_lo)) continue;
    Linear fact;
    fact.add(upper ? hi : lo, upper ? 1 : -1);
    fact.add(value, upper ? -1 : 1);
    if (!fact.overflow && normalise(fact)) add_fact(fact);
  }
  // It is not empty; of minima and maxima this says more than the facts about the variable.
  if (!lo || !hi || !exact(lo) || !exact(hi) || ((lo->flags | hi->flags) & kHasLoad)) return;
  Linear width(hi);
  width.add(lo, -1);
  if (Value* runs = width.overflow ? nullptr : at_least_zero(width)) assume(runs);
}

bool Engine::bind_let(const VarNode* var, Value* value) {
  if (value->is(ValueKind::kInt) || value->is(ValueKind::kFloat) || value->is(ValueKind::kVar)) {
    bind_replacement(var, value);
    return true;
  }
  const bool is_integer = value->dtype.is_integral() || value->dtype.is_bool();
  const Range bounds = is_integer ? range(value) : Range();
  const Modulus residue = is_integer ? modulus(value) : Modulus();
  Value* name = rebind(var);
  if (value->flags & (kWildLow | kWildHigh)) {
    Value probe(ValueKind::kVar, var->dtype);
    probe.object = var;
    probe.rank = name->rank;
    probe.number = 1;
    probe.flags = kWildLow | kWildHigh;
    Value* twin = make(probe, {});
    name->replacement = twin;
    remember(twin);
    twin->limit_modulus = {};
    twin->context = 0;
    if (twin->lets == 0) twin->lets = uint64_t{1} << (num_lets_++ % 64);
    name = twin;
  }
  if (name->lets == 0) name->lets = uint64_t{1} << (num_lets_++ % 64);
  if (!is_integer) return false;
  name->limit = bounds;
  if (residue.modulus > 1) name->limit_modulus = residue;
  if (value->is_index() && exact(value) && !(value->flags & kHasLoad)) {
    // A definition says nothing new of anything else, so results stay valid outside.
    Linear fact(value);
    fact.add(name, -1);
    if (!fact.overflow) {
      add_fact(fact);
      fact.scale(-1);
      add_fact(fact);
    }
  }
  return false;
}

void Engine::limit(Value* value, Range bounds) {
  Range both{std::max(value->limit.lo, bounds.lo), std::min(value->limit.hi, bounds.hi)};
  const Range now = range(value);
  if (both.lo > both.hi || both.lo > now.hi || both.hi < now.lo) {
    contradiction_ = true;
    return;
  }
  if (both.lo == value->limit.lo && both.hi == value->limit.hi) return;
  remember(value);
  value->limit = both;
  value->context = 0;
}

void Engine::limit_modulus(Value* value, Modulus modulus) {
  if (value->limit_modulus.modulus >= modulus.modulus) return;
  remember(value);
  value->limit_modulus = modulus;
  value->context = 0;
}

void Engine::add_fact(const Linear& form) {
  if (form.terms.empty()) {
    if (form.constant < 0) contradiction_ = true;
    return;
  }
  // Each term is bounded by the others: coefficient * term >= -(constant + the most that the others give).
  for (uint32_t i = 0; i < form.size(); ++i) {
    const auto [value, coefficient] = form.terms[i];
    Linear others = form;
    others.terms.erase(i);
    const int64_t most = range(others).hi;
    if (most == INT64_MAX || most == INT64_MIN) continue;
    Range bounds;
    if (coefficient > 0) bounds.lo = -floor_div_int(most, coefficient);
    else bounds.hi = floor_div_int(most, -coefficient);
    limit(value, bounds);
  }
  if (form.size() < 2 || facts_.size() >= kMaxFacts) return;
  Value* fact = raw_sum(form);
  facts_.push_back(fact);
  for (uint32_t i = 0; i < fact->count; ++i) {
    Value* term = fact->kids[i];
    ++term->in_facts;
    if (term->is(ValueKind::kProduct))
      for (uint32_t j = 0; j < term->count; ++j) ++term->kids[j]->in_facts;
  }
}

int Engine::truth(Value* condition) const {
  if (condition->is(ValueKind::kBroadcast)) condition = condition->kids[0];
  if (condition->is(ValueKind::kInt)) return condition->number != 0;
  return condition->known;
}

void Engine::assume(Value* condition, bool truth) {
  if (condition->is(ValueKind::kBroadcast)) return assume(condition->kids[0], truth);
  if (condition->is(ValueKind::kInt)) {
    if ((condition->number != 0) != truth) contradiction_ = true;
    return;
  }
  // What holds in some lanes says nothing of operations across lanes.
  if ((condition->flags & kHasEffect) || condition->dtype.lanes > 1) return;
  if (condition->is(ValueKind::kNot)) return assume(condition->kids[0], !truth);
  renew_context();
  if (condition->is_op(truth ? BinaryOp::kAnd : BinaryOp::kOr))
    for (uint32_t i = 0; i < condition->count; ++i) assume(condition->kids[i], truth);
  if (condition->known != -1 && (condition->known == 1) != truth) contradiction_ = true;
  remember(condition);
  condition->known = truth;
  condition->context = 0;
  if (condition->is(ValueKind::kOp) && condition->dtype == kBool && is_compare(condition->binary_op()))
    assume_compare(condition, truth);
  renew_context();
}

void Engine::assume_compare(Value* compare, bool truth) {
  Value *a = compare->kids[0], *b = compare->kids[1];
  const DType type = a->dtype;
  if (!(type.is_integral() || type.is_bool()) || type.lanes != 1 || type == kUInt64) return;
  const BinaryOp op = compare->binary_op();
  const bool equality = op == BinaryOp::kEQ || op == BinaryOp::kNE;
  const bool equal = (op == BinaryOp::kEQ) == truth;
  if (equality && equal) {
    const auto residue = [&](Value* remainder, Value* number) {
      if (!remainder->is_op(BinaryOp::kFloorMod) || !remainder->kids[1]->is(ValueKind::kInt) ||
          !number->is(ValueKind::kInt))
        return;
      const int64_t modulus = remainder->kids[1]->number;
      Value* x = remainder->kids[0];
      if (!exact(x)) return;
      int64_t offset = 0;
      if (x->is(ValueKind::kSum) && x->count == 1 && x->coefficients[0] == 1) offset = x->number, x = x->kids[0];
      if (modulus > 1)
        limit_modulus(
            x,
            {modulus, floor_mod_int(floor_mod_int(number->number, modulus) - floor_mod_int(offset, modulus), modulus)});
    };
    residue(a, b);
    residue(b, a);
  }
  if (type == kInt64 && exact(a) && exact(b)) {
    Linear form;  // b - a - 1 >= 0, b - a >= 0, or their opposites
    const bool strict = (op == BinaryOp::kLT) == truth;
    form.add(b, truth || equality ? 1 : -1);
    form.add(a, truth || equality ? -1 : 1);
    if (!equality) {
      if (strict) form.add_constant(-1);
      if (!form.overflow && normalise(form)) add_fact(form);
      return;
    }
    if (form.overflow) return;
    if (equal) {
      Linear opposite = form;
      opposite.scale(-1);
      if (!opposite.overflow) add_fact(form), add_fact(opposite);
      return;
    }
    // Not equal: trims an end that the bounds touch.
    const Range r = range(form);
    if (r.lo != 0 && r.hi != 0) return;
    if (r.hi == 0) form.scale(-1);
    form.add_constant(-1);
    if (!form.overflow && normalise(form)) add_fact(form);
    return;
  }
  const Range ra = range(a), rb = range(b);
  if (equality) {
    if (equal) {
      const Range both{std::max(ra.lo, rb.lo), std::min(ra.hi, rb.hi)};
      limit(a, both);
      limit(b, both);
    }
    return;
  }
  // low < high, or low <= high when not strict.
  Value *low = truth ? a : b, *high = truth ? b : a;
  const int64_t gap = (op == BinaryOp::kLT) == truth ? 1 : 0;
  const Range rl = range(low), rh = range(high);
  if (rh.hi != INT64_MAX || type != kInt64) limit(low, {INT64_MIN, saturating_add(rh.hi, -gap)});
  if (rl.lo != INT64_MIN || type != kInt64) limit(high, {saturating_add(rl.lo, gap), INT64_MAX});
}

}  // namespace tensmith::simplifier
