#include "tensor/text_parser.h"

namespace tensmith::text {

Expr Parser::scalar(DType type, const char* what) {
  const Token& start = current();
  Parsed value = expression();
  if (value.expr.dtype() != type) fail_at(start, "expected ", what, " of ", type, ", got ", value.expr.dtype());
  return std::move(value.expr);
}

Stmt Parser::block() {
  expect("{");
  Stmt body = items();
  expect("}");
  return body;
}

Stmt Parser::items() {
  const Deeper deeper(*this);
  // A let or an allocation takes all that follows; they are kept on a stack here, since a long function has too many
  // for recursion.
  struct Open {
    std::string name;
    Object object;
    Expr value;  // null: an allocation
    std::vector<Stmt> before;
  };
  std::vector<Open> opened;
  std::vector<Stmt> stmts;
  while (!is("}") && !at_end()) {
    const Token& start = current();
    if (!is_word("let") && !is_word("alloc")) {
      if (Stmt s = statement()) stmts.push_back(std::move(s));
      continue;
    }
    if (++open_lets_ > kMaxOpenLets)
      fail_at(start, "expected at most ", kMaxOpenLets, " lets and allocations in one scope, got more");
    Open open;
    if (accept_word("let")) {
      open.name = new_name("a variable");
      std::optional<DType> type;
      if (accept(":")) type = dtype();
      expect("=");
      Parsed value = expression();
      if (value.bare && type) value.expr = Broadcast::make(constant(value, type->element()), type->lanes);
      if (type && value.expr.dtype() != *type)
        fail_at(start, "expected a value of ", *type, ", got ", value.expr.dtype());
      open.value = std::move(value.expr);
      open.object = Var(open.name, open.value.dtype());
    } else {
      next();
      open.name = new_name("a buffer");
      open.object = buffer_type(open.name);
    }
    bind(open.name, open.object);
    open.before = std::move(stmts);
    stmts.clear();
    opened.push_back(std::move(open));
  }
  Stmt body = Block::make(std::move(stmts));
  for (; !opened.empty(); opened.pop_back()) {
    Open& open = opened.back();
    unbind(open.name);
    --open_lets_;
    Stmt inner = open.value ? LetStmt::make(std::get<Var>(open.object), std::move(open.value), std::move(body))
                            : Allocate::make(std::get<Buffer>(open.object), std::move(body));
    open.before.push_back(std::move(inner));
    body = Block::make(std::move(open.before));
  }
  return body;
}

Stmt Parser::statement() {
  if (is("{")) return block();
  if (current().kind != TokenKind::kWord) fail("a statement");
  const std::string_view word = current().text;
  if (const auto kind = for_from_word(word)) return loop(*kind);
  if (word == "if") return if_statement();
  if (word == "assert") return assertion();
  if (accept_word("while")) {
    Expr cond = scalar(kBool, "a condition");
    return While::make(std::move(cond), block());
  }
  if (accept_word("eval")) return Evaluate::make(expression().expr);
  if (is_reserved(word)) fail("a statement");
  return store();
}

Stmt Parser::loop(ForKind kind) {
  next();
  const std::string name = new_name("a loop variable");
  if (!accept_word("in")) fail("'in'");
  Expr min = 0, extent = scalar(kInt64, "an extent");
  if (accept("+:")) {
    min = std::move(extent);
    extent = scalar(kInt64, "an extent");
  }
  Attrs hints = attrs();
  const Var var(name);
  bind(name, var);
  Stmt body = block();
  unbind(name);
  return For::make(var, std::move(min), std::move(extent), kind, std::move(body), std::move(hints));
}

Stmt Parser::if_statement() {
  const Deeper deeper(*this);
  next();
  Expr cond = scalar(kBool, "a condition");
  Stmt then = block(), otherwise;
  if (accept_word("else")) otherwise = is_word("if") ? if_statement() : block();
  return If::make(std::move(cond), std::move(then), std::move(otherwise));
}

Stmt Parser::store() {
  const Token& start = next();
  const Object* object = find(start.text);
  if (!object || !std::holds_alternative<Buffer>(*object))
    fail_at(start, "expected a statement or a buffer in scope, got '", start.text, "'");
  const Buffer buffer = std::get<Buffer>(*object);
  Access place = access(buffer);
  expect("=");
  Parsed value = expression();
  if (value.bare) value.expr = constant(value, buffer->dtype);
  const DType type = value.expr.dtype();
  const int lanes = std::max<int>(place.lanes, type.lanes);
  if (type.element() != buffer->dtype || (type.lanes != 1 && place.lanes != 1 && type.lanes != place.lanes))
    fail_at(start, "expected a value of ", buffer->dtype.with_lanes(place.lanes), " for ", buffer->name, ", got ",
            type);
  if (place.predicate.get() && place.predicate.dtype().lanes != lanes)
    fail_at(start, "expected a predicate of ", lanes, " lanes, got ", place.predicate.dtype());
  return Store::make(buffer, std::move(place.indices), std::move(value.expr), std::move(place.predicate));
}

Stmt Parser::assertion() {
  next();
  Expr cond = scalar(kBool, "a condition");
  expect(",");
  const Token& start = current();
  const auto code = static_cast<int>(integer("an error code", INT32_MIN, INT32_MAX));
  if (code == 0) fail_at(start, "expected an error code other than 0, got 0");
  expect(",");
  if (current().kind != TokenKind::kString) fail("a message in double quotes");
  return Assert::make(std::move(cond), code, unquoted(next()));
}

Attrs Parser::attrs() {
  Attrs result;
  if (!accept("@")) return result;
  expect("(");
  do {
    const Token& start = current();
    std::string key = word_or_string("an attribute");
    expect("=");
    const int64_t value = integer("an attribute value", INT64_MIN, INT64_MAX);
    if (!result.emplace(std::move(key), value).second)
      fail_at(start, "expected each attribute once, got '", start.text, "' again");
  } while (accept(","));
  expect(")");
  return result;
}

}  // namespace tensmith::text
