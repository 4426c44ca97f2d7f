// Intrinsics and calls of FunctionEmitter.
#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm_function.h"
#include "codegen/math/machine.h"

namespace tensmith {

using llvm::Value;

namespace {

/// The C function with that meaning, without the suffix of its type; null when there is none.
const char* libm_name(Intrinsic id) {
  switch (id) {
    case Intrinsic::kExp: return "exp";
    case Intrinsic::kLog: return "log";
    case Intrinsic::kTanh: return "tanh";
    case Intrinsic::kErf: return "erf";
    case Intrinsic::kSin: return "sin";
    case Intrinsic::kCos: return "cos";
    case Intrinsic::kTan: return "tan";
    case Intrinsic::kAsin: return "asin";
    case Intrinsic::kAcos: return "acos";
    case Intrinsic::kAtan: return "atan";
    case Intrinsic::kSinh: return "sinh";
    case Intrinsic::kCosh: return "cosh";
    case Intrinsic::kAsinh: return "asinh";
    case Intrinsic::kAcosh: return "acosh";
    case Intrinsic::kAtanh: return "atanh";
    case Intrinsic::kPow: return "pow";
    default: return nullptr;
  }
}

llvm::Intrinsic::ID rounding_intrinsic(Intrinsic id) {
  switch (id) {
    case Intrinsic::kSqrt: return llvm::Intrinsic::sqrt;
    case Intrinsic::kFloor: return llvm::Intrinsic::floor;
    case Intrinsic::kCeil: return llvm::Intrinsic::ceil;
    case Intrinsic::kTrunc: return llvm::Intrinsic::trunc;
    case Intrinsic::kRoundEven: return llvm::Intrinsic::roundeven;
    default: return llvm::Intrinsic::not_intrinsic;
  }
}

int constant_argument(const Call& e, size_t index) {
  int64_t value = 0;
  TS_CHECK(index < e.args.size() && as_const_int(e.args[index], &value))
      << intrinsic_info(e.id).name << " wants a constant argument " << index;
  return static_cast<int>(value);
}

}  // namespace

bool is_pure(const Call& call) {
  return intrinsic_info(call.id).pure || (call.id == Intrinsic::kExtern && math::is_machine_operation(call.symbol));
}

llvm::Type* abi_type(const LlvmValues& values, DType t) { return values.memory_type(t); }

// One call per lane: only for functions that no expansion covers.
Value* FunctionEmitter::emit_libm(const Call& e) {
  const DType element = e.dtype.element();
  const bool is_double = element.bits == 64;
  llvm::Type* type = is_double ? builder_.getDoubleTy() : builder_.getFloatTy();
  std::vector<Value*> args;
  for (const Expr& arg : e.args) args.push_back(v_.widen(arg.dtype(), emit(arg)));
  auto call_lanes = [&](const std::string& name, const std::vector<Value*>& values) {
    llvm::FunctionCallee callee = module_.module.getOrInsertFunction(
        is_double ? name : name + "f",
        llvm::FunctionType::get(type, std::vector<llvm::Type*>(values.size(), type), /*isVarArg=*/false));
    llvm::cast<llvm::Function>(callee.getCallee())->setDoesNotThrow();
    std::vector<Value*> lanes;
    for (int lane = 0; lane < e.dtype.lanes; ++lane) {
      std::vector<Value*> scalars;
      for (Value* v : values) scalars.push_back(e.dtype.lanes == 1 ? v : v_.slice(v, lane, 1));
      lanes.push_back(builder_.CreateCall(callee, scalars));
    }
    return v_.concat(lanes);
  };
  Value* result = nullptr;
  if (e.id == Intrinsic::kSigmoid) {
    llvm::Constant* one = llvm::ConstantFP::get(args[0]->getType(), 1.0);
    result = builder_.CreateFDiv(one, builder_.CreateFAdd(one, call_lanes("exp", {builder_.CreateFNeg(args[0])})));
  } else {
    const char* name = libm_name(e.id);
    TS_CHECK(name != nullptr) << "intrinsic " << intrinsic_info(e.id).name;
    result = call_lanes(name, args);
  }
  return v_.narrow(e.dtype, result);
}

Value* FunctionEmitter::emit_reduce(Intrinsic id, DType t, Value* v) {
  const DType element = t.element();
  if (t.lanes == 1) return v;
  if (!t.is_float() && t.bits >= 8) {
    switch (id) {
      case Intrinsic::kReduceAdd:
        if (!t.is_bool()) return builder_.CreateAddReduce(v);
        break;
      case Intrinsic::kReduceAnd: return builder_.CreateAndReduce(v);
      case Intrinsic::kReduceOr: return builder_.CreateOrReduce(v);
      default: break;
    }
  }
  auto combine = [&](DType type, Value* a, Value* b) {
    switch (id) {
      case Intrinsic::kReduceAdd: return v_.binary(BinaryOp::kAdd, type, a, b);
      case Intrinsic::kReduceMul: return v_.binary(BinaryOp::kMul, type, a, b);
      case Intrinsic::kReduceMin: return v_.min(type, a, b);
      case Intrinsic::kReduceMax: return v_.max(type, a, b);
      case Intrinsic::kReduceAnd: return v_.binary(BinaryOp::kAnd, type, a, b);
      default: return v_.binary(BinaryOp::kOr, type, a, b);
    }
  };
  // A tree of halves: the lower half of the lanes with the upper half; an odd last lane joins at the end.
  const int lanes = t.lanes, half = lanes / 2;
  Value* pairs = combine(element.with_lanes(half), v_.slice(v, 0, half), v_.slice(v, half, half));
  Value* sum = emit_reduce(id, element.with_lanes(half), pairs);
  return lanes % 2 ? combine(element, sum, v_.slice(v, lanes - 1, 1)) : sum;
}

Value* FunctionEmitter::emit_call(const Call& e) {
  if (e.id == Intrinsic::kAddressOf || e.id == Intrinsic::kPrefetch) return emit_address_function(e);
  const bool saved_mode = std::exchange(index_mode_, false);
  Value* result = e.id == Intrinsic::kExtern ? emit_extern(e) : emit_pure_call(e);
  index_mode_ = saved_mode;
  return result;
}

Value* FunctionEmitter::emit_address_function(const Call& e) {
  const Load* load = e.args[0].as<Load>();
  TS_CHECK(load != nullptr) << intrinsic_info(e.id).name << " wants a load";
  std::optional<RampMatch> ramp = load->dtype.lanes > 1 ? match_ramp(load->indices[0]) : std::nullopt;
  Value* pointer = address(load->buffer, ramp ? ramp->base : load->indices[0]);
  if (e.id == Intrinsic::kAddressOf) return pointer;
  constexpr int kRead = 0, kDataCache = 1;
  return builder_.CreateIntrinsic(
      llvm::Intrinsic::prefetch, {pointer->getType()},
      {pointer, builder_.getInt32(kRead), builder_.getInt32(constant_argument(e, 1)), builder_.getInt32(kDataCache)});
}

Value* FunctionEmitter::emit_pure_call(const Call& e) {
  if (Value* v = emit_float_function(e)) return v;
  if (Value* v = emit_bit_function(e)) return v;
  if (Value* v = emit_vector_function(e)) return v;
  return emit_libm(e);
}

Value* FunctionEmitter::emit_float_function(const Call& e) {
  const DType t = e.args[0].dtype();
  const bool small_float = t.is_float() && t.bits == 16;
  auto arg = [&](size_t i) { return emit(e.args[i]); };
  switch (e.id) {
    case Intrinsic::kAbs:
      if (t.is_uint()) return arg(0);
      if (t.is_int()) return v_.max(t, arg(0), v_.binary(BinaryOp::kSub, t, v_.zero(t), arg(0)));  // wraps
      if (small_float) return builder_.CreateAnd(arg(0), llvm::ConstantInt::get(v_.type(t), 0x7fff));
      return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, arg(0));
    case Intrinsic::kSqrt:
    case Intrinsic::kFloor:
    case Intrinsic::kCeil:
    case Intrinsic::kTrunc:
    case Intrinsic::kRoundEven:
      return v_.narrow(t, builder_.CreateUnaryIntrinsic(rounding_intrinsic(e.id), v_.widen(t, arg(0))));
    case Intrinsic::kRsqrt: {
      Value* root = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, v_.widen(t, arg(0)));
      return v_.narrow(t, builder_.CreateFDiv(llvm::ConstantFP::get(root->getType(), 1.0), root));
    }
    case Intrinsic::kCopySign: {
      if (!small_float) return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, arg(0), arg(1));
      llvm::Type* bits = v_.type(t);
      return builder_.CreateOr(builder_.CreateAnd(arg(0), llvm::ConstantInt::get(bits, 0x7fff)),
                               builder_.CreateAnd(arg(1), llvm::ConstantInt::get(bits, 0x8000)));
    }
    case Intrinsic::kFma: {
      Value *a = arg(0), *b = arg(1);
      return v_.fma(t, a, b, arg(2));
    }
    case Intrinsic::kIsNan: {
      Value* x = v_.widen(t, arg(0));
      return builder_.CreateFCmpUNO(x, x);
    }
    case Intrinsic::kIsInf: {
      Value* x = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v_.widen(t, arg(0)));
      return builder_.CreateFCmpOEQ(x, llvm::ConstantFP::getInfinity(x->getType()));
    }
    case Intrinsic::kMinNum:
    case Intrinsic::kMaxNum: {
      Value *a = arg(0), *b = arg(1);
      return builder_.CreateSelect(v_.binary(e.id == Intrinsic::kMinNum ? BinaryOp::kLT : BinaryOp::kGT, t, a, b), a,
                                   b);
    }
    default: return nullptr;
  }
}

