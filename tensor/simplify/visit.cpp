// From loop IR to canonical values, bottom-up, each node once in each context.

#include "runtime/base/error.h"
#include "tensor/simplify/engine.h"

namespace tensmith::simplifier {

namespace {

// Conditions that may hold around an expression inside one another.
constexpr int kMaxConditionDepth = 3;
// A shared part is visited again under each condition. The visits under conditions may be this many times the others,
// plus a few; beyond that branches are simplified without their condition, so that the work stays linear.
constexpr uint64_t kMaxVisitsRatio = 4, kFreeVisits = 1000;
constexpr uint32_t kMaxConjuncts = 32;

/// The operands of nested operations of one kind, left to right; stops to take apart at `most` of them.
void collect(const Expr& e, BinaryOp op, uint32_t most, InlineVector<const Expr*, 8>& out) {
  const auto* binary = e.as<Binary>();
  if (!binary || binary->op != op || out.size() >= most) return out.push_back(&e);
  collect(binary->a, op, most, out);
  collect(binary->b, op, most, out);
}

}  // namespace

Value* Engine::visit(const Expr& e) {
  const ExprNode* node = e.get();
  if (node->kind == NodeKind::kIntImm) {
    const auto* imm = static_cast<const IntImm*>(node);
    return integer(imm->dtype, imm->value);
  }
  if (node->kind == NodeKind::kVar) return settle(var_value(static_cast<const VarNode*>(node)));
  if (Value* known = store_->find_result(node, context_)) return known;
  const uint32_t context = context_;
  ++(condition_depth_ > 0 ? conditional_visits_ : plain_visits_);
  Value* value = settle(visit_node(node));
  if (!value->source) value->source = node;
  store_->remember_result(node, context, value);
  return value;
}

Value* Engine::visit_node(const ExprNode* node) {
  switch (node->kind) {
    case NodeKind::kFloatImm: return rounded(node->dtype, static_cast<const FloatImm*>(node)->value);
    case NodeKind::kCast: return cast(node->dtype, visit(static_cast<const Cast*>(node)->value));
    case NodeKind::kBinary: {
      const auto* e = static_cast<const Binary*>(node);
      if (e->dtype.is_bool() && (e->op == BinaryOp::kAnd || e->op == BinaryOp::kOr)) return visit_logical(e);
      if (e->dtype == kInt64 && (e->op == BinaryOp::kMin || e->op == BinaryOp::kMax)) {
        // All operands at once, so that the order of nesting does not matter.
        InlineVector<const Expr*, 8> leaves;
        collect(e->a, e->op, 8, leaves);
        collect(e->b, e->op, 8, leaves);
        InlineVector<Value*, 8> operands;
        for (const Expr* leaf : leaves) operands.push_back(visit(*leaf));
        return min_max(e->op, {operands.data(), operands.size()});
      }
      Value* a = visit(e->a);
      return binary(e->op, a, visit(e->b));
    }
    case NodeKind::kNot: return logical_not(visit(static_cast<const Not*>(node)->value));
    case NodeKind::kSelect: return visit_select(static_cast<const Select*>(node));
    case NodeKind::kLoad: return visit_load(static_cast<const Load*>(node), /*as_address=*/false);
    case NodeKind::kRamp: {
      const auto* e = static_cast<const Ramp*>(node);
      Value* base = visit(e->base);
      return ramp(base, visit(e->stride), e->lanes);
    }
    case NodeKind::kBroadcast: return broadcast(visit(static_cast<const Broadcast*>(node)->value), node->dtype.lanes);
    case NodeKind::kLet: return visit_let(static_cast<const Let*>(node));
    case NodeKind::kCall: return visit_call(static_cast<const Call*>(node));
    default: break;
  }
  TS_UNREACHABLE() << "expression kind " << static_cast<int>(node->kind);
}

/// Whether a branch may come out simpler for knowing the condition. Float comparisons do not say enough for visiting
/// large shared parts (polynomials in selects) again.
bool Engine::worth_assuming(const Value* condition) const {
  if (condition->is(ValueKind::kBroadcast)) return worth_assuming(condition->kids[0]);
  if (condition->dtype.lanes > 1 || condition_depth_ >= kMaxConditionDepth) return false;
  if (conditional_visits_ > kMaxVisitsRatio * plain_visits_ + kFreeVisits) return false;
  if (condition->is(ValueKind::kNot)) return worth_assuming(condition->kids[0]);
  if (!condition->is(ValueKind::kOp)) return condition->is(ValueKind::kVar);
  if (is_compare(condition->binary_op())) return condition->kids[0]->dtype.is_integral();
  for (uint32_t i = 0; i < condition->count; ++i)
    if (worth_assuming(condition->kids[i])) return true;
  return false;
}

Value* Engine::visit_logical(const Binary* e) {
  const bool conjunction = e->op == BinaryOp::kAnd;
  InlineVector<const Expr*, 8> leaves;
  collect(e->a, e->op, kMaxConjuncts, leaves);
  collect(e->b, e->op, kMaxConjuncts, leaves);
  InlineVector<Value*, 8> values;
  bool excluded = false;
  if (condition_depth_ < kMaxConditionDepth) {
    Scope scope(*this);
    bool assumed = false;
    for (const Expr* leaf : leaves) {
      condition_depth_ += assumed;
      Value* value = visit(*leaf);
      condition_depth_ -= assumed;
      values.push_back(value);
      // The others matter only where this one does not decide.
      if (leaf != leaves.back() && worth_assuming(value)) {
        assume(value, conjunction);
        assumed = true;
      }
      excluded = contradiction() && !scope.mark_.contradiction;
      if (excluded) break;
    }
  } else {
    for (const Expr* leaf : leaves) values.push_back(visit(*leaf));
  }
  if (excluded) return boolean(!conjunction, e->dtype.lanes);
  Value* result = nullptr;
  for (Value* value : values) result = result ? binary(e->op, result, value) : value;
  return result;
}

Value* Engine::visit_select(const Select* e) {
  Value* cond = visit(e->cond);
  if (const int known = truth(cond); known != -1) return visit(known ? e->a : e->b);
  if (!worth_assuming(cond)) {
    Value* a = visit(e->a);
    return select(cond, a, visit(e->b));
  }
  Value* branches[2];
  Range ranges[2];
  bool excluded[2];
  for (const int i : {0, 1}) {
    Scope scope(*this);
    ++condition_depth_;
    assume(cond, i == 0);
    excluded[i] = contradiction() && !scope.mark_.contradiction;
    branches[i] = excluded[i] ? nullptr : visit(i == 0 ? e->a : e->b);
    if (branches[i]) ranges[i] = range(branches[i]);
    --condition_depth_;
  }
  if (excluded[0]) return excluded[1] ? visit(e->b) : branches[1];
  if (excluded[1]) return branches[0];
  Value* result = select(cond, branches[0], branches[1]);
  // Conditions that a choice of bools became are worth seeing one another.
  if (result->dtype.is_bool() && (result->is_op(BinaryOp::kAnd) || result->is_op(BinaryOp::kOr)))
    return visit(build(result));
  Value* choice = result->is(ValueKind::kBroadcast) ? result->kids[0] : result;
  if (choice->is(ValueKind::kSelect) && (choice->dtype.is_integral() || choice->dtype.is_bool())) {
    // Each branch has its bounds only under its condition.
    const Range whole = range(choice);
    const Range both{std::min(ranges[0].lo, ranges[1].lo), std::max(ranges[0].hi, ranges[1].hi)};
    const Range meet{std::max(whole.lo, both.lo), std::min(whole.hi, both.hi)};
    if (meet.lo <= meet.hi) choice->range = meet;
  }
  return result;
}

Value* Engine::visit_let(const Let* e) {
  Value* value = visit(e->value);
  Scope scope(*this);
  if (bind_let(static_cast<const VarNode*>(e->var.get()), value)) return visit(e->body);
  const uint64_t bit = let_bit(static_cast<const VarNode*>(e->var.get()));
  Value* body = visit(e->body);
  if (!(body->lets & bit) && !(value->flags & kHasEffect)) return body;
  Value* kids[] = {value, body};
  Value probe(ValueKind::kLet, body->dtype);
  probe.object = static_cast<const VarNode*>(e->var.get());
  Value* result = make(probe, kids);
  result->lets = value->lets | (body->lets & ~bit);
  // Its own variable, whose rank depends on when it was met, must not place it among terms.
  if (body->rank >= var_value(static_cast<const VarNode*>(e->var.get()))->rank) result->rank = value->rank;
  return result;
}

Value* Engine::visit_load(const Load* e, bool as_address) {
  InlineVector<Value*, 8> kids;
  for (const Expr& i : e->indices) kids.push_back(visit(i));
  Value* predicate = e->predicate ? visit(e->predicate) : nullptr;
  if (!as_address) return load(e->buffer.get(), {kids.data(), kids.size()}, predicate);
  if (predicate) kids.push_back(predicate);
  Value probe(ValueKind::kLoad, e->dtype);
  probe.object = e->buffer.get();
  probe.number = static_cast<int64_t>(e->indices.size());
  return make(probe, {kids.data(), kids.size()});
}

Value* Engine::visit_call(const Call* e) {
  InlineVector<Value*, 8> args;
  for (const Expr& arg : e->args) {
    // The place, not the value, is meant.
    const bool as_address =
        args.empty() && (e->id == Intrinsic::kAddressOf || e->id == Intrinsic::kPrefetch) && arg.as<Load>();
    args.push_back(as_address ? visit_load(arg.as<Load>(), true) : visit(arg));
  }
  return call(e->dtype, e->id, e, {args.data(), args.size()});
}

}  // namespace tensmith::simplifier
