/// Statements of the loop IR, functions and programs.
#pragma once

#include <map>
#include <optional>

#include "tensor/expr.h"

namespace tensmith {

class StmtNode : public Node {
 public:
  using Node::Node;
};

/// A reference to an immutable statement; null is the empty statement.
class Stmt : public Ref<StmtNode> {
 public:
  Stmt() = default;
  Stmt(const StmtNode* node) : Ref(node) {}  // NOLINT: implicit by design
  template <typename T>
  const T* as() const {
    return get() && get()->kind == T::kKind ? static_cast<const T*>(get()) : nullptr;
  }
};

template <NodeKind kind_value>
class StmtOf : public StmtNode {
 public:
  static constexpr NodeKind kKind = kind_value;

 protected:
  StmtOf() : StmtNode(kind_value) {}
};

enum class ForKind : uint8_t {
  kSerial,
  kParallel,    ///< iterations are independent and may run on other threads
  kVectorized,  ///< becomes vector lanes; constant extent
  kUnrolled,    ///< becomes copies of the body; constant extent
};

/// Hints on a loop that lowering or code generation reads, e.g. {"unroll_factor", 4}. Ordered, since output depends on
/// the order.
using Attrs = std::map<std::string, int64_t>;

/// `for var in [min, min + extent)`, var is kInt64; a negative extent runs zero times.
struct For : StmtOf<NodeKind::kFor> {
  static Stmt make(Var var, Expr min, Expr extent, ForKind kind, Stmt body, Attrs attrs = {});
  const Var var;
  const Expr min, extent;
  const ForKind for_kind;
  const Stmt body;
  const Attrs attrs;
  auto fields() const { return std::tie(var, min, extent, for_kind, body, attrs); }

 private:
  For(Var var, Expr min, Expr extent, ForKind kind, Stmt body, Attrs attrs)
      : var(std::move(var)),
        min(std::move(min)),
        extent(std::move(extent)),
        for_kind(kind),
        body(std::move(body)),
        attrs(std::move(attrs)) {}
};

/// Repeats while the condition, evaluated before each turn, holds.
struct While : StmtOf<NodeKind::kWhile> {
  static Stmt make(Expr cond, Stmt body);
  const Expr cond;
  const Stmt body;
  auto fields() const { return std::tie(cond, body); }

 private:
  While(Expr cond, Stmt body) : cond(std::move(cond)), body(std::move(body)) {}
};

/// A branch on a scalar bool; `otherwise` may be null.
struct If : StmtOf<NodeKind::kIf> {
  static Stmt make(Expr cond, Stmt then, Stmt otherwise = {});
  const Expr cond;
  const Stmt then, otherwise;
  auto fields() const { return std::tie(cond, then, otherwise); }

 private:
  If(Expr cond, Stmt then, Stmt otherwise)
      : cond(std::move(cond)), then(std::move(then)), otherwise(std::move(otherwise)) {}
};

/// `body` with `var` standing for `value`, evaluated once.
struct LetStmt : StmtOf<NodeKind::kLetStmt> {
  static Stmt make(Var var, Expr value, Stmt body);
  const Var var;
  const Expr value;
  const Stmt body;
  auto fields() const { return std::tie(var, value, body); }

 private:
  LetStmt(Var var, Expr value, Stmt body) : var(std::move(var)), value(std::move(value)), body(std::move(body)) {}
};

/// A write; indices and predicate as in Load.
struct Store : StmtOf<NodeKind::kStore> {
  static Stmt make(Buffer buffer, std::vector<Expr> indices, Expr value, Expr predicate = {});
  const Buffer buffer;
  const std::vector<Expr> indices;
  const Expr value;
  const Expr predicate;
  auto fields() const { return std::tie(buffer, indices, value, predicate); }

 private:
  Store(Buffer buffer, std::vector<Expr> indices, Expr value, Expr predicate)
      : buffer(std::move(buffer)),
        indices(std::move(indices)),
        value(std::move(value)),
        predicate(std::move(predicate)) {}
};

/// Statements one after the other; never nested, never with fewer than two.
struct Block : StmtOf<NodeKind::kBlock> {
  /// Flattens nested blocks and drops null statements; gives null for none and the statement itself for one.
  static Stmt make(std::vector<Stmt> stmts);
  const std::vector<Stmt> stmts;
  auto fields() const { return std::tie(stmts); }

 private:
  explicit Block(std::vector<Stmt> stmts) : stmts(std::move(stmts)) {}
};

/// `body` with `buffer` existing; its content is undefined at the start.
struct Allocate : StmtOf<NodeKind::kAllocate> {
  static Stmt make(Buffer buffer, Stmt body);
  const Buffer buffer;
  const Stmt body;
  auto fields() const { return std::tie(buffer, body); }

 private:
  Allocate(Buffer buffer, Stmt body) : buffer(std::move(buffer)), body(std::move(body)) {}
};

/// An expression for its effect.
struct Evaluate : StmtOf<NodeKind::kEvaluate> {
  static Stmt make(Expr value);
  const Expr value;
  auto fields() const { return std::tie(value); }

 private:
  explicit Evaluate(Expr value) : value(std::move(value)) {}
};

/// Ends the function with error code `code` (non-zero) unless the condition holds.
struct Assert : StmtOf<NodeKind::kAssert> {
  static Stmt make(Expr cond, int code, std::string message);
  const Expr cond;
  const int code;
  const std::string message;
  auto fields() const { return std::tie(cond, code, message); }

 private:
  Assert(Expr cond, int code, std::string message) : cond(std::move(cond)), code(code), message(std::move(message)) {}
};

/// Attribute of a LoopFunction that another program defines; it has no body and only serves calls.
inline constexpr const char* kDeclaration = "declaration";

/// A kernel or host function of loop IR. Parameters come in the order: buffers, then scalars.
struct LoopFunction {
  std::string name;
  std::vector<Buffer> buffers;  ///< inputs, outputs, workspaces; how many of each the maker says
  std::vector<Var> scalars;     ///< symbolic dims and other scalar parameters
  std::vector<Buffer> outputs;  ///< those of `buffers` that are written (inputs never alias them)
  Stmt body;
  Attrs attrs;
};

/// Functions that may call each other by name.
struct LoopProgram {
  std::vector<LoopFunction> functions;
};

}  // namespace tensmith
