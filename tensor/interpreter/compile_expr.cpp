#include "tensor/interpreter/compile.h"
#include "tensor/print.h"
#include "tensor/walk.h"

namespace tensmith::interp {

namespace {

Cell int_cell(int64_t value) {
  Cell cell;
  cell.i = value;
  return cell;
}
Cell float_cell(double value) {
  Cell cell;
  cell.f = value;
  return cell;
}

}  // namespace

Compiler::Slot Compiler::scalar(const Expr& e, DType type, const char* what) {
  if (e.get() == nullptr || e.dtype() != type)
    fail(std::string("expected ") + what + " of " + to_string(type) + ", got " + to_string(e));
  return expr(e);
}

Compiler::Slot Compiler::expr(const Expr& e, Slot want) {
  if (e.get() == nullptr) fail("expected an expression, got none");
  Slot found = kAnywhere;
  const int lanes = e.dtype().lanes;
  if (const auto* var = e.as<VarNode>()) {
    const auto it = vars_.find(var);
    if (it == vars_.end()) fail("variable " + var->name + " is used outside its scope");
    found = it->second;
  } else if (const auto it = pure_.slots.find(e.get()); it != pure_.slots.end()) {
    found = it->second;
  } else if (const auto load = loads_.slots.find(e.get()); load != loads_.slots.end()) {
    found = load->second;
  }
  if (found != kAnywhere) {
    if (want == kAnywhere) return found;
    emit(Op::kCopy, lanes, want, found);
    return want;
  }
  const Slot slot = compute(e, want);
  Memo& memo = is_pure(e) ? pure_ : loads_;
  if (memo.slots.emplace(e.get(), slot).second) memo.log.push_back(e.get());
  return slot;
}

bool Compiler::is_pure(const Expr& e) {
  if (const auto it = purity_.find(e.get()); it != purity_.end()) return it->second;
  bool pure = !e.as<Load>() && !e.as<Let>();
  if (const auto* call = e.as<Call>()) pure = intrinsic_info(call->id).pure && call->id != Intrinsic::kAddressOf;
  if (pure) for_each_child(e, [&](const Expr& child) { pure = pure && is_pure(child); });
  purity_[e.get()] = pure;
  return pure;
}

Compiler::Slot Compiler::compute(const Expr& e, Slot want) {
  const DType type = e.dtype();
  const auto target = [&] { return want == kAnywhere ? cells(type.lanes) : want; };
  const auto place = [&](Slot slot) {
    if (want == kAnywhere) return slot;
    emit(Op::kCopy, type.lanes, want, slot);
    return want;
  };
  switch (e.kind()) {
    case NodeKind::kIntImm: return place(constant(int_cell(e.as<IntImm>()->value)));
    case NodeKind::kFloatImm: return place(constant(float_cell(e.as<FloatImm>()->value)));
    case NodeKind::kCast: {
      const auto& node = *e.as<Cast>();
      const Slot value = expr(node.value), dst = target();
      cast(type, node.value.dtype(), dst, value);
      return dst;
    }
    case NodeKind::kBinary: {
      const auto& node = *e.as<Binary>();
      if (node.a.dtype() != node.b.dtype()) fail("expected operands of one type, got " + to_string(e));
      const Slot a = expr(node.a), b = expr(node.b), dst = target();
      binary(node.op, node.a.dtype(), dst, a, b);
      return dst;
    }
    case NodeKind::kNot: {
      const Slot value = expr(e.as<Not>()->value), dst = target();
      emit(type.is_bool() ? Op::kNotBool : Op::kNotI, type.lanes, dst, value);
      if (!type.is_bool()) wrap(type, dst);
      return dst;
    }
    case NodeKind::kSelect: return select(*e.as<Select>(), want);
    case NodeKind::kLoad: return load(*e.as<Load>(), want);
    case NodeKind::kRamp: {
      const auto& node = *e.as<Ramp>();
      const Slot base = scalar(node.base, type.element(), "a ramp's base"),
                 stride = scalar(node.stride, type.element(), "a ramp's stride");
      const Slot dst = target();
      emit(Op::kRamp, type.lanes, dst, base, stride);
      wrap(type, dst);
      return dst;
    }
    case NodeKind::kBroadcast: {
      const Slot value = scalar(e.as<Broadcast>()->value, type.element(), "a value"), dst = target();
      emit(Op::kSplat, type.lanes, dst, value);
      return dst;
    }
    case NodeKind::kLet: return let(*e.as<Let>(), want);
    case NodeKind::kCall: return call(*e.as<Call>(), want);
    default: fail("expected an expression, got a statement");
  }
}

void Compiler::round(DType type, Slot slot) {
  if (mode_ == InterpFloat::kExact || type.bits == 64) return;
  emit(type.is_bfloat() ? Op::kRoundBF16 : type.bits == 32 ? Op::kRoundF32 : Op::kRoundF16, type.lanes, slot);
}

void Compiler::wrap(DType type, Slot slot) {
  if (type.is_bool()) emit(Op::kToBoolI, type.lanes, slot, slot);
  else if (type.bits < 64)
    emit(type.is_int() ? Op::kWrapSigned : Op::kWrapUnsigned, type.lanes, slot, 0, 0, 64 - type.bits);
}

void Compiler::binary(BinaryOp op, DType type, Slot dst, Slot a, Slot b) {
  if (type.is_float()) float_binary(op, type, dst, a, b);
  else int_binary(op, type, dst, a, b);
}

void Compiler::float_binary(BinaryOp op, DType type, Slot dst, Slot a, Slot b) {
  const auto code = [&] {
    switch (op) {
      case BinaryOp::kAdd: return Op::kAddF;
      case BinaryOp::kSub: return Op::kSubF;
      case BinaryOp::kMul: return Op::kMulF;
      case BinaryOp::kDiv: return Op::kDivF;
      case BinaryOp::kMin: return Op::kMinF;
      case BinaryOp::kMax: return Op::kMaxF;
      case BinaryOp::kEQ: return Op::kEqF;
      case BinaryOp::kNE: return Op::kNeF;
      case BinaryOp::kLT: return Op::kLtF;
      case BinaryOp::kLE: return Op::kLeF;
      case BinaryOp::kGT: return Op::kGtF;
      case BinaryOp::kGE: return Op::kGeF;
      default: fail("expected integers for an operation, got " + to_string(type));
    }
  }();
  emit(code, type.lanes, dst, a, b);
  if (code <= Op::kDivF) round(type, dst);
}

void Compiler::int_binary(BinaryOp op, DType type, Slot dst, Slot a, Slot b) {
  // Unsigned numbers of 64 bits are the only ones whose cells do not compare and divide as signed ones do.
  const bool u = type.is_uint() && type.bits == 64;
  const auto code = [&] {
    switch (op) {
      case BinaryOp::kAdd: return Op::kAddI;
      case BinaryOp::kSub: return Op::kSubI;
      case BinaryOp::kMul: return Op::kMulI;
      case BinaryOp::kFloorDiv: return u ? Op::kDivU : Op::kFloorDivI;
      case BinaryOp::kFloorMod: return u ? Op::kModU : Op::kFloorModI;
      case BinaryOp::kTruncDiv: return u ? Op::kDivU : Op::kTruncDivI;
      case BinaryOp::kTruncMod: return u ? Op::kModU : Op::kTruncModI;
      case BinaryOp::kMin: return u ? Op::kMinU : Op::kMinI;
      case BinaryOp::kMax: return u ? Op::kMaxU : Op::kMaxI;
      case BinaryOp::kAnd: return Op::kAndI;
      case BinaryOp::kOr: return Op::kOrI;
      case BinaryOp::kXor: return Op::kXorI;
      case BinaryOp::kShl: return Op::kShlI;
      case BinaryOp::kShr: return type.is_uint() ? Op::kShrU : Op::kShrI;
      case BinaryOp::kEQ: return Op::kEqI;
      case BinaryOp::kNE: return Op::kNeI;
      case BinaryOp::kLT: return u ? Op::kLtU : Op::kLtI;
      case BinaryOp::kLE: return u ? Op::kLeU : Op::kLeI;
      case BinaryOp::kGT: return u ? Op::kGtU : Op::kGtI;
      case BinaryOp::kGE: return u ? Op::kGeU : Op::kGeI;
      case BinaryOp::kDiv: break;
    }
    fail("expected floats for '/', got " + to_string(type));
  }();
  emit(code, type.lanes, dst, a, b, type.bits);
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kMul:
    case BinaryOp::kFloorDiv:  // INT_MIN / -1
    case BinaryOp::kTruncDiv:
    case BinaryOp::kShl: wrap(type, dst); break;
    default: break;
  }
}

