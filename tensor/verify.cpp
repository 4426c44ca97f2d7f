#include "tensor/verify.h"

#include <unordered_set>

#include "tensor/print.h"
#include "tensor/verify/bounds.h"
#include "tensor/verify/races.h"
#include "tensor/verify/types.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

using simplifier::Engine;
using simplifier::kHasLoad;
using simplifier::Value;

const VarNode* node_of(const Var& var) { return static_cast<const VarNode*>(var.get()); }

class Verifier {
 public:
  Verifier(const LoopFunction& f, const VerifyOptions& options)
      : f_(f), options_(options), engine_(options.facts), bounds_(engine_) {}

  Result<void> run() {
    for (const Var& scalar : f_.scalars) define(scalar);
    for (const Buffer& buffer : f_.buffers)
      if (!buffers_.insert(buffer.get()).second)
        fail("verify-scope", {}, "parameter " + buffer->name + ": expected each buffer once, got it twice");
    for (const Buffer& buffer : f_.outputs) {
      if (!buffers_.count(buffer.get()))
        fail("verify-scope", {}, "output " + buffer->name + ": expected one of the parameters, got another buffer");
      writable_.insert(buffer.get());
    }
    for (const Buffer& buffer : f_.buffers) check_shape(buffer);
    if (!failed()) check(f_.body);
    return failed() ? Result<void>(std::move(*failure_)) : Result<void>();
  }

 private:
  bool failed() const { return failure_.has_value(); }
  void fail(const char* id, const Stmt& at, const std::string& what) {
    if (failed()) return;
    std::string where = "function " + f_.name;
    if (at) {
      std::string text = to_string(at);
      text = text.substr(0, text.find('\n'));
      if (text.size() > 160) text = text.substr(0, 160) + "...";
      where += ", `" + text + "`";
    }
    failure_ = Failure{id, where + ": " + what};
  }

  void define(const Var& var) {
    if (!vars_.insert(node_of(var)).second)
      fail("verify-scope", at_, "variable " + var.name() + ": expected one definition, got another inside its scope");
  }

  /// Definitions that end with a block of code, and the nodes that were found right under them.
  struct Mark {
    explicit Mark(Verifier& v) : verifier(v), seen(v.order_.size()), scope(v.scope_) {}
    ~Mark() {
      while (verifier.order_.size() > seen) {
        verifier.seen_.erase(verifier.order_.back());
        verifier.order_.pop_back();
      }
      verifier.scope_ = scope;
    }
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;
    Verifier& verifier;
    size_t seen;
    uint64_t scope;
  };
  void new_scope() { scope_ = ++last_scope_; }

  /// Types and scopes of an expression.
  void check_form(const Expr& e) {
    if (failed()) return;
    if (!e.get()) return fail("verify-type", at_, "expected an expression, got none");
    if (e.kind() == NodeKind::kVar) {
      if (!vars_.count(static_cast<const VarNode*>(e.get())))
        fail("verify-scope", at_,
             "variable " + static_cast<const VarNode*>(e.get())->name +
                 ": expected a definition around its use, got none");
      return;
    }
    if (!seen_.insert(e.get()).second) return;
    order_.push_back(e.get());
    if (const std::string error = verifier::type_error(e); !error.empty()) return fail("verify-type", at_, error);
    if (const auto* load = e.as<Load>()) check_buffer(load->buffer);
    if (const auto* let = e.as<Let>()) {
      check_form(let->value);
      const Mark mark(*this);
      define(let->var);
      check_form(let->body);
      vars_.erase(node_of(let->var));
      return;
    }
    for_each_child(e, [&](const Expr& child) { check_form(child); });
  }

  void check(const Expr& e) {
    check_form(e);
    if (failed() || !options_.bounds) return;
    if (const std::string error = bounds_.check(e, scope_); !error.empty()) fail("verify-bounds", at_, error);
  }

  void check_buffer(const Buffer& buffer) {
    if (!buffers_.count(buffer.get()))
      fail("verify-scope", at_,
           "buffer " + buffer->name + ": expected a parameter or an allocation around its use, got neither");
  }

  void check_shape(const Buffer& buffer) {
    for (const Expr& extent : buffer->shape) {
      check(extent);
      if (failed()) return;
      Value* value = engine_.visit(extent);
      // A buffer has no negative extent.
      if (!(value->flags & kHasLoad)) engine_.assume(engine_.binary(BinaryOp::kLE, engine_.index(0), value));
    }
  }

  /// Conditions on memory hold in a branch that does not write what they read.
  void assume(Value* cond, bool truth, const Stmt& branch) {
    if (!(cond->flags & kHasLoad)) return engine_.assume(cond, truth);
    std::unordered_set<const void*> read;
    std::unordered_set<Value*> looked_at;
    const auto look = [&](auto& self, Value* v) -> void {
      if (!looked_at.insert(v).second) return;
      if (v->is(simplifier::ValueKind::kLoad)) read.insert(v->object);
      for (uint32_t i = 0; i < v->count; ++i) self(self, v->kids[i]);
    };
    look(look, cond);
    bool stable = true;
    visit(
        branch,
        [&](const Stmt& s) {
          if (const auto* store = s.as<Store>()) stable = stable && !read.count(store->buffer.get());
          return stable;
        },
        [&](const Expr& e) {
          if (const auto* call = e.as<Call>()) stable = stable && intrinsic_info(call->id).pure;
          return stable;
        });
    if (stable) engine_.assume(cond, truth);
  }

