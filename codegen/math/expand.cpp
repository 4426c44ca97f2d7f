#include "codegen/math/expand.h"

#include "codegen/math/f32.h"
#include "codegen/math/ir.h"
#include "runtime/base/error.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

bool is_leaf(const Expr& e) {
  if (const auto* broadcast = e.as<Broadcast>()) return is_leaf(broadcast->value);
  return e.kind() == NodeKind::kIntImm || e.kind() == NodeKind::kFloatImm || e.kind() == NodeKind::kVar;
}

bool is_math(Intrinsic id) {
  switch (id) {
    case Intrinsic::kExp:
    case Intrinsic::kLog:
    case Intrinsic::kTanh:
    case Intrinsic::kErf:
    case Intrinsic::kSigmoid:
    case Intrinsic::kRsqrt:
    case Intrinsic::kSin:
    case Intrinsic::kCos: return true;
    default: return false;
  }
}

/// The function of leaves, or null when `id` is none of ours. `half`: the values come from f16.
Expr expand_f32(Intrinsic id, const std::vector<Expr>& x, bool half, bool fast) {
  switch (id) {
    case Intrinsic::kExp: return math::exp_f32(x[0], fast);
    case Intrinsic::kLog: return math::log_f32(x[0], fast);
    case Intrinsic::kTanh: return math::tanh_f32(x[0], fast);
    case Intrinsic::kErf: return math::erf_f32(x[0], fast);
    case Intrinsic::kSigmoid: return math::sigmoid_f32(x[0], fast);
    case Intrinsic::kRsqrt: return math::rsqrt_f32(x[0], fast);
    case Intrinsic::kSin: return math::sin_f32(x[0], half, fast);
    case Intrinsic::kCos: return math::cos_f32(x[0], half, fast);
    default: return {};
  }
}

class Expander : public Mutator {
 public:
  explicit Expander(const MathOptions& options) : options_(options) {}

  using Mutator::mutate;
  Expr mutate(const Expr& e) override {
    const auto* call = e.as<Call>();
    if (!call || !is_math(call->id)) return mutate_children(e);
    const DType type = e.dtype();
    const bool half = type.element() == kFloat16;
    const DType wide = type.bits == 64 ? type : kFloat32.with_lanes(type.lanes);
    std::vector<std::pair<Var, Expr>> lets;
    std::vector<Expr> leaves;
    for (const Expr& arg : call->args) {
      Expr value = mutate(arg);
      if (value.dtype() != wide && value.dtype() == type) value = Cast::make(wide, value);
      if (!is_leaf(value)) {
        lets.emplace_back(Var("x", value.dtype()), value);
        value = lets.back().first;
      }
      leaves.push_back(std::move(value));
    }
    Expr result = type.bits == 64 ? Expr() : expand_f32(call->id, leaves, half, options_.fast);
    TS_CHECK(result) << intrinsic_info(call->id).name << " of " << to_string(type);
    result = math::share(result);
    for (size_t i = lets.size(); i-- > 0;) result = Let::make(lets[i].first, lets[i].second, std::move(result));
    return Cast::make(type, std::move(result));
  }

 private:
  const MathOptions options_;
};

}  // namespace

Stmt expand_math(const Stmt& s, const MathOptions& options) { return Expander(options).mutate(s); }
Expr expand_math(const Expr& e, const MathOptions& options) { return Expander(options).mutate(e); }

}  // namespace tensmith
