// Conversions of LlvmValues: between numbers, and between the 16-bit floats and float.
#include <llvm/IR/Intrinsics.h>

#include <cmath>

#include "codegen/llvm_values.h"

namespace tensmith {

using llvm::Value;

Value* LlvmValues::to_arithmetic(DType t, Value* v) {
  return isa_.fp16 && t.element() == kFloat16 ? b_.CreateBitCast(v, like(b_.getHalfTy(), v)) : widen(t, v);
}

Value* LlvmValues::from_arithmetic(DType t, Value* v) {
  return isa_.fp16 && t.element() == kFloat16 ? b_.CreateBitCast(v, like(b_.getInt16Ty(), v)) : narrow(t, v);
}

Value* LlvmValues::widen(DType t, Value* v) {
  if (t.bits != 16 || !t.is_float()) return v;
  llvm::Type* f32 = like(b_.getFloatTy(), v);
  if (t.is_bfloat()) {
    Value* bits = b_.CreateZExt(v, like(b_.getInt32Ty(), v));
    return b_.CreateBitCast(b_.CreateShl(bits, splat_bits(bits->getType(), 16)), f32);
  }
  if (!isa_.f16c) return half_to_float_soft(v);
  return b_.CreateFPExt(b_.CreateBitCast(v, like(b_.getHalfTy(), v)), f32);
}

Value* LlvmValues::narrow(DType t, Value* v) {
  if (t.bits != 16 || !t.is_float()) return v;
  if (t.is_bfloat()) return float_to_bfloat(v);
  if (!isa_.f16c) return float_to_half_soft(v);
  return b_.CreateBitCast(b_.CreateFPTrunc(v, like(b_.getHalfTy(), v)), like(b_.getInt16Ty(), v));
}

// LLVM would call __truncsfbf2, or use vcvtneps2bf16, which flushes denormals to zero; both are wrong for us.
Value* LlvmValues::float_to_bfloat(Value* v) {
  llvm::Type* i32 = like(b_.getInt32Ty(), v);
  Value* bits = b_.CreateBitCast(v, i32);
  Value* upper = b_.CreateLShr(bits, splat_bits(i32, 16));
  Value* odd = b_.CreateAnd(upper, splat_bits(i32, 1));
  Value* rounded = b_.CreateLShr(b_.CreateAdd(b_.CreateAdd(bits, splat_bits(i32, 0x7fff)), odd), splat_bits(i32, 16));
  Value* quiet = b_.CreateOr(upper, splat_bits(i32, 0x40));
  return b_.CreateTrunc(b_.CreateSelect(b_.CreateFCmpUNO(v, v), quiet, rounded), like(b_.getInt16Ty(), v));
}

// Without F16C, LLVM would call compiler-rt, which an exported library does not have.
Value* LlvmValues::half_to_float_soft(Value* v) {
  llvm::Type *i32 = like(b_.getInt32Ty(), v), *f32 = like(b_.getFloatTy(), v);
  Value* bits = b_.CreateZExt(v, i32);
  Value* sign = b_.CreateShl(b_.CreateAnd(bits, splat_bits(i32, 0x8000)), splat_bits(i32, 16));
  Value* magnitude = b_.CreateShl(b_.CreateAnd(bits, splat_bits(i32, 0x7fff)), splat_bits(i32, 13));
  // The multiplication moves the exponent's bias and makes denormals normal, exactly.
  Value* scaled = b_.CreateFMul(b_.CreateBitCast(magnitude, f32), llvm::ConstantFP::get(f32, 0x1p112));
  Value* special = b_.CreateICmpUGE(magnitude, splat_bits(i32, 0x7c00u << 13));  // infinity or NaN
  Value* scaled_bits = b_.CreateBitCast(scaled, i32);
  Value* result = b_.CreateSelect(special, b_.CreateOr(magnitude, splat_bits(i32, 0x7f800000)), scaled_bits);
  return b_.CreateBitCast(b_.CreateOr(result, sign), f32);
}

Value* LlvmValues::float_to_half_soft(Value* v) {
  llvm::Type *i32 = like(b_.getInt32Ty(), v), *f32 = like(b_.getFloatTy(), v);
  Value* bits = b_.CreateBitCast(v, i32);
  Value* magnitude = b_.CreateAnd(bits, splat_bits(i32, 0x7fffffff));
  Value* sign = b_.CreateLShr(b_.CreateAnd(bits, splat_bits(i32, 0x80000000)), splat_bits(i32, 16));
  Value* special = b_.CreateSelect(b_.CreateICmpUGT(magnitude, splat_bits(i32, 0x7f800000)), splat_bits(i32, 0x7e00),
                                   splat_bits(i32, 0x7c00));
  // Denormal results: the float adder aligns and rounds when a number of the right size is added.
  const uint32_t magic = ((127 - 15) + (23 - 10) + 1) << 23;
  Value* sum = b_.CreateFAdd(b_.CreateBitCast(magnitude, f32), b_.CreateBitCast(splat_bits(i32, magic), f32));
  Value* denormal = b_.CreateSub(b_.CreateBitCast(sum, i32), splat_bits(i32, magic));
  Value* odd = b_.CreateAnd(b_.CreateLShr(magnitude, splat_bits(i32, 13)), splat_bits(i32, 1));
  const uint32_t rebias = (static_cast<uint32_t>(15 - 127) << 23) + 0xfff;
  Value* normal =
      b_.CreateLShr(b_.CreateAdd(b_.CreateAdd(magnitude, splat_bits(i32, rebias)), odd), splat_bits(i32, 13));
  Value* finite = b_.CreateSelect(b_.CreateICmpULT(magnitude, splat_bits(i32, 113u << 23)), denormal, normal);
  Value* result = b_.CreateSelect(b_.CreateICmpUGE(magnitude, splat_bits(i32, (127u + 16) << 23)), special, finite);
  return b_.CreateTrunc(b_.CreateOr(result, sign), like(b_.getInt16Ty(), v));
}

// Rounding twice (to float, then to 16 bits) errs at ties; an inexact first result whose last bit is forced to one is
// never a tie.
Value* LlvmValues::double_to_float_odd(Value* v) {
  llvm::Type *i32 = like(b_.getInt32Ty(), v), *f32 = like(b_.getFloatTy(), v);
  Value* nearest = b_.CreateFPTrunc(v, f32);
  Value* back = b_.CreateFPExt(nearest, v->getType());
  Value* bits = b_.CreateBitCast(nearest, i32);
  Value* too_far = b_.CreateFCmpOGT(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                    b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v));
  Value* towards_zero = b_.CreateSub(bits, b_.CreateZExt(too_far, i32));
  Value* odd = b_.CreateOr(towards_zero, splat_bits(i32, 1));
  return b_.CreateBitCast(b_.CreateSelect(b_.CreateFCmpUNE(back, v), odd, bits), f32);
}

