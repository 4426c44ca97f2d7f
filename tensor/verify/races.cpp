#include "tensor/verify/races.h"

#include "tensor/print.h"
#include "tensor/verify/bounds.h"
#include "tensor/walk.h"

namespace tensmith::verifier {

using simplifier::Engine;
using simplifier::kHasLoad;
using simplifier::ValueKind;

namespace {

constexpr size_t kMaxPairs = 20000;  // beyond, the loop counts as not provable
constexpr size_t kMaxPath = 8;       // conditions further in are left out: nested selects may share their parts

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
    std::vector<Access*> here;
    for (Access& access : accesses_)
      if (access.buffer == buffer) here.push_back(&access);
    if (all_disjoint(here)) continue;
    for (size_t i = 0; i < here.size(); ++i)
      for (size_t j = i; j < here.size(); ++j) {
        Access &a = *here[i], &b = *here[j];
        if (!(a.write || b.write) || (++pairs <= kMaxPairs && disjoint(a, b))) continue;
        return "parallel loop " + loop.var.name() + ": expected iterations that touch different elements, got " +
               in_words(a) + (i == j ? " in every iteration" : " and " + in_words(b)) +
               "; make the loop serial or index by it";
      }
  }
  return {};
}

/// Puts what `condition` says on the path: its parts without loads, which may change in between.
void RaceChecker::add_condition(Value* condition, bool truth) {
  if (condition->is(ValueKind::kNot)) return add_condition(condition->kids[0], !truth);
  if (condition->is_op(truth ? BinaryOp::kAnd : BinaryOp::kOr)) {
    for (uint32_t i = 0; i < condition->count; ++i) add_condition(condition->kids[i], truth);
  } else if (!(condition->flags & (kHasLoad | simplifier::kHasEffect)) && condition->dtype.lanes == 1) {
    path_.push_back({condition, truth});
  }
}

void RaceChecker::assume(const std::vector<Condition>& path) {
  for (const Condition& condition : path) engine_.assume(condition.value, condition.truth);
}

/// Collects in a branch. The engine does not get the condition as a fact: functions of p would become constants, and an
/// index would no longer show that it depends on p. It is kept beside the accesses instead.
void RaceChecker::under(const Expr& condition, bool truth, const std::function<void()>& branch) {
  if (path_.size() >= kMaxPath || condition.dtype().lanes > 1) return branch();
  const size_t length = path_.size();
  add_condition(engine_.visit(condition), truth);
  if (path_.size() == length) return branch();
  bool runs;
  {
    const Engine::Scope trial(engine_);
    assume(path_);
    runs = !engine_.contradiction();
  }
  if (runs) {
    // What was seen outside counts again here, and the other way round: it is another access.
    std::unordered_set<const ExprNode*> outside;
    outside.swap(seen_);
    branch();
    seen_.swap(outside);
  }
  path_.resize(length);
}

/// Whether an expression reads what the loop writes.
bool RaceChecker::reads_written(const Expr& e) {
  if (!e.get()) return false;
  const auto [at, is_new] = reads_written_.try_emplace(e.get(), false);
  if (!is_new) return at->second;
  bool result = false;
  if (const auto* load = e.as<Load>()) result = written_.count(load->buffer.get()) != 0;
  for_each_child(e, [&](const Expr& child) { result = result || reads_written(child); });
  return reads_written_[e.get()] = result;
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
  if (!reads_written(e) || !seen_.insert(e.get()).second) return;
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
  Access access{buffer.get(), {}, around_, write, path_, {}};
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
    if (known.buffer == access.buffer && known.indices == access.indices && known.path == access.path) {
      known.write |= write;
      return;
    }
  accesses_.push_back(std::move(access));
}

}  // namespace tensmith::verifier
