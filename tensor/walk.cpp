#include "tensor/walk.h"

namespace tensmith {

namespace {

// Children of one field; plain fields (numbers, names, buffers) have none.
template <typename F, typename G>
struct FieldVisitor {
  F& on_expr;
  G& on_stmt;
  void operator()(const Expr& e) const {
    if (e) on_expr(e);
  }
  void operator()(const Var&) const {}  // a binding, not a use
  void operator()(const Stmt& s) const {
    if (s) on_stmt(s);
  }
  void operator()(const std::vector<Expr>& list) const {
    for (const Expr& e : list) on_expr(e);
  }
  void operator()(const std::vector<Stmt>& list) const {
    for (const Stmt& s : list) on_stmt(s);
  }
  template <typename T>
  void operator()(const T&) const {}
};

template <typename T, typename F, typename G>
void walk_fields(const T& node, F& on_expr, G& on_stmt) {
  const FieldVisitor<F, G> visitor{on_expr, on_stmt};
  std::apply([&](const auto&... field) { (visitor(field), ...); }, node.fields());
}

template <typename F, typename G>
void walk_children(const Node& node, F&& on_expr, G&& on_stmt) {
  switch (node.kind) {
#define TS_EXPR_KIND(Name) \
  case NodeKind::k##Name:  \
    return walk_fields(static_cast<const Name&>(node), on_expr, on_stmt);
#define TS_STMT_KIND(Name) TS_EXPR_KIND(Name)
    using Var = VarNode;  // the node class of kind kVar
#include "tensor/node_kinds.def"
#undef TS_EXPR_KIND
#undef TS_STMT_KIND
  }
}

}  // namespace

void for_each_child(const Expr& e, const std::function<void(const Expr&)>& fn) {
  walk_children(*e, fn, [](const Stmt&) {});
}

void for_each_child(const Stmt& s, const std::function<void(const Expr&)>& on_expr,
                    const std::function<void(const Stmt&)>& on_stmt) {
  walk_children(*s, on_expr, on_stmt);
}

void visit(const Expr& e, const std::function<bool(const Expr&)>& fn) {
  if (!fn(e)) return;
  walk_children(
      *e, [&](const Expr& child) { visit(child, fn); }, [](const Stmt&) {});
}

void visit(const Stmt& s, const std::function<bool(const Stmt&)>& on_stmt,
           const std::function<bool(const Expr&)>& on_expr) {
  if (!s || !on_stmt(s)) return;
  walk_children(
      *s,
      [&](const Expr& child) {
        if (on_expr) visit(child, on_expr);
      },
      [&](const Stmt& child) { visit(child, on_stmt, on_expr); });
}

std::vector<Expr> Mutator::mutate_all(const std::vector<Expr>& list, bool* changed) {
  std::vector<Expr> result;
  result.reserve(list.size());
  for (const Expr& e : list) {
    result.push_back(mutate(e));
    *changed |= !result.back().same_as(e);
  }
  return result;
}

Expr Mutator::mutate_children(const Expr& e) {
  switch (e.kind()) {
    case NodeKind::kCast: {
      const auto& node = *e.as<Cast>();
      Expr value = mutate(node.value);
      return value.same_as(node.value) ? e : Cast::make(node.dtype.with_lanes(value.dtype().lanes), value);
    }
    case NodeKind::kBinary: {
      const auto& node = *e.as<Binary>();
      Expr a = mutate(node.a), b = mutate(node.b);
      return a.same_as(node.a) && b.same_as(node.b) ? e : Binary::make(node.op, a, b);
    }
    case NodeKind::kNot: {
      const auto& node = *e.as<Not>();
      Expr value = mutate(node.value);
      return value.same_as(node.value) ? e : Not::make(value);
    }
    case NodeKind::kSelect: {
      const auto& node = *e.as<Select>();
      Expr cond = mutate(node.cond), a = mutate(node.a), b = mutate(node.b);
      return cond.same_as(node.cond) && a.same_as(node.a) && b.same_as(node.b) ? e : Select::make(cond, a, b);
    }
    case NodeKind::kLoad: {
      const auto& node = *e.as<Load>();
      bool changed = false;
      std::vector<Expr> indices = mutate_all(node.indices, &changed);
      Expr predicate = node.predicate ? mutate(node.predicate) : Expr();
      changed |= !predicate.same_as(node.predicate);
      return changed ? Load::make(node.buffer, std::move(indices), predicate) : e;
    }
    case NodeKind::kRamp: {
      const auto& node = *e.as<Ramp>();
      Expr base = mutate(node.base), stride = mutate(node.stride);
      return base.same_as(node.base) && stride.same_as(node.stride) ? e : Ramp::make(base, stride, node.lanes);
    }
    case NodeKind::kBroadcast: {
      const auto& node = *e.as<Broadcast>();
      Expr value = mutate(node.value);
      return value.same_as(node.value) ? e : Broadcast::make(value, node.lanes);
    }
    case NodeKind::kLet: {
      const auto& node = *e.as<Let>();
      Expr value = mutate(node.value), body = mutate(node.body);
      return value.same_as(node.value) && body.same_as(node.body) ? e : Let::make(node.var, value, body);
    }
    case NodeKind::kCall: {
      const auto& node = *e.as<Call>();
      bool changed = false;
      std::vector<Expr> args = mutate_all(node.args, &changed);
      if (!changed) return e;
      if (node.id == Intrinsic::kExtern) return Call::make_extern(node.dtype, node.symbol, std::move(args));
      return Call::make(node.dtype, node.id, std::move(args));
    }
    default: return e;
  }
}

Stmt Mutator::mutate_children(const Stmt& s) {
  if (!s) return s;
  switch (s->kind) {
    case NodeKind::kFor: {
      const auto& node = *s.as<For>();
      Expr min = mutate(node.min), extent = mutate(node.extent);
      Stmt body = mutate(node.body);
      if (min.same_as(node.min) && extent.same_as(node.extent) && body.same_as(node.body)) return s;
      return For::make(node.var, min, extent, node.for_kind, body, node.attrs);
    }
    case NodeKind::kWhile: {
      const auto& node = *s.as<While>();
      Expr cond = mutate(node.cond);
      Stmt body = mutate(node.body);
      return cond.same_as(node.cond) && body.same_as(node.body) ? s : While::make(cond, body);
    }
    case NodeKind::kIf: {
      const auto& node = *s.as<If>();
      Expr cond = mutate(node.cond);
      Stmt then = node.then ? mutate(node.then) : Stmt(), otherwise = node.otherwise ? mutate(node.otherwise) : Stmt();
      return cond.same_as(node.cond) && then.same_as(node.then) && otherwise.same_as(node.otherwise)
                 ? s
                 : If::make(cond, then, otherwise);
    }
    case NodeKind::kLetStmt: {
      const auto& node = *s.as<LetStmt>();
      Expr value = mutate(node.value);
      Stmt body = mutate(node.body);
      return value.same_as(node.value) && body.same_as(node.body) ? s : LetStmt::make(node.var, value, body);
    }
    case NodeKind::kStore: {
      const auto& node = *s.as<Store>();
      bool changed = false;
      std::vector<Expr> indices = mutate_all(node.indices, &changed);
      Expr value = mutate(node.value);
      Expr predicate = node.predicate ? mutate(node.predicate) : Expr();
      changed |= !value.same_as(node.value) || !predicate.same_as(node.predicate);
      return changed ? Store::make(node.buffer, std::move(indices), value, predicate) : s;
    }
    case NodeKind::kBlock: {
      const auto& node = *s.as<Block>();
      bool changed = false;
      std::vector<Stmt> stmts;
      stmts.reserve(node.stmts.size());
      for (const Stmt& child : node.stmts) {
        stmts.push_back(mutate(child));
        changed |= !stmts.back().same_as(child);
      }
      return changed ? Block::make(std::move(stmts)) : s;
    }
    case NodeKind::kAllocate: {
      const auto& node = *s.as<Allocate>();
      Stmt body = mutate(node.body);
      return body.same_as(node.body) ? s : Allocate::make(node.buffer, body);
    }
    case NodeKind::kEvaluate: {
      const auto& node = *s.as<Evaluate>();
      Expr value = mutate(node.value);
      return value.same_as(node.value) ? s : Evaluate::make(value);
    }
    case NodeKind::kAssert: {
      const auto& node = *s.as<Assert>();
      Expr cond = mutate(node.cond);
      return cond.same_as(node.cond) ? s : Assert::make(cond, node.code, node.message);
    }
    default: TS_UNREACHABLE() << static_cast<int>(s->kind);
  }
  return s;
}

namespace {

class Rewriter : public Mutator {
 public:
  Rewriter(const std::function<Expr(const Expr&)>& on_expr, const std::function<Stmt(const Stmt&)>& on_stmt)
      : on_expr_(on_expr), on_stmt_(on_stmt) {}
  Expr mutate(const Expr& e) override {
    Expr rebuilt = mutate_children(e);
    return on_expr_ ? on_expr_(rebuilt) : rebuilt;
  }
  Stmt mutate(const Stmt& s) override {
    Stmt rebuilt = mutate_children(s);
    return on_stmt_ && rebuilt ? on_stmt_(rebuilt) : rebuilt;
  }

