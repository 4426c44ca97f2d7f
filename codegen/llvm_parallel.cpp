// Parallel loops: the body becomes a function of its own that the thread pool, or the caller, runs.
//
//   if (ctx has threads)  rc = ctx->parallel_for(ctx->pool, body, &closure, extent)
//   else                  rc = body(&closure, 0, extent, 0)
//   if (rc != 0) return rc
//
// With a mark `min_chunk` on the loop the pool counts chunks of at least so many iterations in place of iterations; one
// chunk runs without the pool.
#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm_function.h"
#include "tensor/walk.h"

namespace tensmith {

using llvm::Value;

namespace {

struct Captures {
  std::vector<const VarNode*> vars;
  std::vector<const BufferNode*> buffers;
};

/// Every variable and buffer that occurs, in order of appearance; those not defined outside are the caller's to drop.
Captures find_captures(const Stmt& body) {
  Captures found;
  std::unordered_map<const void*, bool> seen;
  auto use_buffer = [&](const Buffer& buffer) {
    if (seen.emplace(buffer.get(), true).second) found.buffers.push_back(buffer.get());
  };
  visit(
      body,
      [&](const Stmt& s) {
        if (auto* store = s.as<Store>()) use_buffer(store->buffer);
        return true;
      },
      [&](const Expr& e) {
        if (auto* load = e.as<Load>()) use_buffer(load->buffer);
        if (e.kind() == NodeKind::kVar && seen.emplace(e.get(), true).second)
          found.vars.push_back(static_cast<const VarNode*>(e.get()));
        return true;
      });
  return found;
}

}  // namespace

Value* FunctionEmitter::context_field(unsigned index) {
  Value* pointer = builder_.CreateStructGEP(module_.context_type, context_, index);
  return builder_.CreateLoad(module_.context_type->getElementType(index), pointer);
}

Value* FunctionEmitter::has_threads() {
  Value* null = llvm::Constant::getNullValue(context_->getType());
  return guarded(builder_.CreateICmpNE(context_, null), builder_.getFalse(), [&] {
    Value* several = builder_.CreateICmpSGT(context_field(1), builder_.getInt32(1));
    return builder_.CreateAnd(several, builder_.CreateICmpNE(context_field(3), null));
  });
}

void FunctionEmitter::emit_parallel(const For& loop) {
  Value* begin = emit_index(loop.min);
  // A negative extent runs zero times; pools need not know that.
  Value* extent = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, emit_index(loop.extent), builder_.getInt64(0));
  if (!loop.body) return;

