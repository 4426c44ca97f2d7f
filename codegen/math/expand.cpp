#include "codegen/math/expand.h"

#include "codegen/math/functions.h"
#include "codegen/math/ir.h"
#include "runtime/base/error.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

bool is_math(Intrinsic id) {
  switch (id) {
    case Intrinsic::kRsqrt:
    case Intrinsic::kExp:
    case Intrinsic::kLog:
    case Intrinsic::kTanh:
    case Intrinsic::kErf:
    case Intrinsic::kSigmoid:
    case Intrinsic::kSin:
    case Intrinsic::kCos:
    case Intrinsic::kTan:
    case Intrinsic::kAsin:
    case Intrinsic::kAcos:
    case Intrinsic::kAtan:
    case Intrinsic::kSinh:
    case Intrinsic::kCosh:
    case Intrinsic::kAsinh:
    case Intrinsic::kAcosh:
    case Intrinsic::kAtanh:
    case Intrinsic::kPow: return true;
    default: return false;
  }
}

/// The function of leaves of f32 or f64. `half`: the values come from f16.
Expr expand(Intrinsic id, const std::vector<Expr>& x, bool half, const math::Form& form) {
  const bool fast = form.fast;
  switch (id) {
    case Intrinsic::kRsqrt: return math::rsqrt(x[0], fast);
    case Intrinsic::kExp: return math::exp(x[0], form);
    case Intrinsic::kLog: return math::log(x[0], fast);
    case Intrinsic::kTanh: return math::tanh(x[0], form);
    case Intrinsic::kErf: return math::erf(x[0], form);
    case Intrinsic::kSigmoid: return math::sigmoid(x[0], form);
    case Intrinsic::kSin: return math::sin(x[0], half, fast);
    case Intrinsic::kCos: return math::cos(x[0], half, fast);
    case Intrinsic::kTan: return math::tan(x[0], half);
    case Intrinsic::kAsin: return math::asin(x[0]);
    case Intrinsic::kAcos: return math::acos(x[0]);
    case Intrinsic::kAtan: return math::atan(x[0]);
    case Intrinsic::kSinh: return math::sinh(x[0]);
    case Intrinsic::kCosh: return math::cosh(x[0]);
    case Intrinsic::kAsinh: return math::asinh(x[0]);
    case Intrinsic::kAcosh: return math::acosh(x[0]);
    case Intrinsic::kAtanh: return math::atanh(x[0]);
    case Intrinsic::kPow: return math::pow(x[0], x[1]);
    default: TS_UNREACHABLE() << intrinsic_info(id).name;
  }
}

/// a * b + c in f64, where the product is exact: within 2^-29 ulp of the fused operation, and exact where that is.
Expr fma_in_double(const Expr& e) {
  const auto* call = e.as<Call>();
  if (!call || call->id != Intrinsic::kFma || e.dtype().bits != 32) return e;
  const auto wide = [](const Expr& value) { return cast(kFloat64, value); };
  return cast(kFloat32, wide(call->args[0]) * wide(call->args[1]) + wide(call->args[2]));
}

class Expander : public Mutator {
 public:
  explicit Expander(const MathOptions& options) : options_(options) {}

  using Mutator::mutate;
  Expr mutate(const Expr& e) override {
    const auto* call = e.as<Call>();
    if (!call || !is_math(call->id)) return mutate_children(e);
    const DType type = e.dtype();
    const DType wide = type.bits == 64 ? type : kFloat32.with_lanes(type.lanes);
    std::vector<std::pair<Var, Expr>> lets;
    std::vector<Expr> leaves;
    for (const Expr& arg : call->args) {
      Expr value = Cast::make(wide, mutate(arg));
      if (!math::is_leaf(value)) {
        lets.emplace_back(Var("x", wide), std::move(value));
        value = lets.back().first;
      }
      leaves.push_back(std::move(value));
    }
    const math::Form form{.fast = options_.fast, .avx512 = options_.avx512};
    Expr result = math::share(expand(call->id, leaves, type.element() == kFloat16, form));
    if (!options_.fma) result = rewrite(result, fma_in_double);
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
