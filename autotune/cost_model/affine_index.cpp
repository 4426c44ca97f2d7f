#include "autotune/cost_model/affine_index.h"

#include <cmath>

#include "autotune/cost_model/sample_points.h"

namespace tensmith {

namespace {

AffineIndex constant_index(double value) { return {value, {}, false}; }

bool is_constant(const AffineIndex& a) { return a.loops.empty() && !a.is_opaque; }

AffineIndex scaled(AffineIndex a, double factor) {
  a.constant *= factor;
  if (factor == 0) a.loops.clear();
  for (auto& [loop, coefficient] : a.loops) coefficient *= factor;
  return a;
}

AffineIndex plus(AffineIndex a, const AffineIndex& b, double sign) {
  a.constant += sign * b.constant;
  a.is_opaque = a.is_opaque || b.is_opaque;
  for (const auto& [loop, coefficient] : b.loops) {
    double& sum = a.loops[loop];
    sum += sign * coefficient;
    if (sum == 0) a.loops.erase(loop);
  }
  return a;
}

/// The terms of `a` that are no multiples of `modulus`, and its constant below it.
AffineIndex remainder(const AffineIndex& a, double modulus, const AffineScope& scope) {
  AffineIndex left = constant_index(a.constant - modulus * std::floor(a.constant / modulus));
  left.is_opaque = a.is_opaque;
  for (const auto& [loop, coefficient] : a.loops) {
    const double turns = (*scope.extents)[static_cast<size_t>(loop)];
    const bool is_multiple = std::fmod(std::abs(coefficient), modulus) == 0;
    if (!is_multiple) left.loops[loop] = std::abs(coefficient) * turns <= modulus ? coefficient : modulus / turns;
  }
  return left;
}

/// `a / divisor`: exact when what is no multiple of the divisor stays below it, else every term with its mean slope.
AffineIndex quotient(const AffineIndex& a, double divisor, const AffineScope& scope) {
  double rest = a.constant - divisor * std::floor(a.constant / divisor);
  bool all_upwards = true;
  for (const auto& [loop, coefficient] : a.loops) {
    if (std::fmod(std::abs(coefficient), divisor) == 0) continue;
    rest += coefficient * ((*scope.extents)[static_cast<size_t>(loop)] - 1);
    all_upwards = all_upwards && coefficient > 0;
  }
  const bool is_exact = all_upwards && rest < divisor;
  AffineIndex result = constant_index(std::floor(a.constant / divisor));
  result.is_opaque = a.is_opaque;
  for (const auto& [loop, coefficient] : a.loops)
    if (!is_exact || std::fmod(std::abs(coefficient), divisor) == 0) result.loops[loop] = coefficient / divisor;
  return result;
}

}  // namespace

AffineIndex affine_index(const Expr& e, const AffineScope& scope) {
  switch (e.kind()) {
    case NodeKind::kIntImm: return constant_index(static_cast<double>(e.as<IntImm>()->value));
    case NodeKind::kVar: {
      const auto known = scope.vars.find(static_cast<const VarNode*>(e.get()));
      return known == scope.vars.end() ? constant_index(kGuessedValue) : known->second;
    }
    case NodeKind::kCast: return affine_index(e.as<Cast>()->value, scope);
    case NodeKind::kBroadcast: return affine_index(e.as<Broadcast>()->value, scope);
    case NodeKind::kRamp: return affine_index(e.as<Ramp>()->base, scope);
    case NodeKind::kSelect: return affine_index(e.as<Select>()->a, scope);
    case NodeKind::kLoad: {
      AffineIndex data;
      data.is_opaque = true;
      return data;
    }
    case NodeKind::kBinary: {
      const auto* binary = e.as<Binary>();
      const AffineIndex a = affine_index(binary->a, scope), b = affine_index(binary->b, scope);
      switch (binary->op) {
        case BinaryOp::kAdd: return plus(a, b, 1);
        case BinaryOp::kSub: return plus(a, b, -1);
        case BinaryOp::kMul:
          if (is_constant(b)) return scaled(a, b.constant);
          if (is_constant(a)) return scaled(b, a.constant);
          break;
        case BinaryOp::kFloorDiv:
        case BinaryOp::kTruncDiv:
          if (is_constant(b) && b.constant > 0) return quotient(a, b.constant, scope);
          break;
        case BinaryOp::kFloorMod:
        case BinaryOp::kTruncMod:
          if (is_constant(b) && b.constant > 0) return remainder(a, b.constant, scope);
          break;
        // Clamps hold at the edges only.
        case BinaryOp::kMin:
        case BinaryOp::kMax: {
          AffineIndex moving = is_constant(a) ? b : a;
          moving.is_opaque = a.is_opaque || b.is_opaque;
          return moving;
        }
        default: break;
      }
      AffineIndex unknown = plus(a, b, 1);
      unknown.is_opaque = !is_constant(a) || !is_constant(b);
      return unknown;
    }
    default: return constant_index(0);
  }
}

}  // namespace tensmith
