// Vectors: ramps and broadcasts are computed with as two scalars as long as possible.

#include "tensor/simplify/engine.h"

namespace tensmith::simplifier {

Value* Engine::broadcast(Value* value, int lanes) {
  if (lanes == 1) return value;
  return make_unary(ValueKind::kBroadcast, value->dtype.with_lanes(lanes), value);
}

Value* Engine::ramp(Value* base, Value* stride, int lanes) {
  if (lanes == 1) return base;
  if (stride->is_int(0)) return broadcast(base, lanes);
  Value* kids[] = {base, stride};
  Value probe(ValueKind::kRamp, base->dtype.with_lanes(lanes));
  return make(probe, kids);
}

bool Engine::as_ramp(Value* value, Value** base, Value** stride) {
  if (!value->is(ValueKind::kRamp) && !value->is(ValueKind::kBroadcast)) return false;
  *base = value->kids[0];
  *stride = value->is(ValueKind::kRamp) ? value->kids[1] : integer(value->dtype.element(), 0);
  return true;
}

Value* Engine::binary_vector(BinaryOp op, Value* a, Value* b) {
  const int lanes = a->dtype.lanes;
  if (a->is(ValueKind::kBroadcast) && b->is(ValueKind::kBroadcast))
    return broadcast(binary(op, a->kids[0], b->kids[0]), lanes);
  const DType element = a->dtype.element();
  Value *base_a = nullptr, *stride_a = nullptr, *base_b = nullptr, *stride_b = nullptr;
  if (element.is_integral() && as_ramp(a, &base_a, &stride_a) && as_ramp(b, &base_b, &stride_b)) {
    // Lane by lane arithmetic modulo 2^n.
    switch (op) {
      case BinaryOp::kAdd:
      case BinaryOp::kSub: return ramp(binary(op, base_a, base_b), binary(op, stride_a, stride_b), lanes);
      case BinaryOp::kMul:
        if (b->is(ValueKind::kBroadcast)) return ramp(mul(base_a, base_b), mul(stride_a, base_b), lanes);
        if (a->is(ValueKind::kBroadcast)) return ramp(mul(base_a, base_b), mul(base_a, stride_b), lanes);
        break;
      default: break;
    }
    if (element == kInt64) {
      Value* special = nullptr;
      if (op == BinaryOp::kFloorDiv || op == BinaryOp::kFloorMod) special = divide_ramp(op, a, b);
      if (op == BinaryOp::kMin || op == BinaryOp::kMax) special = min_max_ramp(op, a, b);
      if (is_compare(op)) special = compare_ramp(op, a, b);
      if (special) return special;
    }
  }
  if (op == BinaryOp::kAdd && element == kInt64)
    if (Value* merged = add_by_lanes(a, b)) return merged;
  if (element.is_float()) return binary_float(op, a, b);
  if (element.is_bool()) return binary_bool(op, a, b);
  return element.is_integral() ? binary_integer(op, a, b)
                               : make_op(op, is_compare(op) ? kBool.with_lanes(lanes) : a->dtype, a, b);
}

namespace {
bool contains(const Value* v, const Value* part) {
  if (v == part) return true;
  for (uint32_t i = 0; i < v->count; ++i)
    if (contains(v->kids[i], part)) return true;
  return false;
}
}  // namespace

Value* Engine::at_lane(Value* v, Value* lane, int depth, bool* divides) {
  Value *base = nullptr, *stride = nullptr;
  if (as_ramp(v, &base, &stride)) return add(base, mul(stride, lane));
  if (!v->is(ValueKind::kOp) || v->count != 2 || depth == 0) return nullptr;
  const BinaryOp op = v->binary_op();
  const bool division = op == BinaryOp::kFloorDiv || op == BinaryOp::kFloorMod;
  if (!division && op != BinaryOp::kAdd && op != BinaryOp::kSub && op != BinaryOp::kMul) return nullptr;
  *divides |= division;
  Value* a = at_lane(v->kids[0], lane, depth - 1, divides);
  Value* b = a ? at_lane(v->kids[1], lane, depth - 1, divides) : nullptr;
  return b ? binary(op, a, b) : nullptr;
}

/// Parts of ramps that make up a ramp together: ramp // 4 * 4 + ramp % 4, as the index of elements in blocks.
Value* Engine::add_by_lanes(Value* a, Value* b) {
  if (!tame(a) || !tame(b)) return nullptr;
  const int lanes = a->dtype.lanes;
  Value* lane = nullptr;
  for (const auto& [count, value] : lane_variables_)
    if (count == lanes) lane = value;
  if (!lane) {
    const Var variable("lane");
    keep(variable);
    lane = base_var(variable.get(), /*bound=*/true);
    lane->limit = {0, lanes - 1};
    lane_variables_.emplace_back(lanes, lane);
  }
  bool divides = false;
  Value* first = at_lane(a, lane, 4, &divides);
  Value* second = first ? at_lane(b, lane, 4, &divides) : nullptr;
  if (!second || !divides) return nullptr;
  Linear form(add(first, second)), base;
  int64_t stride = 0;
  base.constant = form.constant;
  for (const Term& term : form.terms) {
    if (term.value == lane) stride = term.coefficient;
    else if (contains(term.value, lane)) return nullptr;
    else base.add(term.value, term.coefficient);
  }
  return form.overflow || base.overflow ? nullptr : ramp(sum(base), index(stride), lanes);
}

/// Division of ramp(base, s, n) by a constant c where no lane, or every lane in step, passes a multiple of c.
Value* Engine::divide_ramp(BinaryOp op, Value* a, Value* b) {
  Value *base = nullptr, *stride = nullptr;
  if (!a->is(ValueKind::kRamp) || !b->is(ValueKind::kBroadcast) || !b->kids[0]->is(ValueKind::kInt)) return nullptr;
  as_ramp(a, &base, &stride);
  const int64_t c = b->kids[0]->number;
  if (c <= 0 || !stride->is(ValueKind::kInt) || !tame(base)) return nullptr;
  const int lanes = a->dtype.lanes;
  const int64_t s = stride->number;
  const bool divides = op == BinaryOp::kFloorDiv;
  if (s % c == 0) {
    if (divides) return ramp(floor_div(base, index(c)), index(s / c), lanes);
    return broadcast(floor_mod(base, index(c)), lanes);
  }
  int64_t reach;
  if (__builtin_mul_overflow(s, int64_t{lanes} - 1, &reach) || reach <= -c || reach >= c) return nullptr;
  Value* remainder = floor_mod(base, index(c));
  const Range r = range(remainder);
  if (s > 0 ? r.hi > c - 1 - reach : r.lo < -reach) return nullptr;
  return divides ? broadcast(floor_div(base, index(c)), lanes) : ramp(remainder, stride, lanes);
}

namespace {

/// a - b as whole numbers, unless that leaves 64 bits.
bool differ(Value* a, Value* b, Linear* difference) {
  difference->add(a);
  difference->add(b, -1);
  return !difference->overflow;
}

/// The least (greatest) lane of base + i * stride.
Linear lane_end(const Linear& base, int64_t stride, int lanes, bool greatest) {
  Linear result = base;
  if ((stride > 0) == greatest) result.add_constant(stride, lanes - 1);
  return result;
}

}  // namespace

Value* Engine::compare_ramp(BinaryOp op, Value* a, Value* b) {
  Value *base_a = nullptr, *stride_a = nullptr, *base_b = nullptr, *stride_b = nullptr;
  as_ramp(a, &base_a, &stride_a);
  as_ramp(b, &base_b, &stride_b);
  const int lanes = a->dtype.lanes;
  if (!tame(a) || !tame(b)) return nullptr;
  Linear base, step;
  if (!differ(base_a, base_b, &base) || !differ(stride_a, stride_b, &step) || !step.terms.empty()) return nullptr;
  const int64_t s = step.constant;
  if (s == 0) return broadcast(binary(op, base_a, base_b), lanes);
  if (op == BinaryOp::kEQ || op == BinaryOp::kNE) {
    Linear above = lane_end(base, s, lanes, false), below;  // least - 1 >= 0, or -greatest - 1 >= 0
    above.add_constant(-1);
    below.add(lane_end(base, s, lanes, true), -1);
    below.add_constant(-1);
    if (above.overflow || below.overflow) return nullptr;
    if (prove_at_least_zero(above) || prove_at_least_zero(below)) return boolean(op == BinaryOp::kNE, lanes);
    return nullptr;
  }
  // a < b or a <= b: base + i * s < limit
  const int64_t limit = op == BinaryOp::kLT ? 0 : 1;
  Linear always, never = lane_end(base, s, lanes, false);
  always.add(lane_end(base, s, lanes, true), -1);
  always.add_constant(limit - 1);
  never.add_constant(-limit);
  if (always.overflow || never.overflow) return nullptr;
  if (prove_at_least_zero(always)) return boolean(true, lanes);
  if (prove_at_least_zero(never)) return boolean(false, lanes);
  // The form that makes a mask cheap: a constant ramp against one scalar.
  Linear bound;
  Value* zero = index(0);
  if (s > 0) {
    bound.add(base, -1);
    bound.add_constant(limit);
    if (bound.overflow) return nullptr;
    return make_op(BinaryOp::kLT, kBool.with_lanes(lanes), ramp(zero, index(s), lanes), broadcast(sum(bound), lanes));
  }
  bound.add(base);
  bound.add_constant(-limit);
  if (bound.overflow || s == INT64_MIN) return nullptr;
  return make_op(BinaryOp::kLT, kBool.with_lanes(lanes), broadcast(sum(bound), lanes), ramp(zero, index(-s), lanes));
}

Value* Engine::min_max_ramp(BinaryOp op, Value* a, Value* b) {
  Value *base_a = nullptr, *stride_a = nullptr, *base_b = nullptr, *stride_b = nullptr;
  as_ramp(a, &base_a, &stride_a);
  as_ramp(b, &base_b, &stride_b);
  if (!tame(a) || !tame(b)) return nullptr;
  const int lanes = a->dtype.lanes;
  Linear base, step;
  if (!differ(base_a, base_b, &base) || !differ(stride_a, stride_b, &step) || !step.terms.empty()) return nullptr;
  if (step.constant == 0) return ramp(add(base_b, binary(op, sum(base), index(0))), stride_b, lanes);
  const bool is_min = op == BinaryOp::kMin;
  Linear a_below;  // b - a in every lane
  a_below.add(lane_end(base, step.constant, lanes, true), -1);
  if (!a_below.overflow && prove_at_least_zero(a_below)) return is_min ? a : b;
  const Linear b_below = lane_end(base, step.constant, lanes, false);
  if (!b_below.overflow && prove_at_least_zero(b_below)) return is_min ? b : a;
  return nullptr;
}

Value* Engine::load(const BufferNode* buffer, std::span<Value* const> indices, Value* predicate) {
  int lanes = 1;
  for (const Value* i : indices) lanes = std::max<int>(lanes, i->dtype.lanes);
  if (predicate) {
    const int known = truth(predicate);
    if (known == 0) return constant(buffer->dtype.with_lanes(lanes), 0);
    if (known == 1) predicate = nullptr;
  }
  InlineVector<Value*, 8> kids;
  if (lanes > 1 && !predicate) {
    bool uniform = true;
    for (Value* i : indices) {
      uniform &= i->is(ValueKind::kBroadcast) || i->dtype.lanes == 1;
      kids.push_back(i->is(ValueKind::kBroadcast) ? i->kids[0] : i);
    }
    if (uniform) return broadcast(load(buffer, {kids.data(), kids.size()}, nullptr), lanes);
    kids.clear();
  }
  for (Value* i : indices) kids.push_back(i);
  if (predicate) kids.push_back(predicate);
  Value probe(ValueKind::kLoad, buffer->dtype.with_lanes(lanes));
  probe.object = buffer;
  probe.number = static_cast<int64_t>(indices.size());
  return make(probe, {kids.data(), kids.size()});
}

}  // namespace tensmith::simplifier
