/// Symbolic bounds of values whose variables run over intervals with symbolic ends.
#pragma once

#include <unordered_map>

#include "tensor/simplify/engine.h"

namespace tensmith::simplifier {

/// Computes intervals of values bottom-up in the engine's context. The bounds are attained for affine values.
class SymbolicBounds {
 public:
  /// Inclusive ends; null: unknown.
  struct Ends {
    Value* lo = nullptr;
    Value* hi = nullptr;
  };

  explicit SymbolicBounds(Engine& engine) : engine_(engine) {}

  /// The variable runs from one end to the other; the ends may use other such variables.
  void set(Value* var, Ends ends) { vars_[var] = {ends, false}; }
  /// Bounds in terms of the variables that do not run.
  Ends of(Value* v);
  /// Whether the value contains a variable that runs.
  bool depends(Value* v);

 private:
  Ends compute(Value* v);
  Ends of_var(Value* v);
  Ends of_sum(Value* v);
  Ends of_product(Value* v);
  Ends of_signed_product(Value* v, uint32_t position);
  Ends of_ramp(Value* v);
  Ends of_min_max(Value* v);
  Ends of_div(Value* v);
  Ends of_mod(Value* v);
  Ends either(Ends a, Ends b);

  Engine& engine_;
  std::unordered_map<Value*, std::pair<Ends, bool>> vars_;  // the flag: being looked at
  std::unordered_map<Value*, Ends> known_;
  std::unordered_map<Value*, bool> depends_;
};

}  // namespace tensmith::simplifier
