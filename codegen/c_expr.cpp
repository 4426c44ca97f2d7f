#include <cmath>
#include <cstdio>
#include <utility>

#include "codegen/c_writer.h"
#include "runtime/base/error.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

constexpr int kPrimary = 15, kUnary = 14, kTimes = 13, kPlus = 12, kOrder = 10, kEqual = 9, kAndBinds = 5, kOrBinds = 4,
              kChoice = 3, kComma = 1;

bool is_half(DType type) { return type.is_float() && type.bits == 16; }

std::string in_parentheses(const CText& value, int binds) {
  return value.binds >= binds ? value.text : "(" + value.text + ")";
}

std::string number(DType type, int64_t value) {
  if (type.is_bool()) return value ? "true" : "false";
  if (type.is_uint() && type.bits == 64) return "UINT64_C(" + std::to_string(static_cast<uint64_t>(value)) + ")";
  if (type.is_uint() && type.bits == 32) return std::to_string(static_cast<uint32_t>(value)) + "u";
  if (type.is_int() && type.bits == 64) {
    if (value == INT64_MIN) return "INT64_MIN";
    if (value > INT32_MAX || value < -INT32_MAX) return "INT64_C(" + std::to_string(value) + ")";
  }
  if (type.is_int() && type.bits == 32 && value == INT32_MIN) return "INT32_MIN";
  return std::to_string(value);
}

std::string number(DType type, double value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value < 0 ? "-INFINITY" : "INFINITY";
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", type.bits == 64 ? 17 : 9, value);
  std::string out = text;
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return type.bits == 64 ? out : out + "f";
}

const char* operator_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd: return " + ";
    case BinaryOp::kSub: return " - ";
    case BinaryOp::kMul: return " * ";
    case BinaryOp::kDiv: return " / ";
    case BinaryOp::kAnd: return " & ";
    case BinaryOp::kOr: return " | ";
    case BinaryOp::kXor: return " ^ ";
    case BinaryOp::kEQ: return " == ";
    case BinaryOp::kNE: return " != ";
    case BinaryOp::kLT: return " < ";
    case BinaryOp::kLE: return " <= ";
    case BinaryOp::kGT: return " > ";
    case BinaryOp::kGE: return " >= ";
    default: return nullptr;
  }
}

}  // namespace

bool is_lane_by_lane(const Expr& e) {
  if (e.get() == nullptr) return true;
  bool plain = true;
  visit(e, [&](const Expr& part) {
    if (part.dtype().lanes == 1) return plain;
    if (const auto* node = part.as<Let>()) plain = plain && node->value.dtype().lanes == 1;
    if (const auto* node = part.as<Call>())
      plain = plain && node->id != Intrinsic::kShuffle && node->id != Intrinsic::kConcat &&
              (node->id != Intrinsic::kBitcast || node->args[0].dtype().lanes == part.dtype().lanes);
    return plain;
  });
  return plain;
}

bool CWriter::may_wrap(const Expr& e) const {
  if (e.dtype().element() != kInt64) return false;
  // Conditions on loop variables and extents are index arithmetic too; what is made of data is not.
  // Strides in places are larger than what else is computed with.
  const int64_t small = int64_t{1} << (in_index_ ? 32 : 24);
  bool plain = true;
  visit(e, [&](const Expr& part) {
    const NodeKind kind = part.kind();
    if (const auto* constant = part.as<IntImm>()) plain = plain && -small < constant->value && constant->value < small;
    plain = plain && kind != NodeKind::kLoad && kind != NodeKind::kCall && kind != NodeKind::kCast &&
            kind != NodeKind::kLet && (kind != NodeKind::kVar || !data_.count(static_cast<const VarNode*>(part.get())));
    return plain;
  });
  return !plain;
}

std::string CWriter::within(const Expr& e, const CLane& lane, int binds) {
  return in_parentheses(expr(e, lane), binds);
}

CText CWriter::rounded(DType type, CText value) {
  if (!is_half(type)) return value;
  return {helpers_.round(type.element()) + "(" + in_parentheses(value, kComma + 1) + ")"};
}

std::string CWriter::as_stored(DType type, const std::string& value) {
  return is_half(type) ? helpers_.to_bits(type.element()) + "(" + value + ")" : value;
}

std::string CWriter::lanes_of(const Expr& e, bool stored) {
  const DType type = e.dtype();
  std::string list;
  for (int l = 0; l < type.lanes; ++l) {
    const CText value = expr(e, {std::to_string(l), l});
    list += (l ? ", " : "") +
            (stored ? as_stored(type, in_parentheses(value, kComma + 1)) : in_parentheses(value, kComma + 1));
  }
  return "(" + (stored ? c_storage_type(type.element()) : c_type(type.element())) + "[" + std::to_string(type.lanes) +
         "]){" + list + "}";
}