// fptosi is undefined outside the range, and llvm.fptosi.sat is taken apart lane by lane for some vectors; hence clamp
// first.
Value* LlvmValues::float_to_int(DType from, DType to, Value* v) {
  Value* x = widen(from, v);
  llvm::Type* type = x->getType();
  const bool is_signed = to.is_int();
  const int digits = is_signed ? to.bits - 1 : to.bits;  // the largest value is 2^digits - 1
  const int precision = from.bits == 64 ? 53 : 24;
  const double limit = std::ldexp(1.0, digits);
  const bool exact = digits <= precision;
  auto constant = [&](double value) { return llvm::ConstantFP::get(type, value); };
  if (is_signed) x = b_.CreateSelect(b_.CreateFCmpUNO(x, x), constant(0), x);
  // `x > low ? x : low` takes low for NaN, which is the 0 that unsigned results want.
  llvm::Constant* low = constant(is_signed ? -limit : 0.0);
  Value* clamped = b_.CreateSelect(b_.CreateFCmpOGT(x, low), x, low);
  llvm::Constant* high = constant(exact ? limit - 1 : limit - std::ldexp(1.0, digits - precision));
  clamped = b_.CreateSelect(b_.CreateFCmpOLT(clamped, high), clamped, high);
  const int work_bits = std::max<int>(to.bits, 32);
  llvm::Type* work = like(b_.getIntNTy(work_bits), x);
  Value* result = is_signed || to.bits < 32 ? b_.CreateFPToSI(clamped, work) : b_.CreateFPToUI(clamped, work);
  if (!exact) {
    const uint64_t largest = is_signed ? (uint64_t{1} << digits) - 1 : ~uint64_t{0} >> (64 - digits);
    result = b_.CreateSelect(b_.CreateFCmpOGE(x, constant(limit)), llvm::ConstantInt::get(work, largest), result);
  }
  return b_.CreateTrunc(result, this->type(to));
}

Value* LlvmValues::cast(DType from, DType to, Value* v) {
  if (from == to) return v;
  llvm::Type* target = type(to);
  if (to.is_bool()) {
    if (from.is_float()) {
      Value* x = widen(from, v);
      return b_.CreateFCmpUNE(x, llvm::Constant::getNullValue(x->getType()));  // NaN is not zero
    }
    return b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
  }
  const bool from_signed = from.is_int();
  if (to.is_integral()) {
    if (from.is_float()) return float_to_int(from, to, v);
    return wrap(to, from_signed ? b_.CreateSExtOrTrunc(v, target) : b_.CreateZExtOrTrunc(v, target));
  }
  TS_CHECK(to.is_float()) << to_string(from) << " to " << to_string(to);
  if (!from.is_float()) {
    auto convert = [&](llvm::Type* t) { return from_signed ? b_.CreateSIToFP(v, t) : b_.CreateUIToFP(v, t); };
    if (to.bits != 16) return convert(target);
    // Up to 16 bits fit float exactly; wider ones take the way that rounds once.
    if (from.bits <= 16) return narrow(to, convert(like(b_.getFloatTy(), v)));
    return narrow(to, double_to_float_odd(convert(like(b_.getDoubleTy(), v))));
  }
  Value* x = widen(from, v);
  if (to.bits == 64) return b_.CreateFPExt(x, target);
  if (to.bits == 32) return from.bits == 64 ? b_.CreateFPTrunc(x, target) : x;
  return narrow(to, from.bits == 64 ? double_to_float_odd(x) : x);
}

}  // namespace tensmith
