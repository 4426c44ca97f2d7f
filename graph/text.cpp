#include "graph/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "runtime/base/error.h"

namespace tensmith::graph {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

template <typename Float>
std::string shortest(Float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 40> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  TS_CHECK(error == std::errc());
  std::string text(buffer.data(), end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

constexpr std::string_view kReserved[] = {"select", "not", "cast", "let"};

}  // namespace

std::string quote(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 32 || byte == 127) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

bool is_plain_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter(c) || is_digit(c) || c == '.' || c == '/' || c == '-';
  });
}

bool is_plain_dim_name(std::string_view text) {
  if (text.empty() || !is_letter(text[0])) return false;
  if (!std::all_of(text.begin(), text.end(), [](char c) { return is_letter(c) || is_digit(c) || c == '.'; }))
    return false;
  if (std::find(std::begin(kReserved), std::end(kReserved), text) != std::end(kReserved)) return false;
  for (int op = 0; op <= static_cast<int>(BinaryOp::kGE); ++op)
    if (const char* name = dim_function(static_cast<BinaryOp>(op)); name && text == name) return false;
  for (int id = 0; id <= static_cast<int>(Intrinsic::kExtern); ++id)
    if (text == intrinsic_info(static_cast<Intrinsic>(id)).name) return false;
  return true;
}

std::string float_text(double value) { return shortest(value); }
std::string float_text(float value) { return shortest(value); }

std::string base64_encode(const void* data, size_t bytes) {
  const auto* in = static_cast<const uint8_t*>(data);
  std::string out;
  out.reserve((bytes + 2) / 3 * 4);
  for (size_t k = 0; k < bytes; k += 3) {
    const size_t left = bytes - k;
    const uint32_t group = in[k] << 16 | (left > 1 ? in[k + 1] << 8 : 0) | (left > 2 ? in[k + 2] : 0);
    out += kBase64[group >> 18];
    out += kBase64[group >> 12 & 63];
    out += left > 1 ? kBase64[group >> 6 & 63] : '=';
    out += left > 2 ? kBase64[group & 63] : '=';
  }
  return out;
}

std::optional<std::vector<uint8_t>> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::vector<uint8_t> out;
  out.reserve(text.size() / 4 * 3);
  for (size_t k = 0; k < text.size(); k += 4) {
    const size_t padding = k + 4 < text.size() ? 0 : (text[k + 3] == '=') + (text[k + 3] == '=' && text[k + 2] == '=');
    uint32_t group = 0;
    for (size_t i = 0; i < 4; ++i) {
      const size_t digit = i >= 4 - padding ? 0 : kBase64.find(text[k + i]);
      if (digit == std::string_view::npos) return std::nullopt;
      group = group << 6 | static_cast<uint32_t>(digit);
    }
    for (size_t i = 0; i < 3 - padding; ++i) out.push_back(static_cast<uint8_t>(group >> (16 - 8 * i)));
  }
  return out;
}

const char* dim_function(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kMul: return nullptr;
    case BinaryOp::kDiv: return "div";
    case BinaryOp::kFloorDiv: return "floor_div";
    case BinaryOp::kFloorMod: return "floor_mod";
    case BinaryOp::kTruncDiv: return "trunc_div";
    case BinaryOp::kTruncMod: return "trunc_mod";
    case BinaryOp::kMin: return "min";
    case BinaryOp::kMax: return "max";
    case BinaryOp::kAnd: return "and";
    case BinaryOp::kOr: return "or";
    case BinaryOp::kXor: return "xor";
    case BinaryOp::kShl: return "shl";
    case BinaryOp::kShr: return "shr";
    case BinaryOp::kEQ: return "eq";
    case BinaryOp::kNE: return "ne";
    case BinaryOp::kLT: return "lt";
    case BinaryOp::kLE: return "le";
    case BinaryOp::kGT: return "gt";
    case BinaryOp::kGE: return "ge";
  }
  return nullptr;
}

namespace {

/// Prints with the fewest parentheses: level 0 allows sums, 1 products, 2 only factors.
void print_dim(const Expr& e, int level, const std::function<std::string(const VarNode*)>& name_of, std::string& out) {
  const auto list = [&](const char* function, std::initializer_list<Expr> args) {
    out += function;
    out += '(';
    bool first = true;
    for (const Expr& arg : args) {
      if (!first) out += ", ";
      first = false;
      print_dim(arg, 0, name_of, out);
    }
    out += ')';
  };
  const auto infix = [&](const char* op, int own, const Binary& b) {
    if (level > own) out += '(';
    print_dim(b.a, own, name_of, out);
    out += op;
    print_dim(b.b, own + 1, name_of, out);
    if (level > own) out += ')';
  };
  if (e.get() == nullptr) {
    out += '?';
  } else if (const auto* imm = e.as<IntImm>()) {
    if (imm->dtype.is_bool()) out += imm->value ? "true" : "false";
    else if (imm->dtype == kInt64) out += std::to_string(imm->value);
    else out += "cast(" + to_string(imm->dtype) + ", " + std::to_string(imm->value) + ")";
  } else if (const auto* real = e.as<FloatImm>()) {
    out += "cast(" + to_string(real->dtype) + ", " + float_text(real->value) + ")";
  } else if (const auto* var = e.as<VarNode>()) {
    out += name_of(var);
  } else if (const auto* b = e.as<Binary>()) {
    if (b->op == BinaryOp::kAdd) infix(" + ", 0, *b);
    else if (b->op == BinaryOp::kSub) infix(" - ", 0, *b);
    else if (b->op == BinaryOp::kMul) infix(" * ", 1, *b);
    else list(dim_function(b->op), {b->a, b->b});
  } else if (const auto* cast = e.as<Cast>()) {
    out += "cast(" + to_string(cast->dtype) + ", ";
    print_dim(cast->value, 0, name_of, out);
    out += ')';
  } else if (const auto* select = e.as<Select>()) {
    list("select", {select->cond, select->a, select->b});
  } else if (const auto* negate = e.as<Not>()) {
    list("not", {negate->value});
  } else if (const auto* call = e.as<Call>(); call && call->id != Intrinsic::kExtern) {
    out += intrinsic_info(call->id).name;
    out += '(';
    for (size_t k = 0; k < call->args.size(); ++k) {
      if (k) out += ", ";
      print_dim(call->args[k], 0, name_of, out);
    }
    out += ')';
  } else {
    TS_UNREACHABLE() << "a dim of node kind " << static_cast<int>(e.kind());
  }
}

}  // namespace

std::string dim_text(const Expr& dim, const std::function<std::string(const VarNode*)>& name_of) {
  std::string out;
  print_dim(dim, 0, name_of, out);
  return out;
}

}  // namespace tensmith::graph