CText CWriter::variable(const VarNode* var, const CLane& lane) const {
  const auto known = vars_.find(var);
  TS_CHECK(known != vars_.end()) << "variable " << var->name << " is not bound";
  if (var->dtype.lanes == 1) return known->second;
  return {known->second.text + "[" + lane.text + "]"};
}

std::string CWriter::element(const Buffer& buffer, const std::vector<Expr>& indices, const CLane& lane) {
  const auto known = buffers_.find(buffer.get());
  TS_CHECK(known != buffers_.end()) << "buffer " << buffer->name << " is not allocated";
  CText index{"0"};
  const bool saved = std::exchange(in_index_, true);
  for (size_t d = 0; d < indices.size(); ++d) {
    // One flat index leads into a buffer of any rank.
    if (index.text != "0")
      index = binary(BinaryOp::kMul, kInt64, index, expr(buffer->shape[d], lane), /*may_wrap=*/false);
    const CText part = expr(indices[d], lane);
    if (index.text == "0") index = part;
    else index = binary(BinaryOp::kAdd, kInt64, index, part, /*may_wrap=*/false);
  }
  in_index_ = saved;
  return known->second + "[" + index.text + "]";
}

CText CWriter::binary(BinaryOp op, DType type, const CText& a, const CText& b, bool may_wrap) {
  const char* sign = operator_of(op);
  if (!sign) return {helpers_.binary(op, type) + "(" + in_parentheses(a, 2) + ", " + in_parentheses(b, 2) + ")"};
  if (is_compare(op)) {
    const int binds = op == BinaryOp::kEQ || op == BinaryOp::kNE ? kEqual : kOrder;
    return {in_parentheses(a, kPlus) + sign + in_parentheses(b, kPlus), binds};
  }
  if (type.is_bool()) {
    if (op == BinaryOp::kXor) return {in_parentheses(a, kUnary) + " != " + in_parentheses(b, kUnary), kEqual};
    const bool both = op == BinaryOp::kAnd;
    const int own = both ? kAndBinds : kOrBinds, other = kAndBinds + 1;
    return {in_parentheses(a, a.binds == own ? own : other) + (both ? " && " : " || ") + in_parentheses(b, other), own};
  }
  const int binds = op == BinaryOp::kMul || op == BinaryOp::kDiv ? kTimes : kPlus;
  const bool bitwise = op == BinaryOp::kAnd || op == BinaryOp::kOr || op == BinaryOp::kXor;
  if (bitwise)
    return {"(" + c_type(type) + ")(" + in_parentheses(a, kUnary) + sign + in_parentheses(b, kUnary) + ")", kUnary};
  if (is_half(type)) {
    const CText sum{"(double)" + in_parentheses(a, kUnary) + sign + in_parentheses(b, binds + 1), binds};
    return rounded(type, sum);
  }
  const bool plain =
      type.is_float() || (type.is_uint() && type.bits >= 32) || (type.is_int() && type.bits == 64 && !may_wrap);
  if (plain) return {in_parentheses(a, binds) + sign + in_parentheses(b, binds + 1), binds};
  // Signed overflow has no meaning in C, unsigned numbers wrap.
  const std::string wide = "(uint" + std::to_string(type.bits == 64 ? 64 : 32) + "_t)";
  return {"(" + c_type(type) + ")(" + wide + in_parentheses(a, kUnary) + sign + wide + in_parentheses(b, kUnary) + ")",
          kUnary};
}

CText CWriter::cast(DType to, DType from, const CText& value) {
  if (to == from) return value;
  if (to.is_bool()) return {in_parentheses(value, kPlus) + " != 0", kEqual};
  if (to.is_integral() && from.is_float())
    return {helpers_.from_double(to) + "(" + in_parentheses(value, kComma + 1) + ")"};
  if (is_half(to)) return rounded(to, {"(double)" + in_parentheses(value, kUnary), kUnary});
  if (to == kFloat32 && is_half(from)) return value;
  if (to.bits < 8 && from != to) {
    // The bits that the type has, extended again.
    const std::string rest = "(" + in_parentheses(value, kUnary) + " & 15)";
    return {to.is_int() ? "(int8_t)((" + rest + " ^ 8) - 8)" : "(uint8_t)" + rest, kUnary};
  }
  return {"(" + c_type(to) + ")" + in_parentheses(value, kUnary), kUnary};
}

