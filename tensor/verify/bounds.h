/// Whether accesses are in bounds, by the simplifier's proofs in the current context.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "tensor/simplify/engine.h"

namespace tensmith::verifier {

/// A vector value in one lane: every ramp base + stride * lane, every broadcast its scalar. Operations across lanes
/// stay opaque.
class LaneView {
 public:
  LaneView(simplifier::Engine& engine, simplifier::Value* lane) : engine_(engine), lane_(lane) {}
  /// Null when the value cannot be seen lane by lane.
  simplifier::Value* of(simplifier::Value* value);

 private:
  simplifier::Engine& engine_;
  simplifier::Value* lane_;
  std::unordered_map<simplifier::Value*, simplifier::Value*> known_;
};

class BoundsChecker {
 public:
  explicit BoundsChecker(simplifier::Engine& engine) : engine_(engine) {}

  /// What is wrong with the loads of an expression; empty when all are in bounds. Checked once in each `scope`, a
  /// number that changes whenever facts were added or taken back.
  std::string check(const Expr& e, uint64_t scope);
  /// The same for one access.
  std::string check_access(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& predicate,
                           bool is_address = false);

 private:
  bool has_load(const Expr& e);
  std::string check_children(const Expr& e, uint64_t scope);
  std::string check_select(const Select& e, uint64_t scope);
  std::string check_index(const Buffer& buffer, const Expr& index, simplifier::Value* extent,
                          simplifier::Value* predicate, bool is_address);

  simplifier::Engine& engine_;
  std::unordered_map<const ExprNode*, bool> has_load_;
  std::unordered_map<uint64_t, std::unordered_set<const ExprNode*>> checked_;
  uint64_t next_scope_ = uint64_t{1} << 32;  // of branches of selects
  int select_depth_ = 0;
  int num_selects_ = 0;
  std::vector<std::pair<simplifier::Value*, bool>> lane_conditions_;  // vector conditions around, with their truth
  Var lane_{"lane"};
};

}  // namespace tensmith::verifier
