// Arithmetic, comparisons, division and shifts of LlvmValues.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>

#include "codegen/llvm_values.h"

namespace tensmith {

using llvm::Value;

namespace {

llvm::CmpInst::Predicate float_predicate(BinaryOp op) {
  switch (op) {
    case BinaryOp::kEQ: return llvm::CmpInst::FCMP_OEQ;
    case BinaryOp::kNE: return llvm::CmpInst::FCMP_UNE;  // the only one that holds with NaN
    case BinaryOp::kLT: return llvm::CmpInst::FCMP_OLT;
    case BinaryOp::kLE: return llvm::CmpInst::FCMP_OLE;
    case BinaryOp::kGT: return llvm::CmpInst::FCMP_OGT;
    default: return llvm::CmpInst::FCMP_OGE;
  }
}

llvm::CmpInst::Predicate integer_predicate(BinaryOp op, bool is_signed) {
  switch (op) {
    case BinaryOp::kEQ: return llvm::CmpInst::ICMP_EQ;
    case BinaryOp::kNE: return llvm::CmpInst::ICMP_NE;
    case BinaryOp::kLT: return is_signed ? llvm::CmpInst::ICMP_SLT : llvm::CmpInst::ICMP_ULT;
    case BinaryOp::kLE: return is_signed ? llvm::CmpInst::ICMP_SLE : llvm::CmpInst::ICMP_ULE;
    case BinaryOp::kGT: return is_signed ? llvm::CmpInst::ICMP_SGT : llvm::CmpInst::ICMP_UGT;
    default: return is_signed ? llvm::CmpInst::ICMP_SGE : llvm::CmpInst::ICMP_UGE;
  }
}

bool is_not_nan_constant(Value* v) {
  const llvm::APFloat* constant = nullptr;
  return llvm::PatternMatch::match(v, llvm::PatternMatch::m_APFloat(constant)) && !constant->isNaN();
}

}  // namespace

Value* LlvmValues::wrap(DType t, Value* v) {
  if (t.bits != 4) return v;
  llvm::Type* type = v->getType();
  if (t.is_uint()) return b_.CreateAnd(v, splat_bits(type, 15));
  return b_.CreateAShr(b_.CreateShl(v, splat_bits(type, 4)), splat_bits(type, 4));
}

Value* LlvmValues::binary(BinaryOp op, DType t, Value* a, Value* b, OperandFacts facts) {
  if (t.is_float()) return float_binary(op, t, a, b);
  if (t.is_bool()) return bool_binary(op, a, b);
  return integer_binary(op, t, a, b, facts);
}

Value* LlvmValues::invert(DType t, Value* v) { return wrap(t, b_.CreateNot(v)); }

Value* LlvmValues::float_binary(BinaryOp op, DType t, Value* a, Value* b) {
  if (op == BinaryOp::kMin || op == BinaryOp::kMax) return min_max(t, a, b, op == BinaryOp::kMin);
  Value *x = to_arithmetic(t, a), *y = to_arithmetic(t, b);
  if (is_compare(op)) return b_.CreateFCmp(float_predicate(op), x, y);
  switch (op) {
    case BinaryOp::kAdd: return from_arithmetic(t, b_.CreateFAdd(x, y));
    case BinaryOp::kSub: return from_arithmetic(t, b_.CreateFSub(x, y));
    case BinaryOp::kMul: return from_arithmetic(t, b_.CreateFMul(x, y));
    case BinaryOp::kDiv: return from_arithmetic(t, b_.CreateFDiv(x, y));
    default: break;
  }
  TS_UNREACHABLE() << "operation " << static_cast<int>(op) << " on " << to_string(t);
}

Value* LlvmValues::bool_binary(BinaryOp op, Value* a, Value* b) {
  if (is_compare(op)) return b_.CreateICmp(integer_predicate(op, /*is_signed=*/false), a, b);
  switch (op) {
    case BinaryOp::kAnd:
    case BinaryOp::kMul:
    case BinaryOp::kMin: return b_.CreateAnd(a, b);
    case BinaryOp::kOr:
    case BinaryOp::kAdd:
    case BinaryOp::kMax: return b_.CreateOr(a, b);
    case BinaryOp::kXor: return b_.CreateXor(a, b);
    default: break;
  }
  TS_UNREACHABLE() << "operation " << static_cast<int>(op) << " on bool";
}

Value* LlvmValues::integer_binary(BinaryOp op, DType t, Value* a, Value* b, OperandFacts facts) {
  const bool nsw = facts.no_overflow && t.is_int() && t.bits == 64;
  if (is_compare(op)) return b_.CreateICmp(integer_predicate(op, t.is_int()), a, b);
  switch (op) {
    case BinaryOp::kAdd: return wrap(t, b_.CreateAdd(a, b, "", /*HasNUW=*/false, nsw));
    case BinaryOp::kSub: return wrap(t, b_.CreateSub(a, b, "", /*HasNUW=*/false, nsw));
    case BinaryOp::kMul: return wrap(t, b_.CreateMul(a, b, "", /*HasNUW=*/false, nsw));
    case BinaryOp::kAnd: return b_.CreateAnd(a, b);
    case BinaryOp::kOr: return b_.CreateOr(a, b);
    case BinaryOp::kXor: return b_.CreateXor(a, b);
    case BinaryOp::kMin:
    case BinaryOp::kMax: return min_max(t, a, b, op == BinaryOp::kMin);
    case BinaryOp::kShl:
    case BinaryOp::kShr: return shift(op, t, a, b);
    case BinaryOp::kDiv: break;
    default: return divide(op, t, a, b, facts);
  }
  TS_UNREACHABLE() << "operation " << static_cast<int>(op) << " on " << to_string(t);
}

Value* LlvmValues::min_max(DType t, Value* a, Value* b, bool is_min) {
  if (t.is_bool()) return is_min ? b_.CreateAnd(a, b) : b_.CreateOr(a, b);
  if (!t.is_float()) {
    const llvm::Intrinsic::ID id = t.is_int() ? (is_min ? llvm::Intrinsic::smin : llvm::Intrinsic::smax)
                                              : (is_min ? llvm::Intrinsic::umin : llvm::Intrinsic::umax);
    return b_.CreateBinaryIntrinsic(id, a, b);
  }
  Value *x = to_arithmetic(t, a), *y = to_arithmetic(t, b);
  // Where 16-bit floats are compared as floats, their bits are chosen; otherwise compare and choice become one
  // instruction.
  const bool as_bits = t.bits == 16 && x->getType()->getScalarType()->isFloatTy();
  if (!as_bits) a = x, b = y;
  auto result = [&](Value* v) { return as_bits ? v : from_arithmetic(t, v); };
  if (isa_.aarch64 && !as_bits)
    return result(b_.CreateBinaryIntrinsic(is_min ? llvm::Intrinsic::minimum : llvm::Intrinsic::maximum, x, y));
  // `x < y ? x : y` is one minps, which gives y when either is NaN. So with a constant first the result is right as it
  // stands (relu is one instruction); otherwise a NaN in x is put back. llvm.minimum would order the zeros too, at
  // twice the price.
  const llvm::CmpInst::Predicate predicate = is_min ? llvm::CmpInst::FCMP_OLT : llvm::CmpInst::FCMP_OGT;
  if (is_not_nan_constant(y)) {
    std::swap(x, y);
    std::swap(a, b);
  }
  Value* chosen = b_.CreateSelect(b_.CreateFCmp(predicate, x, y), a, b);
  if (is_not_nan_constant(x)) return result(chosen);
  if (!as_bits)
    if (Value* fixed = take_nan(chosen, x)) return result(fixed);
  return result(b_.CreateSelect(b_.CreateFCmpUNO(x, x), a, chosen));
}

// One instruction where a comparison and a masked move take two, which also share one port.
Value* LlvmValues::take_nan(Value* chosen, Value* x) {
  llvm::Type* type = x->getType();
  const int lanes = lanes_of(x), bits = static_cast<int>(type->getScalarSizeInBits());
  if (!isa_.avx512 || lanes * bits < 128 || lanes * bits > 512 || (lanes & (lanes - 1)) != 0) return nullptr;
  if (!type->getScalarType()->isFloatTy() && !type->getScalarType()->isDoubleTy()) return nullptr;
  using namespace llvm::Intrinsic;
  const bool is_double = bits == 64;
  const ID id = lanes * bits == 512   ? (is_double ? x86_avx512_mask_fixupimm_pd_512 : x86_avx512_mask_fixupimm_ps_512)
                : lanes * bits == 256 ? (is_double ? x86_avx512_mask_fixupimm_pd_256 : x86_avx512_mask_fixupimm_ps_256)
                                      : (is_double ? x86_avx512_mask_fixupimm_pd_128 : x86_avx512_mask_fixupimm_ps_128);
  // Four bits for each class of numbers: for quiet (0) and signalling (1) NaN 2, "the operand, quiet"; else 0, "as
  // was".
  constexpr uint64_t kNanOfOperand = 0x22;
  llvm::Type* words = llvm::FixedVectorType::get(b_.getIntNTy(bits), lanes);
  std::vector<Value*> args = {chosen, x, llvm::ConstantInt::get(words, kNanOfOperand), b_.getInt32(0),
                              b_.getIntN(std::max(lanes, 8), (uint64_t{1} << lanes) - 1)};
  if (lanes * bits == 512) args.push_back(b_.getInt32(4));  // the current rounding
  return b_.CreateIntrinsic(id, {}, args);
}

Value* LlvmValues::shift(BinaryOp op, DType t, Value* a, Value* b) {
  llvm::Type* type = a->getType();
  llvm::Constant* width = splat_bits(type, t.bits);
  llvm::Constant* last = splat_bits(type, t.bits - 1);
  if (op == BinaryOp::kShr && t.is_int())
    return b_.CreateAShr(a, b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b, last));
  Value* in_range = b_.CreateICmpULT(b, width);
  Value* count = b_.CreateSelect(in_range, b, splat_bits(type, 0));
  Value* shifted = op == BinaryOp::kShl ? b_.CreateShl(a, count) : b_.CreateLShr(a, count);
  return wrap(t, b_.CreateSelect(in_range, shifted, splat_bits(type, 0)));
}