 private:
  const std::function<Expr(const Expr&)>& on_expr_;
  const std::function<Stmt(const Stmt&)>& on_stmt_;
};

class Substituter : public Mutator {
 public:
  explicit Substituter(const VarMap& map) : map_(map) {}
  using Mutator::mutate;
  Expr mutate(const Expr& e) override {
    if (const auto* var = e.as<VarNode>()) {
      const auto it = map_.find(var);
      return it == map_.end() ? e : it->second;
    }
    return mutate_children(e);
  }

 private:
  const VarMap& map_;
};

class BufferSubstituter : public Mutator {
 public:
  explicit BufferSubstituter(const BufferMap& map) : map_(map) {}
  Expr mutate(const Expr& e) override {
    Expr rebuilt = mutate_children(e);
    if (const auto* node = rebuilt.as<Load>())
      if (const auto it = map_.find(node->buffer.get()); it != map_.end())
        return Load::make(it->second, node->indices, node->predicate);
    return rebuilt;
  }
  Stmt mutate(const Stmt& s) override {
    Stmt rebuilt = mutate_children(s);
    if (const auto* store = rebuilt.as<Store>()) {
      if (const auto it = map_.find(store->buffer.get()); it != map_.end())
        return Store::make(it->second, store->indices, store->value, store->predicate);
    } else if (const auto* allocate = rebuilt.as<Allocate>()) {
      if (const auto it = map_.find(allocate->buffer.get()); it != map_.end())
        return Allocate::make(it->second, allocate->body);
    }
    return rebuilt;
  }

