/// The parser behind parse.h: recursive descent over the tokens of one text.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <variant>
#include <vector>

#include "tensor/text_lexer.h"
#include "tensor/text_words.h"
#include "tensor/workload.h"

namespace tensmith::text {

/// Reads functions of the loop IR and workloads. Errors: every method throws SyntaxError; nothing else leaves the
/// class.
class Parser {
 public:
  explicit Parser(std::string_view text);

  LoopFunction function();
  Workload workload();
  bool at_end() const { return current().kind == TokenKind::kEnd; }
  /// Refuses what is left of the text.
  void expect_end();

 private:
  /// An expression with what the text alone knows of it.
  struct Parsed {
    Expr expr;
    int depth = 1;                   ///< levels of the tree, limited since walks and destructors recurse
    bool bare = false;               ///< a number without type suffix: beside another operand it takes that one's type
    const Token* literal = nullptr;  ///< the digits of a bare number
    bool negative = false;
  };
  using Object = std::variant<Var, Buffer>;

  // Tokens and names (parse.cpp).
  const Token& current() const { return tokens_[at_]; }
  const Token& next();
  bool is(std::string_view sign) const;
  bool is_word(std::string_view word) const { return current().kind == TokenKind::kWord && current().text == word; }
  bool accept(std::string_view sign);
  bool accept_word(std::string_view word);
  void expect(std::string_view sign);
  /// Refuses the text at a token; the message is put together from texts, numbers, types and tokens. Never inlined, so
  /// that the strings take no room in the frames of the recursion.
  template <typename... Part>
  [[noreturn, gnu::noinline]] static void fail_at(const Token& token, const Part&... parts) {
    std::string message;
    (append(message, parts), ...);
    throw SyntaxError{token.position, std::move(message)};
  }
  /// `expected <parts>, got <the current token>`
  template <typename... Part>
  [[noreturn, gnu::noinline]] void fail(const Part&... parts) const {
    fail_at(current(), "expected ", parts..., ", got ", current());
  }
  static void append(std::string& message, std::string_view part) { message += part; }
  static void append(std::string& message, const char* part) { message += part; }
  static void append(std::string& message, const std::string& part) { message += part; }
  static void append(std::string& message, DType part) { message += to_string(part); }
  static void append(std::string& message, const Token& part) {
    message += part.kind == TokenKind::kEnd ? "the end of the text" : "'" + std::string(part.text) + "'";
  }
  template <typename T>
  requires std::is_integral_v<T>
  static void append(std::string& message, T part) { message += std::to_string(part); }
  int64_t integer(const char* what, int64_t low, int64_t high);
  std::string word_or_string(const char* what);
  DType dtype();

  std::string new_name(const char* what);
  void bind(const std::string& name, Object object) { scopes_[name].push_back(std::move(object)); }
  void unbind(const std::string& name);
  const Object* find(std::string_view name) const;

  // Expressions (parse_expr.cpp).
  Parsed expression(int min_precedence = 1);
  Parsed unary();
  Parsed primary();
  Parsed word_expression();
  Parsed named(const Token& token, const Object& object);
  Parsed number(bool negative);
  Parsed special_float(const Token& token, bool negative);
  Parsed let_expression();
  Parsed select_call(const Token& start);
  Parsed binary_call(const Token& start, BinaryOp op);
  Parsed ramp_call(const Token& start);
  Parsed broadcast_call(const Token& start);
  Parsed cast_call(const Token& start);
  Parsed intrinsic_call(const Token& start, Intrinsic id);
  Parsed binary(const Token& sign, BinaryOp op, Parsed a, Parsed b);
  /// A number's value in a type, null when it does not fit; `constant` refuses it then.
  static Expr number_or_null(const Parsed& number, DType type);
  static bool fits(const Parsed& number, DType type);
  static Expr constant(const Parsed& number, DType type);
  /// Gives a bare operand the type of the other one.
  void match_bare(Parsed& a, Parsed& b) const;
  /// An expression of one type, scalar: a condition or an index.
  Expr scalar(DType type, const char* what);
  std::vector<Parsed> arguments();
  struct Access {
    std::vector<Expr> indices;
    Expr predicate;
    int lanes = 1;
    int depth = 1;
  };
  Access access(const Buffer& buffer);
  Parsed made(const Token& start, Expr e, int depth) const;

  // Statements (parse_stmt.cpp).
  Stmt block();
  Stmt items();
  Stmt statement();
  Stmt loop(ForKind kind);
  Stmt if_statement();
  Stmt store();
  Stmt assertion();
  Attrs attrs();

  // Functions (parse.cpp).
  Buffer buffer_type(std::string name);
  void parameters(LoopFunction& f);
  std::vector<Var> scalar_parameters();

  // Workloads (parse_workload.cpp).
  Stage stage();
  void compute_stage(StageNode& stage, const std::vector<DType>& types);
  std::vector<Axis> axes();
  Reducer reducer(const std::vector<DType>& types);
  /// As many expressions as types, each of its type.
  std::vector<Expr> values(const std::vector<DType>& types, const char* what);

  struct Deeper;

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  int open_lets_ = 0;
  const std::unordered_map<std::string_view, BinaryOp> functions_ = {{"trunc_div", BinaryOp::kTruncDiv},
                                                                     {"trunc_mod", BinaryOp::kTruncMod},
                                                                     {"min", BinaryOp::kMin},
                                                                     {"max", BinaryOp::kMax}};
  std::unordered_map<std::string, std::vector<Object>> scopes_;
};

/// Nested levels of expressions and statements that a text may have.
inline constexpr int kMaxDepth = 1000;
/// Lets and allocations that may be open at once: they stand one below the other, so a long function has many, but each
/// is a level of the tree.
inline constexpr int kMaxOpenLets = 5000;
inline constexpr int kMaxLanes = 1024;

/// Counts a level of nesting while it lives.
struct Parser::Deeper {
  explicit Deeper(Parser& parser) : parser(parser) {
    if (++parser.depth_ > kMaxDepth)
      fail_at(parser.current(), "expected at most ", kMaxDepth, " nested levels, got more");
  }
  ~Deeper() { --parser.depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
  Parser& parser;
};

}  // namespace tensmith::text
