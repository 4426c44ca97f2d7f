/// Tokens of the graph text.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tensmith::graph {

/// Walks over a text; every `accept` skips blanks and line ends first. Comments run from `#` to the end of the line.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  /// Takes the punctuation if it comes next.
  bool accept(std::string_view punctuation);
  /// Takes the word if it comes next, whole.
  bool accept_word(std::string_view word);
  bool at_end();
  /// The next character without taking it; 0 at the end.
  char peek();
  /// A run of letters, digits and `_ . / -`; empty when none comes next.
  std::string_view word();
  /// A number in any notation that std::from_chars reads, `inf`, `-inf` or `nan`; empty when none comes next.
  std::string_view number();
  /// An identifier: letters, digits, `_` and `.`; empty when none comes next.
  std::string_view identifier();
  /// A string in double quotes with its escapes resolved. Errors: Failure when it is not well formed.
  Result<std::string> string();
  /// A failure "parse-error" at the current place: `line L, column C: expected WHAT, got '...'`.
  Failure expected(std::string_view what);
  Failure error(const std::string& text);

 private:
  void skip();
  std::string_view take(size_t count);
  std::string place() const;

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace tensmith::graph
