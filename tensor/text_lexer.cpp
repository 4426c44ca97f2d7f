#include "tensor/text_lexer.h"

#include <cctype>

namespace tensmith::text {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Longest first, since the first match is taken.
constexpr std::string_view kSigns[] = {"+:", "//", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "->", "+",
                                       "-",  "*",  "/",  "%",  "<",  ">",  "=",  "&",  "|",  "^",  "!",  "~",
                                       "(",  ")",  "[",  "]",  "{",  "}",  ",",  ";",  ":",  "@"};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    for (;;) {
      skip_blanks();
      tokens.push_back(next());
      if (tokens.back().kind == TokenKind::kEnd) return tokens;
    }
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void skip_blanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++at_;
        ++line_;
        line_start_ = at_;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else {
        return;
      }
    }
  }

  Token token(TokenKind kind, size_t length) {
    const Token result{kind, text_.substr(at_, length), position()};
    at_ += length;
    return result;
  }

  Position position() const { return {line_, static_cast<int>(at_ - line_start_) + 1}; }

  Token next() {
    if (at_ >= text_.size()) return token(TokenKind::kEnd, 0);
    const char c = text_[at_];
    if (is_letter(c)) {
      size_t length = 1;
      while (is_letter(peek(length)) || is_digit(peek(length))) ++length;
      return token(TokenKind::kWord, length);
    }
    if (is_digit(c)) return token(TokenKind::kNumber, number_length());
    if (c == '"') return string();
    for (const std::string_view sign : kSigns)
      if (text_.substr(at_).starts_with(sign)) return token(TokenKind::kSign, sign.size());
    const bool printable = static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f;
    throw SyntaxError{position(), printable ? std::string("expected a word, number or sign, got '") + c + "'"
                                            : "expected a word, number or sign, got byte " +
                                                  std::to_string(static_cast<unsigned char>(c))};
  }

  size_t number_length() const {
    size_t length = 0;
    const auto digits = [&] {
      while (is_digit(peek(length))) ++length;
    };
    digits();
    if (peek(length) == '.' && is_digit(peek(length + 1))) {
      ++length;
      digits();
    }
    if (peek(length) == 'e') {
      const size_t sign = peek(length + 1) == '-' || peek(length + 1) == '+' ? 1 : 0;
      if (is_digit(peek(length + 1 + sign))) {
        length += 1 + sign;
        digits();
      }
    }
    while (is_letter(peek(length)) || is_digit(peek(length))) ++length;
    return length;
  }

  Token string() {
    size_t length = 1;
    for (;; ++length) {
      const char c = peek(length);
      if (at_ + length >= text_.size() || c == '\n')
        throw SyntaxError{position(), "expected '\"' at the end of the string, got the end of the line"};
      if (c == '"') return token(TokenKind::kString, length + 1);
      if (c == '\\') ++length;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
};

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::vector<Token> tokenize(std::string_view text) { return Lexer(text).run(); }

size_t suffix_start(std::string_view number) {
  // The exponent's `e` is followed by a digit or sign; no dtype starts with an `e`.
  for (size_t k = 0; k < number.size(); ++k)
    if (is_letter(number[k]) && number[k] != 'e') return k;
  return number.size();
}

std::string unquoted(const Token& token) {
  const std::string_view body = token.text.substr(1, token.text.size() - 2);
  std::string result;
  for (size_t k = 0; k < body.size(); ++k) {
    if (body[k] != '\\') {
      result += body[k];
      continue;
    }
    const char c = k + 1 < body.size() ? body[k + 1] : '\0';
    if (c == '"' || c == '\\') {
      result += c;
      ++k;
    } else if (c == 'x' && k + 3 < body.size() && hex_digit(body[k + 2]) >= 0 && hex_digit(body[k + 3]) >= 0) {
      result += static_cast<char>(hex_digit(body[k + 2]) * 16 + hex_digit(body[k + 3]));
      k += 3;
    } else {
      throw SyntaxError{token.position,
                        "expected \\\", \\\\ or \\xHH as an escape in the string, got '\\" + std::string(1, c) + "'"};
    }
  }
  return result;
}

}  // namespace tensmith::text
