// Addresses of FunctionEmitter.
#include "codegen/llvm_addresses.h"

#include <algorithm>

#include "codegen/llvm_function.h"
#include "tensor/equal_hash.h"
#include "tensor/walk.h"

namespace tensmith {

using llvm::Value;

namespace {

// Wraps like the machine's addresses.
int64_t wrapping_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

bool same_terms(const std::vector<AddressTerm>& a, const std::vector<AddressTerm>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const AddressTerm& x, const AddressTerm& y) {
    return x.coefficient == y.coefficient && x.depth == y.depth &&
           (x.value.same_as(y.value) || equal(x.value, y.value));
  });
}

/// The factors of a product, constants apart.
void find_factors(const Expr& e, int64_t* constant, std::vector<Expr>* factors) {
  int64_t value = 0;
  if (as_const_int(e, &value)) {
    *constant = wrapping_mul(*constant, value);
    return;
  }
  const Binary* op = e.as<Binary>();
  if (!op || op->op != BinaryOp::kMul || e.dtype() != kInt64) return factors->push_back(e);
  find_factors(op->a, constant, factors);
  find_factors(op->b, constant, factors);
}

}  // namespace

int FunctionEmitter::depth_of(const Expr& e) const {
  if (e.kind() == NodeKind::kVar) {
    const auto it = depths_.find(static_cast<const VarNode*>(e.get()));
    return it == depths_.end() ? AddressTerm::kInPlace : it->second;
  }
  int depth = 0;
  visit(e, [&](const Expr& child) {
    switch (child.kind()) {
      case NodeKind::kIntImm: break;
      case NodeKind::kCast: break;
      case NodeKind::kVar: depth = std::max(depth, depth_of(child)); break;
      case NodeKind::kBinary: {
        const Binary* op = child.as<Binary>();
        int64_t divisor = 0;
        const bool divides = op->op != BinaryOp::kAdd && op->op != BinaryOp::kSub && op->op != BinaryOp::kMul &&
                             op->op != BinaryOp::kMin && op->op != BinaryOp::kMax;
        // What might trap must not run ahead of its guard.
        if (!child.dtype().is_int() || (divides && (!as_const_int(op->b, &divisor) || divisor <= 0)))
          depth = AddressTerm::kInPlace;
        break;
      }
      default: depth = AddressTerm::kInPlace; break;
    }
    return depth != AddressTerm::kInPlace;
  });
  return depth;
}

void FunctionEmitter::add_terms(const Expr& e, int64_t coefficient, AddressSum* sum) const {
  int64_t constant = 0;
  if (as_const_int(e, &constant)) {
    sum->constant = wrapping_add(sum->constant, wrapping_mul(coefficient, constant));
    return;
  }
  if (const Binary* op = e.as<Binary>(); op && e.dtype() == kInt64) {
    if (op->op == BinaryOp::kAdd || op->op == BinaryOp::kSub) {
      add_terms(op->a, coefficient, sum);
      return add_terms(op->b, op->op == BinaryOp::kAdd ? coefficient : wrapping_mul(coefficient, -1), sum);
    }
    if (op->op == BinaryOp::kMul && as_const_int(op->b, &constant))
      return add_terms(op->a, wrapping_mul(coefficient, constant), sum);
    if (op->op == BinaryOp::kMul && as_const_int(op->a, &constant))
      return add_terms(op->b, wrapping_mul(coefficient, constant), sum);
  }
  AddressTerm term{e, coefficient, depth_of(e), nullptr, {}};
  if (term.depth > 0 && term.depth <= static_cast<int>(loops_.size())) {
    const VarNode* var = loops_[term.depth - 1].var;
    std::vector<Expr> factors;
    find_factors(e, &term.coefficient, &factors);
    int varying = 0;
    for (const Expr& factor : factors) {
      varying += depth_of(factor) == term.depth;
      if (factor.get() == var) term.var = var;
      else term.scale = term.scale ? term.scale * factor : factor;
    }
    if (varying != 1 || !term.var) term = {e, coefficient, term.depth, nullptr, {}};
  }
  for (AddressTerm& other : sum->terms) {
    if (!other.value.same_as(term.value)) continue;
    other.coefficient = wrapping_add(other.coefficient, term.coefficient);
    return;
  }
  sum->terms.push_back(std::move(term));
}

Value* FunctionEmitter::move_pointer(Value* pointer, llvm::Type* element, const std::vector<AddressTerm>& terms) {
  Value* sum = nullptr;
  for (const AddressTerm& term : terms) {
    Value* value = emit_index(term.value);
    if (term.coefficient != 1)
      value = builder_.CreateMul(value, builder_.getInt64(term.coefficient), "", /*HasNUW=*/false, /*HasNSW=*/true);
    sum = sum ? builder_.CreateAdd(sum, value, "", /*HasNUW=*/false, /*HasNSW=*/true) : value;
  }
  // Not `inbounds`: the variable part alone may lie outside.
  return sum ? builder_.CreateGEP(element, pointer, sum) : pointer;
}

