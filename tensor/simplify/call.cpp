// Intrinsics: constants where the result is exact, and what vectors of one value or of a ramp make plain. Functions
// with a tolerance (exp, tanh, ...) are not folded: the folded result could differ from the one that the kernel
// computes.

#include <bit>
#include <cmath>

#include "tensor/simplify/engine.h"

namespace tensmith::simplifier {

namespace {

bool is_elementwise(Intrinsic id) {
  return id < Intrinsic::kBitcast || id == Intrinsic::kPopCount || id == Intrinsic::kLeadingZeros ||
         id == Intrinsic::kMulHigh;
}

bool fold_float(Intrinsic id, double x, double y, double* result) {
  switch (id) {
    case Intrinsic::kAbs: *result = std::fabs(x); return true;
    case Intrinsic::kSqrt: *result = std::sqrt(x); return true;
    case Intrinsic::kFloor: *result = std::floor(x); return true;
    case Intrinsic::kCeil: *result = std::ceil(x); return true;
    case Intrinsic::kTrunc: *result = std::trunc(x); return true;
    case Intrinsic::kRoundEven: *result = std::nearbyint(x); return true;
    case Intrinsic::kCopySign: *result = std::copysign(x, y); return true;
    case Intrinsic::kMinNum: *result = x < y ? x : y; return true;
    case Intrinsic::kMaxNum: *result = x > y ? x : y; return true;
    default: return false;
  }
}

}  // namespace

Value* Engine::call(DType type, Intrinsic id, const Call* original, std::span<Value* const> args) {
  const int lanes = type.lanes;
  const auto plain = [&] {
    Value probe(ValueKind::kCall, type);
    probe.op = static_cast<uint8_t>(id);
    probe.object = id == Intrinsic::kExtern ? original : nullptr;
    if (!intrinsic_info(id).pure) probe.flags = kHasEffect;
    return settle(make(probe, args));
  };
  if (args.empty()) return plain();
  Value* a = args[0];
  if (is_elementwise(id)) {
    if (lanes > 1) {
      InlineVector<Value*, 4> scalars;
      for (Value* arg : args)
        if (arg->is(ValueKind::kBroadcast)) scalars.push_back(arg->kids[0]);
      if (scalars.size() == args.size())
        return broadcast(call(type.element(), id, original, {scalars.data(), scalars.size()}), lanes);
    } else if (a->is(ValueKind::kFloat) && (args.size() == 1 || (args.size() == 2 && args[1]->is(ValueKind::kFloat)))) {
      const double x = std::bit_cast<double>(a->number),
                   y = args.size() == 2 ? std::bit_cast<double>(args[1]->number) : 0;
      if (id == Intrinsic::kIsNan) return boolean(std::isnan(x));
      if (id == Intrinsic::kIsInf) return boolean(std::isinf(x));
      double result;
      if (fold_float(id, x, y, &result)) return floating(type, result);
    } else if (a->is(ValueKind::kInt)) {
      const DType element = a->dtype;
      const uint64_t bits =
          static_cast<uint64_t>(a->number) & (element.bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << element.bits) - 1);
      if (id == Intrinsic::kAbs)
        return element.is_uint() || a->number >= 0
                   ? a
                   : integer(element, static_cast<int64_t>(-static_cast<uint64_t>(a->number)));
      if (id == Intrinsic::kPopCount) return integer(type, std::popcount(bits));
      if (id == Intrinsic::kLeadingZeros) return integer(type, std::countl_zero(bits) - (64 - element.bits));
    }
    if (id == Intrinsic::kAbs && a->dtype.is_integral() && (a->dtype.is_uint() || range(a).lo >= 0)) return a;
    // Whole numbers are their own floor.
    if ((id == Intrinsic::kFloor || id == Intrinsic::kCeil || id == Intrinsic::kTrunc || id == Intrinsic::kRoundEven) &&
        a->is(ValueKind::kCast) && a->kids[0]->dtype.is_integral())
      return a;
    return plain();
  }
  switch (id) {
    case Intrinsic::kReduceMin:
    case Intrinsic::kReduceMax:
    case Intrinsic::kReduceAnd:
    case Intrinsic::kReduceOr:
      if (a->is(ValueKind::kBroadcast)) return a->kids[0];
      break;
    case Intrinsic::kReduceAdd:
      if (a->is(ValueKind::kBroadcast) && type.is_integral()) return mul(a->kids[0], integer(type, a->dtype.lanes));
      break;
    case Intrinsic::kExtractLane:
      if (a->is(ValueKind::kBroadcast)) return a->kids[0];
      if (a->is(ValueKind::kRamp) && args[1]->is(ValueKind::kInt))
        return add(a->kids[0], mul(a->kids[1], integer(type, args[1]->number)));
      break;
    case Intrinsic::kShuffle: {
      if (a->is(ValueKind::kBroadcast)) return broadcast(a->kids[0], lanes);
      if (!a->is(ValueKind::kRamp) || args.size() < 2 || !args[1]->is(ValueKind::kInt)) break;
      const int64_t first = args[1]->number;
      int64_t step = 0;
      bool even = true;
      for (size_t i = 2; i < args.size() && even; ++i) {
        even = args[i]->is(ValueKind::kInt);
        if (i == 2 && even) step = args[i]->number - first;
        even = even && args[i]->number - args[i - 1]->number == step;
      }
      if (!even) break;
      const DType element = type.element();
      return ramp(add(a->kids[0], mul(a->kids[1], integer(element, first))), mul(a->kids[1], integer(element, step)),
                  lanes);
    }
    case Intrinsic::kConcat: {
      if (args.size() == 1) return a;
      Value* scalar = a->is(ValueKind::kBroadcast) ? a->kids[0] : a->dtype.lanes == 1 ? a : nullptr;
      bool same = scalar != nullptr;
      for (size_t i = 1; i < args.size() && same; ++i)
        same = args[i] == scalar || (args[i]->is(ValueKind::kBroadcast) && args[i]->kids[0] == scalar);
      if (same) return broadcast(scalar, lanes);
      if (!a->is(ValueKind::kRamp)) break;
      // Ramps that continue each other.
      Value *base = a->kids[0], *stride = a->kids[1];
      int64_t done = a->dtype.lanes;
      bool continues = true;
      for (size_t i = 1; i < args.size() && continues; ++i) {
        continues = args[i]->is(ValueKind::kRamp) && args[i]->kids[1] == stride &&
                    args[i]->kids[0] == add(base, mul(stride, integer(type.element(), done)));
        done += args[i]->dtype.lanes;
      }
      if (continues) return ramp(base, stride, lanes);
      break;
    }
    default: break;
  }
  return plain();
}

}  // namespace tensmith::simplifier
