#include "tensor/expr.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/base/error.h"

namespace tensmith {

namespace {

constexpr IntrinsicInfo kIntrinsics[] = {
#define TS_INTRINSIC(name, text, arity, purity) {text, arity, purity},
#include "tensor/intrinsics.def"
#undef TS_INTRINSIC
};

/// The value as an integer of the type's width, sign-extended (zero-extended for unsigned narrower than 64 bits).
int64_t wrap(DType type, int64_t value) {
  if (type.is_bool()) return value != 0;
  if (type.bits >= 64) return value;
  const uint64_t mask = (uint64_t{1} << type.bits) - 1;
  const uint64_t bits = static_cast<uint64_t>(value) & mask;
  if (type.is_int() && (bits >> (type.bits - 1))) return static_cast<int64_t>(bits | ~mask);
  return static_cast<int64_t>(bits);
}

/// Rounds to a binary format with `digits` significant bits, smallest exponent `min_exponent` (of the subnormal step),
/// and largest value `max`.
double round_to(double value, int digits, int min_exponent, double max) {
  if (!std::isfinite(value) || value == 0) return value;
  int exponent;
  std::frexp(value, &exponent);
  const int step = std::max(exponent - digits, min_exponent);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -step)), step);
  return std::fabs(rounded) > max ? std::copysign(std::numeric_limits<double>::infinity(), value) : rounded;
}

double round_float(DType type, double value) {
  if (type.bits == 64) return value;
  if (type.is_bfloat()) return round_to(value, 8, -133, 3.3895313892515355e38);
  if (type.bits == 32) return static_cast<float>(value);
  if (type.bits == 16) return round_to(value, 11, -24, 65504.0);
  TS_CHECK(false) << "no float type of " << int(type.bits) << " bits";
  return value;
}

/// Converts an integer literal that stands beside an expression of another type, and broadcasts a scalar beside a
/// vector.
void match_types(Expr& a, Expr& b) {
  const auto convert_literal = [](Expr& literal, DType type) {
    const auto* imm = literal.as<IntImm>();
    if (!imm || literal.dtype() == type.element() || imm->dtype != kInt64) return;
    if (type.is_float()) literal = FloatImm::make(type.element(), static_cast<double>(imm->value));
    else if (type.is_integral()) literal = IntImm::make(type.element(), imm->value);
  };
  convert_literal(a, b.dtype());
  convert_literal(b, a.dtype());
  if (a.dtype().lanes == 1 && b.dtype().lanes > 1) a = Broadcast::make(a, b.dtype().lanes);
  if (b.dtype().lanes == 1 && a.dtype().lanes > 1) b = Broadcast::make(b, a.dtype().lanes);
}

Expr binary(BinaryOp op, Expr a, Expr b) {
  match_types(a, b);
  return Binary::make(op, std::move(a), std::move(b));
}

}  // namespace

const IntrinsicInfo& intrinsic_info(Intrinsic id) { return kIntrinsics[static_cast<int>(id)]; }

Expr::Expr(int64_t value) : Expr(IntImm::make(kInt64, value)) {}

Expr IntImm::make(DType dtype, int64_t value) {
  TS_CHECK(dtype.is_scalar() && (dtype.is_integral() || dtype.is_bool())) << to_string(dtype);
  return new IntImm(dtype, wrap(dtype, value));
}

Expr FloatImm::make(DType dtype, double value) {
  TS_CHECK(dtype.is_scalar() && dtype.is_float()) << to_string(dtype);
  return new FloatImm(dtype, round_float(dtype, value));
}

Expr Cast::make(DType dtype, Expr value) {
  TS_CHECK(dtype.lanes == value.dtype().lanes) << to_string(dtype) << " from " << to_string(value.dtype());
  if (value.dtype() == dtype) return value;
  return new Cast(dtype, std::move(value));
}

Expr Binary::make(BinaryOp op, Expr a, Expr b) {
  if (a.dtype().lanes == 1 && b.dtype().lanes > 1) a = Broadcast::make(a, b.dtype().lanes);
  if (b.dtype().lanes == 1 && a.dtype().lanes > 1) b = Broadcast::make(b, a.dtype().lanes);
  TS_CHECK(a.dtype() == b.dtype()) << "operands of " << to_string(a.dtype()) << " and " << to_string(b.dtype());
  const DType type = a.dtype();
  switch (op) {
    case BinaryOp::kDiv: TS_CHECK(type.is_float()) << to_string(type); break;
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
    case BinaryOp::kTruncDiv:
    case BinaryOp::kTruncMod:
    case BinaryOp::kShl:
    case BinaryOp::kShr: TS_CHECK(type.is_integral()) << to_string(type); break;
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
    case BinaryOp::kXor: TS_CHECK(type.is_integral() || type.is_bool()) << to_string(type); break;
    default: break;
  }
  const DType result = is_compare(op) ? kBool.with_lanes(type.lanes) : type;
  return new Binary(result, op, std::move(a), std::move(b));
}

