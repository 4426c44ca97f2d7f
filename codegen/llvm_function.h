/// Emission of one loop IR function (or the body of one of its parallel loops) as LLVM IR. Internal to codegen/.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/Module.h>

#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/llvm_addresses.h"
#include "codegen/llvm_registers.h"
#include "codegen/llvm_values.h"
#include "tensor/simplify.h"
#include "tensor/stmt.h"

namespace tensmith {

/// What all functions of a module share.
struct ModuleContext {
  llvm::Module& module;
  const Target& target;
  Isa isa;
  bool contract_fma = true;
  llvm::AttributeList attributes;                  ///< of every function
  std::map<std::string, llvm::Function*> program;  ///< the functions of the loop program by name
  llvm::StructType* context_type = nullptr;        ///< tensmith_context
};

/// Where a buffer's elements are: in memory, or in registers.
struct BufferPlace {
  llvm::Value* pointer = nullptr;
  RegisterTile* registers = nullptr;
  llvm::MDNode* scope = nullptr;    ///< !alias.scope of accesses
  llvm::MDNode* noalias = nullptr;  ///< !noalias of accesses: the scopes of all other buffers
  bool read_only = false;
  int depth = 0;  ///< loops around its allocation
};

/// Emits into one llvm::Function. Expression values are remembered within a statement, so shared subexpressions are
/// emitted once.
class FunctionEmitter {
 public:
  FunctionEmitter(ModuleContext& module, llvm::Function* function);

  /// The whole function: binds the parameters, emits the body, returns 0.
  void emit_function(const LoopFunction& f);

 private:
  struct Memo {
    const ExprNode* node;
    bool index_mode;
    friend bool operator==(const Memo&, const Memo&) = default;
  };
  struct MemoHash {
    size_t operator()(const Memo& m) const { return std::hash<const void*>()(m.node) * 2 + m.index_mode; }
  };

  // llvm_stmt.cpp
  void emit(const Stmt& s);
  void emit_for(const For& loop);
  /// `min`: the expression that `begin` is the value of, null when there is none.
  void emit_serial_loop(const Var& var, const Expr& min, llvm::Value* begin, llvm::Value* end, bool runs,
                        const Stmt& body);
  void set_loop_bound(const For& loop);
  void emit_while(const While& loop);
  void emit_if(const If& branch);
  void emit_allocate(const Allocate& alloc);
  void emit_assert(const Assert& check);
  void emit_evaluate(const Evaluate& e);
  /// Continues when `ok` holds; otherwise frees what is allocated and returns `code`.
  void return_unless(llvm::Value* ok, llvm::Value* code);
  void emit_frees();
  llvm::BasicBlock* new_block(const char* name);
  llvm::AllocaInst* entry_alloca(llvm::Type* type, llvm::Align align, const std::string& name);

  // llvm_parallel.cpp
  void emit_parallel(const For& loop);
  llvm::Value* context_field(unsigned index);
  llvm::Value* has_threads();

  // llvm_expr.cpp
  llvm::Value* emit(const Expr& e);
  /// As part of an address or a loop bound: 64-bit sums may not overflow there.
  llvm::Value* emit_index(const Expr& e);
  llvm::Value* emit_node(const Expr& e);
  llvm::Value* emit_kind(const Expr& e);
  llvm::Value* emit_binary(const Binary& e);
  llvm::Value* emit_select(const Select& e);
  llvm::Value* emit_let(const Let& e);
  llvm::Value* emit_lane_limit(const Binary& e);
  /// Evaluates `fn` in a block of its own that runs only when `cond` holds; otherwise the result is `otherwise`.
  llvm::Value* guarded(llvm::Value* cond, llvm::Value* otherwise, llvm::function_ref<llvm::Value*()> fn);
  size_t memo_mark() const { return memo_order_.size(); }
  void memo_rollback(size_t mark);
  void new_statement();
  /// Upper bound of an index expression that cannot be negative; nothing when that is unknown or arithmetic might wrap.
  std::optional<int64_t> nonnegative_bound(const Expr& e) const;

  // llvm_memory.cpp
  llvm::Value* emit_load(const Load& e);
  void emit_store(const Store& s);
  llvm::Value* vector_address(const Buffer& buffer, const Expr& index);
  llvm::Value* load_vector(const BufferPlace& place, DType element, llvm::Value* pointer, int lanes, llvm::Value* mask);
  llvm::Value* load_strided(const BufferPlace& place, DType element, llvm::Value* pointer, int64_t stride, int lanes,
                            llvm::Value* wanted);
  llvm::Instruction* annotate(const BufferPlace& place, llvm::Instruction* access);
  /// Whether the read provably stays inside its buffer, so that it may be done even where its value is not needed.
  bool in_bounds(const Load& e);
  /// Whether evaluating the expression where it is not needed could read out of bounds or have an effect.
  bool must_be_guarded(const Expr& e);
  /// The mask a load needs: its predicate and, when it may be out of bounds, the lanes that the surrounding selects
  /// take.
  llvm::Value* load_mask(const Load& e, int lanes);
  const BufferPlace& place_of(const Buffer& buffer) const;

