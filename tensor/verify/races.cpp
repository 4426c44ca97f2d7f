#include "tensor/verify/races.h"

#include "tensor/print.h"
#include "tensor/verify/bounds.h"
#include "tensor/walk.h"

namespace tensmith::verifier {

using simplifier::Engine;
using simplifier::kHasLoad;
using simplifier::Linear;
using simplifier::SymbolicBounds;
using simplifier::Term;
using simplifier::ValueKind;

namespace {

constexpr int kMaxDepth = 12;        // of splits of one equation
constexpr size_t kMaxPairs = 20000;  // beyond, the loop counts as not provable

const VarNode* node_of(const Var& var) { return static_cast<const VarNode*>(var.get()); }

}  // namespace

std::string RaceChecker::check(const For& loop) {
  const Engine::Scope scope(engine_);
  Value *min = engine_.visit(loop.min), *extent = engine_.visit(loop.extent);
  if (engine_.range(extent).hi <= 1) return {};
  std::unordered_set<const BufferNode*> local;
  visit(loop.body, [&](const Stmt& s) {
    if (const auto* allocation = s.as<Allocate>()) local.insert(allocation->buffer.get());
    return true;
  });
  visit(loop.body, [&](const Stmt& s) {
    if (const auto* store = s.as<Store>();
        store && !local.count(store->buffer.get()) && written_.insert(store->buffer.get()).second)
      written_order_.push_back(store->buffer.get());
    return true;
  });
  if (written_.empty()) return {};

  first_ = min;
  last_ = engine_.sub(engine_.add(min, extent), engine_.index(1));
  engine_.bind_loop(node_of(loop.var), min, extent);
  parallel_ = engine_.var_value(node_of(loop.var));
  collect(loop.body);
  const auto in_words = [&](const Access& access) {
    std::string text = access.buffer->name + "[";
    for (size_t i = 0; i < access.indices.size(); ++i)
      text += (i ? ", " : "") + to_string(engine_.build(access.indices[i]));
    return (access.write ? "store to " : "load from ") + text + "]";
  };
  size_t pairs = 0;
  for (const BufferNode* buffer : written_order_) {
    std::vector<const Access*> here;
    for (const Access& access : accesses_)
      if (access.buffer == buffer) here.push_back(&access);
    if (all_disjoint(here)) continue;
    for (size_t i = 0; i < here.size(); ++i)
      for (size_t j = i; j < here.size(); ++j) {
        const Access &a = *here[i], &b = *here[j];
        if (!(a.write || b.write) || (++pairs <= kMaxPairs && disjoint(a, b))) continue;
        return "parallel loop " + loop.var.name() + ": expected iterations that touch different elements, got " +
               in_words(a) + (i == j ? " in every iteration" : " and " + in_words(b)) +
               "; make the loop serial or index by it";
      }
  }
  return {};
}

/// Collects in a branch. The condition only counts when it leaves one value of p: it would make functions of p
/// constant, so that an index no longer shows that it depends on p.
void RaceChecker::under(const Expr& condition, bool truth, const std::function<void()>& branch) {
  if (pinned_ || condition.dtype().lanes > 1) return branch();
  Value* cond = engine_.visit(condition);
  if (cond->flags & kHasLoad) return branch();
  std::optional<int64_t> only;
  {
    const Engine::Scope trial(engine_);
    engine_.assume(cond, truth);
    if (engine_.contradiction()) return;
    const simplifier::Range r = engine_.range(parallel_);
    if (r.is_point()) only = r.lo;
  }
  if (!only) return branch();
  const Engine::Scope scope(engine_);
  engine_.assume(cond, truth);
  std::unordered_set<const ExprNode*> outside;
  outside.swap(seen_);
  pinned_ = only;
  branch();
  pinned_.reset();
  seen_.swap(outside);
}

void RaceChecker::collect(const Stmt& s) {
  if (!s || engine_.contradiction()) return;
  seen_.clear();
  const Engine::Scope scope(engine_);
  if (const auto* loop = s.as<For>()) {
    collect(loop->min);
    collect(loop->extent);
    Value *min = engine_.visit(loop->min), *extent = engine_.visit(loop->extent);
    // Counted from 0, so that a start that depends on p shows in the indices.
    Var counter(loop->var.name());
    engine_.bind_loop(node_of(counter), engine_.index(0), extent);
    Value* value = engine_.var_value(node_of(counter));
    around_.push_back({counter, engine_.sub(extent, engine_.index(1))});
    engine_.bind_replacement(node_of(loop->var), engine_.add(min, value));
    collect(loop->body);
    around_.pop_back();
  } else if (const auto* repeat = s.as<While>()) {
    collect(repeat->cond);
    collect(repeat->body);
  } else if (const auto* branch = s.as<If>()) {
    collect(branch->cond);
    for (const bool truth : {true, false})
      under(branch->cond, truth, [&] { collect(truth ? branch->then : branch->otherwise); });
  } else if (const auto* let = s.as<LetStmt>()) {
    collect(let->value);
    engine_.bind_replacement(node_of(let->var), engine_.visit(let->value));
    collect(let->body);
  } else if (const auto* store = s.as<Store>()) {
    for (const Expr& index : store->indices) collect(index);
    collect(store->value);
    collect(store->predicate);
    add_access(store->buffer, store->indices, /*write=*/true);
  } else if (const auto* block = s.as<Block>()) {
    for (const Stmt& part : block->stmts) collect(part);
  } else if (const auto* allocation = s.as<Allocate>()) {
    collect(allocation->body);
  } else if (const auto* evaluate = s.as<Evaluate>()) {
    collect(evaluate->value);
  } else if (const auto* assertion = s.as<Assert>()) {
    collect(assertion->cond);
  }
}

void RaceChecker::collect(const Expr& e) {
  if (!e.get() || !seen_.insert(e.get()).second) return;
  if (const auto* let = e.as<Let>()) {
    collect(let->value);
    const Engine::Scope scope(engine_);
    engine_.bind_replacement(node_of(let->var), engine_.visit(let->value));
    return collect(let->body);
  }
  if (const auto* call = e.as<Call>();
      call && (call->id == Intrinsic::kAddressOf || call->id == Intrinsic::kPrefetch)) {
    for (const Expr& index : call->args[0].as<Load>()->indices) collect(index);
    return;
  }
  if (const auto* select = e.as<Select>()) {
    collect(select->cond);
    for (const bool truth : {true, false}) under(select->cond, truth, [&] { collect(truth ? select->a : select->b); });
    return;
  }
  for_each_child(e, [&](const Expr& child) { collect(child); });
  if (const auto* load = e.as<Load>()) add_access(load->buffer, load->indices, /*write=*/false);
}

void RaceChecker::add_access(const Buffer& buffer, const std::vector<Expr>& indices, bool write) {
  if (!written_.count(buffer.get())) return;
  Access access{buffer.get(), {}, around_, write, pinned_};
  int lanes = 1;
  for (const Expr& index : indices) {
    access.indices.push_back(engine_.visit(index));
    lanes = std::max<int>(lanes, index.dtype().lanes);
  }
  if (lanes > 1) {
    Var lane("lane");
    access.inner.push_back({lane, engine_.index(lanes - 1)});
    engine_.bind_loop(node_of(lane), engine_.index(0), engine_.index(lanes));
    LaneView view(engine_, engine_.var_value(node_of(lane)));
    for (Value*& index : access.indices) {
      Value* scalar = view.of(index);
      index = scalar ? scalar : index;  // a vector index counts as unknown below
    }
  }
  for (Access& known : accesses_)
    if (known.buffer == access.buffer && known.indices == access.indices && known.pinned == access.pinned) {
      known.write |= write;
      return;
    }
  accesses_.push_back(std::move(access));
}

void RaceChecker::run_over(SymbolicBounds& bounds, std::initializer_list<const Access*> accesses) {
  bounds.set(parallel_, {first_, last_});
  inner_.clear();
  for (const Access* access : accesses)
    for (const Inner& inner : access->inner) {
      engine_.bind_interval(node_of(inner.var), engine_.index(0), inner.last);
      Value* value = engine_.var_value(node_of(inner.var));
      bounds.set(value, {engine_.index(0), inner.last});
      inner_.insert(value);
    }
  bounds_ = &bounds;
}

/// All pairs at once: where every access has the same functions of p in a dimension, and the rest of the index stays in
/// one range, one equation says it for all. This is the usual case, and pairs are many when loops were unrolled.
bool RaceChecker::all_disjoint(const std::vector<const Access*>& accesses) {
  equal_.clear();
  if (accesses.empty()) return true;  // the stores are in code that never runs
  const size_t rank = accesses[0]->indices.size();
  for (size_t dimension = 0; dimension < rank; ++dimension) {
    Linear shared;  // functions of p and what stays the same
    Value *lo = nullptr, *hi = nullptr;
    bool usable = true;
    for (const Access* access : accesses) {
      usable = usable && access->indices.size() == rank && !access->pinned;
      Value* index = usable ? access->indices[dimension] : nullptr;
      if (!index || index->dtype != kInt64 || !engine_.exact(index)) {
        usable = false;
        break;
      }
      const Engine::Scope scope(engine_);
      SymbolicBounds bounds(engine_);
      run_over(bounds, {access});
      Linear common, rest;
      const Linear form(index);
      rest.constant = form.constant;
      for (const Term& term : form.terms) {
        const bool free = (term.value->flags & kHasLoad) || mentions_inner(term.value);
        (free ? rest : common).add(term.value, term.coefficient);
      }
      const SymbolicBounds::Ends ends = bounds.of(engine_.sum(rest));
      common.add(shared, access == accesses[0] ? 0 : -1);
      usable = ends.lo && ends.hi && (access == accesses[0] || common.terms.empty());
      if (!usable) break;
      if (access == accesses[0]) shared = common;
      lo = lo ? engine_.binary(BinaryOp::kMin, lo, ends.lo) : ends.lo;
      hi = hi ? engine_.binary(BinaryOp::kMax, hi, ends.hi) : ends.hi;
    }
    if (!usable) continue;
    const Engine::Scope scope(engine_);
    SymbolicBounds bounds(engine_);
    run_over(bounds, {});
    std::vector<Item> items;
    for (const Term& term : shared.terms) add_item(items, term.value, term.coefficient, /*difference=*/true);
    if (lo != hi) items.push_back({1, nullptr, engine_.sub(lo, hi), engine_.sub(hi, lo), nullptr});
    impossible(items, 0, 0);
  }
  const Engine::Scope scope(engine_);
  SymbolicBounds bounds(engine_);
  run_over(bounds, {});
  close_over();
  return is_known(parallel_);
}

bool RaceChecker::mentions_inner(Value* value) {
  std::unordered_set<Value*> looked_at;
  const auto look = [&](auto& self, Value* v) -> bool {
    if (!looked_at.insert(v).second) return false;
    if (inner_.count(v)) return true;
    for (uint32_t i = 0; i < v->count; ++i)
      if (self(self, v->kids[i])) return true;
    return false;
  };
  return look(look, value);
}

bool RaceChecker::disjoint(const Access& a, const Access& b) {
  if (a.indices.size() != b.indices.size()) return false;
  if (a.pinned && a.pinned == b.pinned) return true;  // one iteration
  const Engine::Scope scope(engine_);
  SymbolicBounds bounds(engine_);
  run_over(bounds, {&a, &b});
  equal_.clear();
  for (size_t i = 0; i < a.indices.size(); ++i)
    if (impossible(a, b, i)) return true;
  close_over();
  return is_known(parallel_);
}

bool RaceChecker::runs(Value* value) { return (value->flags & kHasLoad) || bounds_->depends(value); }

void RaceChecker::add_item(std::vector<Item>& items, Value* atom, int64_t coefficient, bool difference) {
  if (difference && !runs(atom)) return;
  Value *core = atom, *factor = nullptr;
  if (atom->is(ValueKind::kProduct)) {
    // What stays the same times one running factor.
    Value* running = nullptr;
    bool single = true;
    for (uint32_t i = 0; i < atom->count; ++i) {
      if (!runs(atom->kids[i])) continue;
      single = single && !running;
      running = atom->kids[i];
    }
    if (single && running) {
      for (uint32_t i = 0; i < atom->count; ++i)
        if (atom->kids[i] != running) factor = factor ? engine_.mul(factor, atom->kids[i]) : atom->kids[i];
      core = running;
    }
  }
  SymbolicBounds::Ends ends = bounds_->of(core);
  if (core->flags & kHasLoad) {
    const simplifier::Range r = engine_.range(core);
    ends = {r.lo == INT64_MIN ? nullptr : engine_.index(r.lo), r.hi == INT64_MAX ? nullptr : engine_.index(r.hi)};
  }
  Item item{coefficient, factor, ends.lo, ends.hi, nullptr};
  if (difference) {
    const bool known = ends.lo && ends.hi;
    item.lo = known ? engine_.sub(ends.lo, ends.hi) : nullptr;
    item.hi = known ? engine_.sub(ends.hi, ends.lo) : nullptr;
    if (!(core->flags & kHasLoad) && !mentions_inner(core)) item.atom = core;
  }
  items.push_back(item);
}

bool RaceChecker::impossible(const Access& first, const Access& second, size_t dimension) {
  Value *a = first.indices[dimension], *b = second.indices[dimension];
  if (a->dtype != kInt64 || b->dtype != kInt64 || !engine_.exact(a) || !engine_.exact(b)) return false;
  Linear x(a), y(b);
  // Where p is one number c, p - c may be added as often as p stands on the other side.
  const auto match = [&](Linear& fixed, std::optional<int64_t> c, const Linear& free) {
    if (!c) return;
    for (const Term& term : free.terms)
      if (term.value == parallel_) fixed.add(parallel_, term.coefficient), fixed.add_constant(*c, -term.coefficient);
  };
  if (!second.pinned) match(x, first.pinned, y);
  if (!first.pinned) match(y, second.pinned, x);
  Linear offset;
  offset.add_constant(x.constant);
  offset.add_constant(y.constant, -1);
  if (x.overflow || y.overflow || offset.overflow) return false;
  std::vector<Item> items;
  const auto find = [](const Linear& form, const Term& term) {
    for (const Term& other : form.terms)
      if (other.value == term.value && other.coefficient == term.coefficient) return true;
    return false;
  };
  for (const Term& term : x.terms) add_item(items, term.value, term.coefficient, find(y, term));
  for (const Term& term : y.terms)
    if (!find(x, term)) add_item(items, term.value, -term.coefficient, false);
  return impossible(items, offset.constant, 0);
}

SymbolicBounds::Ends RaceChecker::total(const std::vector<Item>& items, int64_t constant) {
  SymbolicBounds::Ends ends;
  for (const bool upper : {false, true}) {
    Linear sum;
    sum.constant = constant;
    bool known = true;
    for (const Item& item : items) {
      Value* x = (item.coefficient > 0) == upper ? item.hi : item.lo;
      // A factor that may be negative would swap the ends.
      known = known && x && (!item.factor || engine_.range(item.factor).lo >= 0);
      if (known) sum.add(item.factor ? engine_.mul(x, item.factor) : x, item.coefficient);
    }
    if (known && !sum.overflow) (upper ? ends.hi : ends.lo) = engine_.sum(sum);
  }
  return ends;
}

bool RaceChecker::proves_less(Value* a, Value* b) { return a && b && engine_.prove_le(a, b, -1); }

bool RaceChecker::impossible(const std::vector<Item>& items, int64_t constant, int depth) {
  if (items.empty()) return constant != 0;
  Value* zero = engine_.index(0);
  const SymbolicBounds::Ends all = total(items, constant);
  if (proves_less(zero, all.lo) || proves_less(all.hi, zero)) return true;
  if (items.size() == 1) {
    const Item& item = items[0];
    if (!item.factor && constant % item.coefficient != 0) return true;
    if (constant == 0 && item.atom && (!item.factor || engine_.prove_positive(item.factor))) equal_.insert(item.atom);
    return false;
  }
  if (depth >= kMaxDepth) return false;
  for (const Item& step : items) {
    // Multiples of `step` against the rest.
    const int64_t g = static_cast<int64_t>(simplifier::magnitude(step.coefficient));
    if (step.factor && !engine_.prove_positive(step.factor)) continue;
    std::vector<Item> high, low;
    for (const Item& item : items) {
      const bool divides = item.coefficient % g == 0 &&
                           (!step.factor || (item.factor && engine_.divide_product(item.factor, step.factor)));
      (divides ? high : low).push_back(item);
    }
    if (low.empty()) {
      if (!step.factor && constant % g != 0) return true;
      if ((g == 1 && !step.factor) || (step.factor && constant != 0)) continue;
      for (Item& item : high) {
        item.coefficient /= g;
        if (step.factor) {
          item.factor = engine_.divide_product(item.factor, step.factor);
          if (item.factor->is_int(1)) item.factor = nullptr;
        }
      }
      return impossible(high, constant / g, depth + 1);
    }
    Value* size = step.factor ? engine_.mul(step.factor, engine_.index(g)) : engine_.index(g);
    const int64_t remainder = simplifier::floor_mod_int(constant, g);
    const int64_t choices[] = {step.factor ? constant : remainder, step.factor ? constant : remainder - g};
    for (const int64_t part : choices) {
      const SymbolicBounds::Ends ends = total(low, part);
      if (!ends.lo || !ends.hi || !proves_less(engine_.sub(zero, size), ends.lo) || !proves_less(ends.hi, size))
        continue;
      // The rest lies between -size and size and is a multiple of size, so it is zero, and so are the multiples.
      return impossible(low, part, depth + 1) || impossible(high, constant - part, depth + 1);
    }
  }
  return false;
}

bool RaceChecker::is_known(Value* value) {
  if (equal_.count(value) || !runs(value)) return true;
  const bool composed = value->is(ValueKind::kSum) || value->is(ValueKind::kProduct) || value->is(ValueKind::kOp);
  if (!composed || (value->flags & kHasLoad)) return false;
  for (uint32_t i = 0; i < value->count; ++i)
    if (!is_known(value->kids[i])) return false;
  return true;
}

/// y / c and y % c together determine y.
void RaceChecker::close_over() {
  for (int turn = 0; turn < kMaxDepth; ++turn) {
    std::vector<Value*> found;
    for (Value* atom : equal_) {
      if (!atom->is_op(BinaryOp::kFloorMod)) continue;
      Value* y = atom->kids[0];
      if (!is_known(y) && is_known(engine_.floor_div(y, atom->kids[1])) && is_known(atom->kids[1])) found.push_back(y);
    }
    if (found.empty()) return;
    for (Value* y : found) {
      equal_.insert(y);
      const Access same{nullptr, {y}, {}, false, {}};
      impossible(same, same, 0);
    }
  }
}

}  // namespace tensmith::verifier