Expr Not::make(Expr value) {
  const DType type = value.dtype();
  TS_CHECK(type.is_bool() || type.is_integral()) << to_string(type);
  return new Not(type, std::move(value));
}

Expr Select::make(Expr cond, Expr a, Expr b) {
  const int lanes = std::max({int{cond.dtype().lanes}, int{a.dtype().lanes}, int{b.dtype().lanes}});
  if (a.dtype().lanes != lanes) a = Broadcast::make(a, lanes);
  if (b.dtype().lanes != lanes) b = Broadcast::make(b, lanes);
  TS_CHECK(cond.dtype().is_bool() && (cond.dtype().lanes == 1 || cond.dtype().lanes == lanes))
      << to_string(cond.dtype());
  TS_CHECK(a.dtype() == b.dtype()) << to_string(a.dtype()) << " and " << to_string(b.dtype());
  const DType type = a.dtype();
  return new Select(type, std::move(cond), std::move(a), std::move(b));
}

Expr Load::make(Buffer buffer, std::vector<Expr> indices, Expr predicate) {
  int lanes = 1;
  for (const Expr& index : indices) {
    TS_CHECK(index.dtype().element() == kInt64)
        << "index of type " << to_string(index.dtype()) << " into " << buffer->name;
    lanes = std::max<int>(lanes, index.dtype().lanes);
  }
  for (Expr& index : indices)
    if (index.dtype().lanes != lanes) index = Broadcast::make(index, lanes);
  if (predicate) TS_CHECK(predicate.dtype() == kBool.with_lanes(lanes)) << to_string(predicate.dtype());
  const DType type = buffer->dtype.with_lanes(lanes);
  return new Load(type, std::move(buffer), std::move(indices), std::move(predicate));
}

Expr Ramp::make(Expr base, Expr stride, int lanes) {
  TS_CHECK(base.dtype() == stride.dtype() && base.dtype().is_scalar() && lanes > 1)
      << to_string(base.dtype()) << " x " << lanes;
  const DType type = base.dtype().with_lanes(lanes);
  return new Ramp(type, std::move(base), std::move(stride), lanes);
}

Expr Broadcast::make(Expr value, int lanes) {
  if (lanes == 1) return value;
  TS_CHECK(value.dtype().is_scalar() && lanes > 1) << to_string(value.dtype()) << " x " << lanes;
  const DType type = value.dtype().with_lanes(lanes);
  return new Broadcast(type, std::move(value), lanes);
}

Expr Let::make(Var var, Expr value, Expr body) {
  TS_CHECK(var.dtype() == value.dtype()) << var.name() << ": " << to_string(var.dtype()) << " = "
                                         << to_string(value.dtype());
  return new Let(std::move(var), std::move(value), std::move(body));
}

Expr Call::make(DType dtype, Intrinsic id, std::vector<Expr> args) {
  const IntrinsicInfo& info = intrinsic_info(id);
  TS_CHECK(id != Intrinsic::kExtern && (info.arity < 0 || info.arity == static_cast<int>(args.size()))) << info.name;
  return new Call(dtype, id, {}, std::move(args));
}

Expr Call::make_extern(DType dtype, std::string symbol, std::vector<Expr> args) {
  return new Call(dtype, Intrinsic::kExtern, std::move(symbol), std::move(args));
}

Buffer make_buffer(std::string name, DType dtype, std::vector<Expr> shape, Scope scope, int alignment) {
  return new BufferNode(std::move(name), dtype, std::move(shape), scope, alignment);
}

Expr num_elements(const Buffer& buffer) {
  Expr product(1);
  for (const Expr& extent : buffer->shape) product = product * extent;
  return product;
}

Expr load(const Buffer& buffer, std::vector<Expr> indices) {
  TS_CHECK(indices.size() == buffer->shape.size())
      << buffer->name << " has " << buffer->shape.size() << " dimensions, got " << indices.size() << " indices";
  return Load::make(buffer, std::move(indices));
}

bool as_const_int(const Expr& e, int64_t* value) {
  if (e.get() == nullptr) return false;  // not !e, which makes an expression
  if (const auto* broadcast = e.as<Broadcast>()) return as_const_int(broadcast->value, value);
  const auto* imm = e.as<IntImm>();
  if (imm) *value = imm->value;
  return imm != nullptr;
}

