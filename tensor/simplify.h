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

/// Facts about the surroundings of an expression. Cheap to copy.
class Facts {
 public:
  /// The variable runs over [min, min + extent), both possibly symbolic: they are evaluated with the facts already known.
  void set_range(const Var& var, const Expr& min, const Expr& extent);
  void set(const Var& var, VarFacts facts) { vars_[var.get()] = facts; }
  /// The variable equals an expression over other variables (a let).
  void set_value(const Var& var, const Expr& value);
  /// A condition known to hold (conjunctions are taken apart).
  void assume(const Expr& condition);
  VarFacts of(const VarNode* var) const;
  const std::vector<Expr>& assumptions() const { return assumptions_; }

 private:
  std::unordered_map<const VarNode*, VarFacts> vars_;
  std::vector<Expr> assumptions_;
};

/// An equivalent expression in canonical form: sums of products with constants folded, div/mod split and cancelled where
/// provable, selects and comparisons decided where provable. Never changes floating-point results (only exact float rules:
/// constant folding of one operation, x*1, select of equal branches). Idempotent. Integer index arithmetic (kInt64) is
/// reassociated; other integers only by rules that hold under wrap-around.
Expr simplify(const Expr& e, const Facts& facts = {});
/// Also drops loops and branches that provably never run, replaces loops of extent 1 by their body, and folds conditions.
Stmt simplify(const Stmt& s, const Facts& facts = {});

/// Whether a bool expression provably holds.
bool can_prove(const Expr& condition, const Facts& facts = {});
/// Inclusive constant bounds of an integer expression; missing sides are unknown.
VarFacts constant_bounds(const Expr& e, const Facts& facts = {});

/// Inclusive symbolic bounds.
struct Interval {
  Expr lo, hi;
};
/// Bounds of an integer expression when each variable of `ranges` runs over its interval (whose ends may use other variables);
/// variables without a range stay as they are. Null ends: unknown. The bounds are attained for affine expressions.
/// For Select: the union of both branches. For Load and others: unknown unless the dtype bounds it.
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