Value* FunctionEmitter::pointer_at(const Buffer& buffer, const AddressSum& sum, int depth) {
  const BufferPlace& place = place_of(buffer);
  llvm::Type* element = v_.memory_type(buffer->dtype.element());
  std::vector<AddressTerm> carried, here;
  for (const AddressTerm& term : sum.terms) {
    if (term.coefficient == 0) continue;
    const bool fixed = depth > place.depth && (term.depth < depth || (term.depth == depth && term.var));
    (fixed ? carried : here).push_back(term);
  }
  Value* pointer = carried.empty() ? place.pointer : carried_pointer(buffer, carried, depth);
  pointer = move_pointer(pointer, element, here);
  return sum.constant ? builder_.CreateGEP(element, pointer, builder_.getInt64(sum.constant)) : pointer;
}

Value* FunctionEmitter::carried_pointer(const Buffer& buffer, const std::vector<AddressTerm>& terms, int depth) {
  for (const LoopFrame::Pointer& known : loops_[depth - 1].pointers)
    if (known.buffer == buffer.get() && same_terms(known.terms, terms)) return known.value;
  const LoopFrame& loop = loops_[depth - 1];
  llvm::IRBuilderBase::InsertPointGuard position(builder_);
  builder_.SetInsertPoint(loop.before->getTerminator());
  // What this statement remembers may stand behind the new place.
  auto saved_memo = std::exchange(memo_, {});
  auto saved_order = std::exchange(memo_order_, {});
  const int64_t bytes = buffer->dtype.element().bytes();

  AddressSum start;
  std::vector<AddressTerm> begins;  // counted from the loop's first value, which is known only as a value
  Value* step = nullptr;
  for (const AddressTerm& term : terms) {
    if (term.depth != depth) {
      start.terms.push_back(term);
      continue;
    }
    Value* part = builder_.getInt64(wrapping_mul(term.coefficient, bytes));
    if (term.scale) part = builder_.CreateMul(emit_index(term.scale), part, "", /*HasNUW=*/false, /*HasNSW=*/true);
    step = step ? builder_.CreateAdd(step, part, "", /*HasNUW=*/false, /*HasNSW=*/true) : part;
    if (loop.min) {
      add_terms(term.scale ? term.scale * loop.min : loop.min, term.coefficient, &start);
    } else {
      begins.push_back(term);
    }
  }
  Value* pointer = pointer_at(buffer, start, depth - 1);
  for (const AddressTerm& term : begins) {
    Value* distance = builder_.CreateMul(loop.begin, builder_.getInt64(term.coefficient));
    if (term.scale) distance = builder_.CreateMul(distance, emit_index(term.scale));
    pointer = builder_.CreateGEP(v_.memory_type(buffer->dtype.element()), pointer, distance);
  }
  if (step) {
    llvm::PHINode* phi = llvm::PHINode::Create(builder_.getPtrTy(), 2, buffer->name, loop.header->begin());
    phi->addIncoming(pointer, loop.before);
    loops_[depth - 1].moving.push_back({phi, step});
    pointer = phi;
  }
  memo_ = std::move(saved_memo);
  memo_order_ = std::move(saved_order);
  loops_[depth - 1].pointers.push_back({buffer.get(), terms, pointer});
  return pointer;
}

Value* FunctionEmitter::address(const Buffer& buffer, const Expr& index) {
  TS_CHECK(place_of(buffer).pointer != nullptr) << "address of register buffer " << buffer->name;
  AddressSum sum;
  add_terms(index, 1, &sum);
  return pointer_at(buffer, sum, static_cast<int>(loops_.size()));
}

void FunctionEmitter::enter_loop(const VarNode* var, const Expr& min, Value* begin, llvm::BasicBlock* before,
                                 llvm::BasicBlock* header) {
  // The first value counts in terms of the loops around where it consists of them.
  const bool known = min.get() != nullptr && depth_of(min) != AddressTerm::kInPlace;
  loops_.push_back({var, known ? min : Expr(), begin, before, header});
  depths_[var] = static_cast<int>(loops_.size());
}

void FunctionEmitter::leave_loop() {
  for (const LoopFrame::Moving& moving : loops_.back().moving)
    moving.pointer->addIncoming(builder_.CreateGEP(builder_.getInt8Ty(), moving.pointer, moving.step),
                                builder_.GetInsertBlock());
  depths_.erase(loops_.back().var);
  loops_.pop_back();
}

}  // namespace tensmith
