#include "tensor/interpreter/compile.h"
#include "tensor/print.h"

namespace tensmith::interp {

void Compiler::expect_type(const Call& node, bool holds, const char* what) const {
  if (!holds)
    fail("expected " + std::string(what) + " for " + intrinsic_info(node.id).name + ", got " + to_string(Expr(&node)));
}

Compiler::Slot Compiler::call(const Call& node, Slot want) {
  const int arity = intrinsic_info(node.id).arity;
  expect_type(node, arity < 0 || arity == static_cast<int>(node.args.size()), "another number of arguments");
  for (const Expr& arg : node.args) expect_type(node, arg.get() != nullptr, "arguments");
  switch (node.id) {
    case Intrinsic::kAbs:
    case Intrinsic::kSqrt:
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
    case Intrinsic::kFloor:
    case Intrinsic::kCeil:
    case Intrinsic::kTrunc:
    case Intrinsic::kRoundEven:
    case Intrinsic::kIsNan:
    case Intrinsic::kIsInf: return unary_call(node, want);
    case Intrinsic::kPow:
    case Intrinsic::kCopySign:
    case Intrinsic::kMinNum:
    case Intrinsic::kMaxNum: return binary_call(node, want);
    case Intrinsic::kFma: return fma_call(node, want);
    case Intrinsic::kBitcast: return bitcast(node, want);
    case Intrinsic::kPopCount:
    case Intrinsic::kLeadingZeros:
    case Intrinsic::kMulHigh: return bits_call(node, want);
    case Intrinsic::kReduceAdd: return reduce(node, BinaryOp::kAdd, want);
    case Intrinsic::kReduceMul: return reduce(node, BinaryOp::kMul, want);
    case Intrinsic::kReduceMin: return reduce(node, BinaryOp::kMin, want);
    case Intrinsic::kReduceMax: return reduce(node, BinaryOp::kMax, want);
    case Intrinsic::kReduceAnd: return reduce(node, BinaryOp::kAnd, want);
    case Intrinsic::kReduceOr: return reduce(node, BinaryOp::kOr, want);
    case Intrinsic::kExtractLane:
    case Intrinsic::kShuffle:
    case Intrinsic::kConcat: return lanes_call(node, want);
    case Intrinsic::kDotAccumulate: return dot(node, want);
    case Intrinsic::kAddressOf: {
      const auto* place = node.args[0].as<Load>();
      expect_type(node, place && place->dtype.is_scalar() && node.dtype == kHandle, "a scalar load");
      const int32_t number = access(place->buffer, place->indices, 1);
      const Slot dst = want == kAnywhere ? cells(1) : want;
      emit(Op::kAddress, 1, dst, number);
      return dst;
    }
    case Intrinsic::kPrefetch: expect_type(node, false, "a statement of its own"); break;
    case Intrinsic::kExtern: return extern_call(node, want);
  }
  fail("expected a known intrinsic");
}

Compiler::Slot Compiler::unary_call(const Call& node, Slot want) {
  const DType type = node.args[0].dtype();
  const bool test = node.id == Intrinsic::kIsNan || node.id == Intrinsic::kIsInf;
  const bool abs_int = node.id == Intrinsic::kAbs && type.is_integral();
  expect_type(node, type.is_float() || abs_int, "a float");
  expect_type(node, node.dtype == (test ? kBool.with_lanes(type.lanes) : type), "a result of the argument's type");
  const Slot value = expr(node.args[0]);
  const Slot dst = want == kAnywhere ? cells(type.lanes) : want;
  if (test) {
    emit(node.id == Intrinsic::kIsNan ? Op::kIsNanF : Op::kIsInfF, type.lanes, dst, value);
  } else if (abs_int) {
    if (type.is_uint()) emit(Op::kCopy, type.lanes, dst, value);
    else emit(Op::kAbsI, type.lanes, dst, value);
    wrap(type, dst);
  } else {
    emit(Op::kUnaryF, type.lanes, dst, value, 0, static_cast<Slot>(node.id));
    round(type, dst);
  }
  return dst;
}

Compiler::Slot Compiler::binary_call(const Call& node, Slot want) {
  const DType type = node.args[0].dtype();
  const bool select = node.id == Intrinsic::kMinNum || node.id == Intrinsic::kMaxNum;
  expect_type(node, type.is_float() || (select && type.is_integral()), "floats");
  expect_type(node, node.args[1].dtype() == type && node.dtype == type, "arguments and result of one type");
  const Slot a = expr(node.args[0]), b = expr(node.args[1]);
  const Slot dst = want == kAnywhere ? cells(type.lanes) : want;
  if (!type.is_float()) {
    int_binary(node.id == Intrinsic::kMinNum ? BinaryOp::kMin : BinaryOp::kMax, type, dst, a, b);
    return dst;
  }
  emit(node.id == Intrinsic::kMinNum   ? Op::kMinNumF
       : node.id == Intrinsic::kMaxNum ? Op::kMaxNumF
       : node.id == Intrinsic::kPow    ? Op::kPowF
                                       : Op::kCopySignF,
       type.lanes, dst, a, b);
  if (node.id == Intrinsic::kPow) round(type, dst);
  return dst;
}

Compiler::Slot Compiler::fma_call(const Call& node, Slot want) {
  const DType type = node.dtype;
  expect_type(
      node,
      type.is_float() && node.args[0].dtype() == type && node.args[1].dtype() == type && node.args[2].dtype() == type,
      "floats of one type");
  const Slot a = expr(node.args[0]), b = expr(node.args[1]), c = expr(node.args[2]);
  const Slot dst = want == kAnywhere ? cells(type.lanes) : want;
  const bool narrow = mode_ == InterpFloat::kRounded && type.bits < 64;
  emit(narrow ? Op::kFmaOddF : Op::kFmaF, type.lanes, dst, a, b, c);
  round(type, dst);
  return dst;
}

Compiler::Slot Compiler::bits_call(const Call& node, Slot want) {
  const DType type = node.dtype;
  for (const Expr& arg : node.args)
    expect_type(node, arg.dtype() == type && type.is_integral(), "integers of one type");
  const Slot a = expr(node.args[0]), b = node.args.size() > 1 ? expr(node.args[1]) : a;
  const Slot dst = want == kAnywhere ? cells(type.lanes) : want;
  if (node.id == Intrinsic::kMulHigh)
    emit(type.is_int() ? Op::kMulHighI : Op::kMulHighU, type.lanes, dst, a, b, type.bits);
  else emit(node.id == Intrinsic::kPopCount ? Op::kPopCountI : Op::kClzI, type.lanes, dst, a, 0, type.bits);
  wrap(type, dst);  // the count 8 does not fit into 4 bits
  return dst;
}

Compiler::Slot Compiler::bitcast(const Call& node, Slot want) {
  const DType from = node.args[0].dtype(), to = node.dtype;
  expect_type(node, from.bits * from.lanes == to.bits * to.lanes && to.bits * to.lanes <= kMaxBitcastBits,
              "a value of the same total width");
  const Slot value = expr(node.args[0]);
  const Slot dst = want == kAnywhere ? cells(to.lanes) : want;
  code_.bitcasts.push_back({from, to});
  emit(Op::kBitcast, to.lanes, dst, value, 0, static_cast<Slot>(code_.bitcasts.size()) - 1);
  return dst;
}

Compiler::Slot Compiler::reduce(const Call& node, BinaryOp op, Slot want) {
  const DType type = node.args[0].dtype();
  const bool bitwise = op == BinaryOp::kAnd || op == BinaryOp::kOr;
  expect_type(node, node.dtype == type.element() && !(bitwise && type.is_float()),
              "a result of the argument's element type");
  Slot value = expr(node.args[0]);
  // A tree: the upper half onto the lower half until one lane is left.
  for (int lanes = type.lanes; lanes > 1;) {
    const int half = (lanes + 1) / 2, upper = lanes - half;
    const Slot sum = half == 1 && want != kAnywhere ? want : cells(half);
    binary(op, type.with_lanes(upper), sum, value, value + half);
    if (half > upper) emit(Op::kCopy, 1, sum + upper, value + upper);
    value = sum;
    lanes = half;
  }
  if (want != kAnywhere && value != want) emit(Op::kCopy, 1, want, value);
  return want == kAnywhere ? value : want;
}

Compiler::Slot Compiler::lanes_call(const Call& node, Slot want) {
  expect_type(node, !node.args.empty(), "arguments");
  const DType type = node.args[0].dtype();
  const Slot dst = want == kAnywhere ? cells(node.dtype.lanes) : want;
  if (node.id == Intrinsic::kConcat) {
    int lanes = 0;
    const Mask outer = mask_;
    for (const Expr& arg : node.args) {
      expect_type(node, arg.dtype().element() == node.dtype.element() && lanes + arg.dtype().lanes <= node.dtype.lanes,
                  "parts of the result's type");
      // Each part has its own stretch of the mask.
      if (outer.lanes == node.dtype.lanes) mask_ = {outer.slot + lanes, arg.dtype().lanes};
      const MemoScope memo(*this);
      expr(arg, dst + lanes);
      lanes += arg.dtype().lanes;
    }
    mask_ = outer;
    expect_type(node, lanes == node.dtype.lanes, "as many lanes as in the result");
    return dst;
  }
  const Slot value = expr(node.args[0]);
  const size_t count = node.args.size() - 1;
  expect_type(node, node.dtype == type.with_lanes(static_cast<int>(count)) && count > 0,
              "a result with one lane for each lane number");
  for (size_t k = 0; k < count; ++k) {
    int64_t lane = -1;
    expect_type(node, as_const_int(node.args[k + 1], &lane) && lane >= 0 && lane < type.lanes,
                "constant lane numbers in range");
    emit(Op::kCopy, 1, dst + static_cast<Slot>(k), value + static_cast<Slot>(lane));
  }
  return dst;
}

Compiler::Slot Compiler::dot(const Call& node, Slot want) {
  const int lanes = node.dtype.lanes;
  const DType a = node.args[1].dtype(), b = node.args[2].dtype();
  expect_type(node,
              node.dtype.element() == kInt32 && node.args[0].dtype() == node.dtype && a.lanes == 4 * lanes &&
                  b == kInt8.with_lanes(4 * lanes) && (a.element() == kInt8 || a.element() == kUInt8),
              "i32 and four times as many lanes of u8 or i8 and of i8");
  const Slot sum = expr(node.args[0]), x = expr(node.args[1]), y = expr(node.args[2]);
  const Slot dst = want == kAnywhere ? cells(lanes) : want;
  emit(Op::kDotI, lanes, dst, sum, x, y);
  wrap(node.dtype, dst);
  return dst;
}

Compiler::Slot Compiler::extern_call(const Call& node, Slot want) {
  expect_type(node, node.dtype.is_scalar() && !node.dtype.is_float(), "an integer result");
  CallInfo info{-1, node.symbol};
  for (size_t k = 0; k < program_.functions.size(); ++k)
    if (program_.functions[k].name == node.symbol) info.callee = static_cast<int>(k);
  std::vector<Slot> slots;
  // Under a vector's mask the call only happens when some lane asks for it.
  const Slot mask = mask_for(1, {});
  const Slot dst = want == kAnywhere ? cells(1) : want;
  size_t skip = 0;
  if (mask != kAnywhere) {
    Cell none;
    none.i = 0;
    emit(Op::kCopy, 1, dst, constant(none));
    skip = emit(Op::kJumpIfNot, 1, 0, mask);
  }
  {
    const MemoScope memo(*this);
    for (const Expr& arg : node.args) slots.push_back(expr(arg));
    if (info.callee >= 0) {
      const LoopFunction& callee = program_.functions[static_cast<size_t>(info.callee)];
      const size_t buffers = callee.buffers.size();
      expect_type(node, node.args.size() == buffers + callee.scalars.size(),
                  "as many arguments as the function has parameters");
      for (size_t k = 0; k < node.args.size(); ++k)
        expect_type(node, node.args[k].dtype() == (k < buffers ? kHandle : callee.scalars[k - buffers].dtype()),
                    "arguments of the parameters' types");
    }
    info.first = operands(slots);
    code_.calls.push_back(std::move(info));
    emit(Op::kCall, 1, dst, static_cast<Slot>(code_.calls.size()) - 1);
    wrap(node.dtype.is_handle() ? kInt64 : node.dtype, dst);
  }
  if (mask != kAnywhere) code_.insts[skip].dst = here();
  return dst;
}

}  // namespace tensmith::interp
