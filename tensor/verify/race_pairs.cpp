// Whether two accesses of a parallel loop can touch one element in different iterations.

#include <algorithm>

#include "tensor/verify/bounds.h"
#include "tensor/verify/races.h"

namespace tensmith::verifier {

using simplifier::Engine;
using simplifier::kHasLoad;
using simplifier::Linear;
using simplifier::SymbolicBounds;
using simplifier::Term;
using simplifier::ValueKind;

namespace {

constexpr int kMaxDepth = 12;  // of splits of one equation

const VarNode* node_of(const Var& var) { return static_cast<const VarNode*>(var.get()); }

}  // namespace

void RaceChecker::set_bounds(SymbolicBounds& bounds, const Access& access) {
  bounds.set(parallel_, {first_, last_});
  for (const Inner& inner : access.inner)
    bounds.set(engine_.var_value(node_of(inner.var)), {engine_.index(0), inner.last});
}

void RaceChecker::run_over(SymbolicBounds& bounds, std::initializer_list<const Access*> accesses) {
  bounds.set(parallel_, {first_, last_});
  inner_.clear();
  for (const Access* access : accesses) {
    for (const Inner& inner : access->inner) {
      engine_.bind_interval(node_of(inner.var), engine_.index(0), inner.last);
      inner_.insert(engine_.var_value(node_of(inner.var)));
    }
    set_bounds(bounds, *access);
  }
  bounds_ = &bounds;
}

/// All pairs at once: where every access has the same functions of p in a dimension, and the rest of the index stays in
/// one range, one equation says it for all. This is the usual case, and pairs are many when loops were unrolled.
bool RaceChecker::all_disjoint(const std::vector<Access*>& accesses) {
  equal_.clear();
  if (accesses.empty()) return true;  // the stores are in code that never runs
  const size_t rank = accesses[0]->indices.size();
  for (size_t dimension = 0; dimension < rank; ++dimension) {
    Linear shared;  // functions of p and what stays the same
    Value *lo = nullptr, *hi = nullptr;
    bool usable = true;
    for (const Access* access : accesses) {
      usable = usable && access->indices.size() == rank;
      Value* index = usable ? access->indices[dimension] : nullptr;
      if (!index || index->dtype != kInt64 || !engine_.exact(index)) {
        usable = false;
        break;
      }
      const Engine::Scope scope(engine_);
      SymbolicBounds bounds(engine_);
      run_over(bounds, {access});
      Linear common, rest;
      const Linear form(index);
      rest.constant = form.constant;
      for (const Term& term : form.terms) {
        const bool free = (term.value->flags & kHasLoad) || mentions_inner(term.value);
        (free ? rest : common).add(term.value, term.coefficient);
      }
      const SymbolicBounds::Ends ends = bounds.of(engine_.sum(rest));
      common.add(shared, access == accesses[0] ? 0 : -1);
      usable = ends.lo && ends.hi && (access == accesses[0] || common.terms.empty());
      if (!usable) break;
      if (access == accesses[0]) shared = common;
      lo = lo ? engine_.binary(BinaryOp::kMin, lo, ends.lo) : ends.lo;
      hi = hi ? engine_.binary(BinaryOp::kMax, hi, ends.hi) : ends.hi;
    }
    if (!usable) continue;
    const Engine::Scope scope(engine_);
    SymbolicBounds bounds(engine_);
    run_over(bounds, {});
    std::vector<Item> items;
    Access anywhere{nullptr, {}, {}, false, {}, {}};
    for (const Term& term : shared.terms) add_item(items, term.value, term.coefficient, &anywhere, &anywhere);
    if (lo != hi) items.push_back({1, nullptr, engine_.sub(lo, hi), engine_.sub(hi, lo), nullptr});
    impossible(items, 0, 0);
  }
  const Engine::Scope scope(engine_);
  SymbolicBounds bounds(engine_);
  run_over(bounds, {});
  close_over();
  return is_known(parallel_);
}

bool RaceChecker::mentions_inner(Value* value) {
  std::unordered_set<Value*> looked_at;
  const auto look = [&](auto& self, Value* v) -> bool {
    if (!looked_at.insert(v).second) return false;
    if (inner_.count(v)) return true;
    for (uint32_t i = 0; i < v->count; ++i)
      if (self(self, v->kids[i])) return true;
    return false;
  };
  return look(look, value);
}

bool RaceChecker::disjoint(Access& a, Access& b) {
  if (a.indices.size() != b.indices.size()) return false;
  const Engine::Scope scope(engine_);
  SymbolicBounds bounds(engine_);
  run_over(bounds, {&a, &b});
  equal_.clear();
  first_access_ = &a;
  second_access_ = &b;
  functions_ = conditioned();
  bool apart = false;
  for (size_t i = 0; i < a.indices.size() && !apart; ++i) apart = impossible(a, b, i);
  if (!apart) {
    for (Value* value : functions_)
      if (is_same_number(value)) equal_.insert(value);
    close_over();
    apart = is_known(parallel_) || conditions_exclude();
  }
  functions_.clear();
  first_access_ = second_access_ = nullptr;
  return apart;
}

/// What is known of a value wherever the access happens.
const RaceChecker::Known& RaceChecker::known_of(Access& access, Value* value) {
  const auto [at, is_new] = access.known.try_emplace(value);
  if (!is_new) return at->second;
  const Engine::Scope scope(engine_);
  SymbolicBounds bounds(engine_);
  set_bounds(bounds, access);
  assume(access.path);
  Known known;
  known.ends = bounds.of(value);
  if (value->dtype.is_integral() || value->dtype.is_bool()) known.range = engine_.range(value);
  return access.known[value] = known;
}

/// Takes remainders apart into the digits that the conditions speak of: y % 15 into y // 5 % 3 * 5 + y % 5. The
/// simplifier has put them together where the strides allowed it.
void RaceChecker::split_digits(Linear& form, const std::vector<Value*>& functions) {
  for (bool changed = true; changed && form.size() <= simplifier::kMaxTerms;) {
    changed = false;
    for (const Term& term : form.terms) {
      const auto [value, coefficient] = term;
      if (!value->is_op(BinaryOp::kFloorMod) || !value->kids[1]->is(ValueKind::kInt)) continue;
      Value* y = value->kids[0];
      const int64_t modulus = value->kids[1]->number;
      int64_t divisor = 0;  // the largest proper one
      for (Value* v : functions) {
        if (!(v->is_op(BinaryOp::kFloorMod) || v->is_op(BinaryOp::kFloorDiv)) || v->kids[0] != y) continue;
        const int64_t d = v->kids[1]->is(ValueKind::kInt) ? v->kids[1]->number : 0;
        if (d > std::max<int64_t>(divisor, 1) && d < modulus && modulus % d == 0) divisor = d;
      }
      if (divisor == 0 || !engine_.exact(y)) continue;
      int64_t stride;
      if (__builtin_mul_overflow(coefficient, divisor, &stride)) continue;
      Value* const by = engine_.index(divisor);
      form.add(value, -coefficient);
      form.add(engine_.floor_mod(engine_.floor_div(y, by), engine_.index(modulus / divisor)), stride);
      form.add(engine_.floor_mod(y, by), coefficient);
      changed = true;
      break;
    }
  }
}

/// Whether the conditions around both accesses leave the value the same single number.
bool RaceChecker::is_same_number(Value* value) {
  if (!first_access_ || (first_access_->path.empty() && second_access_->path.empty())) return false;
  if (value->flags & kHasLoad || mentions_inner(value)) return false;
  const simplifier::Range a = known_of(*first_access_, value).range, b = known_of(*second_access_, value).range;
  return a.is_point() && b.is_point() && a.lo == b.lo;
}

/// The functions of p that the conditions around both accesses are made of.
std::vector<RaceChecker::Value*> RaceChecker::conditioned() {
  std::vector<Value*> found;
  std::unordered_set<Value*> looked_at;
  const auto look = [&](auto& self, Value* v) -> void {
    if (!looked_at.insert(v).second) return;
    if (v->is_index() && runs(v) && !(v->flags & kHasLoad) && !mentions_inner(v)) found.push_back(v);
    for (uint32_t i = 0; i < v->count; ++i) self(self, v->kids[i]);
  };
  for (const Access* access : {first_access_, second_access_})
    for (const Condition& condition : access->path) look(look, condition.value);
  return found;
}

/// Whether a function of p that agrees in both iterations lies in ranges that do not meet.
bool RaceChecker::conditions_exclude() {
  for (Value* value : functions_) {
    if (!is_known(value)) continue;
    const simplifier::Range a = known_of(*first_access_, value).range, b = known_of(*second_access_, value).range;
    if (a.lo > b.hi || b.lo > a.hi) return true;
  }
  return false;
}

bool RaceChecker::runs(Value* value) { return (value->flags & kHasLoad) || bounds_->depends(value); }

/// Adds coefficient * (atom of `a`) - coefficient * (the same atom of `b`), either of which may be left out (null).
void RaceChecker::add_item(std::vector<Item>& items, Value* atom, int64_t coefficient, Access* a, Access* b) {
  const bool difference = a && b;
  if (difference && !runs(atom)) return;
  Value *core = atom, *factor = nullptr;
  if (atom->is(ValueKind::kProduct)) {
    // What stays the same times one running factor.
    Value* running = nullptr;
    bool single = true;
    for (uint32_t i = 0; i < atom->count; ++i) {
      if (!runs(atom->kids[i])) continue;
      single = single && !running;
      running = atom->kids[i];
    }
    if (single && running) {
      for (uint32_t i = 0; i < atom->count; ++i)
        if (atom->kids[i] != running) factor = factor ? engine_.mul(factor, atom->kids[i]) : atom->kids[i];
      core = running;
    }
  }
  const auto ends_in = [&](Access& access) {
    const Known& known = known_of(access, core);
    SymbolicBounds::Ends ends = known.ends;
    if (core->flags & kHasLoad)
      ends = {known.range.lo == INT64_MIN ? nullptr : engine_.index(known.range.lo),
              known.range.hi == INT64_MAX ? nullptr : engine_.index(known.range.hi)};
    return ends;
  };
  SymbolicBounds::Ends ends = a ? ends_in(*a) : ends_in(*b);
  if (!a) coefficient = -coefficient;
  Item item{coefficient, factor, ends.lo, ends.hi, nullptr};
  if (difference) {
    const SymbolicBounds::Ends other = ends_in(*b);
    item.lo = ends.lo && other.hi ? engine_.sub(ends.lo, other.hi) : nullptr;
    item.hi = ends.hi && other.lo ? engine_.sub(ends.hi, other.lo) : nullptr;
    if (!(core->flags & kHasLoad) && !mentions_inner(core)) item.atom = core;
  }
  items.push_back(item);
}

bool RaceChecker::impossible(Access& first, Access& second, size_t dimension) {
  Value *a = first.indices[dimension], *b = second.indices[dimension];
  if (a->dtype != kInt64 || b->dtype != kInt64 || !engine_.exact(a) || !engine_.exact(b)) return false;
  Linear x(a), y(b);
  split_digits(x, functions_);
  split_digits(y, functions_);
  const auto find = [](const Linear& form, const Term& term) {
    for (const Term& other : form.terms)
      if (other.value == term.value && other.coefficient == term.coefficient) return true;
    return false;
  };
  // Where a function of p is one number c, it - c may be added as often as it stands on the other side.
  const auto match = [&](Linear& fixed, Access& access, const Linear& free) {
    if (access.path.empty()) return;
    const Linear before = fixed;
    for (const Term& term : free.terms) {
      if (term.value->flags & kHasLoad || !runs(term.value) || mentions_inner(term.value) || find(before, term))
        continue;
      const simplifier::Range r = known_of(access, term.value).range;
      if (r.is_point()) fixed.add(term.value, term.coefficient), fixed.add_constant(r.lo, -term.coefficient);
    }
  };
  const Linear of_a = x;
  match(x, first, y);
  match(y, second, of_a);
  Linear offset;
  offset.add_constant(x.constant);
  offset.add_constant(y.constant, -1);
  if (x.overflow || y.overflow || offset.overflow) return false;
  std::vector<Item> items;
  for (const Term& term : x.terms)
    add_item(items, term.value, term.coefficient, &first, find(y, term) ? &second : nullptr);
  for (const Term& term : y.terms)
    if (!find(x, term)) add_item(items, term.value, term.coefficient, nullptr, &second);
  return impossible(items, offset.constant, 0);
}

SymbolicBounds::Ends RaceChecker::total(const std::vector<Item>& items, int64_t constant) {
  SymbolicBounds::Ends ends;
  for (const bool upper : {false, true}) {
    Linear sum;
    sum.constant = constant;
    bool known = true;
    for (const Item& item : items) {
      Value* x = (item.coefficient > 0) == upper ? item.hi : item.lo;
      // A factor that may be negative would swap the ends.
      known = known && x && (!item.factor || engine_.range(item.factor).lo >= 0);
      if (known) sum.add(item.factor ? engine_.mul(x, item.factor) : x, item.coefficient);
    }
    if (known && !sum.overflow) (upper ? ends.hi : ends.lo) = engine_.sum(sum);
  }
  return ends;
}

bool RaceChecker::proves_less(Value* a, Value* b) { return a && b && engine_.prove_le(a, b, -1); }

bool RaceChecker::impossible(const std::vector<Item>& items, int64_t constant, int depth) {
  if (items.empty()) return constant != 0;
  Value* zero = engine_.index(0);
  const SymbolicBounds::Ends all = total(items, constant);
  if (proves_less(zero, all.lo) || proves_less(all.hi, zero)) return true;
  if (items.size() == 1) {
    const Item& item = items[0];
    if (!item.factor && constant % item.coefficient != 0) return true;
    if (constant == 0 && item.atom && (!item.factor || engine_.prove_positive(item.factor))) equal_.insert(item.atom);
    return false;
  }
  if (depth >= kMaxDepth) return false;
  for (const Item& step : items) {
    // Multiples of `step` against the rest.
    const int64_t g = static_cast<int64_t>(simplifier::magnitude(step.coefficient));
    if (step.factor && !engine_.prove_positive(step.factor)) continue;
    std::vector<Item> high, low;
    for (const Item& item : items) {
      const bool divides = item.coefficient % g == 0 &&
                           (!step.factor || (item.factor && engine_.divide_product(item.factor, step.factor)));
      (divides ? high : low).push_back(item);
    }
    if (low.empty()) {
      if (!step.factor && constant % g != 0) return true;
      if ((g == 1 && !step.factor) || (step.factor && constant != 0)) continue;
      for (Item& item : high) {
        item.coefficient /= g;
        if (step.factor) {
          item.factor = engine_.divide_product(item.factor, step.factor);
          if (item.factor->is_int(1)) item.factor = nullptr;
        }
      }
      return impossible(high, constant / g, depth + 1);
    }
    Value* size = step.factor ? engine_.mul(step.factor, engine_.index(g)) : engine_.index(g);
    const int64_t remainder = simplifier::floor_mod_int(constant, g);
    const int64_t choices[] = {step.factor ? constant : remainder, step.factor ? constant : remainder - g};
    for (const int64_t part : choices) {
      const SymbolicBounds::Ends ends = total(low, part);
      if (!ends.lo || !ends.hi || !proves_less(engine_.sub(zero, size), ends.lo) || !proves_less(ends.hi, size))
        continue;
      // The rest lies between -size and size and is a multiple of size, so it is zero, and so are the multiples.
      return impossible(low, part, depth + 1) || impossible(high, constant - part, depth + 1);
    }
  }
  return false;
}

bool RaceChecker::is_known(Value* value) {
  if (equal_.count(value) || !runs(value) || is_same_number(value)) return true;
  const bool composed = value->is(ValueKind::kSum) || value->is(ValueKind::kProduct) || value->is(ValueKind::kOp);
  if (!composed || (value->flags & kHasLoad)) return false;
  for (uint32_t i = 0; i < value->count; ++i)
    if (!is_known(value->kids[i])) return false;
  return true;
}

/// y / c and y % c together determine y.
void RaceChecker::close_over() {
  for (int turn = 0; turn < kMaxDepth; ++turn) {
    std::vector<Value*> found;
    for (Value* atom : equal_) {
      if (!atom->is_op(BinaryOp::kFloorMod)) continue;
      Value* y = atom->kids[0];
      if (!is_known(y) && is_known(engine_.floor_div(y, atom->kids[1])) && is_known(atom->kids[1])) found.push_back(y);
    }
    if (found.empty()) return;
    for (Value* y : found) {
      equal_.insert(y);
      Access same{nullptr, {y}, {}, false, {}, {}};
      impossible(same, same, 0);
    }
  }
}

}  // namespace tensmith::verifier