Value* FunctionEmitter::emit_bit_function(const Call& e) {
  const DType t = e.args[0].dtype();
  auto arg = [&](size_t i) { return emit(e.args[i]); };
  switch (e.id) {
    case Intrinsic::kBitcast:
      TS_CHECK(!t.is_bool() && !e.dtype.is_bool() && t.bits != 4 && e.dtype.bits != 4) << "bitcast of " << to_string(t);
      TS_CHECK(t.bits * t.lanes == e.dtype.bits * e.dtype.lanes) << to_string(t) << " to " << to_string(e.dtype);
      return builder_.CreateBitCast(arg(0), v_.type(e.dtype));
    case Intrinsic::kPopCount:
    case Intrinsic::kLeadingZeros: {
      Value* x = arg(0);
      llvm::Type* type = x->getType();
      if (t.bits == 4) x = builder_.CreateAnd(x, llvm::ConstantInt::get(type, 15));
      if (e.id == Intrinsic::kPopCount)
        return v_.cast(t, e.dtype, builder_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, x));
      Value* zeros = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, x, builder_.getFalse());
      if (t.bits == 4) zeros = builder_.CreateSub(zeros, llvm::ConstantInt::get(type, 4));
      return v_.cast(t, e.dtype, zeros);
    }
    case Intrinsic::kMulHigh: {
      const DType wide{t.code, static_cast<uint8_t>(t.bits == 4 ? 8 : 2 * t.bits), t.lanes};
      auto extend = [&](Value* v) {
        return t.is_int() ? builder_.CreateSExt(v, v_.type(wide)) : builder_.CreateZExt(v, v_.type(wide));
      };
      Value* product = builder_.CreateMul(extend(arg(0)), extend(arg(1)));
      llvm::Constant* count = llvm::ConstantInt::get(product->getType(), t.bits);
      return builder_.CreateTrunc(
          t.is_int() ? builder_.CreateAShr(product, count) : builder_.CreateLShr(product, count), v_.type(t));
    }
    default: return nullptr;
  }
}

