// Minimum and maximum of kInt64 scalars: flat sorted lists of operands of which none is provably superfluous. What all
// operands have in common stands outside, and so does the constant of the innermost one, where it can join an address's
// offset, and its sign.

#include "tensor/simplify/engine.h"

namespace tensmith::simplifier {

namespace {
constexpr uint32_t kMaxOperands = 8;
}

Value* Engine::min_max(BinaryOp op, std::span<Value* const> operands) {
  const bool is_min = op == BinaryOp::kMin;
  InlineVector<Value*, kMaxOperands> flat;
  for (Value* operand : operands) {
    if (operand->is_op(op))
      for (uint32_t i = 0; i < operand->count; ++i) flat.push_back(operand->kids[i]);
    else flat.push_back(operand);
  }
  InlineVector<Value*, kMaxOperands> kept;
  for (Value* x : flat) {
    bool superfluous = false;
    for (uint32_t i = 0; i < kept.size() && !superfluous;) {
      Value* y = kept[i];
      Value *low = is_min ? y : x, *high = is_min ? x : y;
      if (x == y || prove_le(low, high)) {
        superfluous = true;
      } else if (prove_le(high, low)) {
        kept.erase(i);
      } else {
        ++i;
      }
    }
    if (superfluous) continue;
    uint32_t at = kept.size();
    while (at > 0 && before(x, kept[at - 1])) --at;
    kept.insert(at, x);
  }
  if (kept.size() == 1) return kept[0];
  if (kept.size() > kMaxOperands) return settle(make_op(op, kInt64, operands));

  // min(a + r, b + r) --> min(a, b) + r
  bool all_tame = true;
  for (Value* operand : kept) all_tame &= tame(operand);
  if (all_tame) {
    Linear common;
    const Linear first(kept[0]);
    for (const Term& term : first.terms) {
      bool in_all = true;
      for (uint32_t i = 1; i < kept.size() && in_all; ++i) {
        const Linear other(kept[i]);
        in_all = false;
        for (const Term& t : other.terms) in_all |= t.value == term.value && t.coefficient == term.coefficient;
      }
      if (in_all) common.add(term.value, term.coefficient);
    }
    const Value* inner = kept[0];
    for (const Value* operand : kept)
      if (!operand->is(ValueKind::kInt)) inner = operand;
    common.constant = inner->is(ValueKind::kSum) ? inner->number : 0;
    if (!common.terms.empty() || common.constant != 0) {
      InlineVector<Value*, kMaxOperands> rests;
      bool fits = true;
      for (Value* operand : kept) {
        Linear rest(operand);
        rest.add(common, -1);
        fits &= !rest.overflow;
        if (fits) rests.push_back(sum(rest));
        fits = fits && tame(rests.back());
      }
      if (fits) {
        common.add(min_max(op, {rests.data(), rests.size()}));
        if (!common.overflow) return sum(common);
      }
    }
  }
  // max(-x, -1) --> -min(x, 1). Only where all operands start negative, so that none does afterwards and it ends here.
  bool all_negative = all_tame;
  for (const Value* operand : kept)
    all_negative &= operand->is(ValueKind::kInt) || (operand->is(ValueKind::kSum) && operand->coefficients[0] < 0);
  if (all_negative) {
    InlineVector<Value*, kMaxOperands> negated;
    for (Value* operand : kept) {
      Linear opposite;
      opposite.add(operand, -1);
      if (!opposite.overflow) negated.push_back(sum(opposite));
    }
    if (negated.size() == kept.size()) {
      Linear result;
      result.add(min_max(is_min ? BinaryOp::kMax : BinaryOp::kMin, {negated.data(), negated.size()}), -1);
      if (!result.overflow) return sum(result);
    }
  }
  return settle(make_op(op, kInt64, {kept.data(), kept.size()}));
}

}  // namespace tensmith::simplifier
