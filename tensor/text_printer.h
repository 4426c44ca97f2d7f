/// The printer behind print.h, for other texts that contain expressions and statements (see workload_text.cpp).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/text_words.h"

namespace tensmith::text {

/// Appends the text of expressions and statements to one string, with names unique in it.
class Printer {
 public:
  /// `precedence`: parentheses are put around an infix expression that binds less tightly.
  void expr(const Expr& e, int precedence = 0);
  /// `last`: nothing follows inside the surrounding braces.
  void stmt(const Stmt& s, bool last);
  void function(const LoopFunction& f);
  /// `: f32[M, 4] stack align 32`
  void buffer_type(const Buffer& buffer);
  void list(const std::vector<Expr>& exprs);
  /// Starts a line at the current indentation.
  void line(std::string_view start);
  void raw(std::string_view text) { out_ += text; }
  void indent(int by) { indent_ += by; }
  Namer& names() { return names_; }
  std::string take() { return std::move(out_); }

 private:
  void number(const Expr& e, bool suffix);
  /// One of two operands of equal type: a constant beside a non-constant goes without type and lanes.
  void operand(const Expr& e, const Expr& other, int precedence);
  void typed_value(const Expr& e, DType type);
  void access(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& predicate);
  void call(const Call& node);
  void attrs(const Attrs& attrs);
  void braces(const Stmt& body);
  void if_chain(const If& node);
  static std::string_view intrinsic_word(Intrinsic id);

  /// What `write` appends, taken off the output again: for parts that are evaluated before a binding but printed behind
  /// its name.
  template <typename F>
  std::string detached(F&& write) {
    const size_t start = out_.size();
    write();
    std::string part = out_.substr(start);
    out_.resize(start);
    return part;
  }

  std::string out_;
  Namer names_;
  int indent_ = 0;
};

}  // namespace tensmith::text
