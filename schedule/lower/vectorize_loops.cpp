#include "schedule/lower/vectorize_loops.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "runtime/base/error.h"
#include "tensor/equal_hash.h"
#include "tensor/print.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

constexpr int64_t kMaxLanes = 64;

bool is_vector(const Expr& e) { return e.get() && e.dtype().lanes > 1; }

/// Widens the body of one loop.
class Widener : public Mutator {
 public:
  Widener(const Var& var, const Expr& min, int lanes, const Expr& tail_mask, const Stmt& body)
      : var_(var),
        ramp_(Ramp::make(min, Expr(1), lanes)),
        first_(min),
        lanes_(lanes),
        mask_(tail_mask),
        stmt_mask_(tail_mask) {
    visit(body, [&](const Stmt& s) {
      if (const auto* store = s.as<Store>()) stores_.push_back(store);
      return s->kind != NodeKind::kIf && s->kind != NodeKind::kFor;
    });
  }

  Expr mutate(const Expr& e) override {
    switch (e.kind()) {
      case NodeKind::kVar: {
        if (e.get() == var_.get()) return ramp_;
        const auto it = renamed_.find(e.as<VarNode>());
        return it == renamed_.end() ? e : it->second;
      }
      case NodeKind::kRamp:
      case NodeKind::kBroadcast:
        throw ScheduleError(
            "vectorize-body",
            "loop " + var_.name() + ": a vectorized loop lies inside another one; vectorize only the innermost");
      case NodeKind::kSelect: return mutate_select(*e.as<Select>(), e);
      case NodeKind::kLoad: return mutate_load(*e.as<Load>(), e);
      case NodeKind::kCall: return mutate_call(*e.as<Call>(), e);
      case NodeKind::kLet: {
        const auto& node = *e.as<Let>();
        const Expr value = mutate(node.value);
        if (!is_vector(value)) return Let::make(node.var, value, mutate(node.body));
        const Var wide(node.var.name(), value.dtype());
        renamed_[node.var.get()] = wide;
        return Let::make(wide, value, mutate(node.body));
      }
      default: return mutate_children(e);
    }
  }

  Stmt mutate(const Stmt& s) override {
    switch (s->kind) {
      case NodeKind::kStore: return mutate_store(*s.as<Store>());
      case NodeKind::kIf: return mutate_if(*s.as<If>());
      case NodeKind::kLetStmt: {
        const auto& node = *s.as<LetStmt>();
        const Expr value = mutate(node.value);
        if (!is_vector(value)) return LetStmt::make(node.var, value, mutate(node.body));
        const Var wide(node.var.name(), value.dtype());
        renamed_[node.var.get()] = wide;
        return LetStmt::make(wide, value, mutate(node.body));
      }
      case NodeKind::kFor: {
        const auto& node = *s.as<For>();
        if (node.for_kind == ForKind::kVectorized || node.for_kind == ForKind::kParallel)
          refuse("a parallel or vectorized loop");
        const Expr min = mutate(node.min), extent = mutate(node.extent);
        if (is_vector(min) || is_vector(extent)) refuse("a loop whose bounds depend on the lane");
        return For::make(node.var, min, extent, node.for_kind, mutate(node.body), node.attrs);
      }
      case NodeKind::kEvaluate: {  // a prefetch: one for the whole vector
        VarMap first_lane{{var_.get(), first_}};
        for (const auto& [scalar, wide] : renamed_)
          first_lane[scalar] = Call::make(scalar->dtype, Intrinsic::kExtractLane, {wide, Expr(0)});
        return substitute(s, first_lane);
      }
      case NodeKind::kBlock: return mutate_children(s);
      default: refuse("an allocation, assertion or while loop");
    }
  }

 private:
  [[noreturn]] void refuse(const char* what) const {
    throw ScheduleError("vectorize-body",
                        "loop " + var_.name() +
                            ": expected stores, conditions and serial loops in a vectorized loop, got " + what +
                            "; vectorize a loop further inside");
  }

  Expr both(const Expr& a, const Expr& b) const {
    if (a.get() == nullptr) return b;
    return a && b;
  }

  /// Whether the loop stores the element that is read whatever the conditions: then it may be read whatever the
  /// conditions, too, which spares the accumulators of arg max and its like a mask that is made of their own values.
  bool is_stored(const Load& read) const {
    return std::any_of(stores_.begin(), stores_.end(), [&](const Store* store) {
      return store->buffer.same_as(read.buffer) &&
             std::equal(store->indices.begin(), store->indices.end(), read.indices.begin(), read.indices.end(),
                        [](const Expr& a, const Expr& b) { return equal(a, b); });
    });
  }

