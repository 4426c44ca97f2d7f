// Conversions.

#include <bit>
#include <cmath>

#include "tensor/simplify/engine.h"

namespace tensmith::simplifier {

namespace {

/// Digits and exponents of `wide` hold every value of `narrow`.
bool float_holds(DType wide, DType narrow) {
  if (wide == narrow) return true;
  if (wide.bits == 64) return true;
  if (wide.bits == 32) return narrow.bits == 16;
  return false;
}

/// Every value of the integer type is one of the float type.
bool float_holds_int(DType wide, DType narrow) {
  const int digits = wide.bits == 64 ? 53 : wide.bits == 32 ? 24 : wide.is_bfloat() ? 8 : 11;
  return narrow.is_bool() || (narrow.bits - narrow.is_int() <= digits && !(wide.bits == 16 && narrow.bits > 8));
}

int64_t saturate(DType type, double value) {
  if (std::isnan(value)) return 0;
  const double truncated = std::trunc(value);
  if (type.is_uint()) {
    if (truncated <= 0) return 0;
    if (truncated >= std::ldexp(1.0, type.bits)) return wrap_int(type, -1);
    return static_cast<int64_t>(static_cast<uint64_t>(truncated));
  }
  const double limit = std::ldexp(1.0, type.bits - 1);
  if (truncated >= limit) return static_cast<int64_t>((uint64_t{1} << (type.bits - 1)) - 1);
  if (truncated <= -limit) return wrap_int(type, static_cast<int64_t>(uint64_t{1} << (type.bits - 1)));
  return static_cast<int64_t>(truncated);
}

}  // namespace

Value* Engine::cast(DType type, Value* a) {
  if (a->dtype == type) return a;
  if (a->is(ValueKind::kBroadcast)) return broadcast(cast(type.element(), a->kids[0]), type.lanes);
  const DType from = a->dtype.element(), to = type.element();
  if (a->is(ValueKind::kInt)) {
    if (to.is_bool()) return boolean(a->number != 0);
    if (to.is_integral()) return integer(to, a->number);
    if (to.is_float()) {
      // Through a double only where that is exact: two roundings may differ from one.
      const bool fits = from == kUInt64 && a->number < 0 ? false : magnitude(a->number) <= (uint64_t{1} << 53);
      if (fits || to.bits == 64) {
        const double value =
            from == kUInt64 ? static_cast<double>(static_cast<uint64_t>(a->number)) : static_cast<double>(a->number);
        return floating(to, value);
      }
    }
  }
  if (a->is(ValueKind::kFloat)) {
    const double value = std::bit_cast<double>(a->number);
    if (to.is_bool()) return boolean(value != 0);
    if (to.is_float()) return floating(to, value);
    if (to.is_integral()) return integer(to, saturate(to, value));
  }
  if (a->is(ValueKind::kCast)) {
    Value* inner = a->kids[0];
    const DType first = inner->dtype.element();
    const bool first_int = first.is_integral() || first.is_bool(), middle_int = from.is_integral();
    if (first_int && middle_int && (to.is_integral() || to.is_float() || to.is_bool())) {
      // The middle type keeps the value, or cuts bits that the last cast cuts as well.
      const Range r = range(inner), middle = type_range(from);
      const bool ends_known = !(first.bits == 64 && (r.hi == INT64_MAX || r.lo == INT64_MIN));
      const bool keeps = ends_known && r.lo >= middle.lo && r.hi <= middle.hi;
      const bool cuts = to.is_integral() && to.bits <= from.bits;
      if (keeps || (cuts && !first.is_bool())) return cast(type, inner);
    }
    if (first.is_float() && from.is_float() && float_holds(from, first) &&
        (to.is_float() || to.is_integral() || to.is_bool()))
      return cast(type, inner);
    if (first_int && from.is_float() && float_holds_int(from, first)) {
      if (to == first) return inner;
      if (to.is_float() && float_holds(to, from)) return cast(type, inner);
    }
  }
  if (to.is_bool() && from.is_integral()) return binary(BinaryOp::kNE, a, constant(a->dtype, 0));
  if (a->is(ValueKind::kRamp) && to.is_integral()) {
    // Cutting is a ring homomorphism; widening is right when no lane wraps, which the bounds tell.
    const Range lanes = range(a), all = type_range(from);
    const bool widens = to.bits > from.bits;
    if (!widens ||
        (range(a->kids[0]).lo > all.lo && range(a->kids[0]).hi < all.hi && lanes.lo > all.lo && lanes.hi < all.hi))
      return ramp(cast(to, a->kids[0]), cast(to, a->kids[1]), type.lanes);
  }
  return settle(make_unary(ValueKind::kCast, type, a));
}

}  // namespace tensmith::simplifier
