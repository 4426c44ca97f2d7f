/// Splits the loop IR's text form into tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tensmith::text {

/// A place in a text. Units: both count from 1; columns in bytes.
struct Position {
  int line = 1;
  int column = 1;
};

enum class TokenKind { kWord, kNumber, kString, kSign, kEnd };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;  ///< in the source, quotes included; empty at the end
  Position position;
};

/// Thrown while lexing and parsing, never further: the parser's entry points turn it into a Failure.
struct SyntaxError {
  Position position;
  std::string message;
};

/// All tokens of the text; the last one is of kind kEnd. `#` starts a comment that reaches to the end of the line.
/// A number is digits with an optional fraction and exponent and an optional type suffix: `3`, `3u8`, `1.5e-3f64`.
/// Errors: SyntaxError for a byte that starts no token and for a string without end.
std::vector<Token> tokenize(std::string_view text);

/// Where the type suffix of a number starts (its size when there is none).
size_t suffix_start(std::string_view number);

/// The content of a string token. Errors: SyntaxError for an unknown escape.
std::string unquoted(const Token& token);

}  // namespace tensmith::text
