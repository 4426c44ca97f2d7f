#include "graph/lexer.h"

#include <algorithm>

namespace tensmith::graph {

namespace {

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}
bool is_word_char(char c) { return is_name_char(c) || c == '/' || c == '-'; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

void Lexer::skip() {
  while (at_ < text_.size()) {
    if (text_[at_] == '#') at_ = std::min(text_.find('\n', at_), text_.size());
    else if (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r') ++at_;
    else return;
  }
}

std::string_view Lexer::take(size_t count) {
  const std::string_view taken = text_.substr(at_, count);
  at_ += count;
  return taken;
}

bool Lexer::accept(std::string_view punctuation) {
  skip();
  if (!text_.substr(at_).starts_with(punctuation)) return false;
  at_ += punctuation.size();
  return true;
}

bool Lexer::accept_word(std::string_view wanted) {
  const size_t before = at_;
  if (word() == wanted) return true;
  at_ = before;
  return false;
}

bool Lexer::at_end() {
  skip();
  return at_ == text_.size();
}

char Lexer::peek() {
  skip();
  return at_ < text_.size() ? text_[at_] : '\0';
}

std::string_view Lexer::word() {
  skip();
  size_t end = at_;
  while (end < text_.size() && is_word_char(text_[end])) ++end;
  return take(end - at_);
}

std::string_view Lexer::identifier() {
  skip();
  size_t end = at_;
  while (end < text_.size() && is_name_char(text_[end])) ++end;
  return take(end - at_);
}

std::string_view Lexer::number() {
  skip();
  size_t end = at_;
  if (end < text_.size() && text_[end] == '-') ++end;
  const std::string_view rest = text_.substr(std::min(end, text_.size()));
  if (rest.starts_with("inf") || rest.starts_with("nan")) return take(end + 3 - at_);
  const size_t digits = end;
  while (end < text_.size() &&
         (is_name_char(text_[end]) || ((text_[end] == '+' || text_[end] == '-') && text_[end - 1] == 'e')))
    ++end;
  if (end == digits || text_[digits] < '0' || text_[digits] > '9') return {};
  return take(end - at_);
}

Result<std::string> Lexer::string() {
  if (!accept("\"")) return expected("a string in quotes");
  std::string out;
  while (at_ < text_.size() && text_[at_] != '"') {
    char c = text_[at_++];
    if (c == '\\') {
      if (at_ == text_.size()) break;
      c = text_[at_++];
      if (c == 'n') {
        c = '\n';
      } else if (c == 'x') {
        const int high = at_ + 1 < text_.size() ? hex_digit(text_[at_]) : -1,
                  low = high >= 0 ? hex_digit(text_[at_ + 1]) : -1;
        if (low < 0) return error("expected two hexadecimal digits behind \\x");
        c = static_cast<char>(high * 16 + low);
        at_ += 2;
      }
    }
    out += c;
  }
  if (at_ == text_.size()) return error("the string does not end");
  ++at_;
  return out;
}

std::string Lexer::place() const {
  const std::string_view before = text_.substr(0, at_);
  const size_t line = static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  const size_t start = before.rfind('\n');
  const size_t column = at_ - (start == std::string_view::npos ? 0 : start + 1) + 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(column) + ": ";
}

Failure Lexer::error(const std::string& text) { return {"parse-error", place() + text}; }

Failure Lexer::expected(std::string_view what) {
  skip();
  std::string_view got = text_.substr(at_, 20);
  got = got.substr(0, got.find('\n'));
  return error("expected " + std::string(what) + ", got " + (got.empty() ? "the end" : "'" + std::string(got) + "'"));
}

}  // namespace tensmith::graph