void Compiler::cast(DType to, DType from, Slot dst, Slot a) {
  const int lanes = to.lanes;
  if (from.lanes != lanes) fail("expected " + std::to_string(lanes) + " lanes to convert, got " + to_string(from));
  if (to.is_handle() || from.is_handle()) {
    if (to.element() != from.element())
      fail("expected no conversion of handles, got " + to_string(from) + " to " + to_string(to));
    emit(Op::kCopy, lanes, dst, a);
  } else if (from.is_float() && to.is_float()) {
    emit(Op::kCopy, lanes, dst, a);
    round(to, dst);
  } else if (from.is_float()) {
    emit(Op::kFToInt, lanes, dst, a, 0, pack_type(to.element()));
  } else if (to.is_float()) {
    const bool u = from.is_uint() && from.bits == 64;
    if (mode_ == InterpFloat::kExact || to.bits == 64) {
      emit(u ? Op::kUIntToF : Op::kIntToF, lanes, dst, a);
    } else {
      emit(u ? Op::kOddUIntToF : Op::kOddIntToF, lanes, dst, a);
      round(to, dst);
    }
  } else if (to.is_bool()) {
    emit(Op::kToBoolI, lanes, dst, a);
  } else {
    emit(Op::kCopy, lanes, dst, a);
    wrap(to, dst);
  }
}

