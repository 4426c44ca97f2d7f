/// Turns functions of the loop IR into the interpreter's instructions: variables, buffers and callees become numbers.
#pragma once

#include <unordered_map>
#include <vector>

#include "tensor/interpret.h"
#include "tensor/interpreter/code.h"

namespace tensmith::interp {

/// The compiled functions of a program, as far as its last one reaches them; codes[k] belongs to functions[k].
/// Errors: throws Malformed.
std::vector<Code> compile(const LoopProgram& program, InterpFloat mode);

/// Compiles one function.
class Compiler {
 public:
  Compiler(const LoopProgram& program, const LoopFunction& function, InterpFloat mode)
      : program_(program), function_(function), mode_(mode) {}
  Code run();

 private:
  using Slot = int32_t;
  /// Lanes that count at present: inside a branch of a vector Select.
  struct Mask {
    Slot slot = 0;
    int lanes = 0;  ///< 0: no mask
  };
  struct Binding;

  [[noreturn]] void fail(const std::string& what) const;

  // Instructions and cells.
  size_t emit(Op op, int lanes, Slot dst, Slot a = 0, Slot b = 0, Slot c = 0);
  int32_t here() const { return static_cast<int32_t>(code_.insts.size()); }
  Slot cells(int count);
  Slot constant(Cell cell);
  int32_t operands(const std::vector<Slot>& slots);
  int32_t add_buffer(const Buffer& buffer);

  // Expressions (compile_expr.cpp, compile_call.cpp). A result lies in `want`, where that is given.
  static constexpr Slot kAnywhere = INT32_MIN;
  Slot expr(const Expr& e, Slot want = kAnywhere);
  Slot compute(const Expr& e, Slot want);
  Slot scalar(const Expr& e, DType type, const char* what);
  void binary(BinaryOp op, DType operands, Slot dst, Slot a, Slot b);
  void float_binary(BinaryOp op, DType type, Slot dst, Slot a, Slot b);
  void int_binary(BinaryOp op, DType type, Slot dst, Slot a, Slot b);
  void cast(DType to, DType from, Slot dst, Slot a);
  void round(DType type, Slot slot);
  void wrap(DType type, Slot slot);
  Slot select(const Select& node, Slot want);
  Slot load(const Load& node, Slot want);
  Slot let(const Let& node, Slot want);
  int32_t access(const Buffer& buffer, const std::vector<Expr>& indices, int lanes);
  int32_t buffer_number(const Buffer& buffer) const;
  /// The lanes of the mask for a value of `lanes` lanes, combined with a predicate; kAnywhere: all.
  Slot mask_for(int lanes, const Expr& predicate);

  Slot call(const Call& node, Slot want);
  Slot unary_call(const Call& node, Slot want);
  Slot binary_call(const Call& node, Slot want);
  Slot fma_call(const Call& node, Slot want);
  Slot bits_call(const Call& node, Slot want);
  Slot bitcast(const Call& node, Slot want);
  Slot reduce(const Call& node, BinaryOp op, Slot want);
  Slot lanes_call(const Call& node, Slot want);
  Slot dot(const Call& node, Slot want);
  Slot extern_call(const Call& node, Slot want);
  void expect_type(const Call& node, bool holds, const char* what) const;

  // Statements (compile_stmt.cpp).
  void stmt(const Stmt& s);
  void loop(const For& node);
  void branch(const If& node);
  void store(const Store& node);
  void allocate(const Allocate& node);
  void evaluate(const Expr& e);
  void extents(int32_t buffer);

  // What expressions gave so far, so that shared subexpressions run once. Entries are undone at the end of a statement
  // and of a branch that may not have run. What holds no load also stays for the statements inside, and is computed in
  // front of a loop when it does not change in it.
  struct Memo {
    std::unordered_map<const ExprNode*, Slot> slots;
    std::vector<const ExprNode*> log;
    void undo(size_t size) {
      for (; log.size() > size; log.pop_back()) slots.erase(log.back());
    }
  };
  struct MemoScope;
  struct Hidden;
  /// Whether the value depends on nothing but variables, and computing it cannot fail.
  bool is_pure(const Expr& e);
  /// Forgets what a store inside may change.
  void forget_loads() { loads_.undo(0); }
  void hoist(const For& node);
  Memo loads_, pure_;
  std::unordered_map<const ExprNode*, bool> purity_;

  const LoopProgram& program_;
  const LoopFunction& function_;
  InterpFloat mode_;
  Code code_;
  std::unordered_map<int64_t, Slot> constants_;  // by bits
  Slot next_cell_ = 0;
  Mask mask_;
  std::unordered_map<const VarNode*, Slot> vars_;
  std::unordered_map<const BufferNode*, int32_t> buffers_;
};

/// Lets go of all memo entries made while it lives.
struct Compiler::MemoScope {
  explicit MemoScope(Compiler& compiler)
      : compiler(compiler), loads(compiler.loads_.log.size()), pure(compiler.pure_.log.size()) {}
  ~MemoScope() {
    compiler.loads_.undo(loads);
    compiler.pure_.undo(pure);
  }
  MemoScope(const MemoScope&) = delete;
  MemoScope& operator=(const MemoScope&) = delete;
  Compiler& compiler;
  size_t loads, pure;
};

/// Hides all memo entries while it lives: where a variable that is bound already is bound again, the old values are
/// wrong.
struct Compiler::Hidden {
  Hidden(Compiler& compiler, const Var& var) : compiler(compiler), active(compiler.vars_.count(var.operator->()) > 0) {
    swap();
  }
  ~Hidden() { swap(); }
  Hidden(const Hidden&) = delete;
  Hidden& operator=(const Hidden&) = delete;
  void swap() {
    if (!active) return;
    std::swap(loads, compiler.loads_);
    std::swap(pure, compiler.pure_);
  }
  Compiler& compiler;
  bool active;
  Memo loads, pure;
};

/// A variable's cell while it lives.
struct Compiler::Binding {
  Binding(Compiler& compiler, const Var& var, Slot slot) : compiler(compiler), var(var.operator->()) {
    const auto [it, fresh] = compiler.vars_.try_emplace(this->var, slot);
    shadows = !fresh;
    outer = it->second;
    it->second = slot;
  }
  ~Binding() {
    if (shadows) compiler.vars_[var] = outer;
    else compiler.vars_.erase(var);
  }
  Binding(const Binding&) = delete;
  Binding& operator=(const Binding&) = delete;
  Compiler& compiler;
  const VarNode* var;
  bool shadows;
  Slot outer;
};

}  // namespace tensmith::interp