Value* LlvmValues::divide_nonzero(BinaryOp op, DType t, Value* a, Value* b) {
  const bool remainder = op == BinaryOp::kFloorMod || op == BinaryOp::kTruncMod;
  if (t.is_uint()) return remainder ? b_.CreateURem(a, b) : b_.CreateUDiv(a, b);
  if (op == BinaryOp::kTruncDiv) return b_.CreateSDiv(a, b);
  if (op == BinaryOp::kTruncMod) return b_.CreateSRem(a, b);
  // Floor: one less (a divisor more) when the remainder is not zero and has the other sign than the divisor.
  Value* quotient = b_.CreateSDiv(a, b);
  Value* rest = b_.CreateSub(a, b_.CreateMul(quotient, b));
  llvm::Constant* zero = llvm::Constant::getNullValue(a->getType());
  Value* adjust = b_.CreateAnd(b_.CreateICmpNE(rest, zero), b_.CreateICmpSLT(b_.CreateXor(rest, b), zero));
  if (op == BinaryOp::kFloorMod) return b_.CreateAdd(rest, b_.CreateSelect(adjust, b, zero));
  return b_.CreateAdd(quotient, b_.CreateSExt(adjust, a->getType()));
}

Value* LlvmValues::divide(BinaryOp op, DType t, Value* a, Value* b, OperandFacts facts) {
  const bool remainder = op == BinaryOp::kFloorMod || op == BinaryOp::kTruncMod;
  llvm::Type* type = a->getType();
  llvm::Constant* zero = llvm::Constant::getNullValue(type);
  const llvm::APInt* divisor = nullptr;
  if (llvm::PatternMatch::match(b, llvm::PatternMatch::m_APInt(divisor)) && !divisor->isZero()) {
    if (facts.dividend_nonnegative &&
        divisor->isStrictlyPositive())  // floor and truncation agree; unsigned is the cheapest
      return remainder ? b_.CreateURem(a, b) : b_.CreateUDiv(a, b);
    const bool floor = op == BinaryOp::kFloorDiv || op == BinaryOp::kFloorMod;
    if (t.is_int() && floor && divisor->isPowerOf2() && divisor->isStrictlyPositive())
      return remainder ? b_.CreateAnd(a, llvm::ConstantInt::get(type, *divisor - 1))
                       : b_.CreateAShr(a, llvm::ConstantInt::get(type, divisor->logBase2()));
    if (t.is_int() && divisor->isAllOnes()) return remainder ? zero : wrap(t, b_.CreateNeg(a));
    return wrap(t, divide_nonzero(op, t, a, b));
  }
  // LLVM's division by zero and INT_MIN / -1 are undefined (and trap), so these divisors are replaced by 1 first.
  Value* is_zero = b_.CreateICmpEQ(b, zero);
  Value* is_minus_one = t.is_int() ? b_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(type)) : nullptr;
  Value* special = is_minus_one ? b_.CreateOr(is_zero, is_minus_one) : is_zero;
  Value* result = divide_nonzero(op, t, a, b_.CreateSelect(special, llvm::ConstantInt::get(type, 1), b));
  if (is_minus_one)
    result = b_.CreateSelect(is_minus_one, remainder ? static_cast<Value*>(zero) : b_.CreateNeg(a), result);
  return wrap(t, b_.CreateSelect(is_zero, zero, result));
}