Compiler::Slot Compiler::select(const Select& node, Slot want) {
  const int lanes = node.dtype.lanes;
  const Slot cond = expr(node.cond);
  const Slot dst = want == kAnywhere ? cells(lanes) : want;
  if (node.cond.dtype().is_scalar()) {
    const size_t to_b = emit(Op::kJumpIfNot, 1, 0, cond);
    {
      const MemoScope memo(*this);
      expr(node.a, dst);
    }
    const size_t to_end = emit(Op::kJump, 1, 0);
    code_.insts[to_b].dst = here();
    {
      const MemoScope memo(*this);
      expr(node.b, dst);
    }
    code_.insts[to_end].dst = here();
    return dst;
  }
  // Both sides run, each with the lanes that take it, so that loads of the other lanes need not be in bounds.
  if (node.cond.dtype().lanes != lanes)
    fail("expected a condition of " + std::to_string(lanes) + " lanes, got " + to_string(node.cond.dtype()));
  const Mask outer = mask_;
  const Slot on = cells(lanes), off = cells(lanes);
  emit(Op::kNotBool, lanes, off, cond);
  const Slot around = mask_for(lanes, {});
  if (around == kAnywhere) {
    emit(Op::kCopy, lanes, on, cond);
  } else {
    emit(Op::kAndI, lanes, on, cond, around);
    emit(Op::kAndI, lanes, off, off, around);
  }
  const auto side = [&](const Expr& e, Slot mask) {
    const MemoScope memo(*this);
    mask_ = {mask, lanes};
    return expr(e);
  };
  const Slot a = side(node.a, on), b = side(node.b, off);
  mask_ = outer;
  emit(Op::kSelect, lanes, dst, cond, a, b);
  return dst;
}

