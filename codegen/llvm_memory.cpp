// Reads and writes of FunctionEmitter.
#include "codegen/llvm_function.h"
#include "tensor/equal_hash.h"
#include "tensor/walk.h"

namespace tensmith {

using llvm::Value;

namespace {

llvm::Align element_align(DType t) { return llvm::Align(std::max<int64_t>(t.bytes(), 1)); }

const Expr& flat_index(const std::vector<Expr>& indices, const Buffer& buffer) {
  TS_CHECK(indices.size() == 1) << "access of " << buffer->name << " has " << indices.size()
                                << " indices; flatten first";
  return indices[0];
}

// Up to this stride, whole vectors are read and shuffled; beyond it too much would be read in vain.
constexpr int64_t kMaxShuffleStride = 4;

}  // namespace

const BufferPlace& FunctionEmitter::place_of(const Buffer& buffer) const {
  auto it = buffers_.find(buffer.get());
  TS_CHECK(it != buffers_.end()) << "buffer " << buffer->name << " is not defined";
  return it->second;
}

llvm::Instruction* FunctionEmitter::annotate(const BufferPlace& place, llvm::Instruction* access) {
  if (place.scope) access->setMetadata(llvm::LLVMContext::MD_alias_scope, place.scope);
  if (place.noalias) access->setMetadata(llvm::LLVMContext::MD_noalias, place.noalias);
  return access;
}

Value* FunctionEmitter::vector_address(const Buffer& buffer, const Expr& index) {
  const BufferPlace& place = place_of(buffer);
  return builder_.CreateGEP(v_.memory_type(buffer->dtype.element()), place.pointer, emit_index(index));
}

bool FunctionEmitter::in_bounds(const Load& e) {
  if (place_of(e.buffer).registers) return true;
  auto [it, fresh] = in_bounds_.emplace(&e, false);
  if (!fresh) return it->second;
  int64_t count = 1;
  for (const Expr& extent : e.buffer->shape) {
    int64_t n = 0;
    if (!as_const_int(extent, &n) || __builtin_mul_overflow(count, n, &count)) return false;
  }
  auto inside = [&](const Expr& index) {
    const VarFacts bounds = constant_bounds(index, facts_);
    return bounds.lo && bounds.hi && *bounds.lo >= 0 && *bounds.hi < count;
  };
  const Expr& index = flat_index(e.indices, e.buffer);
  const std::optional<RampMatch> ramp = match_ramp(index);
  it->second = ramp ? inside(ramp->base) && inside(ramp->base + ramp->stride * (ramp->lanes - 1))
                    : index.dtype().is_scalar() && inside(index);
  return it->second;
}

bool FunctionEmitter::must_be_guarded(const Expr& e) {
  bool found = false;
  visit(e, [&](const Expr& child) {
    if (const Load* load = child.as<Load>()) found = found || !in_bounds(*load);
    if (const Call* call = child.as<Call>()) found = found || !is_pure(*call);
    return !found;
  });
  return found;
}

Value* FunctionEmitter::load_mask(const Load& e, int lanes) {
  Value* mask = e.predicate ? emit(e.predicate) : nullptr;
  if (mask_ && !in_bounds(e)) {
    Value* needed = mask_;
    if (v_.lanes_of(mask_) != lanes) needed = v_.splat(builder_.CreateOrReduce(mask_), lanes);
    mask = mask ? builder_.CreateAnd(mask, needed) : needed;
  }
  if (auto* constant = llvm::dyn_cast_or_null<llvm::Constant>(mask); constant && constant->isAllOnesValue())
    return nullptr;
  return mask;
}

Value* FunctionEmitter::load_vector(const BufferPlace& place, DType element, Value* pointer, int lanes, Value* mask) {
  llvm::Type* type = v_.memory_type(element.with_lanes(lanes));
  llvm::Instruction* load = mask ? static_cast<llvm::Instruction*>(builder_.CreateMaskedLoad(
                                       type, pointer, element_align(element), mask, llvm::Constant::getNullValue(type)))
                                 : builder_.CreateAlignedLoad(type, pointer, element_align(element));
  return v_.from_memory(element.with_lanes(lanes), annotate(place, load));
}

// Reads `stride` whole vectors, the last one placed so that it ends at the last element wanted, and picks the lanes.
// With a mask only what its lanes want is read.
Value* FunctionEmitter::load_strided(const BufferPlace& place, DType element, Value* pointer, int64_t stride, int lanes,
                                     Value* wanted) {
  llvm::Type* type = v_.memory_type(element);
  const int64_t last_begin = (lanes - 1) * stride + 1 - lanes;
  Value* result = nullptr;
  for (int64_t part = 0; part < stride; ++part) {
    const int64_t begin = part + 1 < stride ? part * lanes : last_begin;
    Value* at = builder_.CreateGEP(type, pointer, builder_.getInt64(begin));
    Value* read = nullptr;
    if (wanted) {
      std::vector<int> lane_of(lanes, lanes);  // beyond the lanes stands a zero
      for (int k = 0; k < lanes; ++k)
        if ((begin + k) % stride == 0) lane_of[k] = static_cast<int>((begin + k) / stride);
      read = builder_.CreateShuffleVector(wanted, llvm::Constant::getNullValue(wanted->getType()), lane_of);
    }
    Value* vector = load_vector(place, element, at, lanes, read);
    std::vector<int> mask(lanes, -1);
    for (int lane = 0; lane < lanes; ++lane) {
      const int64_t position = lane * stride, owner = std::min(position / lanes, stride - 1);
      if (owner == part) mask[lane] = static_cast<int>(position - begin) + (result ? lanes : 0);
      if (owner < part) mask[lane] = part == 1 ? static_cast<int>(position) : lane;
    }
    // The first two vectors are merged by one shuffle; before that the first one is as it was read.
    result = result ? builder_.CreateShuffleVector(result, vector, mask) : vector;
  }
  return result;
}

Value* FunctionEmitter::emit_load(const Load& e) {
  const Expr& index = flat_index(e.indices, e.buffer);
  const BufferPlace& place = place_of(e.buffer);
  const DType element = e.buffer->dtype.element();
  const int lanes = e.dtype.lanes;
  if (place.registers) {
    const RegisterAccess access = register_access(e.buffer, index);
    Value* value = place.registers->load(v_, access);
    if (access.lanes != lanes) value = v_.splat(value, lanes);
    return e.predicate.get() && &e != unmasked_ ? builder_.CreateSelect(emit(e.predicate), value, v_.zero(e.dtype))
                                                : value;
  }
  Value* mask = load_mask(e, lanes);
  if (lanes == 1) {
    auto read = [&] { return load_vector(place, element, address(e.buffer, index), 1, nullptr); };
    return mask ? guarded(mask, v_.zero(e.dtype), read) : read();
  }
  int64_t stride = 0;
  std::optional<RampMatch> ramp = match_ramp(index);
  if (ramp && as_const_int(ramp->stride, &stride)) {
    if (stride == 1) return load_vector(place, element, address(e.buffer, ramp->base), lanes, mask);
    if (stride == 0 && !mask)
      return v_.splat(load_vector(place, element, address(e.buffer, ramp->base), 1, nullptr), lanes);
    if (stride == -1 && !mask) {
      Value* pointer =
          builder_.CreateGEP(v_.memory_type(element), address(e.buffer, ramp->base), builder_.getInt64(1 - lanes));
      return builder_.CreateVectorReverse(load_vector(place, element, pointer, lanes, nullptr));
    }
    // Which lanes a tail wants is known here; to find that out at run time costs as much as a gather.
    const bool is_fixed = !mask || (e.predicate.get() && (!mask_ || in_bounds(e)) && collect_vars(e.predicate).empty());
    if (stride >= 2 && stride <= kMaxShuffleStride && is_fixed)
      return load_strided(place, element, address(e.buffer, ramp->base), stride, lanes, mask);
  }
  llvm::Type* type = v_.memory_type(e.dtype);
  llvm::Instruction* gather = builder_.CreateMaskedGather(type, vector_address(e.buffer, index), element_align(element),
                                                          mask, llvm::Constant::getNullValue(type));
  return v_.from_memory(e.dtype, annotate(place, gather));
}

void FunctionEmitter::emit_store(const Store& s) {
  new_statement();
  const Expr& index = flat_index(s.indices, s.buffer);
  const BufferPlace& place = place_of(s.buffer);
  const DType element = s.buffer->dtype.element();
  const DType type = s.value.dtype();
  const bool overwrites = place.registers && s.predicate.get() && type.lanes > 1 &&
                          place.registers->has_unseen_lanes(register_access(s.buffer, index));
  // What is accumulated lane by lane: lanes that nobody sees may stay what they are.
  const auto cannot_trap = [](const Binary& b) {
    return b.op == BinaryOp::kAdd || b.op == BinaryOp::kMul || b.op == BinaryOp::kMin || b.op == BinaryOp::kMax;
  };
  if (const Binary* sum = overwrites ? s.value.as<Binary>() : nullptr; sum && cannot_trap(*sum))
    for (const Expr& operand : {sum->a, sum->b})
      if (const Load* own = operand.as<Load>(); own && own->buffer.same_as(s.buffer) && equal(own->indices[0], index))
        unmasked_ = own;
  Value* value = emit(s.value);
  unmasked_ = nullptr;
  Value* mask = s.predicate ? emit(s.predicate) : nullptr;
  if (auto* constant = llvm::dyn_cast_or_null<llvm::Constant>(mask); constant && constant->isAllOnesValue())
    mask = nullptr;
  if (place.registers) {
    const RegisterAccess access = register_access(s.buffer, index);
    if (access.lanes != type.lanes) value = v_.slice(value, type.lanes - 1, 1);
    if (mask && !overwrites) value = builder_.CreateSelect(mask, value, place.registers->load(v_, access));
    place.registers->store(v_, access, value);
    return;
  }
  value = v_.to_memory(type, value);
  auto store_at = [&](Value* pointer, Value* stored) {
    annotate(place, builder_.CreateAlignedStore(stored, pointer, element_align(element)));
  };
  if (type.lanes == 1) {
    if (!mask) return store_at(address(s.buffer, index), value);
    llvm::BasicBlock *then = new_block("store"), *join = new_block("join");
    builder_.CreateCondBr(mask, then, join);
    builder_.SetInsertPoint(then);
    store_at(address(s.buffer, index), value);
    builder_.CreateBr(join);
    builder_.SetInsertPoint(join);
    return;
  }
  int64_t stride = 0;
  std::optional<RampMatch> ramp = match_ramp(index);
  if (ramp && as_const_int(ramp->stride, &stride)) {
    Value* base = address(s.buffer, ramp->base);
    if (stride == 1 && mask) {
      annotate(place, builder_.CreateMaskedStore(value, base, element_align(element), mask));
      return;
    }
    if (stride == 1) return store_at(base, value);
    if (!mask) {  // lane by lane: a scatter instruction is no faster, and most targets lack one
      for (int lane = stride == 0 ? type.lanes - 1 : 0; lane < type.lanes; ++lane)
        store_at(builder_.CreateGEP(v_.memory_type(element), base, builder_.getInt64(lane * stride)),
                 v_.slice(value, lane, 1));
      return;
    }
  }
  annotate(place, builder_.CreateMaskedScatter(value, vector_address(s.buffer, index), element_align(element), mask));
}

}  // namespace tensmith
