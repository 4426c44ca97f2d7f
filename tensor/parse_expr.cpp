#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "tensor/text_parser.h"

namespace tensmith::text {

namespace {

struct Infix {
  std::string_view sign;
  BinaryOp op;
  int precedence;
};
// `&` and `|` have one meaning on bools and integers; `&&` and `||` are the bools' own form with a lower precedence.
constexpr Infix kInfix[] = {
    {"||", BinaryOp::kOr, 1},  {"&&", BinaryOp::kAnd, 2},      {"==", BinaryOp::kEQ, 3},      {"!=", BinaryOp::kNE, 3},
    {"<", BinaryOp::kLT, 3},   {"<=", BinaryOp::kLE, 3},       {">", BinaryOp::kGT, 3},       {">=", BinaryOp::kGE, 3},
    {"|", BinaryOp::kOr, 4},   {"^", BinaryOp::kXor, 5},       {"&", BinaryOp::kAnd, 6},      {"<<", BinaryOp::kShl, 7},
    {">>", BinaryOp::kShr, 7}, {"+", BinaryOp::kAdd, 8},       {"-", BinaryOp::kSub, 8},      {"*", BinaryOp::kMul, 9},
    {"/", BinaryOp::kDiv, 9},  {"//", BinaryOp::kFloorDiv, 9}, {"%", BinaryOp::kFloorMod, 9},
};

const Infix* infix_of(const Token& token) {
  if (token.kind != TokenKind::kSign) return nullptr;
  const auto* it =
      std::find_if(std::begin(kInfix), std::end(kInfix), [&](const Infix& infix) { return infix.sign == token.text; });
  return it == std::end(kInfix) ? nullptr : it;
}

/// What a type must be for an operation, or null when it is.
const char* refused(BinaryOp op, DType type) {
  switch (op) {
    case BinaryOp::kDiv: return type.is_float() ? nullptr : "floats";
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
    case BinaryOp::kTruncDiv:
    case BinaryOp::kTruncMod:
    case BinaryOp::kShl:
    case BinaryOp::kShr: return type.is_integral() ? nullptr : "integers";
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
    case BinaryOp::kXor: return type.is_integral() || type.is_bool() ? nullptr : "integers or bools";
    default: return nullptr;
  }
}

}  // namespace

Parser::Parsed Parser::made(const Token& start, Expr e, int depth) const {
  if (depth > kMaxDepth) fail_at(start, "expected at most ", kMaxDepth, " nested levels, got more");
  Parsed parsed;
  parsed.expr = std::move(e);
  parsed.depth = depth;
  return parsed;
}

Expr Parser::number_or_null(const Parsed& number, DType type) {
  const Token& token = *number.literal;
  const std::string_view digits = token.text.substr(0, token.kind == TokenKind::kNumber ? suffix_start(token.text) : 3);
  if (type.is_integral()) {
    uint64_t magnitude = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude);
    if (error != std::errc() || end != digits.data() + digits.size()) return {};
    const uint64_t highest = type.bits == 64 && type.is_uint()
                                 ? UINT64_MAX
                                 : (uint64_t{1} << (type.is_int() ? type.bits - 1 : type.bits)) - 1;
    if (number.negative ? !type.is_int() || magnitude > highest + 1 : magnitude > highest) return {};
    return IntImm::make(type, static_cast<int64_t>(number.negative ? 0 - magnitude : magnitude));
  }
  if (!type.is_float()) return {};
  double value = 0;
  if (digits == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (digits == "inf") {
    value = std::numeric_limits<double>::infinity();
  } else {
    // Narrow types are read as f32: their shortest text is one among floats, and two roundings could differ from one.
    const char *first = digits.data(), *last = first + digits.size();
    float narrow = 0;
    const auto [end, error] =
        type.bits == 64 ? std::from_chars(first, last, value) : std::from_chars(first, last, narrow);
    if (error != std::errc() || end != last) return {};
    if (type.bits != 64) value = static_cast<double>(narrow);
  }
  const Expr imm = FloatImm::make(type, number.negative ? -value : value);
  if (std::isinf(imm.as<FloatImm>()->value) && !std::isinf(value)) return {};
  return imm;
}

bool Parser::fits(const Parsed& number, DType type) { return number_or_null(number, type).get() != nullptr; }

Expr Parser::constant(const Parsed& number, DType type) {
  Expr imm = number_or_null(number, type);
  if (imm.get() == nullptr) fail_at(*number.literal, "expected a value of ", type, ", got ", *number.literal);
  return imm;
}

void Parser::match_bare(Parsed& a, Parsed& b) const {
  if (a.bare == b.bare) return;
  Parsed& number = a.bare ? a : b;
  number.expr = constant(number, (a.bare ? b : a).expr.dtype().element());
  number.bare = false;
}

Parser::Parsed Parser::binary(const Token& sign, BinaryOp op, Parsed a, Parsed b) {
  match_bare(a, b);
  const DType x = a.expr.dtype(), y = b.expr.dtype();
  if (x.element() != y.element() || (x.lanes != y.lanes && x.lanes != 1 && y.lanes != 1))
    fail_at(sign, "expected operands of one type for '", sign.text, "', got ", x, " and ", y);
  if (const char* types = refused(op, x)) fail_at(sign, "expected ", types, " for '", sign.text, "', got ", x);
  const int depth = std::max(a.depth, b.depth) + (x.lanes == y.lanes ? 1 : 2);
  return made(sign, Binary::make(op, std::move(a.expr), std::move(b.expr)), depth);
}

Parser::Parsed Parser::expression(int min_precedence) {
  Parsed left = unary();
  for (;;) {
    const Infix* infix = infix_of(current());
    if (!infix || infix->precedence < min_precedence) return left;
    const Token& sign = next();
    if ((sign.text == "&&" || sign.text == "||") && !left.expr.dtype().is_bool())
      fail_at(sign, "expected a bool before '", sign.text, "', got ", left.expr.dtype());
    left = binary(sign, infix->op, std::move(left), expression(infix->precedence + 1));
    if (infix->precedence != kComparePrecedence) continue;
    // Comparisons do not chain: `a < b == c` has no obvious meaning.
    const Infix* after = infix_of(current());
    if (after && after->precedence == kComparePrecedence) fail("parentheses around the comparison before this one");
  }
}

Parser::Parsed Parser::unary() {
  const Deeper deeper(*this);
  if (is("-")) {
    const Token& sign = next();
    if (current().kind == TokenKind::kNumber) return number(/*negative=*/true);
    if (current().kind == TokenKind::kWord &&
        (current().text.starts_with("inf") || current().text.starts_with("nan")) && is_reserved(current().text))
      return special_float(next(), /*negative=*/true);
    fail_at(sign, "expected a number behind '-' (write 0 - x for other values), got ", current());
  }
  if (is("!") || is("~")) {
    const Token& sign = next();
    Parsed value = unary();
    const DType type = value.expr.dtype();
    if (sign.text == "!" ? !type.is_bool() : !type.is_integral())
      fail_at(sign, "expected ", sign.text == "!" ? "a bool" : "an integer", " behind '", sign.text, "', got ", type);
    return made(sign, Not::make(std::move(value.expr)), value.depth + 1);
  }
  return primary();
}

Parser::Parsed Parser::primary() {
  switch (current().kind) {
    case TokenKind::kNumber: return number(/*negative=*/false);
    case TokenKind::kWord: return word_expression();
    case TokenKind::kSign:
      if (accept("(")) {
        if (is_word("let")) return let_expression();
        Parsed inner = expression();
        expect(")");
        return inner;
      }
      [[fallthrough]];
    default: fail("an expression");
  }
}

Parser::Parsed Parser::number(bool negative) {
  const Token& token = next();
  Parsed parsed;
  parsed.literal = &token;
  parsed.negative = negative;
  const std::string_view suffix = token.text.substr(suffix_start(token.text));
  if (suffix.empty()) {
    parsed.bare = true;
    // What the usual types cannot hold may still fit into that of the operand beside it.
    const bool is_int = token.text.find_first_of(".e") == std::string_view::npos;
    const DType usual = is_int ? kInt64 : kFloat32, wide = is_int ? kUInt64 : kFloat64;
    parsed.expr = constant(parsed, fits(parsed, usual) ? usual : wide);
    return parsed;
  }
  const Result<DType> type = parse_dtype(suffix);
  if (!type.ok() || !type->is_scalar() || type->is_bool() || type->is_handle())
    fail_at(token, "expected a type such as i32 or f64 behind the number, got '", suffix, "'");
  parsed.expr = constant(parsed, *type);
  return parsed;
}

Parser::Parsed Parser::special_float(const Token& token, bool negative) {
  Parsed parsed;
  parsed.literal = &token;
  parsed.negative = negative;
  parsed.bare = token.text.size() == 3;
  DType type = kFloat32;
  if (!parsed.bare) {
    const Result<DType> suffix = parse_dtype(token.text.substr(4));
    if (!suffix.ok() || !suffix->is_float() || !suffix->is_scalar())
      fail_at(token, "expected a scalar float type behind '", token.text.substr(0, 4), "', got '", token.text.substr(4),
              "'");
    type = *suffix;
  }
  parsed.expr = constant(parsed, type);
  return parsed;
}

Parser::Parsed Parser::word_expression() {
  const Token& token = next();
  const std::string_view word = token.text;
  if (word == "true" || word == "false") return made(token, make_bool(word == "true"), 1);
  // What is called may be a name as well: `pow[i0, i4]` where a stage is called as a function is, an axis as a type.
  if (const Object* object = is("(") || is(":") ? nullptr : find(word)) return named(token, *object);
  if (word == "select") return select_call(token);
  if (word == "ramp") return ramp_call(token);
  if (word == "broadcast") return broadcast_call(token);
  if (const auto it = functions_.find(word); it != functions_.end()) return binary_call(token, it->second);
  if (word == "extern") return intrinsic_call(token, Intrinsic::kExtern);
  if (const auto id = intrinsic_from_word(word); id && *id != Intrinsic::kExtern) return intrinsic_call(token, *id);
  if (parse_dtype(word).ok()) return cast_call(token);
  if (is_reserved(word)) {
    if (word.starts_with("inf") || word.starts_with("nan")) return special_float(token, /*negative=*/false);
    fail_at(token, "expected an expression, got ", token);
  }
  fail_at(token, "expected a variable or buffer in scope, got '", word, "'");
}

Parser::Parsed Parser::named(const Token& token, const Object& object) {
  if (const Var* var = std::get_if<Var>(&object)) return made(token, *var, 1);
  const Buffer buffer = std::get<Buffer>(object);
  Access a = access(buffer);
  if (a.predicate.get() && a.predicate.dtype().lanes != a.lanes)
    fail_at(token, "expected a predicate of ", a.lanes, " lanes, got ", a.predicate.dtype());
  return made(token, Load::make(buffer, std::move(a.indices), std::move(a.predicate)), a.depth + 1);
}

Parser::Parsed Parser::let_expression() {
  const Token& start = next();  // let
  const std::string name = new_name("a variable");
  std::optional<DType> type;
  if (accept(":")) type = dtype();
  expect("=");
  Parsed value = expression();
  if (value.bare && type) value.expr = Broadcast::make(constant(value, type->element()), type->lanes);
  if (type && value.expr.dtype() != *type) fail_at(start, "expected a value of ", *type, ", got ", value.expr.dtype());
  if (!accept_word("in")) fail("'in'");
  const Var var(name, value.expr.dtype());
  bind(name, var);
  Parsed body = expression();
  unbind(name);
  expect(")");
  return made(start, Let::make(var, std::move(value.expr), std::move(body.expr)),
              std::max(value.depth, body.depth) + 2);
}

std::vector<Parser::Parsed> Parser::arguments() {
  std::vector<Parsed> args;
  expect("(");
  if (accept(")")) return args;
  do {
    args.push_back(expression());
  } while (accept(","));
  expect(")");
  return args;
}

Parser::Parsed Parser::select_call(const Token& start) {
  std::vector<Parsed> args = arguments();
  if (args.size() != 3) fail_at(start, "expected 3 arguments of 'select', got ", args.size());
  match_bare(args[1], args[2]);
  const DType c = args[0].expr.dtype(), a = args[1].expr.dtype(), b = args[2].expr.dtype();
  const int lanes = std::max({int{c.lanes}, int{a.lanes}, int{b.lanes}});
  const auto fits = [&](DType type) { return type.lanes == 1 || type.lanes == lanes; };
  if (!c.is_bool() || a.element() != b.element() || !fits(c) || !fits(a) || !fits(b))
    fail_at(start, "expected a bool and two values of one type for 'select', got ", c, ", ", a, " and ", b);
  const int depth = std::max({args[0].depth, args[1].depth, args[2].depth}) + 2;
  return made(start, Select::make(std::move(args[0].expr), std::move(args[1].expr), std::move(args[2].expr)), depth);
}

Parser::Parsed Parser::binary_call(const Token& start, BinaryOp op) {
  std::vector<Parsed> args = arguments();
  if (args.size() != 2) fail_at(start, "expected 2 arguments of '", start.text, "', got ", args.size());
  return binary(start, op, std::move(args[0]), std::move(args[1]));
}

Parser::Parsed Parser::ramp_call(const Token& start) {
  expect("(");
  Parsed base = expression();
  expect(",");
  Parsed stride = expression();
  expect(",");
  const int lanes = static_cast<int>(integer("a number of lanes", 2, kMaxLanes));
  expect(")");
  match_bare(base, stride);
  const DType a = base.expr.dtype(), b = stride.expr.dtype();
  if (a != b || !a.is_scalar() || !a.is_integral())
    fail_at(start, "expected two scalar integers of one type for 'ramp', got ", a, " and ", b);
  return made(start, Ramp::make(std::move(base.expr), std::move(stride.expr), lanes),
              std::max(base.depth, stride.depth) + 1);
}

Parser::Parsed Parser::broadcast_call(const Token& start) {
  expect("(");
  Parsed value = expression();
  expect(",");
  const int lanes = static_cast<int>(integer("a number of lanes", 2, kMaxLanes));
  expect(")");
  if (!value.expr.dtype().is_scalar()) fail_at(start, "expected a scalar for 'broadcast', got ", value.expr.dtype());
  return made(start, Broadcast::make(std::move(value.expr), lanes), value.depth + 1);
}

Parser::Parsed Parser::cast_call(const Token& start) {
  const DType type = *parse_dtype(start.text);
  std::vector<Parsed> args = arguments();
  if (args.size() != 1) fail_at(start, "expected 1 value to convert to ", type, ", got ", args.size());
  const DType from = args[0].expr.dtype();
  if (from.lanes != type.lanes) fail_at(start, "expected a value of ", type.lanes, " lanes for ", type, ", got ", from);
  return made(start, Cast::make(type, std::move(args[0].expr)), args[0].depth + 1);
}

Parser::Parsed Parser::intrinsic_call(const Token& start, Intrinsic id) {
  std::optional<DType> type;
  std::string symbol;
  if (accept(":")) type = dtype();
  if (id == Intrinsic::kExtern) symbol = word_or_string("a function");
  std::vector<Expr> args;
  int depth = 0;
  for (Parsed& arg : arguments()) {
    depth = std::max(depth, arg.depth);
    args.push_back(std::move(arg.expr));
  }
  const std::string name(start.text);
  const int arity = intrinsic_info(id).arity;
  if (arity >= 0 && arity != static_cast<int>(args.size()))
    fail_at(start, "expected ", arity, " arguments of '", name, "', got ", args.size());
  if (!type) type = implied_call_type(id, args);
  if (!type) fail_at(start, "expected a type behind '", name, "', as in ", name, ":i32, got none");
  if (type->lanes > kMaxLanes) fail_at(start, "expected at most ", kMaxLanes, " lanes, got ", type->lanes);
  if (id == Intrinsic::kExtern)
    return made(start, Call::make_extern(*type, std::move(symbol), std::move(args)), depth + 1);
  return made(start, Call::make(*type, id, std::move(args)), depth + 1);
}

Parser::Access Parser::access(const Buffer& buffer) {
  const Token& start = current();
  Access result;
  expect("[");
  if (!is("]") && !is_word("if")) {
    do {
      const Token& at = current();
      Parsed index = expression();
      const DType type = index.expr.dtype();
      if (type.element() != kInt64) fail_at(at, "expected an index of i64, got ", type);
      if (type.lanes != 1 && result.lanes != 1 && type.lanes != result.lanes)
        fail_at(at, "expected an index of ", result.lanes, " lanes, got ", type.lanes);
      result.lanes = std::max<int>(result.lanes, type.lanes);
      result.depth = std::max(result.depth, index.depth + 1);
      result.indices.push_back(std::move(index.expr));
    } while (accept(","));
  }
  if (accept_word("if")) {
    const Token& at = current();
    Parsed predicate = expression();
    if (!predicate.expr.dtype().is_bool()) fail_at(at, "expected a bool behind 'if', got ", predicate.expr.dtype());
    result.depth = std::max(result.depth, predicate.depth + 1);
    result.predicate = std::move(predicate.expr);
    // A store's lanes may also come from its value, so a store checks the predicate itself.
    if (result.predicate.dtype().lanes != result.lanes && result.lanes != 1)
      fail_at(at, "expected a bool of ", result.lanes, " lanes, got ", result.predicate.dtype());
  }
  expect("]");
  // One flat index, or one a dimension.
  if (result.indices.size() != buffer->shape.size() && result.indices.size() != 1)
    fail_at(start, "expected ", buffer->shape.size(), " indices (or a flat one) into ", buffer->name, ", got ",
            result.indices.size());
  return result;
}

}  // namespace tensmith::text
