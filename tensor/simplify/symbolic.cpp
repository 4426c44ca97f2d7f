#include "tensor/simplify/symbolic.h"

#include <algorithm>

namespace tensmith::simplifier {

SymbolicBounds::Ends SymbolicBounds::of(Value* v) {
  if (!depends(v)) return {v, v};
  if (const auto found = known_.find(v); found != known_.end()) return found->second;
  Ends ends = v->dtype.element() == kInt64 ? compute(v) : Ends();
  const Range r = engine_.range(v);
  const DType type = v->dtype.element();
  // Where only constants are known they may as well be the better ones.
  if (r.lo != INT64_MIN && (!ends.lo || (ends.lo->is(ValueKind::kInt) && ends.lo->number < r.lo)))
    ends.lo = engine_.integer(type, r.lo);
  if (r.hi != INT64_MAX && (!ends.hi || (ends.hi->is(ValueKind::kInt) && ends.hi->number > r.hi)))
    ends.hi = engine_.integer(type, r.hi);
  known_[v] = ends;
  return ends;
}

bool SymbolicBounds::depends(Value* v) {
  if (v->is(ValueKind::kVar)) return vars_.count(v) != 0;
  if (v->count == 0) return false;
  const auto [at, is_new] = depends_.try_emplace(v, false);
  if (!is_new) return at->second;
  bool result = false;
  for (uint32_t i = 0; i < v->count && !result; ++i) result = depends(v->kids[i]);
  return depends_[v] = result;
}

SymbolicBounds::Ends SymbolicBounds::compute(Value* v) {
  switch (v->kind) {
    case ValueKind::kVar: return of_var(v);
    case ValueKind::kSum: return of_sum(v);
    case ValueKind::kProduct: return of_product(v);
    case ValueKind::kBroadcast: return of(v->kids[0]);
    case ValueKind::kRamp: return of_ramp(v);
    case ValueKind::kSelect: return either(of(v->kids[1]), of(v->kids[2]));
    case ValueKind::kOp:
      if (v->dtype.lanes != 1) return {};
      if (v->is_min_max()) return of_min_max(v);
      if (v->is_op(BinaryOp::kFloorDiv)) return of_div(v);
      if (v->is_op(BinaryOp::kFloorMod)) return of_mod(v);
      return {};
    default: return {};
  }
}

SymbolicBounds::Ends SymbolicBounds::of_var(Value* v) {
  auto& [ends, busy] = vars_.at(v);
  if (busy) return {v, v};  // the range refers to its own variable, meaning the one outside
  busy = true;
  Ends result;
  if (ends.lo) result.lo = of(ends.lo).lo;
  if (ends.hi) result.hi = of(ends.hi).hi;
  vars_.at(v).second = false;
  return result;
}

SymbolicBounds::Ends SymbolicBounds::of_sum(Value* v) {
  if (!engine_.tame(v)) return {};
  Linear lo, hi;
  lo.constant = hi.constant = v->number;
  bool has_lo = true, has_hi = true;
  for (uint32_t i = 0; i < v->count; ++i) {
    const int64_t k = v->coefficients[i];
    Ends ends = of(v->kids[i]);
    if (k < 0) std::swap(ends.lo, ends.hi);
    if (ends.lo) lo.add(ends.lo, k);
    if (ends.hi) hi.add(ends.hi, k);
    has_lo &= ends.lo != nullptr;
    has_hi &= ends.hi != nullptr;
  }
  return {has_lo && !lo.overflow ? engine_.sum(lo) : nullptr, has_hi && !hi.overflow ? engine_.sum(hi) : nullptr};
}

SymbolicBounds::Ends SymbolicBounds::of_product(Value* v) {
  if (!engine_.tame(v)) return {};
  // Factors of known sign: the ends of a product of non-negative factors are the products of the ends.
  Ends result{engine_.index(1), engine_.index(1)};
  bool negative = false;
  for (uint32_t i = 0; i < v->count; ++i) {
    Ends ends = of(v->kids[i]);
    const Range r = engine_.range(v->kids[i]);
    if (r.lo < 0) {
      if (r.hi > 0) {
        // One factor of either sign is fine when all the others are fixed and have a sign.
        return of_signed_product(v, i);
      }
      const Ends swapped{ends.hi ? engine_.mul(ends.hi, engine_.index(-1)) : nullptr,
                         ends.lo ? engine_.mul(ends.lo, engine_.index(-1)) : nullptr};
      ends = swapped;
      negative = !negative;
    }
    if (!ends.lo) ends.lo = engine_.index(0);
    result.lo = engine_.mul(result.lo, ends.lo);
    result.hi = result.hi && ends.hi ? engine_.mul(result.hi, ends.hi) : nullptr;
  }
  if (!negative) return result;
  return {result.hi ? engine_.mul(result.hi, engine_.index(-1)) : nullptr, engine_.mul(result.lo, engine_.index(-1))};
}

SymbolicBounds::Ends SymbolicBounds::of_signed_product(Value* v, uint32_t position) {
  Value* others = engine_.index(1);
  for (uint32_t i = 0; i < v->count; ++i) {
    if (i == position) continue;
    if (depends(v->kids[i])) return {};
    others = engine_.mul(others, v->kids[i]);
  }
  Ends ends = of(v->kids[position]);
  const Range r = engine_.range(others);
  if (r.lo < 0 && r.hi > 0) return {};
  if (r.lo < 0) std::swap(ends.lo, ends.hi);
  return {ends.lo ? engine_.mul(ends.lo, others) : nullptr, ends.hi ? engine_.mul(ends.hi, others) : nullptr};
}

SymbolicBounds::Ends SymbolicBounds::of_ramp(Value* v) {
  const Range stride = engine_.range(v->kids[1]);
  if (depends(v->kids[1]) || !engine_.tame(v) || (stride.lo < 0 && stride.hi > 0)) return {};
  Ends ends = of(v->kids[0]);
  Value* reach = engine_.mul(v->kids[1], engine_.index(v->dtype.lanes - 1));
  Value*& moved = stride.lo < 0 ? ends.lo : ends.hi;
  if (moved) moved = engine_.add(moved, reach);
  return ends;
}

SymbolicBounds::Ends SymbolicBounds::either(Ends a, Ends b) {
  return {a.lo && b.lo ? engine_.binary(BinaryOp::kMin, a.lo, b.lo) : nullptr,
          a.hi && b.hi ? engine_.binary(BinaryOp::kMax, a.hi, b.hi) : nullptr};
}

SymbolicBounds::Ends SymbolicBounds::of_min_max(Value* v) {
  const BinaryOp op = v->binary_op();
  Ends result = of(v->kids[0]);
  for (uint32_t i = 1; i < v->count; ++i) {
    const Ends next = of(v->kids[i]);
    // One known operand bounds a minimum from above, a maximum from below.
    const auto join = [&](Value* a, Value* b, bool one_suffices) -> Value* {
      if (a && b) return engine_.binary(op, a, b);
      return one_suffices ? (a ? a : b) : nullptr;
    };
    result = {join(result.lo, next.lo, op == BinaryOp::kMax), join(result.hi, next.hi, op == BinaryOp::kMin)};
  }
  return result;
}

SymbolicBounds::Ends SymbolicBounds::of_div(Value* v) {
  Value* divisor = v->kids[1];
  if (depends(divisor) || !engine_.prove_positive(divisor)) return {};
  const Ends x = of(v->kids[0]);
  return {x.lo ? engine_.floor_div(x.lo, divisor) : nullptr, x.hi ? engine_.floor_div(x.hi, divisor) : nullptr};
}

SymbolicBounds::Ends SymbolicBounds::of_mod(Value* v) {
  Value* divisor = v->kids[1];
  if (depends(divisor) || !engine_.prove_positive(divisor)) return {};
  const Ends x = of(v->kids[0]);
  if (x.lo && x.hi) {
    // No multiple of the divisor between the ends: the remainder runs as the dividend does.
    Value *first = engine_.floor_div(x.lo, divisor), *last = engine_.floor_div(x.hi, divisor);
    if (engine_.sub(last, first)->is_int(0))
      return {engine_.floor_mod(x.lo, divisor), engine_.floor_mod(x.hi, divisor)};
  }
  return {engine_.index(0), engine_.sub(divisor, engine_.index(1))};
}

}  // namespace tensmith::simplifier
