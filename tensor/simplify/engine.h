/// The machine behind simplify, can_prove, bounds_of and the verifier.
///
/// `visit` turns a loop IR expression into a canonical `Value`, bottom-up, each node once a context; the operations
/// below make canonical values from canonical values; `build` makes loop IR of a value. A context is a set of facts:
/// entered with `Scope`, filled with `bind_loop`, `bind_let` and `assume`, undone when the scope ends. Results are
/// remembered per context.
#pragma once

#include <span>

#include "tensor/simplify.h"
#include "tensor/simplify/store.h"

namespace tensmith::simplifier {

class Engine {
 public:
  Engine();
  /// `facts` must outlive the engine.
  explicit Engine(const Facts& facts);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Facts added while a scope lives are forgotten at its end.
  class Scope {
   public:
    explicit Scope(Engine& engine) : engine_(engine), mark_(engine.mark()) {}
    ~Scope() { engine_.restore(mark_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    friend class Engine;
    Engine& engine_;
    struct Mark {
      uint32_t context;
      size_t undo, facts;
      bool contradiction;
    } mark_;
  };

  // --- visit.cpp, build.cpp ---
  Value* visit(const Expr& e);
  Expr build(Value* value);
  /// The same, but `original` itself when that is a constant with this value.
  Expr build(Value* value, const Expr& original);
  /// A node that must stay alive while this engine works, made by the caller.
  Expr keep(Expr e) {
    store_->keep(e);
    return e;
  }

  // --- context.cpp: facts ---
  /// The value of a variable (what it stands for when it has a replacement).
  Value* var_value(const VarNode* var);
  /// Gives the variable its place among the bound ones before its range is known.
  void declare(const VarNode* var) { base_var(var, /*bound=*/true); }
  /// The variable runs over [min, min + extent). To be called in a Scope of its own.
  void bind_loop(const VarNode* var, Value* min, Value* extent);
  /// The variable lies in [lo, hi], either of which may be null.
  void bind_interval(const VarNode* var, Value* lo, Value* hi);
  /// The variable has this value; trivial values (constants, variables) replace it, which is what true means.
  bool bind_let(const VarNode* var, Value* value);
  void bind_replacement(const VarNode* var, Value* value);
  /// The condition holds (or does not, when `truth` is false).
  void assume(Value* condition, bool truth = true);
  /// The facts exclude each other: the code here never runs.
  bool contradiction() const { return contradiction_; }
  /// 0, 1 or -1 for a bool value whose truth is unknown.
  int truth(Value* condition) const;
  /// The let variable's bit in `Value::lets`.
  uint64_t let_bit(const VarNode* var) { return var_value(var)->lets; }

  // --- leaves (engine.cpp) ---
  Value* index(int64_t value) { return integer(kInt64, value); }
  Value* integer(DType type, int64_t value);
  Value* floating(DType type, double value);
  Value* rounded(DType type, double value);  // already a value of the type
  Value* boolean(bool value, int lanes = 1) { return broadcast(integer(kBool, value), lanes); }
  /// A constant of a type with any lanes.
  Value* constant(DType type, int64_t value);

  // --- operations (each in the file of its operand types) ---
  Value* binary(BinaryOp op, Value* a, Value* b);  // engine.cpp: chooses by type
  Value* add(Value* a, Value* b) { return binary(BinaryOp::kAdd, a, b); }
  Value* sub(Value* a, Value* b) { return binary(BinaryOp::kSub, a, b); }
  Value* mul(Value* a, Value* b) { return binary(BinaryOp::kMul, a, b); }
  Value* sum(Linear& form);              // linear.cpp
  Value* floor_div(Value* a, Value* b);  // divide.cpp (kInt64 scalars)
  Value* floor_mod(Value* a, Value* b);  // divide.cpp (kInt64 scalars)
  /// t / m for products of variables, or null when m does not divide t.
  Value* divide_product(Value* t, Value* m);                      // divide.cpp
  Value* min_max(BinaryOp op, std::span<Value* const> operands);  // minmax.cpp (kInt64 scalars)
  Value* at_least_zero(Linear form);                              // compare.cpp: form >= 0
  Value* logical(BinaryOp op, Value* a, Value* b);                // boolean.cpp (any lanes)
  Value* logical_not(Value* a);                                   // boolean.cpp (any lanes)
  Value* select(Value* cond, Value* a, Value* b);                 // boolean.cpp
  Value* cast(DType type, Value* a);                              // cast.cpp
  Value* ramp(Value* base, Value* stride, int lanes);             // vector.cpp
  Value* broadcast(Value* value, int lanes);                      // vector.cpp
  Value* load(const BufferNode* buffer, std::span<Value* const> indices, Value* predicate);  // vector.cpp
  /// `original` gives the symbol of an external call.
  Value* call(DType type, Intrinsic id, const Call* original, std::span<Value* const> args);  // call.cpp

  // --- analysis.cpp ---
  /// Bounds over all lanes in this context.
  Range range(Value* value) {
    analyse(value);
    return value->range;
  }
  Modulus modulus(Value* value) {
    analyse(value);
    return value->modulus;
  }
  Range range(const Linear& form);
  Modulus modulus(const Linear& form);
  /// Whether arithmetic on the value may be taken as that of whole numbers: index arithmetic, or data whose bounds are
  /// known.
  bool tame(Value* value);
  /// Whether a value, read as a sum, has that sum's exact mathematical value: false for sums of data that may have
  /// wrapped.
  bool exact(Value* value) { return !(value->is(ValueKind::kSum) || value->is(ValueKind::kProduct)) || tame(value); }

  // --- prove.cpp ---
  bool prove_at_least_zero(Linear form);
  /// a <= b for exact kInt64 scalars.
  bool prove_le(Value* a, Value* b, int64_t slack = 0);
  bool prove_positive(Value* value);
  bool prove(Value* condition) { return truth(condition) == 1; }

 private:
  friend class Scope;
  struct Undo {
    Value* value;
    Range limit;
    Modulus limit_modulus;
    int8_t known;
    Value* replacement;
  };

  // engine.cpp
  Value* make(Value& probe, std::span<Value* const> kids);
  Value* make_op(BinaryOp op, DType type, std::span<Value* const> kids);
  Value* make_op(BinaryOp op, DType type, Value* a, Value* b) {
    Value* kids[] = {a, b};
    return make_op(op, type, kids);
  }
  Value* make_unary(ValueKind kind, DType type, Value* kid);
  /// The number when the value is an integer constant in all lanes.
  static bool is_constant(const Value* value, int64_t* number) {
    if (value->is(ValueKind::kBroadcast)) value = value->kids[0];
    if (value->is(ValueKind::kInt)) *number = value->number;
    return value->is(ValueKind::kInt);
  }
  /// The constant that the bounds leave, or the value itself.
  Value* settle(Value* value);

  // context.cpp
  Scope::Mark mark() const { return {context_, undo_.size(), facts_.size(), contradiction_}; }
  void restore(const Scope::Mark& mark);
  void renew_context() { context_ = ++last_context_; }
  Value* base_var(const VarNode* var, bool bound);
  Value* rebind(const VarNode* var);
  void remember(Value* value);
  void limit(Value* value, Range range);
  void limit_modulus(Value* value, Modulus modulus);
  /// form >= 0.
  void add_fact(const Linear& form);
  Value* raw_sum(const Linear& form);  // linear.cpp: no rules
  void assume_compare(Value* compare, bool truth);

  // visit.cpp
  Value* visit_node(const ExprNode* e);
  Value* visit_logical(const Binary* e);
  Value* visit_select(const Select* e);
  Value* visit_let(const Let* e);
  Value* visit_load(const Load* e, bool as_address);
  Value* visit_call(const Call* e);
  bool worth_assuming(const Value* condition) const;

  // build.cpp
  const ExprNode* node(Value* value);
  const ExprNode* build_node(Value* value);
  const ExprNode* build_sum(Value* value);
  const ExprNode* build_scaled(Value* value, int64_t coefficient, const ExprNode* hint);
  const ExprNode* build_binary(BinaryOp op, const ExprNode* a, const ExprNode* b, const ExprNode* hint);

  // linear.cpp
  Value* add_index(Value* a, Value* b, int64_t coefficient);
  Value* mul_index(Value* a, Value* b);
  Value* product(Value* a, Value* b);
  bool merge_divisions(Linear& form);
  bool merge_remainders(Linear& form);
  bool merge_min_max(Linear& form);
  bool cancel_min_max(Linear& form);

  // divide.cpp
  Value* floor_div_constant(Value* a, int64_t divisor);
  Value* floor_mod_constant(Value* a, int64_t divisor);
  Value* floor_div_by_rules(Value* a, int64_t divisor);
  Value* floor_mod_by_rules(Value* a, int64_t divisor);
  void add_modulo(Linear& form, Value* value, int64_t coefficient, int64_t divisor, bool alone);
  Value* floor_div_symbolic(Value* a, Value* divisor);
  Value* floor_mod_symbolic(Value* a, Value* divisor);
  /// value = quotient * divisor + rest, taking out whole multiples of a symbolic divisor.
  void split_multiples(Value* value, Value* divisor, Linear* quotient, Linear* rest);

  // compare.cpp
  Value* compare_index(BinaryOp op, Value* a, Value* b);
  Value* equal_index(BinaryOp op, Value* a, Value* b);
  bool normalise(Linear& form);
  Value* order_by_rules(Value* whole);
  Value* one_operand_matters(const Linear& form);
  Value* compare_plain(BinaryOp op, Value* a, Value* b);
  bool as_at_least_zero(Value* compare, Linear* form);

  // integer.cpp, float.cpp, boolean.cpp, vector.cpp
  Value* binary_integer(BinaryOp op, Value* a, Value* b);
  Value* binary_float(BinaryOp op, Value* a, Value* b);
  Value* binary_bool(BinaryOp op, Value* a, Value* b);
  Value* binary_vector(BinaryOp op, Value* a, Value* b);
  Value* add_by_lanes(Value* a, Value* b);
  /// The scalar that a vector of ramps is in a lane; null for other vectors.
  Value* at_lane(Value* v, Value* lane, int depth, bool* divides);
  Value* divide_ramp(BinaryOp op, Value* a, Value* b);
  Value* compare_ramp(BinaryOp op, Value* a, Value* b);
  Value* min_max_ramp(BinaryOp op, Value* a, Value* b);
  bool as_ramp(Value* value, Value** base, Value** stride);

  // analysis.cpp
  void analyse(Value* value);
  Range compute_range(Value* value);
  Range range_of_op(Value* value);
  Modulus compute_modulus(Value* value);

  // prove.cpp
  bool search(const Linear& form, int64_t scale);
  bool try_structure(const Linear& form, int64_t scale, const Term& term);
  bool try_facts(const Linear& form, int64_t scale, const Term& term);
  bool try_factors(const Linear& form, int64_t scale, const Term& term);
  bool has_option(const Term& term) const;

  std::unique_ptr<Store> store_;
  std::vector<std::pair<int, Value*>> lane_variables_;  // by number of lanes, made when wanted
  const Facts* known_facts_ = nullptr;
  uint32_t context_ = 1, last_context_ = 1;
  uint32_t next_rank_;
  bool contradiction_ = false;
  int condition_depth_ = 0;
  uint64_t plain_visits_ = 0, conditional_visits_ = 0;
  int proof_budget_ = 0;
  int proof_depth_ = 0;
  std::vector<Undo> undo_;
  std::vector<Value*> facts_;  // sums that are at least zero
  uint32_t num_lets_ = 0;
};

}  // namespace tensmith::simplifier
