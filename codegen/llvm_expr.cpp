// Expressions of FunctionEmitter apart from memory accesses and calls.
#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm_function.h"

namespace tensmith {

using llvm::Value;

std::optional<RampMatch> match_ramp(const Expr& index) {
  if (const Ramp* ramp = index.as<Ramp>()) return RampMatch{ramp->base, ramp->stride, ramp->lanes};
  if (const Broadcast* broadcast = index.as<Broadcast>()) return RampMatch{broadcast->value, Expr(0), broadcast->lanes};
  const Binary* op = index.as<Binary>();
  if (!op || index.dtype().is_scalar() || index.dtype().element() != kInt64) return std::nullopt;
  if (op->op != BinaryOp::kAdd && op->op != BinaryOp::kSub && op->op != BinaryOp::kMul) return std::nullopt;
  std::optional<RampMatch> a = match_ramp(op->a), b = match_ramp(op->b);
  if (!a || !b) return std::nullopt;
  if (op->op == BinaryOp::kAdd) return RampMatch{a->base + b->base, a->stride + b->stride, a->lanes};
  if (op->op == BinaryOp::kSub) return RampMatch{a->base - b->base, a->stride - b->stride, a->lanes};
  if (is_const_int(b->stride, 0)) return RampMatch{a->base * b->base, a->stride * b->base, a->lanes};
  if (is_const_int(a->stride, 0)) return RampMatch{a->base * b->base, a->base * b->stride, a->lanes};
  return std::nullopt;
}

void FunctionEmitter::new_statement() {
  memo_rollback(0);
  in_bounds_.clear();
}

void FunctionEmitter::memo_rollback(size_t mark) {
  for (; memo_order_.size() > mark; memo_order_.pop_back()) memo_.erase(memo_order_.back());
}

Value* FunctionEmitter::emit_index(const Expr& e) {
  const bool saved = std::exchange(index_mode_, true);
  Value* value = emit(e);
  index_mode_ = saved;
  return value;
}

Value* FunctionEmitter::emit(const Expr& e) {
  switch (e.kind()) {
    case NodeKind::kIntImm: return v_.int_constant(e.dtype(), e.as<IntImm>()->value);
    case NodeKind::kFloatImm: return v_.float_constant(e.dtype(), e.as<FloatImm>()->value);
    case NodeKind::kVar: {
      auto it = vars_.find(static_cast<const VarNode*>(e.get()));
      TS_CHECK(it != vars_.end()) << "variable " << static_cast<const VarNode*>(e.get())->name << " is not defined";
      return it->second;
    }
    default: break;
  }
  const Memo key{e.get(), index_mode_};
  if (auto it = memo_.find(key); it != memo_.end()) return it->second;
  Value* value = emit_node(e);
  const Call* call = e.as<Call>();
  if (!call || is_pure(*call)) {
    if (memo_.emplace(key, value).second) memo_order_.push_back(key);
  }
  return value;
}

Value* FunctionEmitter::emit_node(const Expr& e) {
  const bool saved_mode = index_mode_;
  if (e.kind() == NodeKind::kCast || e.kind() == NodeKind::kNot) index_mode_ = false;
  Value* value = emit_kind(e);
  index_mode_ = saved_mode;
  return value;
}

Value* FunctionEmitter::emit_kind(const Expr& e) {
  switch (e.kind()) {
    case NodeKind::kCast: {
      const Cast* cast = e.as<Cast>();
      return v_.cast(cast->value.dtype(), cast->dtype, emit(cast->value));
    }
    case NodeKind::kBinary: return emit_binary(*e.as<Binary>());
    case NodeKind::kNot: return v_.invert(e.dtype(), emit(e.as<Not>()->value));
    case NodeKind::kSelect: return emit_select(*e.as<Select>());
    case NodeKind::kLoad: return emit_load(*e.as<Load>());
    case NodeKind::kRamp: {
      const Ramp* ramp = e.as<Ramp>();
      return v_.ramp(emit(ramp->base), emit(ramp->stride), ramp->lanes);
    }
    case NodeKind::kBroadcast: return v_.splat(emit(e.as<Broadcast>()->value), e.as<Broadcast>()->lanes);
    case NodeKind::kLet: return emit_let(*e.as<Let>());
    case NodeKind::kCall: return emit_call(*e.as<Call>());
    default: break;
  }
  TS_UNREACHABLE() << "expression kind " << static_cast<int>(e.kind());
}

Value* FunctionEmitter::emit_binary(const Binary& e) {
  if (is_compare(e.op) && !e.a.dtype().is_scalar()) {
    if (Value* limited = emit_lane_limit(e)) return limited;
  }
  OperandFacts facts;
  facts.no_overflow = index_mode_;
  if (e.op == BinaryOp::kFloorDiv || e.op == BinaryOp::kFloorMod || e.op == BinaryOp::kTruncDiv ||
      e.op == BinaryOp::kTruncMod)
    facts.dividend_nonnegative = e.a.dtype().is_uint() || nonnegative_bound(e.a);
  // An address whose sum overflows is out of bounds, so sums may be taken not to; but what is clamped or divided first
  // may hold anything that a tensor of indices contains.
  const bool sum = e.op == BinaryOp::kAdd || e.op == BinaryOp::kSub || e.op == BinaryOp::kMul;
  const bool saved_mode = std::exchange(index_mode_, index_mode_ && sum);
  Value* a = emit(e.a);
  Value* b = emit(e.b);
  index_mode_ = saved_mode;
  return v_.binary(e.op, e.a.dtype(), a, b, facts);
}

// `base + lane < limit`, the usual tail predicate: compared as 32-bit lane numbers against a clamped count, which is a
// quarter of the work of 64-bit vectors and gives LLVM a mask register or one compare.
Value* FunctionEmitter::emit_lane_limit(const Binary& e) {
  if (e.a.dtype().element() != kInt64) return nullptr;
  std::optional<RampMatch> ramp = match_ramp(e.a), limit = match_ramp(e.b);
  if (!ramp || !limit || !is_const_int(ramp->stride, 1) || !is_const_int(limit->stride, 0)) return nullptr;
  const bool less = e.op == BinaryOp::kLT || e.op == BinaryOp::kLE;
  if (!less && e.op != BinaryOp::kGE && e.op != BinaryOp::kGT) return nullptr;
  // Saturating, since a limit may be any number.
  Value* count = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::ssub_sat, emit(limit->base), emit(ramp->base));
  count = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, count, builder_.getInt64(ramp->lanes));
  count = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, count, builder_.getInt64(-1));
  if (e.op == BinaryOp::kLE || e.op == BinaryOp::kGT) count = builder_.CreateAdd(count, builder_.getInt64(1));
  else count = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, count, builder_.getInt64(0));
  Value* lanes = v_.splat(builder_.CreateTrunc(count, builder_.getInt32Ty()), ramp->lanes);
  Value* numbers = v_.ramp(builder_.getInt32(0), builder_.getInt32(1), ramp->lanes);
  return less ? builder_.CreateICmpULT(numbers, lanes) : builder_.CreateICmpUGE(numbers, lanes);
}

