/// Walks and rewrites of the loop IR; the default walk over children is compiled once (walk.cpp), passes give a lambda.
#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "tensor/stmt.h"

namespace tensmith {

/// Calls `fn` for each direct child expression and statement (buffers' shapes are not children; null predicates are
/// skipped).
void for_each_child(const Expr& e, const std::function<void(const Expr&)>& fn);
void for_each_child(const Stmt& s, const std::function<void(const Expr&)>& on_expr,
                    const std::function<void(const Stmt&)>& on_stmt);

/// Calls `fn` for the node and all below it, parents first; `fn` returns false to skip the children.
void visit(const Expr& e, const std::function<bool(const Expr&)>& fn);
void visit(const Stmt& s, const std::function<bool(const Stmt&)>& on_stmt,
           const std::function<bool(const Expr&)>& on_expr = {});

/// Rewrites trees. Derive, override what matters; the defaults rebuild a node only when a child changed, so unchanged
/// parts stay shared.
class Mutator {
 public:
  virtual ~Mutator() = default;
  /// The rewritten expression. Overrides call `mutate_children(e)` for the default.
  virtual Expr mutate(const Expr& e) { return mutate_children(e); }
  virtual Stmt mutate(const Stmt& s) { return mutate_children(s); }

 protected:
  Expr mutate_children(const Expr& e);
  Stmt mutate_children(const Stmt& s);
  std::vector<Expr> mutate_all(const std::vector<Expr>& list, bool* changed);
};

/// Rewrites bottom-up: children first, then `fn(rebuilt node)`, which returns the replacement (or its argument).
Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& fn);
Stmt rewrite(const Stmt& s, const std::function<Expr(const Expr&)>& on_expr,
             const std::function<Stmt(const Stmt&)>& on_stmt = {});

/// Replaces variables by expressions (of the same type).
using VarMap = std::unordered_map<const VarNode*, Expr>;
Expr substitute(const Expr& e, const VarMap& map);
Stmt substitute(const Stmt& s, const VarMap& map);
/// Replaces buffers by buffers in loads, stores and allocations.
using BufferMap = std::unordered_map<const BufferNode*, Buffer>;
Stmt substitute_buffers(const Stmt& s, const BufferMap& map);
Expr substitute_buffers(const Expr& e, const BufferMap& map);

/// Whether the variable occurs (free or not).
bool uses_var(const Expr& e, const Var& var);
bool uses_var(const Stmt& s, const Var& var);
/// All variables that occur.
std::unordered_set<const VarNode*> collect_vars(const Expr& e);

}  // namespace tensmith
