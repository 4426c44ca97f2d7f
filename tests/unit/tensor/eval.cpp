#include "tests/unit/tensor/eval.h"

#include "runtime/base/error.h"

namespace tensmith::testing {

namespace {

int64_t wrap(DType type, uint64_t value) {
  if (type.is_bool()) return value != 0;
  if (type.bits == 64) return static_cast<int64_t>(value);
  const uint64_t mask = (uint64_t{1} << type.bits) - 1;
  value &= mask;
  if (type.is_int() && value >> (type.bits - 1)) value |= ~mask;
  return static_cast<int64_t>(value);
}

int64_t apply(BinaryOp op, DType type, int64_t a, int64_t b) {
  const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  const bool is_unsigned = type.is_uint() || type.is_bool();
  const bool less = is_unsigned ? x < y : a < b;
  __extension__ using Wide = __int128;
  const Wide p = is_unsigned ? Wide{x} : Wide{a}, q = is_unsigned ? Wide{y} : Wide{b};
  switch (op) {
    case BinaryOp::kAdd: return wrap(type, x + y);
    case BinaryOp::kSub: return wrap(type, x - y);
    case BinaryOp::kMul: return wrap(type, x * y);
    case BinaryOp::kFloorDiv:
    case BinaryOp::kTruncDiv: {
      if (q == 0) return 0;
      Wide result = p / q;
      if (op == BinaryOp::kFloorDiv && p % q != 0 && (p % q < 0) != (q < 0)) --result;
      return wrap(type, static_cast<uint64_t>(result));
    }
    case BinaryOp::kFloorMod:
    case BinaryOp::kTruncMod: {
      if (q == 0) return 0;
      Wide result = p % q;
      if (op == BinaryOp::kFloorMod && result != 0 && (result < 0) != (q < 0)) result += q;
      return wrap(type, static_cast<uint64_t>(result));
    }
    case BinaryOp::kMin: return less ? a : b;
    case BinaryOp::kMax: return less ? b : a;
    case BinaryOp::kAnd: return a & b;
    case BinaryOp::kOr: return a | b;
    case BinaryOp::kXor: return wrap(type, x ^ y);
    case BinaryOp::kShl: return y >= type.bits ? 0 : wrap(type, x << y);
    case BinaryOp::kShr:
      if (y >= type.bits) return !is_unsigned && a < 0 ? -1 : 0;
      return is_unsigned ? static_cast<int64_t>(x >> y) : a >> y;
    case BinaryOp::kEQ: return a == b;
    case BinaryOp::kNE: return a != b;
    case BinaryOp::kLT: return less;
    case BinaryOp::kLE: return less || a == b;
    case BinaryOp::kGT: return !less && a != b;
    case BinaryOp::kGE: return !less;
    default: break;
  }
  TS_UNREACHABLE() << static_cast<int>(op);
}

int64_t loaded(DType type, const std::vector<int64_t>& index) {
  uint64_t h = 12345;
  for (int64_t i : index) h = (h ^ static_cast<uint64_t>(i)) * 0x9E3779B97F4A7C15ull, h ^= h >> 29;
  // Small values, and those where arithmetic wraps.
  switch (h % 7) {
    case 0: return wrap(type, uint64_t{1} << (type.bits - 1));
    case 1: return wrap(type, (uint64_t{1} << (type.bits - 1)) - 1 - (h >> 8) % 3);
    case 2: return wrap(type, ~uint64_t{0});
    default: return wrap(type, (h >> 8) % 40 - 10);
  }
}

}  // namespace

Lanes evaluate(const Expr& e, Env& env) {
  const DType type = e.dtype();
  const int lanes = type.lanes;
  if (const auto* imm = e.as<IntImm>()) return {imm->value};
  if (e.kind() == NodeKind::kVar) {
    const auto found = env.find(static_cast<const VarNode*>(e.get()));
    TS_CHECK(found != env.end()) << static_cast<const VarNode*>(e.get())->name;
    return {found->second};
  }
  Lanes result(lanes);
  if (const auto* cast = e.as<Cast>()) {
    const Lanes a = evaluate(cast->value, env);
    for (int i = 0; i < lanes; ++i) result[i] = wrap(type.element(), static_cast<uint64_t>(a[i]));
    return result;
  }
  if (const auto* op = e.as<Binary>()) {
    const Lanes a = evaluate(op->a, env), b = evaluate(op->b, env);
    for (int i = 0; i < lanes; ++i) result[i] = apply(op->op, op->a.dtype().element(), a[i], b[i]);
    return result;
  }
  if (const auto* op = e.as<Not>()) {
    const Lanes a = evaluate(op->value, env);
    for (int i = 0; i < lanes; ++i)
      result[i] = type.is_bool() ? !a[i] : wrap(type.element(), ~static_cast<uint64_t>(a[i]));
    return result;
  }
  if (const auto* op = e.as<Select>()) {
    const Lanes c = evaluate(op->cond, env), a = evaluate(op->a, env), b = evaluate(op->b, env);
    for (int i = 0; i < lanes; ++i) result[i] = c[c.size() == 1 ? 0 : i] ? a[i] : b[i];
    return result;
  }
  if (const auto* op = e.as<Ramp>()) {
    const int64_t base = evaluate_scalar(op->base, env), stride = evaluate_scalar(op->stride, env);
    for (int i = 0; i < lanes; ++i)
      result[i] =
          wrap(type.element(), static_cast<uint64_t>(base) + static_cast<uint64_t>(i) * static_cast<uint64_t>(stride));
    return result;
  }
  if (const auto* op = e.as<Broadcast>()) return Lanes(lanes, evaluate_scalar(op->value, env));
  if (const auto* op = e.as<Let>()) {
    const auto* var = static_cast<const VarNode*>(op->var.get());
    env[var] = evaluate_scalar(op->value, env);
    result = evaluate(op->body, env);
    env.erase(var);
    return result;
  }
  if (const auto* op = e.as<Load>()) {
    std::vector<Lanes> indices;
    for (const Expr& index : op->indices) indices.push_back(evaluate(index, env));
    const Lanes mask = op->predicate ? evaluate(op->predicate, env) : Lanes(lanes, 1);
    for (int i = 0; i < lanes; ++i) {
      std::vector<int64_t> at;
      for (const Lanes& index : indices) at.push_back(index[i]);
      result[i] = mask[i] ? loaded(type.element(), at) : 0;
    }
    return result;
  }
  TS_UNREACHABLE() << "expression kind " << static_cast<int>(e.kind());
}

int64_t evaluate_scalar(const Expr& e, Env& env) {
  TS_CHECK(e.dtype().lanes == 1);
  return evaluate(e, env)[0];
}

}  // namespace tensmith::testing
