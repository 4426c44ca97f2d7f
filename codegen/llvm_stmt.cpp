// Statements of FunctionEmitter.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>

#include "codegen/artifact.h"
#include "codegen/llvm_function.h"
#include "tensor/walk.h"

namespace tensmith {

using llvm::Value;

namespace {

// Beyond this a buffer belongs into a workspace; and all that live at a time must leave room on a thread's stack, 2 MiB
// in our pool.
constexpr int64_t kMaxStackBytes = 128 << 10;
constexpr int64_t kMaxFrameBytes = 1 << 20;

int64_t constant_bytes(const Buffer& buffer) {
  int64_t count = 1;
  for (const Expr& extent : buffer->shape) {
    int64_t n = 0;
    if (!as_const_int(extent, &n) || n < 0) return -1;
    if (__builtin_mul_overflow(count, n, &count)) return INT64_MAX;
  }
  return __builtin_mul_overflow(count, buffer->dtype.bytes(), &count) ? INT64_MAX : count;
}

/// One alias scope per buffer, so that LLVM knows that a store to one does not change another. Buffers of one function
/// do not overlap, but for those that say so. Quadratic in size, hence not for host programs with many buffers.
void make_scopes(llvm::LLVMContext& context, const LoopFunction& f, const std::vector<Buffer>& buffers,
                 std::unordered_map<const BufferNode*, BufferPlace>& places) {
  constexpr size_t kMaxScopes = 40;
  if (buffers.size() > kMaxScopes) return;
  llvm::MDBuilder md(context);
  llvm::MDNode* domain = md.createAnonymousAliasScopeDomain("buffers");
  std::vector<llvm::Metadata*> scopes;
  for (const Buffer& buffer : buffers) scopes.push_back(md.createAnonymousAliasScope(domain, buffer->name));
  for (size_t i = 0; i < buffers.size(); ++i) {
    std::vector<llvm::Metadata*> others;
    for (size_t k = 0; k < buffers.size(); ++k)
      if (k != i && !(may_overlap(f, k) && may_overlap(f, i))) others.push_back(scopes[k]);
    BufferPlace& place = places[buffers[i].get()];
    place.scope = llvm::MDNode::get(context, {scopes[i]});
    if (!others.empty()) place.noalias = llvm::MDNode::get(context, others);
  }
}

}  // namespace

bool may_overlap(const LoopFunction& f, size_t index) {
  const auto it = f.attrs.find(kMayOverlap);
  return it != f.attrs.end() && index < std::min<size_t>(f.buffers.size(), 62) && (it->second >> index & 1) != 0;
}

FunctionEmitter::FunctionEmitter(ModuleContext& module, llvm::Function* function)
    : module_(module),
      function_(function),
      entry_(llvm::BasicBlock::Create(function->getContext(), "entry", function)),
      builder_(function->getContext(), llvm::TargetFolder(module.module.getDataLayout())),
      v_(builder_, module.isa) {
  builder_.SetInsertPoint(new_block("body"));
  if (module.contract_fma) {
    llvm::FastMathFlags flags;
    flags.setAllowContract();
    builder_.setFastMathFlags(flags);
  }
}

llvm::BasicBlock* FunctionEmitter::new_block(const char* name) {
  return llvm::BasicBlock::Create(function_->getContext(), name, function_);
}

llvm::AllocaInst* FunctionEmitter::entry_alloca(llvm::Type* type, llvm::Align align, const std::string& name) {
  auto* alloca = new llvm::AllocaInst(type, /*AddrSpace=*/0, nullptr, align, name, entry_);
  return alloca;
}

void FunctionEmitter::emit_function(const LoopFunction& f) {
  std::vector<Buffer> all = f.buffers;
  if (f.body) {
    visit(f.body, [&](const Stmt& s) {
      if (auto* alloc = s.as<Allocate>(); alloc && alloc->buffer->scope != Scope::kRegister)
        all.push_back(alloc->buffer);
      return true;
    });
  }
  make_scopes(function_->getContext(), f, all, buffers_);
  context_ = function_->getArg(0);
  thread_ = builder_.getInt32(0);
  unsigned position = 1;
  for (const Buffer& buffer : f.buffers) {
    BufferPlace& place = buffers_[buffer.get()];
    place.pointer = function_->getArg(position++);
    place.pointer->setName(buffer->name);
  }
  for (const Var& var : f.scalars) {
    llvm::Argument* argument = function_->getArg(position++);
    argument->setName(var.name());
    vars_[static_cast<const VarNode*>(var.get())] = v_.from_memory(var.dtype(), argument);
    depths_[static_cast<const VarNode*>(var.get())] = 0;
  }
  emit(f.body);
  builder_.CreateRet(builder_.getInt32(0));
  llvm::BranchInst::Create(entry_->getNextNode(), entry_);
}

void FunctionEmitter::emit(const Stmt& s) {
  if (!s) return;
  new_statement();
  switch (s->kind) {
    case NodeKind::kFor: return emit_for(*s.as<For>());
    case NodeKind::kWhile: return emit_while(*s.as<While>());
    case NodeKind::kIf: return emit_if(*s.as<If>());
    case NodeKind::kLetStmt: {
      const LetStmt* let = s.as<LetStmt>();
      const VarNode* var = static_cast<const VarNode*>(let->var.get());
      Value* value = emit(let->value);
      TS_CHECK(vars_.emplace(var, value).second) << "variable " << var->name << " is bound twice";
      depths_[var] = static_cast<int>(loops_.size());
      if (std::optional<int64_t> bound = nonnegative_bound(let->value)) upper_bounds_[var] = *bound;
      const Facts outside = facts_;
      if (let->var.dtype() == kInt64) facts_.set_value(let->var, let->value);
      emit(let->body);
      facts_ = outside;
      new_statement();
      vars_.erase(var);
      depths_.erase(var);
      upper_bounds_.erase(var);
      return;
    }
    case NodeKind::kStore: return emit_store(*s.as<Store>());
    case NodeKind::kBlock:
      for (const Stmt& child : s.as<Block>()->stmts) emit(child);
      return;
    case NodeKind::kAllocate: return emit_allocate(*s.as<Allocate>());
    case NodeKind::kEvaluate: return emit_evaluate(*s.as<Evaluate>());
    case NodeKind::kAssert: return emit_assert(*s.as<Assert>());
    default: break;
  }
  TS_UNREACHABLE() << "statement kind " << static_cast<int>(s->kind);
}

void FunctionEmitter::emit_for(const For& loop) {
  TS_CHECK(loop.for_kind == ForKind::kSerial || loop.for_kind == ForKind::kParallel)
      << "loop " << loop.var.name() << " is still to be vectorized or unrolled";
  int64_t extent = 0;
  const bool constant = as_const_int(loop.extent, &extent);
  if (constant && extent <= 0) return;
  if (loop.for_kind == ForKind::kParallel && !in_parallel_ && !(constant && extent == 1)) return emit_parallel(loop);
  Value* begin = emit_index(loop.min);
  Value* count = emit_index(loop.extent);
  const Facts outside = facts_;
  set_loop_bound(loop);
  emit_serial_loop(loop.var, loop.min, begin, builder_.CreateAdd(begin, count, "", /*HasNUW=*/false, /*HasNSW=*/true),
                   constant, loop.body);
  upper_bounds_.erase(static_cast<const VarNode*>(loop.var.get()));
  facts_ = outside;
}

void FunctionEmitter::set_loop_bound(const For& loop) {
  facts_.set_range(loop.var, loop.min, loop.extent);
  const std::optional<int64_t> first = nonnegative_bound(loop.min);
  if (!first) return;
  // A symbolic loop is taken to run less often than this; addresses have no more bits.
  constexpr int64_t kLongestLoop = int64_t{1} << 47;
  int64_t extent = kLongestLoop, last = 0;
  as_const_int(loop.extent, &extent);
  if (!__builtin_add_overflow(*first, std::max<int64_t>(extent, 1) - 1, &last))
    upper_bounds_[static_cast<const VarNode*>(loop.var.get())] = last;
}

// Rotated form (test at the bottom): invariant reads may be hoisted, and LLVM need not rotate it first.
void FunctionEmitter::emit_serial_loop(const Var& var, const Expr& min, Value* begin, Value* end, bool runs,
                                       const Stmt& body) {
  new_statement();
  const VarNode* node = static_cast<const VarNode*>(var.get());
  if (!body) return;
  llvm::BasicBlock* exit = new_block("done");
  if (!runs) {
    llvm::BasicBlock* ahead = new_block("ahead");
    builder_.CreateCondBr(builder_.CreateICmpSLT(begin, end), ahead, exit);
    builder_.SetInsertPoint(ahead);
  }
  llvm::BasicBlock *before = builder_.GetInsertBlock(), *turn = new_block("loop");
  builder_.CreateBr(turn);
  builder_.SetInsertPoint(turn);
  llvm::PHINode* counter = builder_.CreatePHI(builder_.getInt64Ty(), 2, node->name);
  counter->addIncoming(begin, before);
  TS_CHECK(vars_.emplace(node, counter).second) << "variable " << node->name << " is bound twice";
  enter_loop(node, min, begin, before, turn);
  emit(body);
  leave_loop();
  new_statement();
  vars_.erase(node);
  Value* next = builder_.CreateAdd(counter, builder_.getInt64(1), "", /*HasNUW=*/false, /*HasNSW=*/true);
  counter->addIncoming(next, builder_.GetInsertBlock());
  llvm::BranchInst* back = builder_.CreateCondBr(builder_.CreateICmpSLT(next, end), turn, exit);
  // Unrolling and vectorising were decided by the schedule; LLVM's own choice has cost up to a factor of 50.
  llvm::LLVMContext& context = builder_.getContext();
  llvm::Metadata* parts[] = {
      nullptr,
      llvm::MDNode::get(context, {llvm::MDString::get(context, "llvm.loop.unroll.disable")}),
      llvm::MDNode::get(context, {llvm::MDString::get(context, "llvm.loop.vectorize.enable"),
                                  llvm::ConstantAsMetadata::get(builder_.getFalse())}),
  };
  llvm::MDNode* properties = llvm::MDNode::getDistinct(context, parts);
  properties->replaceOperandWith(0, properties);
  back->setMetadata(llvm::LLVMContext::MD_loop, properties);
  exit->moveAfter(builder_.GetInsertBlock());
  builder_.SetInsertPoint(exit);
}

void FunctionEmitter::emit_while(const While& loop) {
  llvm::BasicBlock *test = new_block("while"), *turn = new_block("turn"), *exit = new_block("done");
  builder_.CreateBr(test);
  builder_.SetInsertPoint(test);
  builder_.CreateCondBr(emit(loop.cond), turn, exit);
  builder_.SetInsertPoint(turn);
  emit(loop.body);
  new_statement();
  builder_.CreateBr(test);
  builder_.SetInsertPoint(exit);
}

void FunctionEmitter::emit_if(const If& branch) {
  Value* cond = emit(branch.cond);
  if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(cond))
    return emit(constant->isZero() ? branch.otherwise : branch.then);
  llvm::BasicBlock *then = new_block("then"), *join = new_block("join");
  llvm::BasicBlock* otherwise = branch.otherwise ? new_block("else") : join;
  builder_.CreateCondBr(cond, then, otherwise);
  builder_.SetInsertPoint(then);
  emit(branch.then);
  builder_.CreateBr(join);
  if (branch.otherwise) {
    builder_.SetInsertPoint(otherwise);
    emit(branch.otherwise);
    builder_.CreateBr(join);
  }
  new_statement();
  builder_.SetInsertPoint(join);
}