bool is_const_int(const Expr& e, int64_t value) {
  int64_t found;
  return as_const_int(e, &found) && found == value;
}

bool is_const_float(const Expr& e, double value) {
  if (const auto* broadcast = e.as<Broadcast>()) return is_const_float(broadcast->value, value);
  const auto* imm = e.as<FloatImm>();
  return imm && imm->value == value;
}

Expr make_const(DType dtype, double value) {
  if (dtype.is_float()) return Broadcast::make(FloatImm::make(dtype.element(), value), dtype.lanes);
  return make_const_int(dtype, static_cast<int64_t>(value));
}

Expr make_const_int(DType dtype, int64_t value) {
  if (dtype.is_float()) return make_const(dtype, static_cast<double>(value));
  return Broadcast::make(IntImm::make(dtype.element(), value), dtype.lanes);
}

Expr make_zero(DType dtype) { return make_const_int(dtype, 0); }

Expr make_bool(bool value, int lanes) { return make_const_int(kBool.with_lanes(lanes), value); }

Expr min_value(DType dtype) {
  if (dtype.is_float()) return make_const(dtype, -std::numeric_limits<double>::infinity());
  if (!dtype.is_int()) return make_zero(dtype);
  return make_const_int(dtype, dtype.bits == 64 ? INT64_MIN : -(int64_t{1} << (dtype.bits - 1)));
}

Expr max_value(DType dtype) {
  if (dtype.is_float()) return make_const(dtype, std::numeric_limits<double>::infinity());
  if (dtype.is_bool()) return make_bool(true, dtype.lanes);
  const int bits = dtype.is_int() ? dtype.bits - 1 : dtype.bits;
  return make_const_int(dtype, bits == 64 ? -1 : bits == 63 ? INT64_MAX : (int64_t{1} << bits) - 1);
}

Expr operator+(Expr a, Expr b) {
  match_types(a, b);
  if (!a.dtype().is_float()) {
    const auto *x = a.as<IntImm>(), *y = b.as<IntImm>();
    if (x && y)
      return IntImm::make(a.dtype(),
                          static_cast<int64_t>(static_cast<uint64_t>(x->value) + static_cast<uint64_t>(y->value)));
    if (is_const_int(a, 0)) return b;
    if (is_const_int(b, 0)) return a;
  }
  return Binary::make(BinaryOp::kAdd, std::move(a), std::move(b));
}

Expr operator-(Expr a, Expr b) {
  match_types(a, b);
  if (!a.dtype().is_float()) {
    const auto *x = a.as<IntImm>(), *y = b.as<IntImm>();
    if (x && y)
      return IntImm::make(a.dtype(),
                          static_cast<int64_t>(static_cast<uint64_t>(x->value) - static_cast<uint64_t>(y->value)));
    if (is_const_int(b, 0)) return a;
  }
  return Binary::make(BinaryOp::kSub, std::move(a), std::move(b));
}

Expr operator*(Expr a, Expr b) {
  match_types(a, b);
  if (!a.dtype().is_float()) {
    const auto *x = a.as<IntImm>(), *y = b.as<IntImm>();
    if (x && y)
      return IntImm::make(a.dtype(),
                          static_cast<int64_t>(static_cast<uint64_t>(x->value) * static_cast<uint64_t>(y->value)));
    if (is_const_int(a, 0) || is_const_int(b, 1)) return a;
    if (is_const_int(b, 0) || is_const_int(a, 1)) return b;
  }
  return Binary::make(BinaryOp::kMul, std::move(a), std::move(b));
}

Expr operator/(Expr a, Expr b) { return binary(BinaryOp::kDiv, std::move(a), std::move(b)); }

Expr operator-(Expr a) {
  // 0 - x would turn -0 into +0 the wrong way round; -x is x * -1 for floats.
  if (a.dtype().is_float()) return a * make_const(a.dtype(), -1);
  return make_zero(a.dtype()) - a;
}

Expr operator<(Expr a, Expr b) { return binary(BinaryOp::kLT, std::move(a), std::move(b)); }
Expr operator<=(Expr a, Expr b) { return binary(BinaryOp::kLE, std::move(a), std::move(b)); }
Expr operator>(Expr a, Expr b) { return binary(BinaryOp::kGT, std::move(a), std::move(b)); }
Expr operator>=(Expr a, Expr b) { return binary(BinaryOp::kGE, std::move(a), std::move(b)); }
Expr operator==(Expr a, Expr b) { return binary(BinaryOp::kEQ, std::move(a), std::move(b)); }
Expr operator!=(Expr a, Expr b) { return binary(BinaryOp::kNE, std::move(a), std::move(b)); }

