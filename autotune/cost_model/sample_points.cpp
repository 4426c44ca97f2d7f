#include "autotune/cost_model/sample_points.h"

#include <algorithm>
#include <cmath>

namespace tensmith {

namespace {

SampledValue filled(int64_t value) {
  SampledValue all;
  all.fill(value);
  return all;
}

int64_t floor_quotient(int64_t a, int64_t b) {
  if (b == 0) return 0;
  const int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

int64_t combine(BinaryOp op, int64_t a, int64_t b) {
  const auto wrapped = [](uint64_t value) { return static_cast<int64_t>(value); };
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
    case BinaryOp::kAdd: return wrapped(ua + ub);
    case BinaryOp::kSub: return wrapped(ua - ub);
    case BinaryOp::kMul: return wrapped(ua * ub);
    case BinaryOp::kFloorDiv: return floor_quotient(a, b);
    case BinaryOp::kFloorMod: return b == 0 ? 0 : wrapped(ua - static_cast<uint64_t>(floor_quotient(a, b)) * ub);
    case BinaryOp::kDiv:
    case BinaryOp::kTruncDiv: return b == 0 || b == -1 ? wrapped(b == 0 ? 0 : 0 - ua) : a / b;
    case BinaryOp::kTruncMod: return b == 0 || b == -1 ? 0 : a % b;
    case BinaryOp::kMin: return std::min(a, b);
    case BinaryOp::kMax: return std::max(a, b);
    case BinaryOp::kAnd: return a & b;
    case BinaryOp::kOr: return a | b;
    case BinaryOp::kXor: return a ^ b;
    case BinaryOp::kShl: return b < 0 || b > 63 ? 0 : wrapped(ua << ub);
    case BinaryOp::kShr: return b < 0 || b > 63 ? 0 : a >> b;
    case BinaryOp::kEQ: return a == b;
    case BinaryOp::kNE: return a != b;
    case BinaryOp::kLT: return a < b;
    case BinaryOp::kLE: return a <= b;
    case BinaryOp::kGT: return a > b;
    case BinaryOp::kGE: return a >= b;
  }
  return 0;
}

}  // namespace

SampledValue sample_value(const Expr& e, const SampledVars& vars) {
  SampledValue out;
  switch (e.kind()) {
    case NodeKind::kIntImm: return filled(e.as<IntImm>()->value);
    case NodeKind::kVar: {
      const auto known = vars.find(static_cast<const VarNode*>(e.get()));
      return known == vars.end() ? filled(kGuessedValue) : known->second;
    }
    case NodeKind::kCast: return sample_value(e.as<Cast>()->value, vars);
    case NodeKind::kBroadcast: return sample_value(e.as<Broadcast>()->value, vars);
    case NodeKind::kRamp: return sample_value(e.as<Ramp>()->base, vars);
    case NodeKind::kNot: {
      out = sample_value(e.as<Not>()->value, vars);
      for (int64_t& v : out) v = e.dtype().is_bool() ? v == 0 : ~v;
      return out;
    }
    case NodeKind::kBinary: {
      const auto* binary = e.as<Binary>();
      const SampledValue a = sample_value(binary->a, vars), b = sample_value(binary->b, vars);
      for (int k = 0; k < kSamplePoints; ++k) out[k] = combine(binary->op, a[k], b[k]);
      return out;
    }
    case NodeKind::kSelect: {
      const auto* choice = e.as<Select>();
      const SampledValue c = sample_value(choice->cond, vars), a = sample_value(choice->a, vars),
                         b = sample_value(choice->b, vars);
      for (int k = 0; k < kSamplePoints; ++k) out[k] = c[k] ? a[k] : b[k];
      return out;
    }
    default: return filled(kGuessedValue);
  }
}

SampledValue spread_points(const SampledValue& min, const SampledValue& extent, int salt) {
  // Roots of primes are independent over the rationals, so the points fill the product of all ranges.
  static constexpr std::array<double, 12> kSteps = {0.6180339887, 0.4142135624, 0.7320508076, 0.2360679775,
                                                    0.6457513111, 0.3166247904, 0.6055512755, 0.1231056256,
                                                    0.3588989435, 0.7958315233, 0.3851648071, 0.5677643628};
  const double step = kSteps[static_cast<size_t>(salt) % kSteps.size()];
  SampledValue out;
  for (int k = 0; k < kSamplePoints; ++k) {
    const double turn = (k + 0.5) * step + 0.07 * (salt / static_cast<int>(kSteps.size()));
    const auto n = static_cast<double>(std::max<int64_t>(1, extent[k]));
    out[k] = min[k] + static_cast<int64_t>((turn - std::floor(turn)) * n);
  }
  return out;
}

}  // namespace tensmith