CText CWriter::let(const Let& node, const CLane& lane) {
  const DType type = node.value.dtype();
  const std::string name = fresh(node.var.name());
  std::string assign;
  if (type.lanes == 1) {
    declarations_.push_back(c_type(type) + " " + name + ";");
    assign = name + " = " + within(node.value, {}, 2) + ", ";
  } else {
    declarations_.push_back(c_type(type.element()) + " " + name + "[" + std::to_string(type.lanes) + "];");
    for (int l = 0; l < type.lanes; ++l)
      assign += name + "[" + std::to_string(l) + "] = " + within(node.value, {std::to_string(l), l}, 2) + ", ";
  }
  const auto before = vars_.find(node.var.get());
  const CText outer = before == vars_.end() ? CText{} : before->second;
  const bool was_bound = before != vars_.end();
  if (may_wrap(node.value)) data_.insert(node.var.get());
  vars_[node.var.get()] = {name};
  const std::string body = within(node.body, lane, 2);
  if (was_bound) vars_[node.var.get()] = outer;
  else vars_.erase(node.var.get());
  return {assign + body, kComma};
}

CText CWriter::ramp(const Ramp& node, const CLane& lane) {
  const DType type = node.dtype.element();
  const bool wraps = may_wrap(&node);
  int64_t stride = 0, base = 0;
  CText step;
  if (lane.number >= 0 && as_const_int(node.stride, &stride)) {
    // The offset as one number, and the place too where it is known.
    const auto offset = static_cast<int64_t>(static_cast<uint64_t>(stride) * static_cast<uint64_t>(lane.number));
    const bool known = as_const_int(node.base, &base);
    const int64_t place = known ? static_cast<int64_t>(static_cast<uint64_t>(base) + static_cast<uint64_t>(offset)) : 0;
    if (known) return expr(IntImm::make(type, place), {});
    if (offset == 0) return expr(node.base, lane);
    step = expr(IntImm::make(type, offset), {});
  } else {
    step = {lane.text, lane.number >= 0 ? kPrimary : kTimes};
    if (!is_const_int(node.stride, 1)) step = binary(BinaryOp::kMul, type, step, expr(node.stride, lane), wraps);
    if (is_const_int(node.base, 0)) return step;
  }
  return binary(BinaryOp::kAdd, type, expr(node.base, lane), step, wraps);
}

CText CWriter::expr(const Expr& e, const CLane& lane) {
  const DType type = e.dtype().element();
  switch (e.kind()) {
    case NodeKind::kIntImm: {
      const std::string text = number(type, e.as<IntImm>()->value);
      return {text, text[0] == '-' ? kUnary : kPrimary};
    }
    case NodeKind::kFloatImm: {
      const std::string text = number(type, e.as<FloatImm>()->value);
      return {text, text[0] == '-' ? kUnary : kPrimary};
    }
    case NodeKind::kVar: return variable(static_cast<const VarNode*>(e.get()), lane);
    case NodeKind::kCast: {
      const Expr& value = e.as<Cast>()->value;
      return cast(type, value.dtype().element(), expr(value, lane));
    }
    case NodeKind::kBinary: {
      const auto& node = *e.as<Binary>();
      const DType of = node.a.dtype().element();
      CText a = expr(node.a, lane);
      // Two small constants would be multiplied as int.
      if (of == kInt64 && node.a.kind() == NodeKind::kIntImm && node.b.kind() == NodeKind::kIntImm)
        a = {"(int64_t)" + in_parentheses(a, kUnary), kUnary};
      return binary(node.op, of, a, expr(node.b, lane), of == kInt64 && may_wrap(e));
    }
    case NodeKind::kNot: {
      const CText value = expr(e.as<Not>()->value, lane);
      if (type.is_bool()) return {"!" + in_parentheses(value, kUnary), kUnary};
      return {"(" + c_type(type) + ")~" + in_parentheses(value, kUnary), kUnary};
    }
    case NodeKind::kSelect: {
      const auto& node = *e.as<Select>();
      return {within(node.cond, lane, kChoice + 1) + " ? " + within(node.a, lane, kChoice + 1) + " : " +
                  within(node.b, lane, kChoice + 1),
              kChoice};
    }
    case NodeKind::kLoad: {
      const auto& node = *e.as<Load>();
      std::string text = element(node.buffer, node.indices, lane);
      if (is_half(type)) text = helpers_.from_bits(type) + "(" + text + ")";
      if (node.predicate.get() == nullptr) return {text};
      return {within(node.predicate, lane, kChoice + 1) + " ? " + text + " : 0", kChoice};
    }
    case NodeKind::kRamp: return ramp(*e.as<Ramp>(), lane);
    case NodeKind::kBroadcast: return expr(e.as<Broadcast>()->value, lane);
    case NodeKind::kLet: return let(*e.as<Let>(), lane);
    case NodeKind::kCall: return call(*e.as<Call>(), lane);
    default: break;
  }
  TS_UNREACHABLE() << "expression kind " << static_cast<int>(e.kind());
}

}  // namespace tensmith