Expr operator&&(Expr a, Expr b) {
  if (is_const_int(a, 1) && a.dtype().lanes <= b.dtype().lanes) return b;
  if (is_const_int(b, 1) && b.dtype().lanes <= a.dtype().lanes) return a;
  return binary(BinaryOp::kAnd, std::move(a), std::move(b));
}

Expr operator||(Expr a, Expr b) {
  if (is_const_int(a, 0) && a.dtype().lanes <= b.dtype().lanes) return b;
  if (is_const_int(b, 0) && b.dtype().lanes <= a.dtype().lanes) return a;
  return binary(BinaryOp::kOr, std::move(a), std::move(b));
}

Expr logical_not(Expr a) {
  if (const auto* inner = a.as<Not>()) return inner->value;
  if (const auto* imm = a.as<IntImm>(); imm && a.dtype().is_bool()) return make_bool(!imm->value);
  return Not::make(std::move(a));
}

Expr floor_div(Expr a, Expr b) {
  match_types(a, b);
  const auto *x = a.as<IntImm>(), *y = b.as<IntImm>();
  if (is_const_int(b, 1)) return a;
  if (x && y && a.dtype().is_int() && y->value > 0)
    return IntImm::make(a.dtype(), x->value / y->value - (x->value % y->value < 0 ? 1 : 0));
  return Binary::make(BinaryOp::kFloorDiv, std::move(a), std::move(b));
}

Expr floor_mod(Expr a, Expr b) {
  match_types(a, b);
  const auto *x = a.as<IntImm>(), *y = b.as<IntImm>();
  if (is_const_int(b, 1)) return make_zero(a.dtype());
  if (x && y && a.dtype().is_int() && y->value > 0) {
    const int64_t rest = x->value % y->value;
    return IntImm::make(a.dtype(), rest < 0 ? rest + y->value : rest);
  }
  return Binary::make(BinaryOp::kFloorMod, std::move(a), std::move(b));
}

Expr ceil_div(Expr a, Expr b) { return floor_div(std::move(a) + (b - 1), b); }
Expr trunc_div(Expr a, Expr b) { return binary(BinaryOp::kTruncDiv, std::move(a), std::move(b)); }
Expr trunc_mod(Expr a, Expr b) { return binary(BinaryOp::kTruncMod, std::move(a), std::move(b)); }

Expr min(Expr a, Expr b) {
  match_types(a, b);
  const auto *x = a.as<IntImm>(), *y = b.as<IntImm>();
  if (x && y && !a.dtype().is_uint()) return x->value < y->value ? a : b;
  if (a.same_as(b)) return a;
  return Binary::make(BinaryOp::kMin, std::move(a), std::move(b));
}

Expr max(Expr a, Expr b) {
  match_types(a, b);
  const auto *x = a.as<IntImm>(), *y = b.as<IntImm>();
  if (x && y && !a.dtype().is_uint()) return x->value > y->value ? a : b;
  if (a.same_as(b)) return a;
  return Binary::make(BinaryOp::kMax, std::move(a), std::move(b));
}

Expr select(Expr cond, Expr a, Expr b) {
  match_types(a, b);
  if (is_const_int(cond, 1) && a.dtype().lanes >= cond.dtype().lanes) return a;
  if (is_const_int(cond, 0) && b.dtype().lanes >= cond.dtype().lanes) return b;
  return Select::make(std::move(cond), std::move(a), std::move(b));
}

Expr cast(DType dtype, Expr value) {
  if (const auto* imm = value.as<IntImm>(); imm && dtype.is_scalar() && !value.dtype().is_uint()) {
    if (dtype.is_float()) return FloatImm::make(dtype, static_cast<double>(imm->value));
    return IntImm::make(dtype, imm->value);
  }
  if (const auto* imm = value.as<FloatImm>(); imm && dtype.is_scalar() && dtype.is_float())
    return FloatImm::make(dtype, imm->value);
  const DType type = dtype.with_lanes(value.dtype().lanes);
  return Cast::make(type, std::move(value));
}

Expr let(Var var, Expr value, Expr body) { return Let::make(std::move(var), std::move(value), std::move(body)); }

Expr call(Intrinsic id, std::vector<Expr> args) {
  TS_CHECK(!args.empty()) << intrinsic_info(id).name;
  DType type = args[0].dtype();
  if (id == Intrinsic::kIsNan || id == Intrinsic::kIsInf) type = kBool.with_lanes(type.lanes);
  return Call::make(type, id, std::move(args));
}

}  // namespace tensmith
