#include "tensor/interpreter/compile.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "tensor/print.h"
#include "tensor/walk.h"

namespace tensmith::interp {

void Compiler::fail(const std::string& what) const { throw Malformed{function_.name + ": " + what}; }

size_t Compiler::emit(Op op, int lanes, Slot dst, Slot a, Slot b, Slot c) {
  code_.insts.push_back({op, static_cast<uint16_t>(lanes), dst, a, b, c});
  return code_.insts.size() - 1;
}

Compiler::Slot Compiler::cells(int count) {
  const Slot first = next_cell_;
  if (count > INT32_MAX - next_cell_ - 64) fail("expected less than 2^31 values in one statement, got more");
  next_cell_ += count;
  code_.cells = std::max(code_.cells, next_cell_);
  return first;
}

Compiler::Slot Compiler::constant(Cell cell) {
  const auto [it, fresh] =
      constants_.try_emplace(std::bit_cast<int64_t>(cell), -static_cast<Slot>(code_.constants.size()) - 1);
  if (fresh) code_.constants.push_back(cell);
  return it->second;
}

int32_t Compiler::operands(const std::vector<Slot>& slots) {
  const auto first = static_cast<int32_t>(code_.operands.size());
  code_.operands.insert(code_.operands.end(), slots.begin(), slots.end());
  return first;
}

int32_t Compiler::add_buffer(const Buffer& buffer) {
  if (!buffer->dtype.is_scalar())
    fail("expected a scalar type for buffer " + buffer->name + ", got " + to_string(buffer->dtype));
  BufferInfo info{buffer, 0, code_.geometry};
  code_.geometry += 2 * static_cast<int32_t>(buffer->shape.size());
  code_.buffers.push_back(std::move(info));
  return static_cast<int32_t>(code_.buffers.size()) - 1;
}

void Compiler::extents(int32_t buffer) {
  std::vector<Slot> slots;
  for (const Expr& extent : code_.buffers[static_cast<size_t>(buffer)].node->shape)
    slots.push_back(scalar(extent, kInt64, "an extent"));
  code_.buffers[static_cast<size_t>(buffer)].first_extent = operands(slots);
}

Code Compiler::run() {
  code_.function = &function_;
  code_.first_scalar = next_cell_;
  for (const Var& var : function_.scalars) {
    if (!var.dtype().is_scalar())
      fail("expected a scalar type for parameter " + var.name() + ", got " + to_string(var.dtype()));
    vars_[var.operator->()] = cells(1);
  }
  for (const Buffer& buffer : function_.buffers) buffers_[buffer.get()] = add_buffer(buffer);
  for (size_t k = 0; k < function_.buffers.size(); ++k) {
    extents(static_cast<int32_t>(k));
    emit(Op::kBind, 1, 0, static_cast<Slot>(k));
  }
  stmt(function_.body);
  emit(Op::kReturn, 1, 0);
  return std::move(code_);
}

void Compiler::stmt(const Stmt& s) {
  if (!s) return;
  const Slot saved = next_cell_;
  const MemoScope memo(*this);
  switch (s->kind) {
    case NodeKind::kFor: loop(*s.as<For>()); break;
    case NodeKind::kWhile: {
      const auto& node = *s.as<While>();
      const int32_t start = here();
      emit(Op::kStep, 1, 0);
      size_t exit;
      {
        const MemoScope turn(*this);
        exit = emit(Op::kJumpIfNot, 1, 0, scalar(node.cond, kBool, "a condition"));
      }
      stmt(node.body);
      emit(Op::kJump, 1, start);
      code_.insts[exit].dst = here();
      break;
    }
    case NodeKind::kIf: branch(*s.as<If>()); break;
    case NodeKind::kLetStmt: {
      const auto& node = *s.as<LetStmt>();
      const Slot value = expr(node.value);
      if (node.value.dtype() != node.var.dtype())
        fail("expected a value of " + to_string(node.var.dtype()) + " for " + node.var.name());
      forget_loads();
      const Hidden hidden(*this, node.var);
      const Binding binding(*this, node.var, value);
      stmt(node.body);
      break;
    }
    case NodeKind::kStore: store(*s.as<Store>()); break;
    case NodeKind::kBlock:
      for (const Stmt& child : s.as<Block>()->stmts) stmt(child);
      break;
    case NodeKind::kAllocate: allocate(*s.as<Allocate>()); break;
    case NodeKind::kEvaluate: evaluate(s.as<Evaluate>()->value); break;
    case NodeKind::kAssert: {
      const auto& node = *s.as<Assert>();
      emit(Op::kStep, 1, 0);
      code_.asserts.push_back({node.code, node.message});
      const Slot cond = scalar(node.cond, kBool, "a condition");
      emit(Op::kAssert, 1, 0, cond, static_cast<Slot>(code_.asserts.size()) - 1);
      break;
    }
    default: fail("expected a statement");
  }
  next_cell_ = saved;
}

void Compiler::loop(const For& node) {
  const Slot min = scalar(node.min, kInt64, "a loop's start"), extent = scalar(node.extent, kInt64, "a loop's extent");
  const Slot var = cells(2);
  forget_loads();
  hoist(node);
  const size_t enter = emit(Op::kForEnter, 1, var, min, extent);
  const int32_t body = here();
  {
    const Hidden hidden(*this, node.var);
    const Binding binding(*this, node.var, var);
    stmt(node.body);
  }
  emit(Op::kForNext, 1, var, 0, 0, body);
  code_.insts[enter].c = here();
}

void Compiler::hoist(const For& node) {
  std::unordered_set<const VarNode*> inside = {node.var.operator->()};
  const auto bind_lets = [&](const Expr& e) {
    if (const auto* let = e.as<Let>()) inside.insert(let->var.operator->());
    return true;
  };
  visit(
      node.body,
      [&](const Stmt& s) {
        if (const auto* loop = s.as<For>()) inside.insert(loop->var.operator->());
        if (const auto* let = s.as<LetStmt>()) inside.insert(let->var.operator->());
        return true;
      },
      bind_lets);
  // The largest parts that do not change; a part of a loop further inside is found again there, and then already
  // computed.
  visit(
      node.body, [](const Stmt&) { return true; },
      [&](const Expr& e) {
        const bool leaf = e.as<IntImm>() || e.as<FloatImm>() || e.as<VarNode>();
        if (leaf || pure_.slots.count(e.get())) return false;
        if (!is_pure(e)) return true;
        bool fixed = true;
        visit(e, [&](const Expr& part) {
          if (const auto* var = part.as<VarNode>()) fixed = fixed && !inside.count(var) && vars_.count(var);
          return fixed;
        });
        if (fixed) expr(e);
        return !fixed;
      });
}

void Compiler::branch(const If& node) {
  const size_t to_else = emit(Op::kJumpIfNot, 1, 0, scalar(node.cond, kBool, "a condition"));
  forget_loads();
  stmt(node.then);
  if (!node.otherwise) {
    code_.insts[to_else].dst = here();
    return;
  }
  const size_t to_end = emit(Op::kJump, 1, 0);
  code_.insts[to_else].dst = here();
  stmt(node.otherwise);
  code_.insts[to_end].dst = here();
}

void Compiler::store(const Store& node) {
  const int lanes = node.value.dtype().lanes;
  if (node.value.dtype().element() != node.buffer->dtype)
    fail("expected a value of " + to_string(node.buffer->dtype) + " for " + node.buffer->name);
  const Slot value = expr(node.value);
  const Slot mask = mask_for(lanes, node.predicate);
  const int32_t buffer = buffer_number(node.buffer);
  const bool flat = node.indices.size() == 1;
  if (lanes == 1 && mask == kAnywhere && (flat || (node.indices.size() == 2 && node.buffer->shape.size() == 2))) {
    const Slot first = scalar(node.indices[0], kInt64, "an index");
    if (flat) emit(Op::kStore1, 1, buffer, first, 0, value);
    else emit(Op::kStore2, 1, buffer, first, scalar(node.indices[1], kInt64, "an index"), value);
    return;
  }
  const int32_t place = access(node.buffer, node.indices, lanes);
  if (mask == kAnywhere) emit(Op::kStore, lanes, 0, place, value);
  else emit(Op::kStoreMasked, lanes, 0, place, value, mask);
}

void Compiler::allocate(const Allocate& node) {
  emit(Op::kStep, 1, 0);
  const int32_t number = add_buffer(node.buffer);
  extents(number);
  forget_loads();
  const auto outer = buffers_.find(node.buffer.get());
  const int32_t shadowed = outer == buffers_.end() ? -1 : outer->second;
  buffers_[node.buffer.get()] = number;
  emit(Op::kAllocate, 1, 0, number);
  stmt(node.body);
  emit(Op::kFree, 1, 0);
  if (shadowed < 0) buffers_.erase(node.buffer.get());
  else buffers_[node.buffer.get()] = shadowed;
}

void Compiler::evaluate(const Expr& e) {
  emit(Op::kStep, 1, 0);
  const auto* call = e.as<Call>();
  if (call && call->id == Intrinsic::kPrefetch) return;  // a hint: nothing is read
  const Slot value = expr(e);
  // Nobody looks at the result code, so a failure must not pass in silence.
  if (call && call->id == Intrinsic::kExtern && call->dtype.is_scalar() && call->dtype.is_integral())
    emit(Op::kCheckCode, 1, 0, value);
}

std::vector<Code> compile(const LoopProgram& program, InterpFloat mode) {
  std::vector<Code> codes(program.functions.size());
  if (codes.empty()) return codes;
  std::vector<size_t> open = {codes.size() - 1};
  while (!open.empty()) {
    const size_t k = open.back();
    open.pop_back();
    if (codes[k].function) continue;
    codes[k] = Compiler(program, program.functions[k], mode).run();
    for (const CallInfo& call : codes[k].calls)
      if (call.callee >= 0) open.push_back(static_cast<size_t>(call.callee));
  }
  return codes;
}

}  // namespace tensmith::interp
