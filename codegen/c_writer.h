/// Writes one function of loop IR as C. Internal to codegen/.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/c_helpers.h"
#include "tensor/stmt.h"

namespace tensmith {

/// C text of an expression with how strongly it binds (15: needs no parentheses anywhere).
struct CText {
  std::string text;
  int binds = 15;
};

/// Which lane of vectors is written: a number, or the variable of a loop over lanes. Scalars take no notice.
struct CLane {
  std::string text = "0";
  int number = 0;  ///< -1: only `text` knows
};

class CWriter {
 public:
  /// `functions`: names of the program's functions, whose codes end their callers.
  CWriter(CHelpers& helpers, const std::set<std::string>& functions) : helpers_(helpers), functions_(functions) {}

  std::string function(const LoopFunction& f);
  std::string prototype(const LoopFunction& f);
  /// C functions that are called and not known to any header: declarations by name.
  const std::map<std::string, std::string>& externs() const { return externs_; }

 private:
  // c_expr.cpp
  CText expr(const Expr& e, const CLane& lane);
  /// Parenthesised unless it binds at least so strongly.
  std::string within(const Expr& e, const CLane& lane, int binds);
  std::string bare(const Expr& e, const CLane& lane) { return expr(e, lane).text; }
  CText binary(BinaryOp op, DType type, const CText& a, const CText& b, bool may_wrap);
  CText cast(DType to, DType from, const CText& value);
  CText call(const Call& node, const CLane& lane);
  CText float_call(const Call& node, const CLane& lane);
  CText extern_call(const Call& node);
  CText let(const Let& node, const CLane& lane);
  CText ramp(const Ramp& node, const CLane& lane);
  /// Whether 64-bit arithmetic may overflow: that of indices may not.
  bool may_wrap(const Expr& e) const;
  CText variable(const VarNode* var, const CLane& lane) const;
  /// A value of a 16-bit float type, rounded to it; others as they are.
  CText rounded(DType type, CText value);
  /// All lanes as an array of values, `(float[4]){...}`, or as in memory.
  std::string lanes_of(const Expr& e, bool as_stored = false);
  std::string as_stored(DType type, const std::string& value);
  std::string element(const Buffer& buffer, const std::vector<Expr>& indices, const CLane& lane);

  // c_stmt.cpp
  void stmt(const Stmt& s);
  void loop(const For& node);
  void branch(const If& node);
  void bind(const LetStmt& node);
  void store(const Store& node);
  void store_lanes(const Store& node);
  void allocate(const Allocate& node);
  void evaluate(const Evaluate& node);
  /// `T name[n] = lanes` or a loop that fills it.
  void fill(const std::string& name, const Expr& value);
  /// A statement, behind the declarations that its expressions need.
  void line(const std::string& text);
  void leave(const std::string& code);
  std::string indent() const { return std::string(2 * static_cast<size_t>(depth_), ' '); }

  /// A name that nothing in the function has, made from another one.
  std::string fresh(const std::string& name);

  CHelpers& helpers_;
  const std::set<std::string>& functions_;
  std::map<std::string, std::string> externs_;
  std::string out_;
  int depth_ = 0;
  std::set<std::string> taken_;
  std::unordered_map<const VarNode*, CText> vars_;
  bool in_index_ = false;          ///< what is written is a place in a buffer or a bound of a loop
  std::set<const VarNode*> data_;  ///< let variables that may hold numbers that wrap
  std::unordered_map<const BufferNode*, std::string> buffers_;
  std::vector<std::string> declarations_;  ///< that the next statement needs
  std::vector<std::string> heap_;          ///< to be freed on the way out, outermost first
};

/// Whether lane `l` of the value needs only lane `l` of what it is made of.
bool is_lane_by_lane(const Expr& e);

}  // namespace tensmith
