#include "schedule/lower/partition_loops.h"

#include <unordered_set>

#include "tensor/simplify.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

// Beyond this many stores a body is not copied: code size costs more than the branch.
constexpr int64_t kMaxCopiedStores = 1024;

using VarSet = std::unordered_set<const VarNode*>;
using NodeSet = std::unordered_set<const ExprNode*>;

/// Where a condition on a loop variable holds: v >= low or v < high.
struct Limit {
  Expr low, high;
};

/// Solves a comparison for `var`; everything else must be free of the variables in `inner`.
std::optional<Limit> solve(const Expr& condition, const Var& var, const VarSet& inner) {
  const auto* compare = condition.as<Binary>();
  if (!compare || compare->a.dtype().element() != kInt64) return {};
  if (compare->a.dtype().lanes > 1) {
    // A mask `ramp(base, 1) < bound` is full when its last lane is inside.
    const auto* ramp = compare->a.as<Ramp>();
    const auto* bound = compare->b.as<Broadcast>();
    if (compare->op != BinaryOp::kLT || !ramp || !bound || !is_const_int(ramp->stride, 1)) return {};
    return solve(ramp->base + int64_t{ramp->lanes - 1} < bound->value, var, inner);
  }
  Expr difference;  // holds when >= 0
  switch (compare->op) {
    case BinaryOp::kLT: difference = compare->b - compare->a - 1; break;
    case BinaryOp::kLE: difference = compare->b - compare->a; break;
    case BinaryOp::kGT: difference = compare->a - compare->b - 1; break;
    case BinaryOp::kGE: difference = compare->a - compare->b; break;
    default: return {};
  }
  LinearForm form = linear_form(difference);
  int64_t coefficient = 0;
  LinearForm rest{form.constant, {}};
  for (const auto& [term, factor] : form.terms) {
    if (term.get() == var.get()) {
      coefficient = factor;
      continue;
    }
    bool invariant = true;
    visit(term, [&](const Expr& e) {
      if (const auto* v = e.as<VarNode>()) invariant &= v != var.get() && !inner.count(v);
      invariant &= e.kind() != NodeKind::kLoad;
      return invariant;
    });
    if (!invariant) return {};
    rest.terms.emplace_back(term, factor);
  }
  if (coefficient == 0) return {};
  const Expr other = from_linear_form(rest);
  // coefficient * v + other >= 0
  if (coefficient > 0) return Limit{ceil_div(Expr(0) - other, Expr(coefficient)), {}};
  return Limit{{}, floor_div(other, Expr(-coefficient)) + 1};
}

class Partitioner : public Mutator {
 public:
  using Mutator::mutate;
  Expr mutate(const Expr& e) override { return e; }
  Stmt mutate(const Stmt& s) override {
    const Stmt rebuilt = mutate_children(s);
    const auto* loop = rebuilt.as<For>();
    if (!loop || loop->for_kind == ForKind::kVectorized || loop->for_kind == ForKind::kUnrolled) return rebuilt;
    return partition(*loop);
  }

 private:
  static Stmt partition(const For& loop) {
    VarSet inner;
    int64_t stores = 0;
    visit(
        loop.body,
        [&](const Stmt& s) {
          if (const auto* f = s.as<For>()) inner.insert(f->var.get());
          if (const auto* l = s.as<LetStmt>()) inner.insert(l->var.get());
          stores += s->kind == NodeKind::kStore;
          return true;
        },
        [&](const Expr& e) {
          if (const auto* l = e.as<Let>()) inner.insert(l->var.get());
          return true;
        });
    Expr low = loop.min, high = loop.min + loop.extent;

    // Conditions around the whole body clip the range.
    Stmt body = loop.body;
    bool clipped = false;
    while (const auto* branch = body.as<If>()) {
      if (branch->otherwise) break;
      const auto limit = solve(branch->cond, loop.var, inner);
      if (!limit) break;
      if (limit->low) low = max(low, limit->low);
      if (limit->high) high = min(high, limit->high);
      body = branch->then;
      clipped = true;
    }
    low = simplify(low);
    if (clipped) high = simplify(high);
    const auto make_loop = [&](const Expr& from, const Expr& to, const Stmt& inside) {
      return For::make(loop.var, from, simplify(to - from), loop.for_kind, inside, loop.attrs);
    };
    // A schedule that asks for it by loop_partition gets it in any case.
    const bool wanted = loop.attrs.count("partition") != 0;
    if (!wanted && (loop.for_kind == ForKind::kParallel || stores > kMaxCopiedStores))
      return clipped ? make_loop(low, high, body)
                     : For::make(loop.var, loop.min, loop.extent, loop.for_kind, body, loop.attrs);

    // Conditions further inside: the range where all of them hold.
    Expr steady_low = low, steady_high = high;
    NodeSet solved;
    const auto look = [&](const Expr& condition) {
      const auto limit = solve(condition, loop.var, inner);
      if (!limit) return;
      if (limit->low) steady_low = max(steady_low, limit->low);
      if (limit->high) steady_high = min(steady_high, limit->high);
      solved.insert(condition.get());
    };
    visit(
        body,
        [&](const Stmt& s) {
          if (const auto* branch = s.as<If>()) look_all(branch->cond, look);
          if (const auto* store = s.as<Store>(); store && store->predicate.get()) look_all(store->predicate, look);
          return true;
        },
        [&](const Expr& e) {
          if (const auto* choice = e.as<Select>()) look_all(choice->cond, look);
          if (const auto* read = e.as<Load>(); read && read->predicate.get()) look_all(read->predicate, look);
          return true;
        });
    if (solved.empty())
      return clipped ? make_loop(low, high, body)
                     : For::make(loop.var, loop.min, loop.extent, loop.for_kind, body, loop.attrs);
    steady_low = simplify(min(steady_low, high));
    steady_high = simplify(max(steady_high, steady_low));
    int64_t nothing;
    if (as_const_int(simplify(steady_high - steady_low), &nothing) && nothing <= 0)
      return clipped ? make_loop(low, high, body)
                     : For::make(loop.var, loop.min, loop.extent, loop.for_kind, body, loop.attrs);
    const Stmt steady =
        rewrite(body, [&](const Expr& e) { return solved.count(e.get()) ? make_bool(true, e.dtype().lanes) : e; });
    // Own variables, since each may be substituted on its own later.
    const auto piece = [&](const Expr& from, const Expr& to) -> Stmt {
      const Expr extent = simplify(to - from);
      if (is_const_int(extent, 0)) return {};
      const Var var(loop.var.name());
      return For::make(var, from, extent, loop.for_kind, substitute(body, {{loop.var.get(), var}}), loop.attrs);
    };
    return Block::make({piece(low, steady_low), make_loop(steady_low, steady_high, steady), piece(steady_high, high)});
  }

  template <typename F>
  static void look_all(const Expr& condition, const F& look) {
    if (const auto* both = condition.as<Binary>(); both && both->op == BinaryOp::kAnd && both->dtype.is_bool()) {
      look_all(both->a, look);
      look_all(both->b, look);
      return;
    }
    look(condition);
  }
};

}  // namespace

Stmt partition_loops(const Stmt& s) { return Partitioner().mutate(s); }

}  // namespace tensmith
