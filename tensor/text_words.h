/// Words and literals of the loop IR's text form, shared by printer and parser.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tensor/stmt.h"

namespace tensmith::text {

/// Whether a word has a meaning wherever it stands (keyword, literal, scope), so that no variable or buffer may be
/// called so. Functions and types have theirs only in front of a parenthesis or behind a colon: those may.
bool is_reserved(std::string_view word);
/// Whether the text is a letter or underscore, then letters, digits and underscores.
bool is_identifier(std::string_view word);

std::string_view scope_word(Scope scope);
std::optional<Scope> scope_from_word(std::string_view word);
/// The word that opens a loop: `for`, `parallel`, `vectorized`, `unrolled`.
std::string_view for_word(ForKind kind);
std::optional<ForKind> for_from_word(std::string_view word);
std::optional<Intrinsic> intrinsic_from_word(std::string_view word);

/// How an operation on two values is written.
struct BinaryForm {
  std::string_view word;
  int precedence;  ///< of the infix form, higher binds tighter; 0: written as a function `word(a, b)`
};
/// Comparisons do not chain; all other infix operations associate to the left.
BinaryForm binary_form(BinaryOp op, bool is_bool);
inline constexpr int kComparePrecedence = 3;
inline constexpr int kUnaryPrecedence = 10;
inline constexpr int kPrimaryPrecedence = 11;

/// The type that a call has when its text names none: that of the first argument for elementwise functions, what
/// follows from the arguments for the others; none where it has to be written (bitcast, extern calls) or no argument is
/// there.
std::optional<DType> implied_call_type(Intrinsic id, const std::vector<Expr>& args);

/// A float as the shortest text that reads back exactly, always with `.`, `e`, `inf` or `nan`; without a suffix for the
/// type.
std::string float_text(DType type, double value);
/// A string in double quotes; control characters as \xHH.
std::string quoted(std::string_view value);
/// The word itself when it is an identifier, quoted otherwise.
std::string word_or_quoted(std::string_view value);

/// Gives objects (variables, buffers) names that are unique in one text. Binding the same object twice gives two names.
class Namer {
 public:
  /// A name that is not in use, as near to `wanted` as possible; from now on the object's name.
  /// Returns the name that the object had before (empty: none), to give to `unbind`.
  std::string bind(const Shared* object, std::string_view wanted);
  void unbind(const Shared* object, std::string previous);
  /// Forgets the object's name and lets others have it.
  void release(const Shared* object);
  /// The object's name; an object that was never bound gets one now.
  const std::string& name(const Shared* object, std::string_view wanted);

 private:
  std::string fresh(std::string_view wanted);
  std::unordered_map<const Shared*, std::string> names_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> next_;  // by stem, so that many equal names stay cheap
};

}  // namespace tensmith::text
