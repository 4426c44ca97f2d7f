#include "tensor/simplify/engine.h"

#include <bit>

#include "runtime/base/error.h"

namespace tensmith::simplifier {

namespace {

uint64_t mix(uint64_t h, uint64_t value) {
  h ^= value;
  h *= 0x9E3779B97F4A7C15ull;
  return h ^ (h >> 32);
}

uint64_t hash_of(const Value& v) {
  uint64_t h = mix(static_cast<uint64_t>(v.kind) << 40 | uint64_t{v.op} << 32 |
                       static_cast<uint64_t>(v.dtype.code) << 24 | uint64_t{v.dtype.bits} << 16 | v.dtype.lanes,
                   static_cast<uint64_t>(v.number));
  h = mix(h, reinterpret_cast<uintptr_t>(v.object));
  for (uint32_t i = 0; i < v.count; ++i) h = mix(h, reinterpret_cast<uintptr_t>(v.kids[i]));
  if (v.coefficients)
    for (uint32_t i = 0; i < v.count; ++i) h = mix(h, static_cast<uint64_t>(v.coefficients[i]));
  return h;
}

constexpr uint8_t kWild = kWildLow | kWildHigh;

/// Whether the value is data that may lie anywhere, from its parts (see ValueFlags).
uint8_t wildness(const Value& v) {
  if (v.dtype.element() != kInt64) return 0;
  const auto kid = [&](uint32_t i) { return v.kids[i]->flags & kWild; };
  switch (v.kind) {
    case ValueKind::kInt:
      // Numbers near the ends of the type stand for "no limit"; adding to them may wrap.
      return v.number > (INT64_MAX >> 1) ? kWildHigh : v.number < (INT64_MIN >> 1) ? kWildLow : 0;
    case ValueKind::kSum: {
      uint8_t flags = 0;
      for (uint32_t i = 0; i < v.count; ++i) {
        uint8_t wild = kid(i);
        if (v.coefficients[i] < 0) wild = ((wild & kWildLow) ? kWildHigh : 0) | ((wild & kWildHigh) ? kWildLow : 0);
        flags |= wild;
      }
      return flags;
    }
    case ValueKind::kProduct: {
      uint8_t flags = 0;
      for (uint32_t i = 0; i < v.count; ++i) flags |= kid(i) ? kWild : 0;
      return flags;
    }
    case ValueKind::kOp: {
      if (v.is_min_max()) {
        const uint8_t shared = v.is_op(BinaryOp::kMin) ? kWildHigh : kWildLow;
        uint8_t any = 0, all = kWild;
        for (uint32_t i = 0; i < v.count; ++i) any |= kid(i), all &= kid(i);
        return (any & ~shared) | (all & shared);
      }
      if (v.is_op(BinaryOp::kFloorDiv) || v.is_op(BinaryOp::kTruncDiv)) return kid(0) | kid(1) ? kWild : 0;
      if (v.is_op(BinaryOp::kFloorMod) || v.is_op(BinaryOp::kTruncMod)) return kid(1) ? kWild : 0;
      return kWild;  // bits, and sums or products too large for exact coefficients
    }
    case ValueKind::kCast: {
      const DType from = v.kids[0]->dtype;
      return from.is_bool() || (from.is_integral() && from.bits < 64) ? 0 : kWild;
    }
    case ValueKind::kSelect: return kid(1) | kid(2);
    case ValueKind::kRamp: return kid(0) | kid(1);
    case ValueKind::kBroadcast: return kid(0);
    case ValueKind::kLet: return kid(1);
    case ValueKind::kNot:
    case ValueKind::kLoad:
    case ValueKind::kCall: return kWild;
    default: return v.flags & kWild;
  }
}

}  // namespace

Engine::Engine() : store_(Store::acquire()), next_rank_(1u << 20) {}

Engine::Engine(const Facts& facts) : Engine() {
  if (facts.empty()) return;
  known_facts_ = &facts;
  for (const Expr& condition : facts.assumptions()) assume(visit(condition));
}

Engine::~Engine() { Store::release(std::move(store_)); }

Value* Engine::make(Value& probe, std::span<Value* const> kids) {
  probe.kids = const_cast<Value**>(kids.data());
  probe.count = static_cast<uint32_t>(kids.size());
  probe.hash = hash_of(probe);
  bool is_new = true;
  Value* value;
  const bool effect = probe.is(ValueKind::kCall) && (probe.flags & kHasEffect);
  value = effect ? store_->unique(probe) : store_->intern(probe, &is_new);
  if (!is_new) return value;
  if (value->is(ValueKind::kLoad)) value->flags |= kHasLoad;
  for (uint32_t i = 0; i < value->count; ++i) {
    const Value* kid = value->kids[i];
    value->rank = std::max(value->rank, kid->rank);
    value->flags |= kid->flags & (kHasLoad | kHasEffect);
    value->lets |= kid->lets;
  }
  value->flags |= wildness(*value);
  if (value->dtype.is_integral() || value->dtype.is_bool()) value->limit = type_range(value->dtype);
  return value;
}

Value* Engine::make_op(BinaryOp op, DType type, std::span<Value* const> kids) {
  Value probe(ValueKind::kOp, type);
  probe.op = static_cast<uint8_t>(op);
  return make(probe, kids);
}

Value* Engine::make_unary(ValueKind kind, DType type, Value* kid) {
  Value probe(kind, type);
  return make(probe, {&kid, 1});
}

Value* Engine::integer(DType type, int64_t value) {
  Value probe(ValueKind::kInt, type);
  probe.number = wrap_int(type, value);
  return make(probe, {});
}

Value* Engine::floating(DType type, double value) {
  // Rounding to the type is the constructor's work.
  const Expr imm = FloatImm::make(type, value);
  return rounded(type, imm.as<FloatImm>()->value);
}

Value* Engine::rounded(DType type, double value) {
  Value probe(ValueKind::kFloat, type);
  probe.number = std::bit_cast<int64_t>(value);
  return make(probe, {});
}

Value* Engine::constant(DType type, int64_t value) {
  const DType element = type.element();
  Value* scalar = element.is_float() ? floating(element, static_cast<double>(value)) : integer(element, value);
  return broadcast(scalar, type.lanes);
}

Value* Engine::settle(Value* value) {
  if (!(value->dtype.is_integral() || value->dtype.is_bool()) || value->is(ValueKind::kInt) ||
      value->is(ValueKind::kBroadcast))
    return value;
  const Range r = range(value);
  // The ends of 64 bits may mean "unknown".
  if (!r.is_point() || r.hi == INT64_MAX || r.lo == INT64_MIN || (value->flags & kHasEffect)) return value;
  return constant(value->dtype, r.lo);
}

Value* Engine::binary(BinaryOp op, Value* a, Value* b) {
  // One form of each comparison pair; swapping is right for NaN as well.
  if (op == BinaryOp::kGT) return binary(BinaryOp::kLT, b, a);
  if (op == BinaryOp::kGE) return binary(BinaryOp::kLE, b, a);
  const DType type = a->dtype;
  if (type.lanes > 1) return binary_vector(op, a, b);
  if (type.is_float()) return binary_float(op, a, b);
  if (type.is_bool()) return binary_bool(op, a, b);
  if (type != kInt64)
    return type.is_integral() ? binary_integer(op, a, b) : make_op(op, is_compare(op) ? kBool : type, a, b);
  switch (op) {
    case BinaryOp::kAdd: return add_index(a, b, 1);
    case BinaryOp::kSub: return add_index(a, b, -1);
    case BinaryOp::kMul: return mul_index(a, b);
    case BinaryOp::kFloorDiv: return floor_div(a, b);
    case BinaryOp::kFloorMod: return floor_mod(a, b);
    case BinaryOp::kMin:
    case BinaryOp::kMax: {
      Value* operands[] = {a, b};
      return min_max(op, operands);
    }
    case BinaryOp::kLT:
    case BinaryOp::kLE: return compare_index(op, a, b);
    case BinaryOp::kEQ:
    case BinaryOp::kNE: return equal_index(op, a, b);
    default: return binary_integer(op, a, b);
  }
}

}  // namespace tensmith::simplifier
