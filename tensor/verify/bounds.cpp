#include "tensor/verify/bounds.h"

#include "tensor/print.h"
#include "tensor/walk.h"

namespace tensmith::verifier {

using simplifier::Engine;
using simplifier::Range;
using simplifier::Value;
using simplifier::ValueKind;

namespace {

// Choices around a load whose conditions count; deeper ones, and more than that many in all, are taken without.
constexpr int kMaxSelectDepth = 8, kMaxSelects = 20000;

}  // namespace

Value* LaneView::of(Value* value) {
  if (value->dtype.lanes == 1) return value;
  if (const auto found = known_.find(value); found != known_.end()) return found->second;
  Value* kids[4] = {};
  Value* result = nullptr;
  const bool small = value->count <= 4;
  bool visible = small;
  if (small && (value->is(ValueKind::kOp) || value->is(ValueKind::kNot) || value->is(ValueKind::kCast) ||
                value->is(ValueKind::kSelect) || value->is(ValueKind::kLoad))) {
    for (uint32_t i = 0; i < value->count && visible; ++i) visible = (kids[i] = of(value->kids[i])) != nullptr;
  }
  if (visible) {
    switch (value->kind) {
      case ValueKind::kBroadcast: result = value->kids[0]; break;
      case ValueKind::kRamp:
        result = engine_.add(value->kids[0], engine_.mul(value->kids[1], engine_.cast(value->dtype.element(), lane_)));
        break;
      case ValueKind::kOp: {
        result = kids[0];
        for (uint32_t i = 1; i < value->count; ++i) result = engine_.binary(value->binary_op(), result, kids[i]);
        break;
      }
      case ValueKind::kNot: result = engine_.logical_not(kids[0]); break;
      case ValueKind::kCast: result = engine_.cast(value->dtype.element(), kids[0]); break;
      case ValueKind::kSelect: result = engine_.select(kids[0], kids[1], kids[2]); break;
      case ValueKind::kLoad: {
        const auto rank = static_cast<size_t>(value->number);
        Value* predicate = value->count > rank ? kids[rank] : nullptr;
        result = engine_.load(static_cast<const BufferNode*>(value->object), {kids, rank}, predicate);
        break;
      }
      default: break;
    }
  }
  return known_[value] = result;
}

bool BoundsChecker::has_load(const Expr& e) {
  const auto [at, is_new] = has_load_.try_emplace(e.get(), false);
  if (!is_new) return at->second;
  bool result = e.as<Load>() != nullptr;
  if (!result) for_each_child(e, [&](const Expr& child) { result = result || has_load(child); });
  return has_load_[e.get()] = result;
}

std::string BoundsChecker::check(const Expr& e, uint64_t scope) {
  if (!e.get() || !has_load(e) || !checked_[scope].insert(e.get()).second) return {};
  if (const auto* select = e.as<Select>()) return check_select(*select, scope);
  if (const auto* let = e.as<Let>()) {
    if (std::string error = check(let->value, scope); !error.empty()) return error;
    const Engine::Scope guard(engine_);
    engine_.bind_let(static_cast<const VarNode*>(let->var.get()), engine_.visit(let->value));
    return check(let->body, next_scope_++);
  }
  if (const auto* call = e.as<Call>();
      call && (call->id == Intrinsic::kAddressOf || call->id == Intrinsic::kPrefetch)) {
    const auto* place = call->args[0].as<Load>();
    for (const Expr& index : place->indices)
      if (std::string error = check(index, scope); !error.empty()) return error;
    return call->id == Intrinsic::kPrefetch
               ? std::string()
               : check_access(place->buffer, place->indices, place->predicate, /*is_address=*/true);
  }
  if (std::string error = check_children(e, scope); !error.empty()) return error;
  if (const auto* load = e.as<Load>()) return check_access(load->buffer, load->indices, load->predicate);
  return {};
}

std::string BoundsChecker::check_children(const Expr& e, uint64_t scope) {
  std::string error;
  for_each_child(e, [&](const Expr& child) {
    if (error.empty()) error = check(child, scope);
  });
  return error;
}

std::string BoundsChecker::check_select(const Select& e, uint64_t scope) {
  if (std::string error = check(e.cond, scope); !error.empty()) return error;
  if (select_depth_ >= kMaxSelectDepth || ++num_selects_ > kMaxSelects) {
    std::string error = check(e.a, scope);
    return error.empty() ? check(e.b, scope) : error;
  }
  Value* cond = engine_.visit(e.cond);
  for (const bool truth : {true, false}) {
    const Expr& branch = truth ? e.a : e.b;
    if (!has_load(branch)) continue;
    const Engine::Scope guard(engine_);
    const bool in_lanes = cond->dtype.lanes > 1 && !cond->is(ValueKind::kBroadcast);
    if (in_lanes) lane_conditions_.emplace_back(cond, truth);
    else engine_.assume(cond, truth);
    ++select_depth_;
    std::string error = engine_.contradiction() ? std::string() : check(branch, next_scope_++);
    --select_depth_;
    if (in_lanes) lane_conditions_.pop_back();
    if (!error.empty()) return error;
  }
  return {};
}

std::string BoundsChecker::check_access(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& predicate,
                                        bool is_address) {
  if (engine_.contradiction()) return {};
  Value* mask = predicate ? engine_.visit(predicate) : nullptr;
  if (mask && engine_.truth(mask) == 0) return {};
  if (indices.size() == buffer->shape.size()) {
    for (size_t i = 0; i < indices.size(); ++i)
      if (std::string error = check_index(buffer, indices[i], engine_.visit(buffer->shape[i]), mask, is_address);
          !error.empty())
        return error;
    return {};
  }
  Value* size = engine_.index(1);
  for (const Expr& extent : buffer->shape) size = engine_.mul(size, engine_.visit(extent));
  return check_index(buffer, indices[0], size, mask, is_address);
}

std::string BoundsChecker::check_index(const Buffer& buffer, const Expr& index, Value* extent, Value* mask,
                                       bool is_address) {
  Value* value = engine_.visit(index);
  const auto inside = [&](Value* v) {
    if (is_address) extent = engine_.add(extent, engine_.index(1));  // the end of memory has an address
    return engine_.prove(engine_.binary(BinaryOp::kLE, engine_.index(0), v)) &&
           engine_.prove(engine_.binary(BinaryOp::kLT, v, extent));
  };
  // Bounds of all lanes may do, also of operations across lanes.
  const Range known = engine_.range(value);
  bool proven = known.lo >= 0 && known.hi < engine_.range(extent).lo;
  if (!proven) {
    const Engine::Scope guard(engine_);
    const int lanes = std::max<int>(value->dtype.lanes, mask ? mask->dtype.lanes : 1);
    if (lanes == 1 && lane_conditions_.empty()) {
      if (mask) engine_.assume(mask);
      proven = engine_.contradiction() || inside(value);
    } else {
      // Lane by lane: where the mask, or the condition around, is off nothing is read.
      const auto* lane = static_cast<const VarNode*>(lane_.get());
      engine_.bind_loop(lane, engine_.index(0), engine_.index(lanes));
      LaneView view(engine_, engine_.var_value(lane));
      if (mask)
        if (Value* bit = view.of(mask)) engine_.assume(bit);
      for (const auto& [condition, truth] : lane_conditions_)
        if (condition->dtype.lanes == lanes)
          if (Value* bit = view.of(condition)) engine_.assume(bit, truth);
      Value* scalar = view.of(value);
      proven = engine_.contradiction() || (scalar && inside(scalar));
    }
  }
  if (proven) return {};
  const auto end = [](int64_t x, bool known) { return known ? std::to_string(x) : std::string("?"); };
  return "index of " + buffer->name + ": expected 0 <= index < " + to_string(engine_.build(extent)) + ", got " +
         to_string(engine_.build(value)) + " in [" + end(known.lo, known.lo != INT64_MIN) + ", " +
         end(known.hi, known.hi != INT64_MAX) +
         "]; clamp the index, guard the access, or state what is known of the extents";
}

}  // namespace tensmith::verifier
