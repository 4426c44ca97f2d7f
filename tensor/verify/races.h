/// Whether the iterations of a parallel loop touch different elements wherever one of them writes.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tensor/simplify/symbolic.h"

namespace tensmith::verifier {

/// Collects the accesses of one parallel loop to buffers from outside and compares them pairwise.
///
/// Two accesses collide when in every dimension their indices are equal for some p != p' and some values of the inner
/// variables. Each such equation is split by radix (in 768 a + 16 b + c with 16 b + c < 768 both parts are zero) until
/// it says that functions of p are equal to the same functions of p'; when these determine p there is no collision.
/// The conditions around an access bound the values on its side: `p % 9 < 8` and `p' % 9 >= 8` exclude each other where
/// p % 9 and p' % 9 are equal, and `p % 9 == 8` on both sides makes them equal.
class RaceChecker {
 public:
  /// The engine's context must have the facts around the loop.
  explicit RaceChecker(simplifier::Engine& engine) : engine_(engine) {}

  /// The first possible race in words; empty when there is none.
  std::string check(const For& loop);

 private:
  using Value = simplifier::Value;

  /// A variable inside the parallel loop: a loop counted from 0, or the lanes of a vector.
  struct Inner {
    Var var;
    Value* last;
  };
  /// A condition around an access, and whether it holds there.
  struct Condition {
    Value* value;
    bool truth;
    friend bool operator==(const Condition&, const Condition&) = default;
  };
  struct Known {
    simplifier::SymbolicBounds::Ends ends;
    simplifier::Range range;
  };
  struct Access {
    const BufferNode* buffer;
    std::vector<Value*> indices;
    std::vector<Inner> inner;
    bool write;
    std::vector<Condition> path;
    std::unordered_map<Value*, Known> known;  ///< under the conditions of the path
  };
  /// coefficient * factor * x, x being an atom's difference between two iterations, or an atom of one of them.
  struct Item {
    int64_t coefficient;
    Value* factor;          ///< the same in all iterations; null: 1
    Value *lo, *hi;         ///< bounds of x; null: unknown
    Value* atom = nullptr;  ///< a function of p alone: where x is 0, p and p' agree in it
  };

  void collect(const Stmt& s);
  void collect(const Expr& e);
  bool reads_written(const Expr& e);
  void add_condition(Value* condition, bool truth);
  void assume(const std::vector<Condition>& path);
  void under(const Expr& condition, bool truth, const std::function<void()>& branch);
  void add_access(const Buffer& buffer, const std::vector<Expr>& indices, bool write);
  bool all_disjoint(const std::vector<Access*>& accesses);
  bool disjoint(Access& a, Access& b);
  const Known& known_of(Access& access, Value* value);
  void split_digits(simplifier::Linear& form, const std::vector<Value*>& functions);
  bool is_same_number(Value* value);
  std::vector<Value*> conditioned();
  bool conditions_exclude();
  void set_bounds(simplifier::SymbolicBounds& bounds, const Access& access);
  void run_over(simplifier::SymbolicBounds& bounds, std::initializer_list<const Access*> accesses);
  bool mentions_inner(Value* value);
  /// Draws from equal indices in a dimension what follows for p; true when they cannot be equal.
  bool impossible(Access& a, Access& b, size_t dimension);
  /// The same for items + constant == 0.
  bool impossible(const std::vector<Item>& items, int64_t constant, int depth);
  void add_item(std::vector<Item>& items, Value* atom, int64_t coefficient, Access* a, Access* b);
  bool runs(Value* value);
  void close_over();
  bool is_known(Value* value);
  simplifier::SymbolicBounds::Ends total(const std::vector<Item>& items, int64_t constant);
  bool proves_less(Value* a, Value* b);

  simplifier::Engine& engine_;
  Value* parallel_ = nullptr;
  Value *first_ = nullptr, *last_ = nullptr;       // bounds of p
  std::unordered_set<const BufferNode*> written_;  // from outside and stored to in the loop
  std::vector<const BufferNode*> written_order_;
  std::unordered_set<const ExprNode*> seen_;
  std::vector<Inner> around_;    // the inner loops around the place that is looked at
  std::vector<Condition> path_;  // around the place that is looked at
  std::unordered_map<const ExprNode*, bool> reads_written_;
  std::vector<Access> accesses_;

  // One comparison.
  simplifier::SymbolicBounds* bounds_ = nullptr;
  std::unordered_set<Value*> inner_;
  std::vector<Value*> functions_;  // of p, that the conditions around both accesses are made of
  Access *first_access_ = nullptr, *second_access_ = nullptr;
  std::unordered_set<Value*> equal_;  // functions of p that agree in both iterations
};

}  // namespace tensmith::verifier
