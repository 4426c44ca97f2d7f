/// Simplification of expressions and statements by interval, divisibility and algebraic reasoning.
#pragma once

#include <optional>
#include <unordered_map>

#include "tensor/stmt.h"

namespace tensmith {

/// What is known of integer variables: inclusive bounds (missing: unbounded) and `value % modulus == remainder`.
struct VarFacts {
  std::optional<int64_t> lo, hi;
  int64_t modulus = 1, remainder = 0;
};

/// Facts about the surroundings of an expression. The order in which variables are introduced is the order of terms in
/// sums (outer loops first), after free variables.
class Facts {
 public:
  /// The variable runs over [min, min + extent), both possibly symbolic: they are evaluated with the facts already
  /// known.
  void set_range(const Var& var, const Expr& min, const Expr& extent);
  void set(const Var& var, VarFacts facts) { entry(var).facts = facts; }
  /// The variable equals an expression over other variables (a let).
  void set_value(const Var& var, const Expr& value);
  /// A condition known to hold. One that contains a load must hold as long as the facts are used.
  void assume(const Expr& condition) { assumptions_.push_back(condition); }
  VarFacts of(const VarNode* var) const;
  const std::vector<Expr>& assumptions() const { return assumptions_; }

  bool empty() const { return vars_.empty() && assumptions_.empty(); }
  /// The place of a variable among those introduced, counted from 1; 0 for others.
  uint32_t order(const VarNode* var) const;
  /// Whether the variable is loaded or computed data, which may lie anywhere in its type and wraps, unlike an index.
  bool is_data(const VarNode* var) const;

 private:
  struct Entry {
    Var var;
    VarFacts facts;
    uint32_t order = 0;
    bool data = false;
  };
  Entry& entry(const Var& var);

  std::unordered_map<const VarNode*, Entry> vars_;
  std::vector<Expr> assumptions_;
};

/// An equivalent expression in canonical form: sums of products with constants folded, div/mod split and cancelled
/// where provable, selects and comparisons decided where provable. Never changes floating-point results (only exact
/// float rules: constant folding of one operation, x*1, x/2^k as a product, select of equal branches). Idempotent.
/// Integer index arithmetic (kInt64) is reassociated; other integers, and kInt64 data that may wrap (loads), only by
/// rules that hold under wrap-around. Cost: about 0.3 us a distinct node; shared nodes count once.
Expr simplify(const Expr& e, const Facts& facts = {});
/// Also drops loops and branches that provably never run, replaces loops of extent 1 by their body, folds conditions,
/// drops lets that are not used and puts constants and variables in their place. Loop ranges, conditions and assertions
/// count as facts where they hold.
Stmt simplify(const Stmt& s, const Facts& facts = {});

/// Whether a bool expression provably holds.
bool can_prove(const Expr& condition, const Facts& facts = {});
/// Inclusive constant bounds of an integer expression; missing sides are unknown.
VarFacts constant_bounds(const Expr& e, const Facts& facts = {});

/// Inclusive symbolic bounds.
struct Interval {
  Expr lo, hi;
  /// As a range: it may hold nothing, and then hi < lo. Bounds over such a range are exact for affine expressions (and
  /// hold nothing either), but nothing is concluded from there being a value.
  bool maybe_empty = false;
};
/// Bounds of an integer expression when each variable of `ranges` runs over its interval (whose ends may use other
/// variables); variables without a range stay as they are. Null ends: unknown. The bounds are attained for affine
/// expressions. For Select: the union of both branches. For Load and others: unknown unless the dtype bounds it.
using RangeMap = std::unordered_map<const VarNode*, Interval>;
Interval bounds_of(const Expr& e, const RangeMap& ranges, const Facts& facts = {});

/// An integer expression as constant + sum of coefficient * term, terms being variables or opaque subexpressions.
struct LinearForm {
  int64_t constant = 0;
  std::vector<std::pair<Expr, int64_t>> terms;  ///< distinct terms, coefficients != 0, in a stable order
};
LinearForm linear_form(const Expr& e);
Expr from_linear_form(const LinearForm& form);

}  // namespace tensmith
