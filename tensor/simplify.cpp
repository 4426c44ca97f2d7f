#include "tensor/simplify.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "tensor/simplify/symbolic.h"

namespace tensmith {

namespace {

using simplifier::Engine;
using simplifier::Linear;
using simplifier::Range;
using simplifier::SymbolicBounds;
using simplifier::Value;

bool mentions(const Value* v, const Value* var) {
  if (v == var) return true;
  if (v->rank < var->rank) return false;
  for (uint32_t i = 0; i < v->count; ++i)
    if (mentions(v->kids[i], var)) return true;
  return false;
}

}  // namespace

Interval bounds_of(const Expr& e, const RangeMap& ranges, const Facts& facts) {
  Engine engine(facts);
  std::vector<std::pair<const VarNode*, Interval>> ordered(ranges.begin(), ranges.end());
  // The map's order depends on addresses; the result must not.
  std::sort(ordered.begin(), ordered.end(), [&](const auto& a, const auto& b) {
    return std::make_pair(facts.order(a.first), std::string_view(a.first->name)) <
           std::make_pair(facts.order(b.first), std::string_view(b.first->name));
  });
  SymbolicBounds bounds(engine);
  for (const auto& [var, interval] : ordered) engine.declare(var);
  for (const auto& [var, interval] : ordered) {
    Value* lo = interval.lo ? engine.visit(interval.lo) : nullptr;
    Value* hi = interval.hi ? engine.visit(interval.hi) : nullptr;
    // A range in terms of its own variable means the variable outside: no fact about the one that runs.
    Value* old = engine.var_value(var);
    const bool own = (lo && mentions(lo, old)) || (hi && mentions(hi, old));
    if (!own && !interval.maybe_empty) engine.bind_interval(var, lo, hi);
    bounds.set(engine.var_value(var), {lo, hi});
  }
  const SymbolicBounds::Ends ends = bounds.of(engine.visit(e));
  Interval result;
  if (ends.lo) result.lo = engine.build(ends.lo);
  if (ends.hi) result.hi = engine.build(ends.hi);
  return result;
}

Expr simplify(const Expr& e, const Facts& facts) {
  Engine engine(facts);
  return engine.build(engine.visit(e), e);
}

bool can_prove(const Expr& condition, const Facts& facts) {
  Engine engine(facts);
  return engine.prove(engine.visit(condition));
}

VarFacts constant_bounds(const Expr& e, const Facts& facts) {
  Engine engine(facts);
  Value* value = engine.visit(e);
  const Range r = engine.range(value);
  const simplifier::Modulus m = engine.modulus(value);
  VarFacts result;
  if (r.lo != INT64_MIN) result.lo = r.lo;
  if (r.hi != INT64_MAX) result.hi = r.hi;
  if (m.modulus > 1) result.modulus = m.modulus, result.remainder = m.remainder;
  return result;
}

LinearForm linear_form(const Expr& e) {
  Engine engine;
  const Linear form(engine.visit(e));
  LinearForm result;
  result.constant = form.constant;
  for (const simplifier::Term& term : form.terms) result.terms.emplace_back(engine.build(term.value), term.coefficient);
  return result;
}

Expr from_linear_form(const LinearForm& form) {
  Engine engine;
  Linear sum;
  sum.constant = form.constant;
  for (const auto& [term, coefficient] : form.terms) sum.add(engine.visit(term), coefficient);
  TS_CHECK(!sum.overflow) << "a coefficient beyond 64 bits";
  return engine.build(engine.sum(sum));
}

}  // namespace tensmith