void FunctionEmitter::emit_allocate(const Allocate& alloc) {
  const Buffer& buffer = alloc.buffer;
  BufferPlace& place = buffers_[buffer.get()];
  TS_CHECK(!place.pointer && !place.registers) << "buffer " << buffer->name << " is allocated twice";
  if (buffer->scope == Scope::kRegister) {
    tiles_.push_back(std::make_unique<RegisterTile>(buffer, alloc.body, v_, entry_));
    place.registers = tiles_.back().get();
    emit(alloc.body);
    buffers_.erase(buffer.get());
    return;
  }
  const int64_t bytes = constant_bytes(buffer);
  if (buffer->scope == Scope::kStack) {
    if (bytes < 0 || bytes > kMaxStackBytes)
      throw ScheduleError("stack-too-large", "codegen: stack buffer " + buffer->name +
                                                 ": expected a constant size of at most " +
                                                 std::to_string(kMaxStackBytes) + " bytes, got " +
                                                 (bytes < 0 ? "a symbolic size" : std::to_string(bytes)) +
                                                 "; compute the producer closer to its consumer or use a workspace");
    stack_bytes_ += bytes;
    if (stack_bytes_ > kMaxFrameBytes)
      throw ScheduleError("stack-too-large", "codegen: stack buffer " + buffer->name + ": expected at most " +
                                                 std::to_string(kMaxFrameBytes) +
                                                 " bytes of stack buffers at a time, got " +
                                                 std::to_string(stack_bytes_) + "; use workspaces for the larger ones");
    llvm::Type* array = llvm::ArrayType::get(builder_.getInt8Ty(), std::max<int64_t>(bytes, 1));
    llvm::AllocaInst* storage = entry_alloca(array, llvm::Align(std::max(buffer->alignment, 64)), buffer->name);
    place.pointer = storage;
    place.depth = static_cast<int>(loops_.size());
    // Buffers with disjoint lives share memory, and a new turn of a loop need not keep the old content.
    builder_.CreateLifetimeStart(storage, builder_.getInt64(std::max<int64_t>(bytes, 1)));
    emit(alloc.body);
    stack_bytes_ -= bytes;
    builder_.CreateLifetimeEnd(storage, builder_.getInt64(std::max<int64_t>(bytes, 1)));
    buffers_[buffer.get()].pointer = nullptr;
    return;
  }
  if (buffer->scope != Scope::kGlobal)
    throw UnsupportedError("codegen-scope",
                           "codegen: buffer " + buffer->name +
                               ": expected memory scope global, stack or register on a CPU, got scope " +
                               std::to_string(static_cast<int>(buffer->scope)) + "; set another scope in the schedule");
  // Heap memory: for programs whose memory was not planned. Sizes are rounded up as aligned_alloc demands.
  Value* size = builder_.CreateMul(emit_index(num_elements(buffer)), builder_.getInt64(buffer->dtype.bytes()));
  const int64_t align = std::max(buffer->alignment, 64);
  size = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, size, builder_.getInt64(1));
  size = builder_.CreateAnd(builder_.CreateAdd(size, builder_.getInt64(align - 1)), builder_.getInt64(-align));
  llvm::FunctionCallee allocate = module_.module.getOrInsertFunction("aligned_alloc", builder_.getPtrTy(),
                                                                     builder_.getInt64Ty(), builder_.getInt64Ty());
  Value* memory = builder_.CreateCall(allocate, {builder_.getInt64(align), size}, buffer->name);
  return_unless(builder_.CreateICmpNE(memory, llvm::Constant::getNullValue(memory->getType())),
                builder_.getInt32(kOutOfMemoryCode));
  place.pointer = memory;
  place.depth = static_cast<int>(loops_.size());
  heap_.push_back(memory);
  emit(alloc.body);
  heap_.pop_back();
  builder_.CreateCall(module_.module.getOrInsertFunction("free", builder_.getVoidTy(), builder_.getPtrTy()), {memory});
  buffers_[buffer.get()].pointer = nullptr;
}

