// Statements: the walk that collects facts (loop ranges, conditions, assertions, lets) and drops what never runs.

#include "runtime/base/error.h"
#include "tensor/simplify/engine.h"

namespace tensmith {

namespace {

using simplifier::Engine;
using simplifier::kHasEffect;
using simplifier::kHasLoad;
using simplifier::Linear;
using simplifier::Value;
using simplifier::ValueKind;

class StmtSimplifier {
 public:
  explicit StmtSimplifier(const Facts& facts) : engine_(facts) {}

  Stmt visit(const Stmt& s) {
    if (!s) return s;
    switch (s->kind) {
      case NodeKind::kFor: return visit_for(s, static_cast<const For*>(s.get()));
      case NodeKind::kWhile: return visit_while(s, static_cast<const While*>(s.get()));
      case NodeKind::kIf: return visit_if(s, static_cast<const If*>(s.get()));
      case NodeKind::kLetStmt: return visit_let(s, static_cast<const LetStmt*>(s.get()));
      case NodeKind::kStore: return visit_store(s, static_cast<const Store*>(s.get()));
      case NodeKind::kBlock: return visit_block(s, static_cast<const Block*>(s.get()));
      case NodeKind::kAllocate: {
        const auto* op = static_cast<const Allocate*>(s.get());
        Stmt body = visit(op->body);
        if (!body || body.same_as(op->body)) return body ? s : body;
        return Allocate::make(op->buffer, std::move(body));
      }
      case NodeKind::kEvaluate: {
        const auto* op = static_cast<const Evaluate*>(s.get());
        Value* value = engine_.visit(op->value);
        if (!(value->flags & kHasEffect)) return {};
        Expr built = emit(value, op->value);
        return built.same_as(op->value) ? s : Evaluate::make(std::move(built));
      }
      case NodeKind::kAssert: {
        const auto* op = static_cast<const Assert*>(s.get());
        Value* cond = engine_.visit(op->cond);
        if (engine_.truth(cond) == 1) return {};
        Expr built = emit(cond, op->cond);
        return built.same_as(op->cond) ? s : Assert::make(std::move(built), op->code, op->message);
      }
      default: break;
    }
    TS_UNREACHABLE() << "statement kind " << static_cast<int>(s->kind);
  }

 private:
  /// The loop IR of a value that stays in the program.
  Expr emit(Value* value, const Expr& original) {
    used_lets_ |= value->lets;
    return engine_.build(value, original);
  }

  Stmt visit_for(const Stmt& s, const For* op) {
    Value *min = engine_.visit(op->min), *extent = engine_.visit(op->extent);
    Linear none;
    none.add(extent, -1);
    if (!none.overflow && engine_.tame(extent) && engine_.prove_at_least_zero(none)) return {};
    const auto* var = static_cast<const VarNode*>(op->var.get());
    if (extent->is_int(1)) {
      // A load as minimum may give something else later, so it keeps a name.
      if (min->flags & (kHasLoad | kHasEffect)) return visit(LetStmt::make(op->var, op->min, op->body));
      const Engine::Scope scope(engine_);
      engine_.bind_replacement(var, min);
      return visit(op->body);
    }
    if (engine_.range(extent).hi == 1 && !((min->flags | extent->flags) & (kHasLoad | kHasEffect))) {
      // Once or never is a branch.
      Value* runs = engine_.binary(BinaryOp::kLE, engine_.index(1), extent);
      const Engine::Scope scope(engine_);
      engine_.assume(runs);
      engine_.bind_replacement(var, min);
      Stmt body = visit(op->body);
      return body ? If::make(emit(runs, op->extent), std::move(body)) : body;
    }
    const bool reachable = !engine_.contradiction();
    const Engine::Scope scope(engine_);
    engine_.bind_loop(var, min, extent);
    if (reachable && engine_.contradiction()) return {};
    Stmt body = visit(op->body);
    if (!body) return {};
    Expr new_min = emit(min, op->min), new_extent = emit(extent, op->extent);
    if (body.same_as(op->body) && new_min.same_as(op->min) && new_extent.same_as(op->extent)) return s;
    return For::make(op->var, std::move(new_min), std::move(new_extent), op->for_kind, std::move(body), op->attrs);
  }

  Stmt visit_while(const Stmt& s, const While* op) {
    Value* cond = engine_.visit(op->cond);
    if (engine_.truth(cond) == 0) return {};
    Expr built = emit(cond, op->cond);
    Stmt body = visit(op->body);
    if (built.same_as(op->cond) && body.same_as(op->body)) return s;
    return While::make(std::move(built), std::move(body));
  }

