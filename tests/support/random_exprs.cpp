#include "tests/support/random_exprs.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tensmith {

namespace {

constexpr BinaryOp kIntOps[] = {BinaryOp::kAdd,      BinaryOp::kSub,      BinaryOp::kMul,      BinaryOp::kFloorDiv,
                                BinaryOp::kFloorMod, BinaryOp::kTruncDiv, BinaryOp::kTruncMod, BinaryOp::kMin,
                                BinaryOp::kMax,      BinaryOp::kAnd,      BinaryOp::kOr,       BinaryOp::kXor,
                                BinaryOp::kShl,      BinaryOp::kShr};
constexpr BinaryOp kFloatOps[] = {BinaryOp::kAdd, BinaryOp::kSub, BinaryOp::kMul, BinaryOp::kMin, BinaryOp::kMax};
constexpr BinaryOp kTests[] = {BinaryOp::kEQ, BinaryOp::kNE, BinaryOp::kLT,
                               BinaryOp::kLE, BinaryOp::kGT, BinaryOp::kGE};
constexpr Intrinsic kExactFunctions[] = {Intrinsic::kAbs,  Intrinsic::kSqrt,  Intrinsic::kFloor,
                                         Intrinsic::kCeil, Intrinsic::kTrunc, Intrinsic::kRoundEven};
constexpr Intrinsic kMathFunctions[] = {
    Intrinsic::kRsqrt, Intrinsic::kExp,  Intrinsic::kLog,   Intrinsic::kTanh,  Intrinsic::kErf,  Intrinsic::kSigmoid,
    Intrinsic::kSin,   Intrinsic::kCos,  Intrinsic::kTan,   Intrinsic::kAsin,  Intrinsic::kAcos, Intrinsic::kAtan,
    Intrinsic::kSinh,  Intrinsic::kCosh, Intrinsic::kAsinh, Intrinsic::kAcosh, Intrinsic::kAtanh};

template <typename T, size_t n>
T pick(RandomExprs& random, const T (&list)[n]) {
  return list[random.below(static_cast<int>(n))];
}

}  // namespace

Expr RandomExprs::make(DType type, int depth) {
  if (depth <= 0) return leaf(type);
  if (type.lanes > 1 && chance(25)) return vector(type, depth);
  if (chance(30)) return common(type, depth);
  if (type.is_bool()) return boolean(type, depth);
  return type.is_float() ? floating(type, depth) : integer(type, depth);
}