  /// Runs `fn` with a condition added to the mask.
  template <typename F>
  auto under(const Expr& condition, F fn) {
    const Expr saved = mask_;
    const bool saved_maybe_empty = maybe_empty_;
    mask_ = both(mask_, condition);
    maybe_empty_ = true;
    auto result = fn();
    mask_ = saved;
    maybe_empty_ = saved_maybe_empty;
    return result;
  }

  Expr mutate_select(const Select& node, const Expr& e) {
    if (const auto* conjunction = node.cond.as<Binary>();
        conjunction && conjunction->op == BinaryOp::kAnd && conjunction->dtype.is_bool()) {
      // The part that is the same for all lanes stays a scalar condition of its own.
      const Expr a = mutate(conjunction->a), b = mutate(conjunction->b);
      if (is_vector(a) != is_vector(b)) {
        const Expr uniform = is_vector(a) ? conjunction->b : conjunction->a,
                   varying = is_vector(a) ? conjunction->a : conjunction->b;
        return mutate(Select::make(uniform, Select::make(varying, node.a, node.b), node.b));
      }
    }
    const Expr cond = mutate(node.cond);
    if (!is_vector(cond)) {
      const Expr a = mutate(node.a), b = mutate(node.b);
      return cond.same_as(node.cond) && a.same_as(node.a) && b.same_as(node.b) ? e : Select::make(cond, a, b);
    }
    const Expr a = under(cond, [&] { return mutate(node.a); });
    const Expr b = under(logical_not(cond), [&] { return mutate(node.b); });
    return Select::make(cond, a, b);
  }

  Expr mutate_load(const Load& node, const Expr& e) {
    bool changed = false;
    std::vector<Expr> indices = mutate_all(node.indices, &changed);
    bool vector = false;
    for (const Expr& index : indices) vector |= is_vector(index);
    if (!vector && maybe_empty_ && !indices.empty()) {
      // Perhaps no lane needs it, and then it may be out of bounds.
      indices[0] = Broadcast::make(indices[0], lanes_);
      vector = true;
    }
    if (!vector) return changed ? Load::make(node.buffer, std::move(indices)) : e;
    return Load::make(node.buffer, std::move(indices), is_stored(node) ? stmt_mask_ : mask_);
  }

  Expr mutate_call(const Call& node, const Expr& e) {
    bool changed = false, vector = false;
    std::vector<Expr> args = mutate_all(node.args, &changed);
    for (const Expr& arg : args) vector |= is_vector(arg);
    if (!changed) return e;
    if (!vector)
      return node.id == Intrinsic::kExtern ? Call::make_extern(node.dtype, node.symbol, args)
                                           : Call::make(node.dtype, node.id, args);
    if (!intrinsic_info(node.id).pure) refuse("a call with effects");
    for (Expr& arg : args)
      if (!is_vector(arg)) arg = Broadcast::make(arg, lanes_);
    return Call::make(node.dtype.with_lanes(lanes_), node.id, args);
  }

  Stmt mutate_if(const If& node) {
    if (const auto* conjunction = node.cond.as<Binary>();
        conjunction && conjunction->op == BinaryOp::kAnd && conjunction->dtype.is_bool() && !node.otherwise)
      return mutate(If::make(conjunction->a, If::make(conjunction->b, node.then)));
    const Expr cond = mutate(node.cond);
    if (!is_vector(cond))
      return If::make(cond, node.then ? mutate(node.then) : Stmt(), node.otherwise ? mutate(node.otherwise) : Stmt());
    Stmt then, otherwise;
    const auto branch = [&](const Expr& condition, const Stmt& s) {
      const Expr saved = stmt_mask_;
      stmt_mask_ = both(stmt_mask_, condition);
      const Stmt result = under(condition, [&] { return mutate(s); });
      stmt_mask_ = saved;
      return result;
    };
    if (node.then) then = branch(cond, node.then);
    if (node.otherwise) otherwise = branch(logical_not(cond), node.otherwise);
    return Block::make({then, otherwise});
  }

  Stmt mutate_store(const Store& node) {
    bool changed = false, vector = false;
    std::vector<Expr> indices = mutate_all(node.indices, &changed);
    for (const Expr& index : indices) vector |= is_vector(index);
    if (vector) return Store::make(node.buffer, std::move(indices), mutate(node.value), mask_);
    return accumulate(node, std::move(indices));
  }

