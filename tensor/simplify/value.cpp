#include "tensor/simplify/value.h"

#include <numeric>

namespace tensmith::simplifier {

int64_t gcd(int64_t a, int64_t b) {
  uint64_t x = magnitude(a), y = magnitude(b);
  while (y) {
    x %= y;
    std::swap(x, y);
  }
  return x > static_cast<uint64_t>(INT64_MAX) ? 1 : static_cast<int64_t>(x);
}

int64_t wrap_int(DType type, int64_t value) {
  if (type.is_bool()) return value != 0;
  if (type.bits >= 64) return value;
  const uint64_t mask = (uint64_t{1} << type.bits) - 1;
  const uint64_t bits = static_cast<uint64_t>(value) & mask;
  if (type.is_int() && (bits >> (type.bits - 1))) return static_cast<int64_t>(bits | ~mask);
  return static_cast<int64_t>(bits);
}

Range type_range(DType type) {
  if (type.is_bool()) return {0, 1};
  if (type.is_uint()) return {0, type.bits >= 64 ? INT64_MAX : static_cast<int64_t>((uint64_t{1} << type.bits) - 1)};
  if (type.is_int() && type.bits < 64) return {-(int64_t{1} << (type.bits - 1)), (int64_t{1} << (type.bits - 1)) - 1};
  return {};
}

namespace {
bool is_too_large(int64_t coefficient) { return coefficient > kMaxCoefficient || coefficient < -kMaxCoefficient; }
}  // namespace

void Linear::add_constant(int64_t value, int64_t coefficient) {
  int64_t product;
  if (__builtin_mul_overflow(value, coefficient, &product) || __builtin_add_overflow(constant, product, &constant))
    overflow = true;
}

void Linear::add_term(Value* value, int64_t coefficient) {
  for (uint32_t i = 0; i < terms.size(); ++i) {
    if (terms[i].value != value) continue;
    if (__builtin_add_overflow(terms[i].coefficient, coefficient, &terms[i].coefficient) ||
        is_too_large(terms[i].coefficient))
      overflow = true;
    if (terms[i].coefficient == 0) terms.erase(i);
    return;
  }
  if (terms.size() >= kMaxTerms) {
    overflow = true;
    return;
  }
  uint32_t at = terms.size();
  while (at > 0 && before(value, terms[at - 1].value)) --at;
  terms.insert(at, {value, coefficient});
}

void Linear::add(Value* value, int64_t coefficient) {
  if (coefficient == 0 || overflow) return;
  if (value->is(ValueKind::kInt)) {
    add_constant(value->number, coefficient);
  } else if (value->is(ValueKind::kSum)) {
    for (uint32_t i = 0; i < value->count && !overflow; ++i) {
      int64_t product;
      if (__builtin_mul_overflow(value->coefficients[i], coefficient, &product) || is_too_large(product))
        overflow = true;
      else add_term(value->kids[i], product);
    }
    add_constant(value->number, coefficient);
  } else if (is_too_large(coefficient)) {
    overflow = true;
  } else {
    add_term(value, coefficient);
  }
}

void Linear::add(const Linear& other, int64_t coefficient) {
  if (coefficient == 0) return;
  overflow = overflow || other.overflow;
  for (const Term& term : other.terms) {
    int64_t product;
    if (overflow || __builtin_mul_overflow(term.coefficient, coefficient, &product) || is_too_large(product)) {
      overflow = true;
      return;
    }
    add_term(term.value, product);
  }
  add_constant(other.constant, coefficient);
}

void Linear::scale(int64_t factor) {
  if (factor == 0) {
    terms.clear();
    constant = 0;
    return;
  }
  for (Term& term : terms)
    if (__builtin_mul_overflow(term.coefficient, factor, &term.coefficient) || is_too_large(term.coefficient))
      overflow = true;
  if (__builtin_mul_overflow(constant, factor, &constant)) overflow = true;
}

namespace {

int compare_structure(const Value* a, const Value* b, int depth);

template <typename T>
int sign(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

/// Values as sums, so that `x` and `x + 1` stand in the same order to a third value as long as that does not start with
/// x.
int compare_terms(const Value* a, const Value* b, int depth) {
  const auto term_of = [](const Value* v, uint32_t i) { return v->is(ValueKind::kSum) ? v->kids[i] : v; };
  const auto coefficient_of = [](const Value* v, uint32_t i) {
    return v->is(ValueKind::kSum) ? v->coefficients[i] : 1;
  };
  const uint32_t na = a->is(ValueKind::kSum) ? a->count : 1, nb = b->is(ValueKind::kSum) ? b->count : 1;
  // The innermost term decides first: it has the sum's rank.
  for (uint32_t i = 0; i < na && i < nb; ++i) {
    const Value *x = term_of(a, na - 1 - i), *y = term_of(b, nb - 1 - i);
    if (x != y)
      if (const int order = compare_structure(x, y, depth - 1)) return order;
    if (const int order = sign(coefficient_of(a, na - 1 - i), coefficient_of(b, nb - 1 - i))) return order;
  }
  if (na != nb) return sign(na, nb);
  return sign(a->is(ValueKind::kSum) ? a->number : 0, b->is(ValueKind::kSum) ? b->number : 0);
}

std::string_view name_of(const Value* v) {
  if (!v->object) return {};
  if (v->is(ValueKind::kVar) || v->is(ValueKind::kLet)) return static_cast<const VarNode*>(v->object)->name;
  if (v->is(ValueKind::kLoad)) return static_cast<const BufferNode*>(v->object)->name;
  if (v->is(ValueKind::kCall)) return static_cast<const Call*>(v->object)->symbol;
  return {};
}

int compare_structure(const Value* a, const Value* b, int depth) {
  if (a == b) return 0;
  if (const int order = sign(a->rank, b->rank)) return order;
  if (depth <= 0) return sign(a->id, b->id);
  if (a->is(ValueKind::kSum) || b->is(ValueKind::kSum)) {
    if (const int order = compare_terms(a, b, depth)) return order;
    return sign(a->id, b->id);
  }
  if (const int order = sign(a->kind, b->kind)) return order;
  if (const int order = sign(a->op, b->op)) return order;
  if (const int order = sign(name_of(a), name_of(b))) return order;
  if (const int order = sign(a->count, b->count)) return order;
  if (const int order = sign(a->number, b->number)) return order;
  for (uint32_t i = 0; i < a->count; ++i)
    if (const int order = compare_structure(a->kids[i], b->kids[i], depth - 1)) return order;
  return sign(a->id, b->id);
}

}  // namespace

bool before(const Value* a, const Value* b) {
  if (a == b) return false;
  // Constants stand last whatever their rank.
  const bool a_constant = a->is(ValueKind::kInt), b_constant = b->is(ValueKind::kInt);
  if (a_constant != b_constant) return b_constant;
  return compare_structure(a, b, 8) < 0;
}

}  // namespace tensmith::simplifier