Expr RandomExprs::constant(DType type) {
  if (type.is_float()) {
    constexpr double kValues[] = {0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -7.25, 1e-3, 100.0, 1e6, -1e30, 1e-30, 65504.0};
    if (chance(5)) return make_const(type, chance(50) ? std::numeric_limits<double>::infinity() : std::nan(""));
    return make_const(type, pick(*this, kValues));
  }
  if (type.is_bool()) return make_bool(chance(50), type.lanes);
  constexpr int64_t kValues[] = {0,   1,   2,   3,  5,  7,  8,    16,        31,        64,        100,
                                 127, 128, 255, -1, -2, -5, -128, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
  return make_const_int(type, pick(*this, kValues));
}

Expr RandomExprs::index(int64_t extent) {
  std::vector<const Variable*> ranged;
  for (const Variable& v : variables)
    if (v.has_range && v.low >= 0 && v.high < extent) ranged.push_back(&v);
  if (!ranged.empty() && chance(70)) {
    const Variable& v = *ranged[static_cast<size_t>(below(static_cast<int>(ranged.size())))];
    const int64_t room = extent - 1 - v.high;
    if (v.high > 0 && v.high * 2 < extent && chance(30)) return Expr(v.var) * 2;
    return room > 0 && chance(50) ? Expr(v.var) + static_cast<int64_t>(below(static_cast<int>(room + 1))) : Expr(v.var);
  }
  if (chance(40)) return static_cast<int64_t>(below(static_cast<int>(extent)));
  const Expr any = make(kInt64, 1);
  return chance(50) ? floor_mod(any, extent) : min(max(any, 0), extent - 1);
}

std::vector<Expr> RandomExprs::indices(const Readable& from, int lanes, bool distinct) {
  std::vector<Expr> result;
  for (size_t d = 0; d < from.extents.size(); ++d) {
    const int64_t extent = from.extents[d];
    const bool last = d + 1 == from.extents.size();
    if (d == 0 && from.row.get()) {
      result.push_back(from.row);
    } else if (lanes > 1 && last && extent >= lanes) {
      const int64_t stride = extent >= 2 * lanes && chance(30) ? 2 : 1;
      const Expr base = index(extent - (lanes - 1) * stride);
      result.push_back(Ramp::make(base, stride, lanes));
    } else if (lanes > 1 && last && !distinct) {
      result.push_back(
          Binary::make(BinaryOp::kFloorMod, make(kInt64.with_lanes(lanes), 1), Broadcast::make(extent, lanes)));
    } else {
      result.push_back(index(extent));
    }
  }
  return result;
}

Expr RandomExprs::read(const Readable& from, int lanes, int depth) {
  Expr predicate;
  if (lanes > 1 && depth > 0 && chance(20)) predicate = make(kBool.with_lanes(lanes), depth - 1);
  std::vector<Expr> place = indices(from, lanes, /*distinct=*/false);
  int found = 1;
  for (const Expr& i : place) found = std::max<int>(found, i.dtype().lanes);
  if (found == lanes) return Load::make(from.buffer, std::move(place), predicate);
  return Broadcast::make(Load::make(from.buffer, std::move(place)), lanes);
}

Expr RandomExprs::leaf(DType type) {
  if (chance(35)) {
    std::vector<Expr> found;
    for (const Variable& v : variables)
      if (v.var.dtype() == type || v.var.dtype() == type.element())
        found.push_back(v.var.dtype() == type ? Expr(v.var) : Broadcast::make(v.var, type.lanes));
    if (!found.empty()) return found[static_cast<size_t>(below(static_cast<int>(found.size())))];
  }
  if (type.lanes > 1 && type.is_integral() && chance(30)) {
    const Expr base = constant(type.element()), stride = constant(type.element());
    return Ramp::make(base, stride, type.lanes);
  }
  if (chance(70)) {
    std::vector<const Readable*> found;
    for (const Readable& from : readable)
      if (from.buffer->dtype == type.element()) found.push_back(&from);
    if (!found.empty()) return read(*found[static_cast<size_t>(below(static_cast<int>(found.size())))], type.lanes, 0);
  }
  return constant(type);
}

Expr RandomExprs::common(DType type, int depth) {
  const int lanes = type.lanes;
  switch (below(5)) {
    case 0: {
      // One draw after the other: the order of arguments is up to the compiler.
      const Expr cond = make(chance(60) ? kBool.with_lanes(lanes) : kBool, depth - 1), a = make(type, depth - 1),
                 b = make(type, depth - 1);
      return Select::make(cond, a, b);
    }
    case 1: return Cast::make(type, make(this->type().with_lanes(lanes), depth - 1));
    case 2: {
      const Var var("t", this->type());
      const Expr value = make(var.dtype(), depth - 1);
      variables.push_back({var});
      const Expr body = make(type, depth - 1);
      variables.pop_back();
      return Let::make(var, value, body);
    }
    case 3: {
      if (readable.empty()) return leaf(type);
      const Readable& from = readable[static_cast<size_t>(below(static_cast<int>(readable.size())))];
      return Cast::make(type, read(from, lanes, depth));
    }
    default:
      if (lanes == 1 && options_.vectors && chance(60)) {
        const int from = 2 + below(7);
        if (chance(50))
          return Call::make(type, Intrinsic::kExtractLane, {make(type.with_lanes(from), depth - 1), below(from)});
        constexpr Intrinsic kReductions[] = {Intrinsic::kReduceMin, Intrinsic::kReduceMax, Intrinsic::kReduceAdd,
                                             Intrinsic::kReduceMul};
        constexpr Intrinsic kBitwise[] = {Intrinsic::kReduceAnd, Intrinsic::kReduceOr};
        Intrinsic id = kReductions[below(type.is_float() && options_.only_exact ? 2 : 4)];
        if (type.is_bool() || (type.is_integral() && chance(30))) id = pick(*this, kBitwise);
        return Call::make(type, id, {make(type.with_lanes(from), depth - 1)});
      }
      return leaf(type);
  }
}

Expr RandomExprs::vector(DType type, int depth) {
  const int lanes = type.lanes;
  switch (below(3)) {
    case 0: return Broadcast::make(make(type.element(), depth - 1), lanes);
    case 1: {
      std::vector<Expr> args = {make(type.with_lanes(2 + below(7)), depth - 1)};
      const int from = args[0].dtype().lanes;
      for (int k = 0; k < lanes; ++k) args.push_back(below(from));
      return Call::make(type, Intrinsic::kShuffle, args);
    }
    default: {
      const int first = 1 + below(lanes - 1);
      return Call::make(type, Intrinsic::kConcat,
                        {make(type.with_lanes(first), depth - 1), make(type.with_lanes(lanes - first), depth - 1)});
    }
  }
}

Expr RandomExprs::binary(BinaryOp op, DType type, int depth) {
  const Expr a = make(type, depth - 1), b = make(type, depth - 1);
  return Binary::make(op, a, b);
}

Expr RandomExprs::boolean(DType type, int depth) {
  const int lanes = type.lanes;
  if (chance(20)) return Not::make(make(type, depth - 1));
  if (chance(30)) {
    constexpr BinaryOp kOps[] = {BinaryOp::kAnd, BinaryOp::kOr, BinaryOp::kXor};
    const BinaryOp op = pick(*this, kOps);
    return binary(op, type, depth);
  }
  const DType of = this->type().with_lanes(lanes);
  if (of.is_float() && chance(20)) {
    const Intrinsic id = chance(50) ? Intrinsic::kIsNan : Intrinsic::kIsInf;
    return Call::make(type, id, {make(of, depth - 1)});
  }
  return binary(pick(*this, kTests), of, depth);
}

Expr RandomExprs::integer(DType type, int depth) {
  switch (below(10)) {
    case 0: return Not::make(make(type, depth - 1));
    case 1: {
      constexpr Intrinsic kUnary[] = {Intrinsic::kAbs, Intrinsic::kPopCount, Intrinsic::kLeadingZeros};
      const Intrinsic id = pick(*this, kUnary);
      return Call::make(type, id, {make(type, depth - 1)});
    }
    case 2: return Call::make(type, Intrinsic::kMulHigh, {make(type, depth - 1), make(type, depth - 1)});
    case 3: {
      std::vector<DType> same;
      for (const DType other : options_.types)
        if (other.bits == type.bits && !other.is_bool() && !(other.is_float() && options_.only_exact))
          same.push_back(other);
      if (same.empty()) return leaf(type);
      const DType from = same[static_cast<size_t>(below(static_cast<int>(same.size())))].with_lanes(type.lanes);
      return Call::make(type, Intrinsic::kBitcast, {make(from, depth - 1)});
    }
    case 4:
      if (type.element() == kInt32 && type.lanes > 1 && options_.vectors)
        return Call::make(
            type, Intrinsic::kDotAccumulate,
            {make(type, depth - 1), make((chance(50) ? kUInt8 : kInt8).with_lanes(4 * type.lanes), depth - 1),
             make(kInt8.with_lanes(4 * type.lanes), depth - 1)});
      [[fallthrough]];
    default: {
      return binary(pick(*this, kIntOps), type, depth);
    }
  }
}

Expr RandomExprs::floating(DType type, int depth) {
  switch (below(10)) {
    case 0:
    case 1: {
      const Intrinsic id =
          options_.only_exact || chance(50) ? pick(*this, kExactFunctions) : pick(*this, kMathFunctions);
      return Call::make(type, id, {make(type, depth - 1)});
    }
    case 2: {
      const Intrinsic id = chance(50) ? Intrinsic::kMinNum : Intrinsic::kMaxNum;
      return Call::make(type, id, {make(type, depth - 1), make(type, depth - 1)});
    }
    case 3:
      return Call::make(type, Intrinsic::kFma, {make(type, depth - 1), make(type, depth - 1), make(type, depth - 1)});
    case 4: {
      if (options_.only_exact) break;
      const Intrinsic id = chance(50) ? Intrinsic::kPow : Intrinsic::kCopySign;
      return Call::make(type, id, {make(type, depth - 1), make(type, depth - 1)});
    }
    case 5: {
      const Expr a = make(type, depth - 1), b = make(type, depth - 1);
      // A zero of unknown sign would give an infinity of unknown sign.
      if (options_.only_exact)
        return Binary::make(
            BinaryOp::kDiv, a,
            Binary::make(BinaryOp::kMax, Call::make(type, Intrinsic::kAbs, {b}), make_const(type, 0.5)));
      return Binary::make(BinaryOp::kDiv, a, b);
    }
    default: break;
  }
  return binary(pick(*this, kFloatOps), type, depth);
}

}  // namespace tensmith