Value* FunctionEmitter::guarded(Value* cond, Value* otherwise, llvm::function_ref<Value*()> fn) {
  llvm::BasicBlock* from = builder_.GetInsertBlock();
  llvm::BasicBlock* then = new_block("then");
  llvm::BasicBlock* join = new_block("join");
  builder_.CreateCondBr(cond, then, join);
  builder_.SetInsertPoint(then);
  const size_t mark = memo_mark();
  Value* value = fn();
  memo_rollback(mark);
  llvm::BasicBlock* then_end = builder_.GetInsertBlock();
  builder_.CreateBr(join);
  builder_.SetInsertPoint(join);
  llvm::PHINode* phi = builder_.CreatePHI(value->getType(), 2);
  phi->addIncoming(value, then_end);
  phi->addIncoming(otherwise, from);
  return phi;
}

// A branch that is not taken may read out of bounds. So a scalar condition becomes a branch when there is such a read,
// and a vector condition becomes the mask of the reads.
Value* FunctionEmitter::emit_select(const Select& e) {
  const bool saved_mode = std::exchange(index_mode_, false);
  Value* cond = emit(e.cond);
  index_mode_ = saved_mode;
  // With a scalar condition an arm that is a Let becomes a branch too: it is work of its own, such as the reduction of
  // large arguments of sin, which hardly ever runs.
  const bool scalar = e.cond.dtype().is_scalar();
  const bool then_reads = must_be_guarded(e.a) || (scalar && e.a.as<Let>()),
             else_reads = must_be_guarded(e.b) || (scalar && e.b.as<Let>());
  if (!then_reads && !else_reads) {
    Value* a = emit(e.a);
    return builder_.CreateSelect(cond, a, emit(e.b));
  }
  if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(cond)) return emit(constant->isZero() ? e.b : e.a);
  auto masked = [&](const Expr& branch, Value* taken) {
    Value* saved = mask_;
    const bool same = saved && v_.lanes_of(saved) == v_.lanes_of(taken);
    if (same) taken = builder_.CreateAnd(saved, taken);
    mask_ = taken;
    const size_t mark = memo_mark();
    Value* value = emit(branch);
    memo_rollback(mark);
    mask_ = saved;
    return value;
  };
  if (!e.cond.dtype().is_scalar()) {
    Value* a = then_reads ? masked(e.a, cond) : emit(e.a);
    Value* b = else_reads ? masked(e.b, builder_.CreateNot(cond)) : emit(e.b);
    return builder_.CreateSelect(cond, a, b);
  }
  if (!else_reads) {
    Value* b = emit(e.b);
    return guarded(cond, b, [&] { return emit(e.a); });
  }
  if (!then_reads) {
    Value* a = emit(e.a);
    return guarded(builder_.CreateNot(cond), a, [&] { return emit(e.b); });
  }
  Value* a = guarded(cond, llvm::PoisonValue::get(v_.type(e.dtype)), [&] { return emit(e.a); });
  return guarded(builder_.CreateNot(cond), a, [&] { return emit(e.b); });
}

