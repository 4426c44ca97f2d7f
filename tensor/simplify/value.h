/// The simplifier's own form of expressions: canonical, shared by structure, made in an arena.
///
/// Equal structures are one `Value` (hash-consing), so equality is a pointer comparison, memory of results hangs on the
/// node itself, and expressions that share parts cost what the parts cost. Sums are flat lists of terms; nothing is a
/// loop IR node until the end, when only what remains is built (and the input's own nodes are used where nothing
/// changed).
#pragma once

#include "tensor/expr.h"
#include "tensor/simplify/inline_vector.h"

namespace tensmith::simplifier {

enum class ValueKind : uint8_t {
  kInt,      ///< number: the value
  kFloat,    ///< number: bits of the double
  kVar,      ///< object: the VarNode; number: 1 for the twin that stands for data (see kWildLow)
  kProduct,  ///< kInt64 scalars: kids are at least two sorted factors, none a constant or a sum
  kSum,  ///< kInt64 scalars: kids times coefficients plus number; kids are sorted and distinct, none a constant or a
         ///< sum
  kOp,   ///< `op` on kids: two, or more for min, max, and, or
  kNot,
  kCast,
  kSelect,
  kLoad,       ///< object: the buffer; kids: number indices, then the predicate if there is one
  kRamp,       ///< kids: base, stride
  kBroadcast,  ///< kid: the scalar
  kLet,        ///< object: the variable; kids: value, body
  kCall,       ///< object: a call with the symbol and purity; kids: arguments
};

/// Inclusive bounds. For kInt64 the ends of the type mean "unknown"; uint64 values above INT64_MAX are only known as
/// that.
struct Range {
  int64_t lo = INT64_MIN, hi = INT64_MAX;
  bool is_point() const { return lo == hi; }
};

/// `value % modulus == remainder`, 0 <= remainder < modulus; modulus 0: the value is the remainder.
struct Modulus {
  int64_t modulus = 1, remainder = 0;
};

/// What a value contains; the union over its parts.
enum ValueFlags : uint8_t {
  kHasLoad = 1,
  kHasEffect = 2,  ///< a call that is not pure
  /// kInt64 data (loads, calls, bit operations) that may lie anywhere below (above): unlike index arithmetic it wraps,
  /// so comparisons and divisions of it are not rearranged unless its bounds show that nothing overflows.
  kWildLow = 4,
  kWildHigh = 8,

};

struct Value {
  Value(ValueKind kind, DType dtype) : kind(kind), dtype(dtype) {}

  ValueKind kind;
  uint8_t op = 0;  ///< BinaryOp or Intrinsic
  uint8_t flags = 0;
  int8_t known = -1;  ///< bools: 0 or 1 when the context says so
  bool seen = false;  ///< variables: the facts from outside were looked up
  DType dtype;
  uint32_t count = 0;     ///< of kids
  uint32_t rank = 0;      ///< of the innermost variable: outer loops have lower ranks
  uint32_t id = 0;        ///< order of creation
  uint32_t in_facts = 0;  ///< number of inequalities in the context that have this value as a term
  uint64_t hash = 0;
  uint64_t lets = 0;  ///< let variables inside, one bit each (several may share a bit)
  int64_t number = 0;
  const void* object = nullptr;  ///< VarNode, BufferNode or Call, by kind
  Value** kids = nullptr;
  int64_t* coefficients = nullptr;

  // What the context implies, and results that hold in context `context` only.
  Range limit;  ///< from facts about exactly this value
  Modulus limit_modulus;
  Value* replacement = nullptr;  ///< variables that stand for another value
  Range range;
  Modulus modulus;
  bool overflows = false;  ///< index arithmetic whose bounds leave 64 bits: data after all
  uint32_t context = 0;    ///< of range, modulus and overflows
  uint32_t proof_context = 0;
  bool proof = false;  ///< whether this value >= 0 was proven
  uint32_t simplified_context = 0;
  Value* simplified = nullptr;  ///< what the rules make of a value that was interned as it stood
  uint32_t order_context = 0;
  Value* order = nullptr;  ///< the canonical bool for this value >= 0

  const ExprNode* source = nullptr;  ///< an input node that may have just this structure
  const ExprNode* expr = nullptr;    ///< the loop IR node, once made

  bool is(ValueKind k) const { return kind == k; }
  bool is_op(BinaryOp o) const { return kind == ValueKind::kOp && op == static_cast<uint8_t>(o); }
  bool is_int(int64_t n) const { return kind == ValueKind::kInt && number == n; }
  bool is_index() const { return dtype == kInt64; }
  BinaryOp binary_op() const { return static_cast<BinaryOp>(op); }
  bool is_min_max() const { return is_op(BinaryOp::kMin) || is_op(BinaryOp::kMax); }
};

/// A stable total order of values that no constant offset changes: by rank (loop-invariant parts first), then by
/// structure.
bool before(const Value* a, const Value* b);

struct Term {
  Value* value;
  int64_t coefficient;
};

/// A sum under construction: sorted distinct terms plus a constant. `overflow` is set when a coefficient grew beyond
/// what strides are (kMaxCoefficient) or the constant left 64 bits; such a sum must not be used.
struct Linear {
  InlineVector<Term, 8> terms;
  int64_t constant = 0;
  bool overflow = false;

  Linear() = default;
  explicit Linear(Value* value, int64_t coefficient = 1) { add(value, coefficient); }
  /// Adds `value * coefficient`, taking sums apart.
  void add(Value* value, int64_t coefficient = 1);
  void add(const Linear& other, int64_t coefficient = 1);
  void add_constant(int64_t value, int64_t coefficient = 1);
  void scale(int64_t factor);
  uint32_t size() const { return terms.size(); }

 private:
  void add_term(Value* value, int64_t coefficient);
};

/// Larger coefficients are those of data (hashes, random numbers), which may wrap.
inline constexpr int64_t kMaxCoefficient = int64_t{1} << 56;
/// Sums longer than this are not merged further, which bounds the work on long chains.
inline constexpr uint32_t kMaxTerms = 48;

// Integer arithmetic with the semantics of expr.h.
inline int64_t floor_div_int(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
  const int64_t q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}
inline int64_t floor_mod_int(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}
inline uint64_t magnitude(int64_t a) { return a < 0 ? -static_cast<uint64_t>(a) : static_cast<uint64_t>(a); }
int64_t gcd(int64_t a, int64_t b);
/// The value in the type's width, sign- or zero-extended.
int64_t wrap_int(DType type, int64_t value);
/// The values of an integer or bool type.
Range type_range(DType type);

}  // namespace tensmith::simplifier