 private:
  const BufferMap& map_;
};

}  // namespace

Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& fn) {
  const std::function<Stmt(const Stmt&)> none;
  return Rewriter(fn, none).mutate(e);
}

Stmt rewrite(const Stmt& s, const std::function<Expr(const Expr&)>& on_expr,
             const std::function<Stmt(const Stmt&)>& on_stmt) {
  return s ? Rewriter(on_expr, on_stmt).mutate(s) : s;
}

Expr substitute(const Expr& e, const VarMap& map) { return e.get() && !map.empty() ? Substituter(map).mutate(e) : e; }
Stmt substitute(const Stmt& s, const VarMap& map) { return s && !map.empty() ? Substituter(map).mutate(s) : s; }
Stmt substitute_buffers(const Stmt& s, const BufferMap& map) { return s ? BufferSubstituter(map).mutate(s) : s; }
Expr substitute_buffers(const Expr& e, const BufferMap& map) { return e ? BufferSubstituter(map).mutate(e) : e; }

bool uses_var(const Expr& e, const Var& var) {
  bool found = false;
  visit(e, [&](const Expr& node) {
    found |= node.get() == var.get();
    return !found;
  });
  return found;
}

bool uses_var(const Stmt& s, const Var& var) {
  bool found = false;
  visit(
      s, [&](const Stmt&) { return !found; },
      [&](const Expr& node) {
        found |= node.get() == var.get();
        return !found;
      });
  return found;
}

std::unordered_set<const VarNode*> collect_vars(const Expr& e) {
  std::unordered_set<const VarNode*> vars;
  visit(e, [&](const Expr& node) {
    if (const auto* var = node.as<VarNode>()) vars.insert(var);
    return true;
  });
  return vars;
}

}  // namespace tensmith
