#include "tensor/text_words.h"

#include <charconv>
#include <cmath>
#include <iterator>

namespace tensmith::text {

namespace {

constexpr std::string_view kKeywords[] = {
    "func", "while", "if", "else", "let", "in", "alloc", "eval", "assert", "align", "true", "false", "inf", "nan",
};
constexpr std::string_view kScopeWords[] = {"global", "stack", "register", "constant", "shared"};
constexpr std::string_view kForWords[] = {"for", "parallel", "vectorized", "unrolled"};

template <size_t n>
std::optional<size_t> position(const std::string_view (&words)[n], std::string_view word) {
  for (size_t k = 0; k < n; ++k)
    if (words[k] == word) return k;
  return std::nullopt;
}

const std::unordered_map<std::string_view, Intrinsic>& intrinsic_words() {
  static const auto* const words = new std::unordered_map<std::string_view, Intrinsic>{
#define TS_INTRINSIC(name, text, arity, purity) {text, Intrinsic::k##name},
#include "tensor/intrinsics.def"
#undef TS_INTRINSIC
  };
  return *words;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool is_identifier(std::string_view word) {
  if (word.empty() || !is_letter(word[0])) return false;
  for (char c : word)
    if (!is_letter(c) && !is_digit(c)) return false;
  return true;
}

bool is_reserved(std::string_view word) {
  if (position(kKeywords, word) || position(kScopeWords, word) || position(kForWords, word)) return true;
  // `inf_f64` and `nan_f16` are literals.
  return (word.starts_with("inf_") || word.starts_with("nan_")) && parse_dtype(word.substr(4)).ok();
}

std::string_view scope_word(Scope scope) { return kScopeWords[static_cast<int>(scope)]; }
std::optional<Scope> scope_from_word(std::string_view word) {
  const auto k = position(kScopeWords, word);
  return k ? std::optional(static_cast<Scope>(*k)) : std::nullopt;
}

std::string_view for_word(ForKind kind) { return kForWords[static_cast<int>(kind)]; }
std::optional<ForKind> for_from_word(std::string_view word) {
  const auto k = position(kForWords, word);
  return k ? std::optional(static_cast<ForKind>(*k)) : std::nullopt;
}

std::optional<Intrinsic> intrinsic_from_word(std::string_view word) {
  const auto it = intrinsic_words().find(word);
  return it == intrinsic_words().end() ? std::nullopt : std::optional(it->second);
}

BinaryForm binary_form(BinaryOp op, bool is_bool) {
  switch (op) {
    case BinaryOp::kAdd: return {"+", 8};
    case BinaryOp::kSub: return {"-", 8};
    case BinaryOp::kMul: return {"*", 9};
    case BinaryOp::kDiv: return {"/", 9};
    case BinaryOp::kFloorDiv: return {"//", 9};
    case BinaryOp::kFloorMod: return {"%", 9};
    case BinaryOp::kTruncDiv: return {"trunc_div", 0};
    case BinaryOp::kTruncMod: return {"trunc_mod", 0};
    case BinaryOp::kMin: return {"min", 0};
    case BinaryOp::kMax: return {"max", 0};
    case BinaryOp::kOr: return is_bool ? BinaryForm{"||", 1} : BinaryForm{"|", 4};
    case BinaryOp::kAnd: return is_bool ? BinaryForm{"&&", 2} : BinaryForm{"&", 6};
    case BinaryOp::kXor: return {"^", 5};
    case BinaryOp::kShl: return {"<<", 7};
    case BinaryOp::kShr: return {">>", 7};
    case BinaryOp::kEQ: return {"==", kComparePrecedence};
    case BinaryOp::kNE: return {"!=", kComparePrecedence};
    case BinaryOp::kLT: return {"<", kComparePrecedence};
    case BinaryOp::kLE: return {"<=", kComparePrecedence};
    case BinaryOp::kGT: return {">", kComparePrecedence};
    case BinaryOp::kGE: return {">=", kComparePrecedence};
  }
  return {"", 0};
}

std::optional<DType> implied_call_type(Intrinsic id, const std::vector<Expr>& args) {
  if (args.empty()) return std::nullopt;
  const DType first = args[0].dtype();
  switch (id) {
    case Intrinsic::kBitcast:
    case Intrinsic::kExtern: return std::nullopt;
    case Intrinsic::kIsNan:
    case Intrinsic::kIsInf: return kBool.with_lanes(first.lanes);
    case Intrinsic::kReduceAdd:
    case Intrinsic::kReduceMul:
    case Intrinsic::kReduceMin:
    case Intrinsic::kReduceMax:
    case Intrinsic::kReduceAnd:
    case Intrinsic::kReduceOr:
    case Intrinsic::kExtractLane: return first.element();
    case Intrinsic::kShuffle:
      if (args.size() < 2 || args.size() - 1 > UINT16_MAX) return std::nullopt;
      return first.with_lanes(static_cast<int>(args.size()) - 1);
    case Intrinsic::kConcat: {
      int64_t lanes = 0;
      for (const Expr& arg : args) lanes += arg.dtype().lanes;
      if (lanes > UINT16_MAX) return std::nullopt;
      return first.with_lanes(static_cast<int>(lanes));
    }
    case Intrinsic::kAddressOf: return kHandle;
    default: return first;
  }
}

std::string float_text(DType type, double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  // f16 and bf16 values are floats too, so the shortest text among floats reads back exactly.
  const auto end = type.bits == 64 ? std::to_chars(buffer, std::end(buffer), value).ptr
                                   : std::to_chars(buffer, std::end(buffer), static_cast<float>(value)).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string quoted(std::string_view value) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string text = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      text += "\\x";
      text += kHex[byte >> 4];
      text += kHex[byte & 15];
    } else {
      text += c;
    }
  }
  return text + '"';
}

std::string word_or_quoted(std::string_view value) { return is_identifier(value) ? std::string(value) : quoted(value); }

std::string Namer::fresh(std::string_view wanted) {
  std::string name;
  for (const char c : wanted) name += is_letter(c) || is_digit(c) ? c : '_';
  if (name.empty() || is_digit(name[0])) name = "v" + name;
  if (!is_reserved(name) && taken_.insert(name).second) return name;
  // `i_1` again becomes `i_2`, not `i_1_1`.
  std::string stem = name;
  if (const size_t last = stem.find_last_not_of("0123456789");
      last != std::string::npos && last > 0 && last + 1 < stem.size() && stem[last] == '_')
    stem.resize(last);
  int& next = next_[stem];
  do {
    name = stem + "_" + std::to_string(++next);
  } while (is_reserved(name) || !taken_.insert(name).second);
  return name;
}

std::string Namer::bind(const Shared* object, std::string_view wanted) {
  std::string& name = names_[object];
  std::string previous = std::move(name);
  name = fresh(wanted);
  return previous;
}

void Namer::unbind(const Shared* object, std::string previous) {
  if (previous.empty()) names_.erase(object);
  else names_[object] = std::move(previous);
}

void Namer::release(const Shared* object) {
  if (const auto it = names_.find(object); it != names_.end()) {
    taken_.erase(it->second);
    names_.erase(it);
  }
}

const std::string& Namer::name(const Shared* object, std::string_view wanted) {
  std::string& name = names_[object];
  if (name.empty()) name = fresh(wanted);
  return name;
}

}  // namespace tensmith::text
