// From canonical values to loop IR. Where the input had the same structure its own nodes are used, so that simplifying
// what is simple already makes nothing.

#include <bit>

#include "runtime/base/error.h"
#include "tensor/simplify/engine.h"

namespace tensmith::simplifier {

namespace {

const Binary* as_binary(const ExprNode* e, BinaryOp op) {
  if (!e || e->kind != NodeKind::kBinary) return nullptr;
  const auto* binary = static_cast<const Binary*>(e);
  return binary->op == op ? binary : nullptr;
}

bool same_node(const ExprNode* have, const ExprNode* want) {
  if (have == want) return true;
  if (have->kind != want->kind || !(have->dtype == want->dtype)) return false;
  if (have->kind == NodeKind::kIntImm)
    return static_cast<const IntImm*>(have)->value == static_cast<const IntImm*>(want)->value;
  if (have->kind == NodeKind::kFloatImm)
    return std::bit_cast<int64_t>(static_cast<const FloatImm*>(have)->value) ==
           std::bit_cast<int64_t>(static_cast<const FloatImm*>(want)->value);
  return false;
}

}  // namespace

Expr Engine::build(Value* value) { return node(value); }

Expr Engine::build(Value* value, const Expr& original) {
  const ExprNode* built = node(value);
  return same_node(original.get(), built) ? original : Expr(built);
}

const ExprNode* Engine::node(Value* value) {
  if (!value->expr) value->expr = build_node(value);
  return value->expr;
}

const ExprNode* Engine::build_binary(BinaryOp op, const ExprNode* a, const ExprNode* b, const ExprNode* hint) {
  if (const Binary* have = as_binary(hint, op); have && same_node(have->a.get(), a) && same_node(have->b.get(), b))
    return hint;
  return store_->keep(Binary::make(op, a, b));
}

const ExprNode* Engine::build_scaled(Value* value, int64_t coefficient, const ExprNode* hint) {
  const ExprNode* factor = node(value);
  if (coefficient == 1) return factor;
  return build_binary(BinaryOp::kMul, factor, node(index(coefficient)), hint);
}

/// A sum starts with its first positive term and ends with the constant: 6 * io - ii + 3.
const ExprNode* Engine::build_sum(Value* value) {
  uint32_t first = 0;
  while (first < value->count && value->coefficients[first] < 0) ++first;
  const bool has_positive = first < value->count;
  const int64_t constant = value->number;
  const bool starts_with_constant = !has_positive && constant != 0;
  if (!has_positive) first = 0;
  const uint32_t steps =
      value->count - (starts_with_constant ? 0 : 1) + (constant != 0 && !starts_with_constant ? 1 : 0);

  // The input's nodes along its left spine, outermost last.
  InlineVector<const ExprNode*, 16> spine;
  const ExprNode* at = value->source;
  for (uint32_t i = 0; i < steps; ++i) {
    spine.push_back(at);
    const bool binary = at && at->kind == NodeKind::kBinary;
    at = binary ? static_cast<const Binary*>(at)->a.get() : nullptr;
  }
  const auto hint_of = [&](uint32_t step) { return spine[steps - 1 - step]; };
  const auto right_of = [](const ExprNode* hint) {
    return hint && hint->kind == NodeKind::kBinary ? static_cast<const Binary*>(hint)->b.get() : nullptr;
  };

  const ExprNode* result =
      starts_with_constant ? node(index(constant)) : build_scaled(value->kids[first], value->coefficients[first], at);
  uint32_t step = 0;
  for (uint32_t i = 0; i < value->count; ++i) {
    if (i == first && !starts_with_constant) continue;
    const ExprNode* hint = hint_of(step++);
    const int64_t k = value->coefficients[i];
    const ExprNode* term = build_scaled(value->kids[i], static_cast<int64_t>(magnitude(k)), right_of(hint));
    result = build_binary(k < 0 ? BinaryOp::kSub : BinaryOp::kAdd, result, term, hint);
  }
  if (constant != 0 && !starts_with_constant) {
    const bool subtract = constant < 0 && constant != INT64_MIN;
    result = build_binary(subtract ? BinaryOp::kSub : BinaryOp::kAdd, result,
                          node(index(subtract ? -constant : constant)), hint_of(step));
  }
  return result;
}

const ExprNode* Engine::build_node(Value* value) {
  const ExprNode* source = value->source;
  const auto same_kids = [&](std::initializer_list<const ExprNode*> have) {
    uint32_t i = 0;
    for (const ExprNode* e : have)
      if (!same_node(e, node(value->kids[i++]))) return false;
    return true;
  };
  const bool usable = source && source->dtype == value->dtype;
  switch (value->kind) {
    case ValueKind::kInt:
      return usable && source->kind == NodeKind::kIntImm ? source
                                                         : store_->keep(IntImm::make(value->dtype, value->number));
    case ValueKind::kFloat:
      return usable && source->kind == NodeKind::kFloatImm
                 ? source
                 : store_->keep(FloatImm::make(value->dtype, std::bit_cast<double>(value->number)));
    case ValueKind::kVar: return static_cast<const VarNode*>(value->object);
    case ValueKind::kSum: return build_sum(value);
    case ValueKind::kProduct:
    case ValueKind::kOp: {
      const BinaryOp op = value->is(ValueKind::kProduct) ? BinaryOp::kMul : value->binary_op();
      InlineVector<const ExprNode*, 8> spine;
      const ExprNode* at = source;
      for (uint32_t i = 1; i < value->count; ++i) {
        spine.push_back(at);
        const Binary* binary = as_binary(at, op);
        at = binary ? binary->a.get() : nullptr;
      }
      const ExprNode* result = node(value->kids[0]);
      for (uint32_t i = 1; i < value->count; ++i)
        result = build_binary(op, result, node(value->kids[i]), spine[value->count - 1 - i]);
      return result;
    }
    case ValueKind::kNot: {
      if (usable && source->kind == NodeKind::kNot && same_kids({static_cast<const Not*>(source)->value.get()}))
        return source;
      return store_->keep(Not::make(node(value->kids[0])));
    }
    case ValueKind::kCast: {
      if (usable && source->kind == NodeKind::kCast && same_kids({static_cast<const Cast*>(source)->value.get()}))
        return source;
      return store_->keep(Cast::make(value->dtype, node(value->kids[0])));
    }
    case ValueKind::kSelect: {
      if (usable && source->kind == NodeKind::kSelect) {
        const auto* e = static_cast<const Select*>(source);
        if (same_kids({e->cond.get(), e->a.get(), e->b.get()})) return source;
      }
      return store_->keep(Select::make(node(value->kids[0]), node(value->kids[1]), node(value->kids[2])));
    }
    case ValueKind::kLoad: {
      const uint32_t rank = static_cast<uint32_t>(value->number);
      Value* predicate = value->count > rank ? value->kids[rank] : nullptr;
      if (usable && source->kind == NodeKind::kLoad) {
        const auto* e = static_cast<const Load*>(source);
        bool same = e->buffer.get() == value->object && e->indices.size() == rank &&
                    static_cast<bool>(e->predicate) == (predicate != nullptr);
        for (uint32_t i = 0; i < rank && same; ++i) same = same_node(e->indices[i].get(), node(value->kids[i]));
        if (same && predicate) same = same_node(e->predicate.get(), node(predicate));
        if (same) return source;
      }
      std::vector<Expr> indices;
      for (uint32_t i = 0; i < rank; ++i) indices.emplace_back(node(value->kids[i]));
      return store_->keep(Load::make(static_cast<const BufferNode*>(value->object), std::move(indices),
                                     predicate ? Expr(node(predicate)) : Expr()));
    }
    case ValueKind::kRamp: {
      if (usable && source->kind == NodeKind::kRamp) {
        const auto* e = static_cast<const Ramp*>(source);
        if (same_kids({e->base.get(), e->stride.get()})) return source;
      }
      return store_->keep(Ramp::make(node(value->kids[0]), node(value->kids[1]), value->dtype.lanes));
    }
    case ValueKind::kBroadcast: {
      if (usable && source->kind == NodeKind::kBroadcast &&
          same_kids({static_cast<const Broadcast*>(source)->value.get()}))
        return source;
      return store_->keep(Broadcast::make(node(value->kids[0]), value->dtype.lanes));
    }
    case ValueKind::kLet: {
      if (usable && source->kind == NodeKind::kLet) {
        const auto* e = static_cast<const Let*>(source);
        if (static_cast<const VarNode*>(e->var.get()) == value->object && same_kids({e->value.get(), e->body.get()}))
          return source;
      }
      return store_->keep(
          Let::make(Var(static_cast<const VarNode*>(value->object)), node(value->kids[0]), node(value->kids[1])));
    }
    case ValueKind::kCall: {
      const Intrinsic id = static_cast<Intrinsic>(value->op);
      if (usable && source->kind == NodeKind::kCall) {
        const auto* e = static_cast<const Call*>(source);
        bool same = e->id == id && e->args.size() == value->count && (id != Intrinsic::kExtern || e == value->object);
        for (uint32_t i = 0; i < value->count && same; ++i) same = same_node(e->args[i].get(), node(value->kids[i]));
        if (same) return source;
      }
      std::vector<Expr> args;
      for (uint32_t i = 0; i < value->count; ++i) args.emplace_back(node(value->kids[i]));
      if (id == Intrinsic::kExtern)
        return store_->keep(
            Call::make_extern(value->dtype, static_cast<const Call*>(value->object)->symbol, std::move(args)));
      return store_->keep(Call::make(value->dtype, id, std::move(args)));
    }
  }
  TS_UNREACHABLE() << "value kind " << static_cast<int>(value->kind);
}

}  // namespace tensmith::simplifier