  // What the pool counts: iterations, or chunks, of which there is always one.
  const auto mark = loop.attrs.find("min_chunk");
  const bool chunked = mark != loop.attrs.end() && mark->second > 1;
  Value* count = extent;
  if (chunked) {
    Value* whole_chunks = builder_.CreateUDiv(extent, builder_.getInt64(static_cast<uint64_t>(mark->second)));
    count = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, whole_chunks, builder_.getInt64(1));
  }

  // The closure: every value that the body uses, and the loop's start; how chunks lie in it.
  const Captures captures = find_captures(loop.body);
  std::vector<Value*> values = {begin};
  std::vector<const VarNode*> vars;
  std::vector<const BufferNode*> buffers;
  for (const VarNode* var : captures.vars) {
    auto it = vars_.find(var);
    if (it == vars_.end()) continue;
    vars.push_back(var);
    values.push_back(it->second);
  }
  for (const BufferNode* buffer : captures.buffers) {
    auto it = buffers_.find(buffer);
    if (it == buffers_.end() || (!it->second.pointer && !it->second.registers)) continue;
    if (it->second.registers)
      throw ScheduleError("register-captured", "codegen: register buffer " + buffer->name +
                                                   ": expected all its uses on one side of parallel loop " +
                                                   loop.var.name() + ", got uses on both; allocate it inside the loop");
    buffers.push_back(buffer);
    values.push_back(it->second.pointer);
  }
  if (chunked) values.insert(values.end(), {extent, count});
  std::vector<llvm::Type*> types;
  for (Value* value : values) types.push_back(value->getType());
  llvm::StructType* closure_type = llvm::StructType::get(builder_.getContext(), types);
  Value* closure = entry_alloca(closure_type, llvm::Align(64), "closure");
  for (unsigned i = 0; i < values.size(); ++i)
    builder_.CreateStore(values[i], builder_.CreateStructGEP(closure_type, closure, i));

  llvm::Type *i64 = builder_.getInt64Ty(), *i32 = builder_.getInt32Ty(), *pointer = builder_.getPtrTy();
  llvm::FunctionType* body_type = llvm::FunctionType::get(i32, {pointer, i64, i64, i32}, /*isVarArg=*/false);
  llvm::Function* body = llvm::Function::Create(body_type, llvm::GlobalValue::InternalLinkage,
                                                function_->getName() + "_" + loop.var.name(), module_.module);
  body->setAttributes(module_.attributes);

  {
    FunctionEmitter inner(module_, body);
    inner.in_parallel_ = true;
    inner.context_ = llvm::Constant::getNullValue(pointer);
    inner.thread_ = body->getArg(3);
    inner.facts_ = facts_;
    inner.stack_bytes_ = stack_bytes_;  // the caller's thread takes part
    auto captured = [&](unsigned i) {
      Value* field = inner.builder_.CreateStructGEP(closure_type, body->getArg(0), i);
      return inner.builder_.CreateLoad(types[i], field);
    };
    Value* start = captured(0);
    unsigned position = 1;
    for (const VarNode* var : vars) {
      inner.vars_[var] = captured(position++);
      inner.depths_[var] = 0;
      if (auto it = upper_bounds_.find(var); it != upper_bounds_.end()) inner.upper_bounds_.insert(*it);
    }
    // Places of buffers that the body allocates itself carry their alias scopes along.
    for (const auto& [buffer, place] : buffers_) {
      if (!place.pointer && !place.registers) inner.buffers_[buffer] = place;
    }
    for (const BufferNode* buffer : buffers) {
      BufferPlace place = buffers_.at(buffer);
      place.pointer = captured(position++);
      place.pointer->setName(buffer->name);
      place.depth = 0;
      inner.buffers_[buffer] = place;
    }
    inner.set_loop_bound(loop);
    Value *first = body->getArg(1), *last = body->getArg(2);
    if (chunked) {
      Value *total = captured(position), *chunks = captured(position + 1);
      // Chunks begin at c * size + min(c, rest): sizes differ by one at most, and nothing overflows.
      Value *size = inner.builder_.CreateUDiv(total, chunks), *rest = inner.builder_.CreateURem(total, chunks);
      const auto begin_of = [&](Value* chunk) {
        return inner.builder_.CreateAdd(inner.builder_.CreateMul(chunk, size),
                                        inner.builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, chunk, rest));
      };
      first = begin_of(first);
      last = begin_of(last);
    }
    first = inner.builder_.CreateAdd(start, first, "", /*HasNUW=*/false, /*HasNSW=*/true);
    last = inner.builder_.CreateAdd(start, last, "", /*HasNUW=*/false, /*HasNSW=*/true);
    inner.emit_serial_loop(loop.var, Expr(), first, last, /*runs=*/false, loop.body);
    inner.builder_.CreateRet(inner.builder_.getInt32(0));
    llvm::BranchInst::Create(inner.entry_->getNextNode(), inner.entry_);
  }

  new_statement();
  llvm::BasicBlock *threads = new_block("threads"), *serial = new_block("serial"), *join = new_block("joined");
  Value* wanted = has_threads();
  if (chunked) wanted = builder_.CreateAnd(wanted, builder_.CreateICmpSGT(count, builder_.getInt64(1)));
  builder_.CreateCondBr(wanted, threads, serial);
  builder_.SetInsertPoint(threads);
  llvm::FunctionType* pool_type = llvm::FunctionType::get(i32, {pointer, pointer, pointer, i64}, /*isVarArg=*/false);
  Value* pool_result = builder_.CreateCall(pool_type, context_field(2), {context_field(3), body, closure, count});
  builder_.CreateBr(join);
  builder_.SetInsertPoint(serial);
  Value* serial_result = builder_.CreateCall(body, {closure, builder_.getInt64(0), count, thread_});
  builder_.CreateBr(join);
  builder_.SetInsertPoint(join);
  llvm::PHINode* result = builder_.CreatePHI(i32, 2);
  result->addIncoming(pool_result, threads);
  result->addIncoming(serial_result, serial);
  return_unless(builder_.CreateICmpEQ(result, builder_.getInt32(0)), result);
}

}  // namespace tensmith