Value* FunctionEmitter::emit_let(const Let& e) {
  const bool saved_mode = std::exchange(index_mode_, false);
  Value* value = emit(e.value);
  index_mode_ = saved_mode;
  // What the body remembers may depend on the variable, and a variable may be bound again elsewhere in the statement.
  auto [it, fresh] = vars_.emplace(e.var.get() ? static_cast<const VarNode*>(e.var.get()) : nullptr, value);
  Value* outer = fresh ? nullptr : std::exchange(it->second, value);
  auto saved_memo = fresh ? decltype(memo_)() : std::exchange(memo_, {});
  auto saved_order = fresh ? decltype(memo_order_)() : std::exchange(memo_order_, {});
  if (std::optional<int64_t> bound = nonnegative_bound(e.value)) upper_bounds_[it->first] = *bound;
  const VarNode* var = static_cast<const VarNode*>(e.var.get());
  auto outer_depth = depths_.extract(var);  // addresses may use it only where they stand
  const size_t mark = memo_mark();
  Value* body = emit(e.body);
  memo_rollback(mark);
  if (outer_depth) depths_.insert(std::move(outer_depth));
  upper_bounds_.erase(var);
  if (fresh) {
    vars_.erase(var);
  } else {
    vars_[var] = outer;
    memo_ = std::move(saved_memo);
    memo_order_ = std::move(saved_order);
  }
  return body;
}

std::optional<int64_t> FunctionEmitter::nonnegative_bound(const Expr& e) const {
  int64_t constant = 0;
  if (as_const_int(e, &constant)) return constant >= 0 ? std::optional(constant) : std::nullopt;
  if (e.dtype().element() != kInt64) return std::nullopt;
  if (e.kind() == NodeKind::kVar) {
    auto it = upper_bounds_.find(static_cast<const VarNode*>(e.get()));
    return it == upper_bounds_.end() ? std::nullopt : std::optional(it->second);
  }
  if (const Broadcast* broadcast = e.as<Broadcast>()) return nonnegative_bound(broadcast->value);
  if (const Ramp* ramp = e.as<Ramp>()) {
    const bool grows = nonnegative_bound(ramp->base) && nonnegative_bound(ramp->stride);
    return grows ? nonnegative_bound(ramp->base + ramp->stride * (ramp->lanes - 1)) : std::nullopt;
  }
  const Binary* op = e.as<Binary>();
  if (!op) return std::nullopt;
  const std::optional<int64_t> a = nonnegative_bound(op->a), b = nonnegative_bound(op->b);
  int64_t result = 0;
  switch (op->op) {
    case BinaryOp::kAdd:
      return a && b && !__builtin_add_overflow(*a, *b, &result) ? std::optional(result) : std::nullopt;
    case BinaryOp::kMul:
      return a && b && !__builtin_mul_overflow(*a, *b, &result) ? std::optional(result) : std::nullopt;
    case BinaryOp::kFloorDiv: return b ? a : std::nullopt;
    case BinaryOp::kFloorMod: return b;  // of the sign of the divisor
    case BinaryOp::kMin: return a && b ? std::optional(std::min(*a, *b)) : std::nullopt;
    case BinaryOp::kMax:
      return a && b ? std::optional(std::max(*a, *b)) : a || b ? std::optional(INT64_MAX) : std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace tensmith
