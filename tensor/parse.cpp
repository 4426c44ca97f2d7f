#include "tensor/parse.h"

#include <charconv>

#include "tensor/text_parser.h"

namespace tensmith::text {

// Tokens and names.

Parser::Parser(std::string_view text) : tokens_(tokenize(text)) {}

const Token& Parser::next() {
  const Token& token = tokens_[at_];
  if (token.kind != TokenKind::kEnd) ++at_;
  return token;
}

bool Parser::is(std::string_view sign) const { return current().kind == TokenKind::kSign && current().text == sign; }

bool Parser::accept(std::string_view sign) {
  if (!is(sign)) return false;
  ++at_;
  return true;
}

bool Parser::accept_word(std::string_view word) {
  if (!is_word(word)) return false;
  ++at_;
  return true;
}

void Parser::expect(std::string_view sign) {
  if (!accept(sign)) fail("'", sign, "'");
}

void Parser::expect_end() {
  if (!at_end()) fail("the end of the text");
}

int64_t Parser::integer(const char* what, int64_t low, int64_t high) {
  const Token& start = current();
  const bool negative = accept("-");
  const Token& token = current();
  uint64_t magnitude = 0;
  const auto [end, error] = std::from_chars(token.text.data(), token.text.data() + token.text.size(), magnitude);
  const bool whole =
      token.kind == TokenKind::kNumber && error == std::errc() && end == token.text.data() + token.text.size();
  const uint64_t limit = negative ? uint64_t{1} << 63 : INT64_MAX;
  const auto value = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
  if (!whole || magnitude > limit || value < low || value > high)
    fail_at(start, "expected ", what, " from ", low, " to ", high, ", got ", negative ? "-" : "",
            token.kind == TokenKind::kEnd ? "the end of the text" : token.text);
  next();
  return value;
}

std::string Parser::word_or_string(const char* what) {
  if (current().kind == TokenKind::kString) return unquoted(next());
  if (current().kind == TokenKind::kWord) return std::string(next().text);
  fail("the name of ", what);
}

DType Parser::dtype() {
  const Token& token = current();
  const Result<DType> type = token.kind == TokenKind::kWord ? parse_dtype(token.text) : Failure{};
  if (!type.ok()) fail("a type such as f32 or i64x8");
  next();
  return *type;
}

std::string Parser::new_name(const char* what) {
  if (current().kind != TokenKind::kWord || is_reserved(current().text)) fail("a name for ", what);
  return std::string(next().text);
}

void Parser::unbind(const std::string& name) {
  const auto it = scopes_.find(name);
  it->second.pop_back();
  if (it->second.empty()) scopes_.erase(it);
}

const Parser::Object* Parser::find(std::string_view name) const {
  const auto it = scopes_.find(std::string(name));
  return it == scopes_.end() ? nullptr : &it->second.back();
}

// Functions.

Buffer Parser::buffer_type(std::string name) {
  expect(":");
  const Token& start = current();
  const DType type = dtype();
  if (!type.is_scalar()) fail_at(start, "expected a scalar type for a buffer, got ", type);
  std::vector<Expr> shape;
  expect("[");
  if (!accept("]")) {
    do {
      shape.push_back(scalar(kInt64, "an extent"));
    } while (accept(","));
    expect("]");
  }
  Scope scope = Scope::kGlobal;
  if (const auto found = current().kind == TokenKind::kWord ? scope_from_word(current().text) : std::nullopt) {
    scope = *found;
    next();
  }
  const int alignment = accept_word("align") ? static_cast<int>(integer("an alignment", INT32_MIN, INT32_MAX)) : 64;
  return make_buffer(std::move(name), type, std::move(shape), scope, alignment);
}

std::vector<Var> Parser::scalar_parameters() {
  std::vector<Var> vars;
  do {
    const std::string name = new_name("a scalar");
    expect(":");
    vars.emplace_back(name, dtype());
    bind(name, vars.back());
  } while (accept(","));
  return vars;
}

void Parser::parameters(LoopFunction& f) {
  expect("(");
  // Shapes use the scalars, which stand behind the buffers: read these first.
  const size_t start = at_;
  int nesting = 0;
  size_t behind = 0;
  for (; !at_end(); ++at_) {
    if (is("(") || is("[")) ++nesting;
    if (is(")") || is("]")) --nesting;
    if (nesting < 0) break;
    if (nesting == 0 && accept(";")) {
      f.scalars = scalar_parameters();
      behind = at_;
      break;
    }
  }
  at_ = start;
  if (!is(")") && !is(";")) {
    do {
      const std::string name = new_name("a buffer");
      f.buffers.push_back(buffer_type(name));
      bind(name, f.buffers.back());
    } while (accept(","));
  }
  if (behind > 0) {
    if (!is(";")) fail("',' or ';'");
    at_ = behind;
  }
  expect(")");
}

LoopFunction Parser::function() {
  if (!accept_word("func")) fail("'func'");
  LoopFunction f;
  scopes_.clear();
  f.name = word_or_string("a function");
  parameters(f);
  if (accept("->")) {
    do {
      const Token& start = current();
      const std::string name = new_name("an output");
      const Object* object = find(name);
      if (!object || !std::holds_alternative<Buffer>(*object))
        fail_at(start, "expected a buffer parameter as output, got '", name, "'");
      f.outputs.push_back(std::get<Buffer>(*object));
    } while (accept(","));
  }
  f.attrs = attrs();
  f.body = block();
  return f;
}

}  // namespace tensmith::text

namespace tensmith {

namespace {

template <typename F>
auto parse(std::string_view text, F&& read) -> Result<decltype(read(std::declval<text::Parser&>()))> {
  try {
    text::Parser parser(text);
    auto result = read(parser);
    parser.expect_end();
    return result;
  } catch (const text::SyntaxError& error) {
    return Failure{"parse-error", "line " + std::to_string(error.position.line) + ", column " +
                                      std::to_string(error.position.column) + ": " + error.message};
  }
}

}  // namespace

Result<LoopProgram> parse_program(std::string_view text) {
  return parse(text, [](text::Parser& parser) {
    LoopProgram program;
    while (!parser.at_end()) program.functions.push_back(parser.function());
    return program;
  });
}

Result<LoopFunction> parse_function(std::string_view text) {
  return parse(text, [](text::Parser& parser) { return parser.function(); });
}

Result<Workload> parse_workload(std::string_view text) {
  return parse(text, [](text::Parser& parser) { return parser.workload(); });
}

}  // namespace tensmith