Value* FunctionEmitter::emit_vector_function(const Call& e) {
  const DType t = e.args[0].dtype();
  auto arg = [&](size_t i) { return emit(e.args[i]); };
  switch (e.id) {
    case Intrinsic::kReduceAdd:
    case Intrinsic::kReduceMul:
    case Intrinsic::kReduceMin:
    case Intrinsic::kReduceMax:
    case Intrinsic::kReduceAnd:
    case Intrinsic::kReduceOr: return emit_reduce(e.id, t, arg(0));
    case Intrinsic::kExtractLane: return t.lanes == 1 ? arg(0) : v_.slice(arg(0), constant_argument(e, 1), 1);
    case Intrinsic::kShuffle: {
      std::vector<int> lanes;
      for (size_t i = 1; i < e.args.size(); ++i) lanes.push_back(constant_argument(e, i));
      if (t.lanes == 1) return v_.splat(arg(0), static_cast<int>(lanes.size()));
      if (lanes.size() == 1) return v_.slice(arg(0), lanes[0], 1);
      return builder_.CreateShuffleVector(arg(0), lanes);
    }
    case Intrinsic::kConcat: {
      std::vector<Value*> parts;
      for (const Expr& part : e.args) parts.push_back(emit(part));
      return v_.concat(parts);
    }
    case Intrinsic::kDotAccumulate: {
      Value *acc = arg(0), *a = arg(1), *b = arg(2);
      return emit_dot_accumulate(v_, acc, a, e.args[1].dtype().is_int(), b);
    }
    default: return nullptr;
  }
}