  // llvm_addresses.cpp
  llvm::Value* address(const Buffer& buffer, const Expr& index);
  /// How many of the loops around must have been entered for the value to exist, or AddressTerm::kInPlace.
  int depth_of(const Expr& e) const;
  void add_terms(const Expr& e, int64_t coefficient, AddressSum* sum) const;
  /// The address, emitted here, a place inside loop number `depth` (counted from 1; 0: outside all).
  llvm::Value* pointer_at(const Buffer& buffer, const AddressSum& sum, int depth);
  /// A pointer that is right everywhere inside that loop.
  llvm::Value* carried_pointer(const Buffer& buffer, const std::vector<AddressTerm>& terms, int depth);
  llvm::Value* move_pointer(llvm::Value* pointer, llvm::Type* element, const std::vector<AddressTerm>& terms);
  void enter_loop(const VarNode* var, const Expr& min, llvm::Value* begin, llvm::BasicBlock* before,
                  llvm::BasicBlock* header);
  /// Moves the loop's pointers on, at the end of its turn.
  void leave_loop();

  // llvm_call.cpp
  llvm::Value* emit_call(const Call& e);
  llvm::Value* emit_pure_call(const Call& e);
  llvm::Value* emit_float_function(const Call& e);
  llvm::Value* emit_bit_function(const Call& e);
  llvm::Value* emit_vector_function(const Call& e);
  llvm::Value* emit_address_function(const Call& e);
  llvm::Value* emit_extern(const Call& e);
  llvm::Value* emit_builtin(const Call& e);
  llvm::Value* emit_reduce(Intrinsic id, DType t, llvm::Value* v);
  llvm::Value* emit_libm(const Call& e);

  ModuleContext& module_;
  llvm::Function* function_;
  llvm::BasicBlock* entry_;  // holds allocas only
  LlvmBuilder builder_;
  LlvmValues v_;

  std::unordered_map<const VarNode*, llvm::Value*> vars_;
  std::unordered_map<const VarNode*, int64_t> upper_bounds_;  // of variables that are not negative
  Facts facts_;                                               // ranges of the loops around
  std::unordered_map<const BufferNode*, BufferPlace> buffers_;
  std::vector<LoopFrame> loops_;  // around, outermost first
  std::unordered_map<const VarNode*, int>
      depths_;  // loops that must have been entered for the variable to have a value
  std::vector<std::unique_ptr<RegisterTile>> tiles_;
  std::vector<llvm::Value*> heap_;  // allocations to free before any return
  int64_t stack_bytes_ = 0;         // of the stack buffers that live at this point

  std::unordered_map<Memo, llvm::Value*, MemoHash> memo_;
  std::vector<Memo> memo_order_;
  std::unordered_map<const ExprNode*, bool> in_bounds_;  // answers for the reads of this statement
  bool index_mode_ = false;
  llvm::Value* mask_ = nullptr;  // lanes that the surrounding selects need; null: all
  const Load* unmasked_ = nullptr;  // reads its whole register, whatever its mask

  llvm::Value* context_ = nullptr;  // const tensmith_context*; null constant inside a parallel loop
  llvm::Value* thread_ = nullptr;   // i32
  bool in_parallel_ = false;
};

/// `base + lane * stride` when the index is such a vector (base and stride scalar expressions).
struct RampMatch {
  Expr base, stride;
  int lanes;
};
std::optional<RampMatch> match_ramp(const Expr& index);

/// Whether buffer number `index` of the function is one of those that may be the same memory (kMayOverlap).
bool may_overlap(const LoopFunction& f, size_t index);

/// The C type of a scalar parameter or argument: bool travels as a byte.
llvm::Type* abi_type(const LlvmValues& values, DType t);

/// The operation of codegen/math/machine.h that `e` names, on its emitted arguments (llvm_machine.cpp).
llvm::Value* emit_machine_operation(LlvmValues& values, const Call& e, const std::vector<llvm::Value*>& args);

/// Whether evaluating the call has no effect, so that it may be done once or not at all.
bool is_pure(const Call& call);

/// acc + products of groups of four, exactly, with the target's dot-product instructions (llvm_dot.cpp).
llvm::Value* emit_dot_accumulate(LlvmValues& values, llvm::Value* acc, llvm::Value* a, bool a_signed, llvm::Value* b);

}  // namespace tensmith
