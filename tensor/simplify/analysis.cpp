// Constant bounds and residues of values in the current context.

#include <algorithm>

#include "tensor/simplify/engine.h"

namespace tensmith::simplifier {

namespace {

__extension__ using Wide = __int128;

/// The bounds of data of this type, or all values when something left the type (and wrapped).
Range in_type(DType type, Wide lo, Wide hi) {
  const Range all = type_range(type);
  const Wide top = type.is_uint() && type.bits >= 64 ? (Wide{1} << 64) - 1 : Wide{all.hi};
  if (lo < all.lo || hi > top || lo > hi) return all;
  return {static_cast<int64_t>(std::min<Wide>(lo, INT64_MAX)), hi > INT64_MAX ? INT64_MAX : static_cast<int64_t>(hi)};
}

/// The bounds of index arithmetic: what does not fit is unknown, because index arithmetic does not overflow.
Range saturated(Wide lo, Wide hi) {
  return {lo <= INT64_MIN  ? INT64_MIN
          : lo > INT64_MAX ? INT64_MAX
                           : static_cast<int64_t>(lo),
          hi >= INT64_MAX  ? INT64_MAX
          : hi < INT64_MIN ? INT64_MIN
                           : static_cast<int64_t>(hi)};
}

constexpr Wide kInfinite = Wide{1} << 120;

bool leaves_type(Wide end) { return end > -kInfinite && end < kInfinite && (end < INT64_MIN || end > INT64_MAX); }

/// Bounds of a sum or product. With `data` among its terms it may wrap around at either end, so neither end says
/// anything when one is open; arithmetic on bounded variables that leaves 64 bits is such data.
Range index_range(Value* v, Wide lo, Wide hi, bool data) {
  v->overflows = data ? lo < INT64_MIN || hi > INT64_MAX : leaves_type(lo) || leaves_type(hi);
  return v->overflows ? Range() : saturated(lo, hi);
}

/// An end as a wide number; of kInt64 the ends of the type are infinite.
Wide low_of(DType type, Range r) { return type == kInt64 && r.lo == INT64_MIN ? -kInfinite : Wide{r.lo}; }
Wide high_of(DType type, Range r) {
  if (type == kInt64) return r.hi == INT64_MAX ? kInfinite : Wide{r.hi};
  return type == kUInt64 && r.hi == INT64_MAX ? (Wide{1} << 64) - 1 : Wide{r.hi};
}

/// The same for a value; a constant is known even at the ends of its type.
Wide low_of(const Value* v, Range r) {
  return v->is(ValueKind::kInt) && v->dtype == kInt64 ? Wide{v->number} : low_of(v->dtype.element(), r);
}
Wide high_of(const Value* v, Range r) {
  return v->is(ValueKind::kInt) && v->dtype == kInt64 ? Wide{v->number} : high_of(v->dtype.element(), r);
}

/// Product of two ends; infinite stays infinite, zero stays zero. Clamped, so that a few dozen can be added.
Wide times(Wide a, Wide b) {
  if (a == 0 || b == 0) return 0;
  Wide product;
  const bool infinite = a >= kInfinite || a <= -kInfinite || b >= kInfinite || b <= -kInfinite;
  if (infinite || __builtin_mul_overflow(a, b, &product)) return (a < 0) == (b < 0) ? kInfinite : -kInfinite;
  return std::clamp(product, -kInfinite, kInfinite);
}

struct WideRange {
  Wide lo, hi;
};

WideRange multiply(WideRange a, WideRange b) {
  const Wide p[] = {times(a.lo, b.lo), times(a.lo, b.hi), times(a.hi, b.lo), times(a.hi, b.hi)};
  return {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
}

Modulus multiply(Modulus m, int64_t k) {
  const uint64_t size = magnitude(k);
  int64_t modulus, remainder;
  if (size > INT64_MAX || __builtin_mul_overflow(m.modulus, static_cast<int64_t>(size), &modulus) ||
      __builtin_mul_overflow(m.remainder, k, &remainder))
    return {};
  if (modulus == 0) return {0, remainder};
  return {modulus, floor_mod_int(remainder, modulus)};
}

/// The residue that values of either kind have.
Modulus either(Modulus a, Modulus b) {
  int64_t difference;
  if (__builtin_sub_overflow(a.remainder, b.remainder, &difference)) return {};
  const int64_t g = gcd(gcd(a.modulus, b.modulus), difference);
  if (g == 0) return a;
  return {g, floor_mod_int(a.remainder, g)};
}

Modulus plus(Modulus a, Modulus b) {
  const int64_t g = gcd(a.modulus, b.modulus);
  if (g == 0) {
    int64_t both;
    if (__builtin_add_overflow(a.remainder, b.remainder, &both)) return {};
    return {0, both};
  }
  return {g, floor_mod_int(floor_mod_int(a.remainder, g) - (g - floor_mod_int(b.remainder, g)), g)};
}

}  // namespace

bool Engine::tame(Value* value) {
  if (value->is(ValueKind::kSum) || value->is(ValueKind::kProduct) || value->is(ValueKind::kRamp)) {
    analyse(value);
    return !value->overflows;
  }
  if (!(value->flags & (kWildLow | kWildHigh))) return true;
  const Range r = range(value);
  return !((value->flags & kWildLow) && r.lo == INT64_MIN) && !((value->flags & kWildHigh) && r.hi == INT64_MAX);
}

Range Engine::range(const Linear& form) {
  Wide lo = form.constant, hi = form.constant;
  for (const Term& term : form.terms) {
    const Range r = range(term.value);
    Wide a = times(low_of(kInt64, r), term.coefficient), b = times(high_of(kInt64, r), term.coefficient);
    if (a > b) std::swap(a, b);
    lo = lo <= -kInfinite || a <= -kInfinite ? -kInfinite : lo + a;
    hi = hi >= kInfinite || b >= kInfinite ? kInfinite : hi + b;
  }
  return saturated(lo, hi);
}

Modulus Engine::modulus(const Linear& form) {
  Modulus result{0, form.constant};
  for (const Term& term : form.terms) result = plus(result, multiply(modulus(term.value), term.coefficient));
  return result;
}

void Engine::analyse(Value* value) {
  if (value->context == context_) return;
  Range r;
  Modulus m;
  if (value->dtype.is_integral() || value->dtype.is_bool()) {
    r = compute_range(value);
    const Range limited{std::max(r.lo, value->limit.lo), std::min(r.hi, value->limit.hi)};
    if (limited.lo <= limited.hi) r = limited;  // otherwise this code never runs
    if (value->dtype.is_bool() && value->known != -1) r = {value->known, value->known};
    if (value->dtype == kInt64) {
      // Data that wraps keeps no residue.
      if (!value->overflows) m = compute_modulus(value);
      const Modulus& fact = value->limit_modulus;
      if (fact.modulus > 1 && m.modulus != 0 && fact.modulus > m.modulus) m = fact;
      if (m.modulus > 1) {
        // Pull the ends in to numbers with this residue.
        int64_t lo = r.lo, hi = r.hi;
        const bool fits =
            (lo == INT64_MIN ||
             !__builtin_add_overflow(lo, floor_mod_int(m.remainder - floor_mod_int(lo, m.modulus), m.modulus), &lo)) &&
            (hi == INT64_MAX ||
             !__builtin_sub_overflow(hi, floor_mod_int(floor_mod_int(hi, m.modulus) - m.remainder, m.modulus), &hi));
        if (fits && lo <= hi) r = {lo, hi};
      }
      if (r.is_point() && r.hi != INT64_MAX && r.lo != INT64_MIN) m = {0, r.lo};
    }
  }
  value->range = r;
  value->modulus = m;
  value->context = context_;
}

Modulus Engine::compute_modulus(Value* v) {
  switch (v->kind) {
    case ValueKind::kInt: return {0, v->number};
    case ValueKind::kSum: {
      Modulus result{0, v->number};
      for (uint32_t i = 0; i < v->count; ++i) result = plus(result, multiply(modulus(v->kids[i]), v->coefficients[i]));
      return result;
    }
    case ValueKind::kProduct: {
      int64_t multiple = 1;
      for (uint32_t i = 0; i < v->count; ++i) {
        const Modulus m = modulus(v->kids[i]);
        if (m.modulus > 1 && m.remainder == 0 && __builtin_mul_overflow(multiple, m.modulus, &multiple)) return {};
      }
      return multiple > 1 ? Modulus{multiple, 0} : Modulus{};
    }
    case ValueKind::kOp:
      if (v->is_min_max()) {
        Modulus result = modulus(v->kids[0]);
        for (uint32_t i = 1; i < v->count; ++i) result = either(result, modulus(v->kids[i]));
        return result;
      }
      if (v->is_op(BinaryOp::kFloorMod) && v->kids[1]->is(ValueKind::kInt) && v->kids[1]->number > 0) {
        const Modulus m = modulus(v->kids[0]);
        const int64_t g = gcd(m.modulus, v->kids[1]->number);
        return g > 1 ? Modulus{g, floor_mod_int(m.remainder, g)} : Modulus{};
      }
      if (v->is_op(BinaryOp::kFloorDiv) && v->kids[1]->is(ValueKind::kInt) && v->kids[1]->number > 0) {
        // (16 m + r) / 4 = 4 m + r / 4
        const Modulus m = modulus(v->kids[0]);
        const int64_t c = v->kids[1]->number;
        if (m.modulus > 1 && m.modulus % c == 0 && m.modulus / c > 1)
          return {m.modulus / c, floor_mod_int(floor_div_int(m.remainder, c), m.modulus / c)};
      }
      return {};
    case ValueKind::kSelect: return either(modulus(v->kids[1]), modulus(v->kids[2]));
    case ValueKind::kLet: return modulus(v->kids[1]);
    default: return {};
  }
}

Range Engine::compute_range(Value* v) {
  const DType type = v->dtype.element();
  const Range all = type_range(type);
  switch (v->kind) {
    case ValueKind::kInt:
      if (type == kUInt64 && v->number < 0) return {INT64_MAX, INT64_MAX};
      return {v->number, v->number};
    case ValueKind::kSum: {
      Wide lo = v->number, hi = v->number;
      bool data = false;
      for (uint32_t i = 0; i < v->count; ++i) {
        data = data || !tame(v->kids[i]);
        const Range r = range(v->kids[i]);
        Wide a = times(low_of(type, r), v->coefficients[i]), b = times(high_of(type, r), v->coefficients[i]);
        if (a > b) std::swap(a, b);
        lo = lo <= -kInfinite || a <= -kInfinite ? -kInfinite : lo + a;
        hi = hi >= kInfinite || b >= kInfinite ? kInfinite : hi + b;
      }
      return index_range(v, lo, hi, data);
    }
    case ValueKind::kProduct: {
      WideRange result{1, 1};
      bool data = false;
      for (uint32_t i = 0; i < v->count;) {
        data = data || !tame(v->kids[i]);
        uint32_t power = 1;
        while (i + power < v->count && v->kids[i + power] == v->kids[i]) ++power;
        const Range r = range(v->kids[i]);
        const WideRange factor{low_of(type, r), high_of(type, r)};
        WideRange whole = factor;
        for (uint32_t p = 1; p < power; ++p) whole = multiply(whole, factor);
        if (power % 2 == 0) whole.lo = std::max<Wide>(whole.lo, 0);
        result = multiply(result, whole);
        i += power;
      }
      return index_range(v, result.lo, result.hi, data);
    }
    case ValueKind::kOp: return range_of_op(v);
    case ValueKind::kCast: {
      const DType from = v->kids[0]->dtype.element();
      if (!(from.is_integral() || from.is_bool())) return all;
      const Range r = range(v->kids[0]);
      if (type.is_bool()) {
        if (r.lo > 0 || r.hi < 0) return {1, 1};
        return {0, r.is_point() ? 0 : 1};
      }
      if (from.bits == 64 && (r.lo == INT64_MIN || r.hi == INT64_MAX)) return all;
      return r.lo >= all.lo && r.hi <= all.hi ? r : all;
    }
    case ValueKind::kSelect: {
      const Range a = range(v->kids[1]), b = range(v->kids[2]);
      return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
    }
    case ValueKind::kLet: return range(v->kids[1]);
    case ValueKind::kBroadcast: return range(v->kids[0]);
    case ValueKind::kRamp: {
      const Range base = range(v->kids[0]), stride = range(v->kids[1]);
      const Wide last = v->dtype.lanes - 1;
      const WideRange steps = multiply({low_of(v->kids[1], stride), high_of(v->kids[1], stride)}, {0, last});
      const Wide bl = low_of(v->kids[0], base), bh = high_of(v->kids[0], base);
      const Wide lo = bl <= -kInfinite || steps.lo <= -kInfinite ? -kInfinite : bl + steps.lo;
      const Wide hi = bh >= kInfinite || steps.hi >= kInfinite ? kInfinite : bh + steps.hi;
      return type == kInt64 ? index_range(v, lo, hi, !tame(v->kids[0]) || !tame(v->kids[1])) : in_type(type, lo, hi);
    }
    case ValueKind::kCall:
      if (v->op == static_cast<uint8_t>(Intrinsic::kPopCount) ||
          v->op == static_cast<uint8_t>(Intrinsic::kLeadingZeros))
        return {0, v->kids[0]->dtype.bits};
      if (v->op == static_cast<uint8_t>(Intrinsic::kAbs)) {
        const Range r = range(v->kids[0]);
        if (r.lo > all.lo) return {r.lo > 0 ? r.lo : r.hi < 0 ? -r.hi : 0, std::max(r.hi, -r.lo)};
      }
      return all;
    default: return all;
  }
}

Range Engine::range_of_op(Value* v) {
  const DType type = v->dtype.element();
  const Range all = type_range(type);
  const BinaryOp op = v->binary_op();
  if (is_compare(op) || type.is_bool()) return all;
  const Range a = range(v->kids[0]), b = range(v->kids[1]);
  const Wide al = low_of(v->kids[0], a), ah = high_of(v->kids[0], a), bl = low_of(v->kids[1], b),
             bh = high_of(v->kids[1], b);
  const auto finite = [](Wide x) { return x > -kInfinite && x < kInfinite; };
  switch (op) {
    case BinaryOp::kAdd:
      if (!finite(al) || !finite(ah) || !finite(bl) || !finite(bh)) return all;
      return in_type(type, al + bl, ah + bh);
    case BinaryOp::kSub:
      if (!finite(al) || !finite(ah) || !finite(bl) || !finite(bh)) return all;
      return in_type(type, al - bh, ah - bl);
    case BinaryOp::kMul: {
      const WideRange p = multiply({al, ah}, {bl, bh});
      return in_type(type, p.lo, p.hi);
    }
    case BinaryOp::kMin: {
      Range r = a;
      for (uint32_t i = 1; i < v->count; ++i) {
        const Range next = range(v->kids[i]);
        r = {std::min(r.lo, next.lo), std::min(r.hi, next.hi)};
      }
      return r;
    }
    case BinaryOp::kMax: {
      Range r = a;
      for (uint32_t i = 1; i < v->count; ++i) {
        const Range next = range(v->kids[i]);
        r = {std::max(r.lo, next.lo), std::max(r.hi, next.hi)};
      }
      return r;
    }
    case BinaryOp::kFloorDiv:
    case BinaryOp::kTruncDiv: {
      if (type == kUInt64 && (a.hi == INT64_MAX || b.hi == INT64_MAX)) return all;
      const bool floors = op == BinaryOp::kFloorDiv;
      if (b.is_point() && b.lo > 0) {
        const auto divide = [&](int64_t x) { return floors ? floor_div_int(x, b.lo) : x / b.lo; };
        // An index that is not bounded stays so; of data the width of the type is a bound.
        const bool index = type == kInt64 && !(v->kids[0]->flags & (kWildLow | kWildHigh));
        return {index && a.lo == INT64_MIN ? INT64_MIN : divide(a.lo),
                index && a.hi == INT64_MAX ? INT64_MAX : divide(a.hi)};
      }
      if (b.lo < 0)
        return all;  // the quotient by a divisor of either sign, and of the lowest value by -1, is not worth the cases
      // Divisors from 0 (which gives 0) or 1 up.
      const int64_t least = std::max<int64_t>(b.lo, 1);
      Range r;
      r.lo = a.lo >= 0 ? (b.lo > 0 && b.hi != INT64_MAX ? a.lo / b.hi : 0)
             : floors  ? floor_div_int(a.lo, least)
                       : a.lo / least;
      r.hi = a.hi >= 0 ? a.hi / least : floors ? -1 : 0;
      if (type == kInt64 && a.hi == INT64_MAX) r.hi = INT64_MAX;
      if (type == kInt64 && a.lo == INT64_MIN) r.lo = INT64_MIN;
      if (b.lo == 0) r = {std::min<int64_t>(r.lo, 0), std::max<int64_t>(r.hi, 0)};
      return r;
    }
    case BinaryOp::kFloorMod: {
      if (type == kUInt64 && (a.hi == INT64_MAX || b.hi == INT64_MAX)) return all;
      if (b.lo < 0) return all;
      // 0 <= r < b, also 0 for b == 0; a small non-negative dividend stays as it is or shrinks.
      Range r{0, b.hi == INT64_MAX ? INT64_MAX : std::max<int64_t>(b.hi - 1, 0)};
      if (a.lo >= 0) r.hi = std::min(r.hi, a.hi);
      int64_t q;
      if (b.is_point() && b.lo > 0 && a.lo != INT64_MIN && a.hi != INT64_MAX &&
          (q = floor_div_int(a.lo, b.lo)) == floor_div_int(a.hi, b.lo))
        return {floor_mod_int(a.lo, b.lo), floor_mod_int(a.hi, b.lo)};
      return r;
    }
    case BinaryOp::kTruncMod: {
      if (type == kUInt64 && (a.hi == INT64_MAX || b.hi == INT64_MAX)) return all;
      // The sign follows the dividend, the magnitude is less than the divisor's.
      Range r = a;
      if (b.lo > INT64_MIN && b.hi < INT64_MAX) {
        const int64_t most = std::max<int64_t>(std::max(b.hi, -b.lo) - 1, 0);
        r = {std::max(a.lo, -most), std::min(a.hi, most)};
        if (r.lo > r.hi) r = {-most, most};
      }
      return {std::min<int64_t>(r.lo, 0), std::max<int64_t>(r.hi, 0)};
    }
    case BinaryOp::kAnd:
      if (type == kUInt64) return all;
      if (b.lo >= 0) return {0, a.lo >= 0 ? std::min(a.hi, b.hi) : b.hi};
      if (a.lo >= 0) return {0, a.hi};
      return all;
    case BinaryOp::kOr:
    case BinaryOp::kXor: {
      if (a.lo < 0 || b.lo < 0 || type == kUInt64) return all;
      const uint64_t most = static_cast<uint64_t>(a.hi | b.hi);
      return {0, most ? static_cast<int64_t>(~uint64_t{0} >> __builtin_clzll(most)) : 0};
    }
    case BinaryOp::kShr:
      if (a.lo < 0 || type == kUInt64) return all;
      return {0, b.is_point() && b.lo >= 0 && b.lo < type.bits ? a.hi >> b.lo : a.hi};
    default: return all;
  }
}

}  // namespace tensmith::simplifier
