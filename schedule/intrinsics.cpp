#include "schedule/intrinsics.h"

#include "tensor/equal_hash.h"
#include "tensor/print.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

TensorIntrinsic dot_of_bytes(const char* name, const char* doc, DType left) {
  constexpr int64_t kLanes = 64, kBytes = 4;
  const Tensor a = placeholder("a", {kLanes, kBytes}, left), b = placeholder("b", {kLanes, kBytes}, kInt8);
  const Tensor acc = sum("acc", {kLanes}, {kBytes}, [&](const Indices& j, const Indices& k) {
    return cast(kInt32, a(j[0], k[0])) * cast(kInt32, b(j[0], k[0]));
  });
  return {name, doc, Intrinsic::kDotAccumulate, kLanes, kBytes, acc.stage(), {a.buffer(), b.buffer()}};
}

bool is_commutative(BinaryOp op) {
  return op == BinaryOp::kAdd || op == BinaryOp::kMul || op == BinaryOp::kMin || op == BinaryOp::kMax ||
         op == BinaryOp::kAnd || op == BinaryOp::kOr || op == BinaryOp::kXor;
}

/// Finds loads for the operands such that the pattern is the expression.
class Unifier {
 public:
  explicit Unifier(const std::vector<Buffer>& operands) : operands_(operands), bound_(operands.size()) {}

  bool unify(const Expr& pattern, const Expr& e) {
    if (pattern.dtype() != e.dtype()) return false;
    if (const auto* operand = pattern.as<Load>()) return bind(operand->buffer, e);
    if (pattern.kind() != e.kind()) return false;
    if (const auto* node = pattern.as<Cast>()) return unify(node->value, e.as<Cast>()->value);
    if (const auto* node = pattern.as<Binary>()) {
      const auto* other = e.as<Binary>();
      if (node->op != other->op) return false;
      const std::vector<Expr> saved = bound_;
      if (unify(node->a, other->a) && unify(node->b, other->b)) return true;
      bound_ = saved;
      return is_commutative(node->op) && unify(node->a, other->b) && unify(node->b, other->a);
    }
    return equal(pattern, e);
  }
  const std::vector<Expr>& bound() const { return bound_; }

 private:
  bool bind(const Buffer& operand, const Expr& e) {
    const auto* read = e.as<Load>();
    if (!read || read->predicate.get() != nullptr) return false;
    for (size_t k = 0; k < operands_.size(); ++k) {
      if (!operands_[k].same_as(operand)) continue;
      if (bound_[k].get() != nullptr) return equal(bound_[k], e);
      bound_[k] = e;
      return true;
    }
    return false;
  }

  const std::vector<Buffer>& operands_;
  std::vector<Expr> bound_;
};

}  // namespace

std::span<const TensorIntrinsic> tensor_intrinsics() {
  static const std::vector<TensorIntrinsic> list = {
      dot_of_bytes("dot_s8s8_i32", "sums of 4 products of int8 onto int32", kInt8),
      dot_of_bytes("dot_u8s8_i32", "sums of 4 products of uint8 and int8 onto int32", kUInt8),
  };
  return list;
}

const TensorIntrinsic* find_tensor_intrinsic(const std::string& name) {
  for (const TensorIntrinsic& intrinsic : tensor_intrinsics())
    if (intrinsic.name == name) return &intrinsic;
  return nullptr;
}

Result<IntrinsicMatch> match_intrinsic(const TensorIntrinsic& intrinsic, const StageNode& stage) {
  const auto differs = [](const std::string& what) { return Failure{"tensorize-mismatch", what}; };
  const StageNode& meaning = *intrinsic.definition;
  if (!stage.reducer || stage.outputs.size() != meaning.outputs.size())
    return differs("expected a reduction with one output");
  if (stage.where.get() != nullptr) return differs("it has a condition on the points that take part");
  if (stage.outputs[0]->dtype != meaning.outputs[0]->dtype)
    return differs("expected results of type " + to_string(meaning.outputs[0]->dtype) + ", got " +
                   to_string(stage.outputs[0]->dtype));
  const VarMap map{{stage.reducer->lhs[0].get(), meaning.reducer->lhs[0]},
                   {stage.reducer->rhs[0].get(), meaning.reducer->rhs[0]}};
  Unifier reducers({});
  if (!reducers.unify(meaning.reducer->combined[0], substitute(stage.reducer->combined[0], map)))
    return differs("expected the reduction " + to_string(meaning.reducer->combined[0]) + ", got " +
                   to_string(stage.reducer->combined[0]));
  Unifier bodies(intrinsic.operands);
  if (!bodies.unify(meaning.bodies[0], stage.bodies[0]))
    return differs("expected " + to_string(meaning.bodies[0]) + ", got " + to_string(stage.bodies[0]));
  return IntrinsicMatch{bodies.bound()};
}

}  // namespace tensmith
