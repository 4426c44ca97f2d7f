#include "tensor/simplify/engine.h"

namespace tensmith {

using simplifier::Engine;
using simplifier::Value;

Facts::Entry& Facts::entry(const Var& var) {
  Entry& result = vars_[static_cast<const VarNode*>(var.get())];
  if (result.order == 0) {
    result.var = var;
    result.order = static_cast<uint32_t>(vars_.size());
  }
  return result;
}

VarFacts Facts::of(const VarNode* var) const {
  const auto found = vars_.find(var);
  return found == vars_.end() ? VarFacts() : found->second.facts;
}

uint32_t Facts::order(const VarNode* var) const {
  const auto found = vars_.find(var);
  return found == vars_.end() ? 0 : found->second.order;
}

bool Facts::is_data(const VarNode* var) const {
  const auto found = vars_.find(var);
  return found != vars_.end() && found->second.data;
}

void Facts::set_range(const Var& var, const Expr& min, const Expr& extent) {
  const Expr last = min + extent - 1;
  VarFacts facts;
  facts.lo = constant_bounds(min, *this).lo;
  facts.hi = constant_bounds(last, *this).hi;
  entry(var).facts = facts;
  int64_t number;
  if (!as_const_int(min, &number)) assume(min <= var);
  if (!as_const_int(extent, &number) || !as_const_int(min, &number)) assume(var < min + extent);
}

void Facts::set_value(const Var& var, const Expr& value) {
  Entry& known = entry(var);
  if (!value.dtype().is_integral() && !value.dtype().is_bool()) return;
  Engine engine(*this);
  Value* v = engine.visit(value);
  known.data = !engine.tame(v);
  VarFacts facts = constant_bounds(value, *this);
  known.facts = facts;
  // Loads may give another value later.
  if (value.dtype() == kInt64 && !(v->flags & simplifier::kHasLoad)) assume(Expr(var) == value);
}

}  // namespace tensmith
