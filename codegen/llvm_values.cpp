#include "codegen/llvm_values.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>

#include <numeric>

namespace tensmith {

using llvm::Value;

int LlvmValues::lanes_of(const Value* v) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  return vector ? static_cast<int>(vector->getNumElements()) : 1;
}

llvm::Type* LlvmValues::like(llvm::Type* element, const Value* v) const {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  return vector ? llvm::FixedVectorType::get(element, vector->getNumElements()) : element;
}

llvm::Constant* LlvmValues::splat_bits(llvm::Type* type, uint64_t bits) const {
  llvm::Type* element = type->getScalarType();
  if (element->isIntegerTy()) return llvm::ConstantInt::get(type, bits);
  const unsigned width = element->getScalarSizeInBits();
  return llvm::ConstantFP::get(type, llvm::APFloat(element->getFltSemantics(), llvm::APInt(width, bits)));
}

llvm::Type* LlvmValues::type(DType t) const {
  llvm::LLVMContext& context = b_.getContext();
  llvm::Type* element = nullptr;
  switch (t.code) {
    case DType::Code::kBool: element = llvm::Type::getInt1Ty(context); break;
    case DType::Code::kHandle: element = llvm::PointerType::getUnqual(context); break;
    case DType::Code::kBFloat: element = llvm::Type::getInt16Ty(context); break;
    case DType::Code::kInt:
    case DType::Code::kUInt: element = llvm::Type::getIntNTy(context, t.bits == 4 ? 8 : t.bits); break;
    case DType::Code::kFloat:
      element = t.bits == 16   ? llvm::Type::getInt16Ty(context)
                : t.bits == 32 ? llvm::Type::getFloatTy(context)
                               : llvm::Type::getDoubleTy(context);
      break;
  }
  return t.lanes == 1 ? element : llvm::FixedVectorType::get(element, t.lanes);
}

llvm::Type* LlvmValues::memory_type(DType t) const {
  if (!t.is_bool()) return type(t);
  llvm::Type* byte = llvm::Type::getInt8Ty(b_.getContext());
  return t.lanes == 1 ? byte : llvm::FixedVectorType::get(byte, t.lanes);
}

Value* LlvmValues::to_memory(DType t, Value* v) { return t.is_bool() ? b_.CreateZExt(v, memory_type(t)) : v; }

Value* LlvmValues::from_memory(DType t, Value* v) {
  return t.is_bool() ? b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType())) : v;
}

llvm::Constant* LlvmValues::int_constant(DType t, int64_t value) const {
  return llvm::ConstantInt::get(type(t), static_cast<uint64_t>(t.is_bool() ? value != 0 : value), /*IsSigned=*/true);
}

llvm::Constant* LlvmValues::float_constant(DType t, double value) const {
  llvm::APFloat v(value);
  if (t.bits == 64) return llvm::ConstantFP::get(type(t), v);
  const llvm::fltSemantics& semantics = t.is_bfloat()  ? llvm::APFloat::BFloat()
                                        : t.bits == 16 ? llvm::APFloat::IEEEhalf()
                                                       : llvm::APFloat::IEEEsingle();
  bool loses = false;
  v.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &loses);
  if (t.bits == 16) return llvm::ConstantInt::get(type(t), v.bitcastToAPInt().getZExtValue());
  return llvm::ConstantFP::get(type(t), v);
}

Value* LlvmValues::splat(Value* v, int lanes) { return lanes == 1 ? v : b_.CreateVectorSplat(lanes, v); }

Value* LlvmValues::slice(Value* v, int begin, int lanes) {
  if (begin == 0 && lanes == lanes_of(v)) return v;
  if (lanes == 1) return b_.CreateExtractElement(v, b_.getInt64(begin));
  std::vector<int> mask(lanes);
  std::iota(mask.begin(), mask.end(), begin);
  return b_.CreateShuffleVector(v, mask);
}

Value* LlvmValues::insert(Value* v, Value* part, int begin) {
  const int lanes = lanes_of(v), part_lanes = lanes_of(part);
  if (part_lanes == lanes) return part;
  if (part_lanes == 1) return b_.CreateInsertElement(v, part, b_.getInt64(begin));
  // Two shuffles: the part widened to all lanes, then both blended.
  std::vector<int> widen(lanes, -1), blend(lanes);
  for (int i = 0; i < part_lanes; ++i) widen[begin + i] = i;
  for (int i = 0; i < lanes; ++i) blend[i] = i >= begin && i < begin + part_lanes ? lanes + i : i;
  return b_.CreateShuffleVector(v, b_.CreateShuffleVector(part, widen), blend);
}

Value* LlvmValues::concat(std::span<Value* const> parts) {
  if (parts.size() == 1) return parts[0];
  int lanes = 0;
  for (Value* part : parts) lanes += lanes_of(part);
  Value* result = llvm::PoisonValue::get(llvm::FixedVectorType::get(parts[0]->getType()->getScalarType(), lanes));
  int begin = 0;
  for (Value* part : parts) {
    result = insert(result, part, begin);
    begin += lanes_of(part);
  }
  return result;
}

Value* LlvmValues::ramp(Value* base, Value* stride, int lanes) {
  llvm::Type* element = base->getType();
  std::vector<llvm::Constant*> steps;
  for (int i = 0; i < lanes; ++i) steps.push_back(llvm::ConstantInt::get(element, i));
  const bool index = element->isIntegerTy(64);  // narrower ones are data and may wrap
  Value* offsets = b_.CreateMul(llvm::ConstantVector::get(steps), splat(stride, lanes), "", /*HasNUW=*/false, index);
  return b_.CreateAdd(splat(base, lanes), offsets, "", /*HasNUW=*/false, index);
}

}  // namespace tensmith