  /// Conditions on memory may stop to hold with the next store.
  void assume_stable(Value* cond, bool truth) {
    if (cond->is(ValueKind::kNot)) return assume_stable(cond->kids[0], !truth);
    if (cond->is_op(truth ? BinaryOp::kAnd : BinaryOp::kOr) && (cond->flags & kHasLoad)) {
      for (uint32_t i = 0; i < cond->count; ++i) assume_stable(cond->kids[i], truth);
      return;
    }
    if (!(cond->flags & kHasLoad)) engine_.assume(cond, truth);
  }

  Stmt visit_if(const Stmt& s, const If* op) {
    Value* cond = engine_.visit(op->cond);
    if (const int known = engine_.truth(cond); known != -1) return visit(known ? op->then : op->otherwise);
    Stmt branches[2];
    bool excluded[2];
    for (const int i : {0, 1}) {
      const bool reachable = !engine_.contradiction();
      const Engine::Scope scope(engine_);
      assume_stable(cond, i == 0);
      excluded[i] = reachable && engine_.contradiction();
      if (!excluded[i]) branches[i] = visit(i == 0 ? op->then : op->otherwise);
    }
    if (excluded[0]) return branches[1];
    if (excluded[1]) return branches[0];
    if (!branches[0] && !branches[1]) return cond->flags & kHasEffect ? Evaluate::make(emit(cond, op->cond)) : Stmt();
    if (!branches[0]) return If::make(emit(engine_.logical_not(cond), op->cond), std::move(branches[1]));
    Expr built = emit(cond, op->cond);
    if (built.same_as(op->cond) && branches[0].same_as(op->then) && branches[1].same_as(op->otherwise)) return s;
    return If::make(std::move(built), std::move(branches[0]), std::move(branches[1]));
  }

  Stmt visit_let(const Stmt& s, const LetStmt* op) {
    Value* value = engine_.visit(op->value);
    const auto* var = static_cast<const VarNode*>(op->var.get());
    const Engine::Scope scope(engine_);
    if (engine_.bind_let(var, value)) return visit(op->body);
    const uint64_t bit = engine_.let_bit(var);
    const uint64_t outside = used_lets_;
    used_lets_ = 0;
    Stmt body = visit(op->body);
    const bool used = used_lets_ & bit;
    used_lets_ = (used_lets_ & ~bit) | outside;
    if (!body && !(value->flags & kHasEffect)) return {};
    if (!used && !(value->flags & kHasEffect)) return body;
    Expr built = emit(value, op->value);
    if (built.same_as(op->value) && body.same_as(op->body)) return s;
    return LetStmt::make(op->var, std::move(built), std::move(body));
  }

  Stmt visit_store(const Stmt& s, const Store* op) {
    Value* predicate = op->predicate ? engine_.visit(op->predicate) : nullptr;
    if (predicate) {
      const int known = engine_.truth(predicate);
      if (known == 0) return {};
      if (known == 1) predicate = nullptr;
    }
    bool changed = false;
    std::vector<Expr> indices;
    indices.reserve(op->indices.size());
    for (const Expr& i : op->indices) {
      indices.push_back(emit(engine_.visit(i), i));
      changed |= !indices.back().same_as(i);
    }
    Expr value = emit(engine_.visit(op->value), op->value);
    Expr mask = predicate ? emit(predicate, op->predicate) : Expr();
    if (!changed && value.same_as(op->value) && mask.same_as(op->predicate)) return s;
    return Store::make(op->buffer, std::move(indices), std::move(value), std::move(mask));
  }

  Stmt visit_block(const Stmt& s, const Block* op) {
    const Engine::Scope scope(engine_);  // what an assertion says holds for the rest
    bool changed = false;
    std::vector<Stmt> stmts;
    stmts.reserve(op->stmts.size());
    for (const Stmt& part : op->stmts) {
      Stmt next = visit(part);
      changed |= !next.same_as(part);
      const auto believe = [&](const Stmt& stmt) {
        if (const auto* assertion = stmt.as<Assert>())
          assume_stable(engine_.visit(engine_.keep(assertion->cond)), true);
      };
      believe(next);
      if (const auto* inner = next.as<Block>())  // will be part of this block
        for (const Stmt& stmt : inner->stmts) believe(stmt);
      if (next) stmts.push_back(std::move(next));
    }
    return changed ? Block::make(std::move(stmts)) : s;
  }

  Engine engine_;
  uint64_t used_lets_ = 0;
};

}  // namespace

Stmt simplify(const Stmt& s, const Facts& facts) { return StmtSimplifier(facts).visit(s); }

}  // namespace tensmith