// Names that generated code understands without a definition, see codegen/artifact.h.
Value* FunctionEmitter::emit_builtin(const Call& e) {
  if (e.symbol == "tensmith_thread_index") return builder_.CreateSExt(thread_, builder_.getInt64Ty());
  if (e.symbol == "tensmith_num_threads") {
    if (in_parallel_) return builder_.getInt64(1);
    return guarded(has_threads(), builder_.getInt64(1),
                   [&] { return builder_.CreateSExt(context_field(1), builder_.getInt64Ty()); });
  }
  if (e.symbol != "tensmith_on_kernel") return nullptr;
  TS_CHECK(e.args.size() == 2) << e.symbol << " takes the kernel's index and whether it ends";
  if (in_parallel_) return builder_.getInt32(0);
  Value* index = v_.cast(e.args[0].dtype(), kInt32, emit(e.args[0]));
  Value* is_end = v_.cast(e.args[1].dtype(), kInt32, emit(e.args[1]));
  Value* null = llvm::Constant::getNullValue(context_->getType());
  Value* observer = guarded(builder_.CreateICmpNE(context_, null), null, [&] { return context_field(4); });
  guarded(builder_.CreateICmpNE(observer, null), builder_.getInt32(0), [&]() -> Value* {
    llvm::Type* i32 = builder_.getInt32Ty();
    llvm::FunctionType* type =
        llvm::FunctionType::get(builder_.getVoidTy(), {builder_.getPtrTy(), i32, i32}, /*isVarArg=*/false);
    builder_.CreateCall(type, observer, {context_field(5), index, is_end});
    return builder_.getInt32(0);
  });
  return builder_.getInt32(0);
}

Value* FunctionEmitter::emit_extern(const Call& e) {
  std::vector<Value*> args;
  if (math::is_machine_operation(e.symbol)) {
    for (const Expr& arg : e.args) args.push_back(emit(arg));
    return emit_machine_operation(v_, e, args);
  }
  if (Value* builtin = emit_builtin(e)) return builtin;
  std::vector<llvm::Type*> types;
  // Inside a parallel loop the callee gets no context: it must not use the pool again.
  auto callee = module_.program.find(e.symbol);
  if (callee != module_.program.end()) args.push_back(context_);
  for (const Expr& arg : e.args) {
    args.push_back(v_.to_memory(arg.dtype(), emit(arg)));
    types.push_back(args.back()->getType());
  }
  if (callee == module_.program.end()) {
    llvm::FunctionType* type = llvm::FunctionType::get(abi_type(v_, e.dtype), types, /*isVarArg=*/false);
    return v_.from_memory(e.dtype, builder_.CreateCall(module_.module.getOrInsertFunction(e.symbol, type), args));
  }
  llvm::Function* function = callee->second;
  TS_CHECK(e.dtype == kInt32) << "call of " << e.symbol << " gives an i32 error code, not " << to_string(e.dtype);
  TS_CHECK(function->arg_size() == args.size()) << "call of " << e.symbol << " with " << e.args.size() << " arguments";
  for (unsigned i = 0; i < args.size(); ++i)
    TS_CHECK(function->getArg(i)->getType() == args[i]->getType())
        << "call of " << e.symbol << ": argument " << i << " has another type";
  return builder_.CreateCall(function, args);
}

}  // namespace tensmith
