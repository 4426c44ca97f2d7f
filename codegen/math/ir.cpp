#include "codegen/math/ir.h"

#include <unordered_map>
#include <vector>

#include "runtime/base/error.h"
#include "tensor/walk.h"

namespace tensmith::math {

Expr fma(Expr a, Expr b, Expr c) { return call(Intrinsic::kFma, {std::move(a), std::move(b), std::move(c)}); }
// The machine's fused instructions change signs for free.
Expr fnma(Expr a, Expr b, Expr c) { return fma(-std::move(a), std::move(b), std::move(c)); }

namespace {

Expr bitcast(DType::Code code, const Expr& value) {
  DType type = value.dtype();
  type.code = code;
  return Call::make(type, Intrinsic::kBitcast, {value});
}

Expr shift(BinaryOp op, const Expr& value, int count) {
  return Binary::make(op, value, make_const_int(value.dtype(), count));
}

/// Rewrites a graph of expressions bottom-up, each node once.
class Sharer : public Mutator {
 public:
  explicit Sharer(const Expr& root) { count(root); }

  using Mutator::mutate;
  Expr mutate(const Expr& e) override {
    if (is_leaf(e)) return e;
    if (const auto found = done_.find(e.get()); found != done_.end()) return found->second;
    Expr result = e.kind() == NodeKind::kLet ? e : mutate_children(e);
    if (uses_.at(e.get()) > 1) {
      const Var var("m", e.dtype());
      lets_.emplace_back(var, std::move(result));
      result = var;
    }
    done_.emplace(e.get(), result);
    return result;
  }

  Expr wrap(Expr body) const {
    for (size_t i = lets_.size(); i-- > 0;) body = Let::make(lets_[i].first, lets_[i].second, std::move(body));
    return body;
  }

 private:
  void count(const Expr& e) {
    if (is_leaf(e) || ++uses_[e.get()] > 1 || e.kind() == NodeKind::kLet) return;
    for_each_child(e, [this](const Expr& child) { count(child); });
  }

  std::unordered_map<const ExprNode*, int> uses_;
  std::unordered_map<const ExprNode*, Expr> done_;
  std::vector<std::pair<Var, Expr>> lets_;
};

}  // namespace

bool is_leaf(const Expr& e) {
  if (const auto* broadcast = e.as<Broadcast>()) return is_leaf(broadcast->value);
  return e.kind() == NodeKind::kIntImm || e.kind() == NodeKind::kFloatImm || e.kind() == NodeKind::kVar;
}

Expr int_bits(Expr value) { return bitcast(DType::Code::kInt, value); }
Expr uint_bits(Expr value) { return bitcast(DType::Code::kUInt, value); }
Expr float_bits(Expr bits) { return bitcast(DType::Code::kFloat, bits); }
Expr shift_left(Expr value, int count) { return shift(BinaryOp::kShl, value, count); }
Expr shift_right(Expr value, int count) { return shift(BinaryOp::kShr, value, count); }
Expr bit_and(Expr a, Expr b) { return Binary::make(BinaryOp::kAnd, std::move(a), std::move(b)); }
Expr bit_or(Expr a, Expr b) { return Binary::make(BinaryOp::kOr, std::move(a), std::move(b)); }
Expr bit_xor(Expr a, Expr b) { return Binary::make(BinaryOp::kXor, std::move(a), std::move(b)); }
Expr abs(Expr value) { return call(Intrinsic::kAbs, {std::move(value)}); }
Expr sqrt(Expr value) { return call(Intrinsic::kSqrt, {std::move(value)}); }
Expr copy_sign(Expr magnitude, Expr sign) {
  return call(Intrinsic::kCopySign, {std::move(magnitude), std::move(sign)});
}
// minnum and maxnum give their second operand when either is NaN.
Expr clamp_low(Expr value, Expr low) { return call(Intrinsic::kMaxNum, {std::move(low), std::move(value)}); }
Expr clamp_high(Expr value, Expr high) { return call(Intrinsic::kMinNum, {std::move(high), std::move(value)}); }

Expr any_lane(Expr condition) {
  if (condition.dtype().is_scalar()) return condition;
  return Call::make(kBool, Intrinsic::kReduceOr, {std::move(condition)});
}

Expr horner(const Expr& x, std::span<const double> c) {
  TS_CHECK(!c.empty());
  const Constants k(x.dtype());
  Expr sum = k(c.back());
  for (size_t i = c.size() - 1; i-- > 0;) sum = fma(std::move(sum), x, k(c[i]));
  return sum;
}

Expr share(const Expr& root) {
  Sharer sharer(root);
  return sharer.wrap(sharer.mutate(root));
}

}  // namespace tensmith::math