  void check(const Stmt& s) {
    if (failed() || !s) return;
    at_ = s;
    if (const std::string error = verifier::type_error(s); !error.empty()) return fail("verify-type", s, error);
    switch (s->kind) {
      case NodeKind::kFor: return check_for(static_cast<const For*>(s.get()));
      case NodeKind::kWhile: {
        const auto* op = static_cast<const While*>(s.get());
        check(op->cond);
        return check(op->body);
      }
      case NodeKind::kIf: return check_if(static_cast<const If*>(s.get()));
      case NodeKind::kLetStmt: {
        const auto* op = static_cast<const LetStmt*>(s.get());
        check(op->value);
        if (failed()) return;
        Value* value = engine_.visit(op->value);
        const Mark mark(*this);
        const Engine::Scope scope(engine_);
        new_scope();
        define(op->var);
        engine_.bind_let(node_of(op->var), value);
        check(op->body);
        vars_.erase(node_of(op->var));
        return;
      }
      case NodeKind::kStore: return check_store(s, static_cast<const Store*>(s.get()));
      case NodeKind::kBlock: {
        const Mark mark(*this);
        const Engine::Scope scope(engine_);
        for (const Stmt& part : static_cast<const Block*>(s.get())->stmts) {
          check(part);
          if (failed()) return;
          const auto* assertion = part.as<Assert>();
          if (!assertion) continue;
          Value* cond = engine_.visit(assertion->cond);
          if (cond->flags & kHasLoad) continue;
          engine_.assume(cond);
          new_scope();
        }
        return;
      }
      case NodeKind::kAllocate: {
        const auto* op = static_cast<const Allocate*>(s.get());
        const Mark mark(*this);
        const Engine::Scope scope(engine_);
        if (!buffers_.insert(op->buffer.get()).second)
          return fail("verify-scope", s,
                      "buffer " + op->buffer->name + ": expected one definition, got another inside its scope");
        writable_.insert(op->buffer.get());
        check_shape(op->buffer);
        new_scope();
        check(op->body);
        buffers_.erase(op->buffer.get());
        writable_.erase(op->buffer.get());
        return;
      }
      case NodeKind::kEvaluate: return check(static_cast<const Evaluate*>(s.get())->value);
      case NodeKind::kAssert: return check(static_cast<const Assert*>(s.get())->cond);
      default: return;
    }
  }

  void check_for(const For* op) {
    check(op->min);
    check(op->extent);
    if (failed()) return;
    if (options_.races && op->for_kind == ForKind::kParallel)
      if (const std::string error = verifier::RaceChecker(engine_).check(*op); !error.empty())
        return fail("verify-race", at_, error);
    Value *min = engine_.visit(op->min), *extent = engine_.visit(op->extent);
    const Mark mark(*this);
    const Engine::Scope scope(engine_);
    new_scope();
    define(op->var);
    engine_.bind_loop(node_of(op->var), min, extent);
    check(op->body);
    vars_.erase(node_of(op->var));
  }

  void check_if(const If* op) {
    check(op->cond);
    if (failed()) return;
    Value* cond = engine_.visit(op->cond);
    for (const bool truth : {true, false}) {
      const Stmt& branch = truth ? op->then : op->otherwise;
      if (!branch) continue;
      const Mark mark(*this);
      const Engine::Scope scope(engine_);
      new_scope();
      assume(cond, truth, branch);
      check(branch);
    }
  }

  void check_store(const Stmt& s, const Store* op) {
    check_buffer(op->buffer);
    if (failed()) return;
    if (!writable_.count(op->buffer.get()) || op->buffer->scope == Scope::kConstant)
      return fail("verify-scope", s,
                  "store to " + op->buffer->name + ": expected an output, a workspace or an allocation, got " +
                      (op->buffer->scope == Scope::kConstant ? "constant memory" : "an input") +
                      "; list it among the outputs");
    for (const Expr& index : op->indices) check(index);
    check(op->value);
    if (op->predicate) check(op->predicate);
    if (failed() || !options_.bounds) return;
    if (const std::string error = bounds_.check_access(op->buffer, op->indices, op->predicate); !error.empty())
      fail("verify-bounds", s, error);
  }

  const LoopFunction& f_;
  const VerifyOptions& options_;
  Engine engine_;
  verifier::BoundsChecker bounds_;
  std::optional<Failure> failure_;
  Stmt at_;  // the statement that is looked at, for messages
  std::unordered_set<const VarNode*> vars_;
  std::unordered_set<const BufferNode*> buffers_, writable_;
  std::unordered_set<const ExprNode*> seen_;  // expressions whose form was checked under definitions that still hold
  std::vector<const ExprNode*> order_;
  uint64_t scope_ = 1, last_scope_ = 1;
};

}  // namespace

Result<void> verify(const LoopFunction& f, const VerifyOptions& options) {
  if (f.attrs.count(kDeclaration)) return {};
  return Verifier(f, options).run();
}

}  // namespace tensmith