  /// All lanes go into one element: legal when it is accumulated by an operation that we can reduce over lanes.
  Stmt accumulate(const Store& node, std::vector<Expr> indices) {
    const auto* update = node.value.as<Binary>();
    const auto is_target = [&](const Expr& e) {
      const auto* read = e.as<Load>();
      if (!read || !read->buffer.same_as(node.buffer) || read->indices.size() != node.indices.size()) return false;
      for (size_t d = 0; d < node.indices.size(); ++d)
        if (!equal(read->indices[d], node.indices[d])) return false;
      return true;
    };
    if (update && (is_target(update->a) || is_target(update->b))) {
      const bool left = is_target(update->a);
      Expr part = mutate(left ? update->b : update->a);
      std::optional<Intrinsic> reduce;
      Expr neutral;
      const DType type = node.buffer->dtype;
      switch (update->op) {
        case BinaryOp::kAdd: reduce = Intrinsic::kReduceAdd, neutral = make_zero(type); break;
        case BinaryOp::kMul: reduce = Intrinsic::kReduceMul, neutral = make_const_int(type, 1); break;
        case BinaryOp::kMin: reduce = Intrinsic::kReduceMin, neutral = max_value(type); break;
        case BinaryOp::kMax: reduce = Intrinsic::kReduceMax, neutral = min_value(type); break;
        case BinaryOp::kAnd:
          reduce = Intrinsic::kReduceAnd, neutral = type.is_bool() ? make_bool(true) : make_const_int(type, -1);
          break;
        case BinaryOp::kOr: reduce = Intrinsic::kReduceOr, neutral = make_zero(type); break;
        default: break;
      }
      if (reduce) {
        if (!is_vector(part)) part = Broadcast::make(part, lanes_);
        if (mask_) part = Select::make(mask_, part, Broadcast::make(neutral, lanes_));
        const Expr total = Call::make(type, *reduce, {part});
        const Expr target = Load::make(node.buffer, indices);
        return Store::make(node.buffer, indices,
                           Binary::make(update->op, left ? target : total, left ? total : target));
      }
    }
    const Expr value = mutate(node.value);
    if (!is_vector(value) && !maybe_empty_) return Store::make(node.buffer, std::move(indices), value);
    throw ScheduleError("vectorize-race", "loop " + var_.name() + ": all lanes store to one element of " +
                                              node.buffer->name +
                                              " by an operation that cannot be reduced over lanes; use rfactor first");
  }

  const Var var_;
  const Expr ramp_, first_;
  const int lanes_;
  Expr mask_;                         // null: all lanes take part
  Expr stmt_mask_;                    // the part of it that comes from statements, not from selects
  std::vector<const Store*> stores_;  // those of the body under no condition
  bool maybe_empty_ = false;  // a condition other than the tail's is in the mask, so possibly no lane takes part
  VarMap renamed_;
};

int64_t next_power_of_two(int64_t n) {
  int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

Stmt vectorize_one(const For& loop) {
  int64_t extent;
  if (!as_const_int(loop.extent, &extent))
    throw ScheduleError("vectorize-extent",
                        "loop " + loop.var.name() + ": expected a constant extent, got " + to_string(loop.extent) +
                            "; split it by the vector width with tail=peel and vectorize the inner loop");
  if (extent <= 0) return {};
  if (extent == 1) return substitute(loop.body, {{loop.var.get(), loop.min}});
  if (extent > kMaxLanes)
    throw ScheduleError("vectorize-extent", "loop " + loop.var.name() + ": expected at most " +
                                                std::to_string(kMaxLanes) + " lanes, got " + std::to_string(extent) +
                                                "; split it by the vector width first");
  const int lanes = static_cast<int>(next_power_of_two(extent));
  Expr mask;
  if (lanes != extent) mask = Ramp::make(Expr(0), Expr(1), lanes) < Broadcast::make(Expr(extent), lanes);
  return Widener(loop.var, loop.min, lanes, mask, loop.body).mutate(loop.body);
}

}  // namespace

Stmt vectorize_loops(const Stmt& s) {
  return rewrite(s, {}, [](const Stmt& stmt) {
    const auto* loop = stmt.as<For>();
    return loop && loop->for_kind == ForKind::kVectorized ? vectorize_one(*loop) : stmt;
  });
}

}  // namespace tensmith