Compiler::Slot Compiler::mask_for(int lanes, const Expr& predicate) {
  Slot mask = kAnywhere;
  if (mask_.lanes == lanes) {
    mask = mask_.slot;
  } else if (mask_.lanes > 0) {
    // A part with other lanes (the scalar of a broadcast, say) is needed when any lane is.
    mask = cells(1);
    emit(Op::kAny, mask_.lanes, mask, mask_.slot);
    if (lanes > 1) {
      const Slot all = cells(lanes);
      emit(Op::kSplat, lanes, all, mask);
      mask = all;
    }
  }
  if (predicate.get() == nullptr) return mask;
  if (predicate.dtype() != kBool.with_lanes(lanes))
    fail("expected a predicate of " + std::to_string(lanes) + " lanes, got " + to_string(predicate.dtype()));
  const Slot own = expr(predicate);
  if (mask == kAnywhere) return own;
  const Slot both = cells(lanes);
  emit(Op::kAndI, lanes, both, own, mask);
  return both;
}

int32_t Compiler::buffer_number(const Buffer& buffer) const {
  const auto it = buffers_.find(buffer.get());
  if (it == buffers_.end()) fail("buffer " + buffer->name + " is used outside its scope");
  return it->second;
}

int32_t Compiler::access(const Buffer& buffer, const std::vector<Expr>& indices, int lanes) {
  const int32_t number = buffer_number(buffer);
  if (indices.size() != buffer->shape.size() && indices.size() != 1)
    fail("expected " + std::to_string(buffer->shape.size()) + " indices into " + buffer->name + ", got " +
         std::to_string(indices.size()));
  std::vector<Slot> slots;
  for (const Expr& index : indices) slots.push_back(scalar(index, kInt64.with_lanes(lanes), "an index"));
  code_.accesses.push_back(
      {number, operands(slots), static_cast<int32_t>(indices.size()), indices.size() != buffer->shape.size()});
  return static_cast<int32_t>(code_.accesses.size()) - 1;
}

Compiler::Slot Compiler::load(const Load& node, Slot want) {
  const int lanes = node.dtype.lanes;
  if (node.dtype.element() != node.buffer->dtype)
    fail("expected a load of " + to_string(node.buffer->dtype) + ", got " + to_string(node.dtype));
  const Slot mask = mask_for(lanes, node.predicate);
  const bool flat = node.indices.size() == 1;
  if (lanes == 1 && mask == kAnywhere && (flat || (node.indices.size() == 2 && node.buffer->shape.size() == 2))) {
    const int32_t buffer = buffer_number(node.buffer);
    const Slot first = scalar(node.indices[0], kInt64, "an index");
    const Slot second = flat ? 0 : scalar(node.indices[1], kInt64, "an index");
    const Slot dst = want == kAnywhere ? cells(1) : want;
    emit(flat ? Op::kLoad1 : Op::kLoad2, 1, dst, buffer, first, second);
    return dst;
  }
  const int32_t place = access(node.buffer, node.indices, lanes);
  const Slot dst = want == kAnywhere ? cells(lanes) : want;
  if (mask == kAnywhere) emit(Op::kLoad, lanes, dst, place);
  else emit(Op::kLoadMasked, lanes, dst, place, mask);
  return dst;
}

Compiler::Slot Compiler::let(const Let& node, Slot want) {
  if (node.value.dtype() != node.var.dtype())
    fail("expected a value of " + to_string(node.var.dtype()) + " for " + node.var.name());
  const Slot value = expr(node.value);
  const Hidden hidden(*this, node.var);
  const MemoScope memo(*this);
  const Binding binding(*this, node.var, value);
  return expr(node.body, want);
}

}  // namespace tensmith::interp