void FunctionEmitter::emit_frees() {
  for (auto it = heap_.rbegin(); it != heap_.rend(); ++it)
    builder_.CreateCall(module_.module.getOrInsertFunction("free", builder_.getVoidTy(), builder_.getPtrTy()), {*it});
}

void FunctionEmitter::return_unless(Value* ok, Value* code) {
  llvm::BasicBlock *fail = new_block("fail"), *go_on = new_block("ok");
  llvm::BranchInst* branch = builder_.CreateCondBr(ok, go_on, fail);
  branch->setMetadata(llvm::LLVMContext::MD_prof,
                      llvm::MDBuilder(builder_.getContext()).createBranchWeights(1u << 20, 1));
  builder_.SetInsertPoint(fail);
  emit_frees();
  builder_.CreateRet(code);
  builder_.SetInsertPoint(go_on);
}

void FunctionEmitter::emit_assert(const Assert& check) {
  TS_CHECK(check.code != 0) << "assertion with code 0: " << check.message;
  Value* cond = emit(check.cond);
  if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(cond); constant && constant->isOne()) return;
  return_unless(cond, builder_.getInt32(check.code));
}

void FunctionEmitter::emit_evaluate(const Evaluate& e) {
  Value* value = emit(e.value);
  const Call* call = e.value.as<Call>();
  if (call && call->id == Intrinsic::kExtern && module_.program.contains(call->symbol))
    return_unless(builder_.CreateICmpEQ(value, builder_.getInt32(0)), value);
}

}  // namespace tensmith
