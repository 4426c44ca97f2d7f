/// Dim expressions of the graph text.
#pragma once

#include <map>
#include <unordered_map>

#include "graph/graph.h"
#include "graph/lexer.h"
#include "tensor/walk.h"

namespace tensmith::graph {

/// The symbolic dims of a text by name. A name that no `dims` line declares belongs to a dim that an operator's rule
/// makes (one that only the data decides): it is pending until the rule has run, then becomes that variable.
class DimScope {
 public:
  Var declare(const std::string& name);
  Var find(const std::string& name);
  /// Pending names become variables of their own.
  void adopt_pending() { pending_.clear(); }
  /// Pending dims of `written` become the variables at the same places of `inferred`.
  void unify(const TensorType& written, const TensorType& inferred);
  /// The type with pending dims replaced by what they have become.
  TensorType resolve(TensorType type) const;

 private:
  std::map<std::string, Var> names_;
  std::unordered_map<const VarNode*, std::string> pending_;
  VarMap become_;
};

/// Errors: a Failure "parse-error".
Result<Expr> parse_dim(Lexer& lexer, DimScope& dims);

}  // namespace tensmith::graph