// Where LLVM would call fmaf lane by lane, and for the 16-bit floats: products of floats are exact in double; the sum
// is rounded to odd (see below), after which rounding to the narrower type is as if it were the only rounding.
Value* LlvmValues::fma(DType t, Value* a, Value* b, Value* c) {
  if (t.bits == 64 || (t.bits == 32 && isa_.fma) || (isa_.fp16 && t.element() == kFloat16)) {
    Value* args[] = {to_arithmetic(t, a), to_arithmetic(t, b), to_arithmetic(t, c)};
    return from_arithmetic(t, b_.CreateIntrinsic(llvm::Intrinsic::fma, {args[0]->getType()}, args));
  }
  const DType wide = kFloat64.with_lanes(t.lanes);
  Value* product = b_.CreateFMul(cast(t, wide, a), cast(t, wide, b));
  return cast(wide, t, add_to_odd(product, cast(t, wide, c)));
}

// The nearest sum is moved by one unit in the last place towards the exact one when it is inexact and its last bit is
// zero. The error comes from Knuth's two-sum, so none of its operations may be contracted.
Value* LlvmValues::add_to_odd(Value* a, Value* b) {
  llvm::IRBuilderBase::FastMathFlagGuard guard(b_);
  b_.clearFastMathFlags();
  llvm::Type *f64 = a->getType(), *i64 = like(b_.getInt64Ty(), a);
  Value* sum = b_.CreateFAdd(a, b);
  Value* arrived = b_.CreateFSub(sum, a);
  Value* error = b_.CreateFAdd(b_.CreateFSub(a, b_.CreateFSub(sum, arrived)), b_.CreateFSub(b, arrived));
  llvm::Constant* zero = llvm::Constant::getNullValue(f64);
  Value* bits = b_.CreateBitCast(sum, i64);
  Value* even = b_.CreateICmpEQ(b_.CreateAnd(bits, splat_bits(i64, 1)), llvm::Constant::getNullValue(i64));
  Value* inexact = b_.CreateFCmpONE(error, zero);  // false for NaN, which infinities give
  Value* away = b_.CreateICmpEQ(b_.CreateFCmpOGT(error, zero), b_.CreateFCmpOGT(sum, zero));
  Value* step = b_.CreateSelect(away, splat_bits(i64, 1), llvm::Constant::getAllOnesValue(i64));
  return b_.CreateBitCast(b_.CreateSelect(b_.CreateAnd(inexact, even), b_.CreateAdd(bits, step), bits), f64);
}

}  // namespace tensmith
