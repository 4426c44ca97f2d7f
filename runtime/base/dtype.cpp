#include "runtime/base/dtype.h"

#include <charconv>

namespace tensmith {

std::string to_string(DType type) {
  std::string text;
  switch (type.code) {
    case DType::Code::kBool: text = "bool"; break;
    case DType::Code::kHandle: text = "handle"; break;
    case DType::Code::kInt: text = "i" + std::to_string(type.bits); break;
    case DType::Code::kUInt: text = "u" + std::to_string(type.bits); break;
    case DType::Code::kFloat: text = "f" + std::to_string(type.bits); break;
    case DType::Code::kBFloat: text = "bf" + std::to_string(type.bits); break;
  }
  if (type.lanes != 1) text += "x" + std::to_string(type.lanes);
  return text;
}

namespace {

struct Name {
  std::string_view text;
  DType type;
};
constexpr Name kNames[] = {
    {"bool", kBool},       {"i4", kInt4},         {"i8", kInt8},           {"i16", kInt16},     {"i32", kInt32},
    {"i64", kInt64},       {"u4", kUInt4},        {"u8", kUInt8},          {"u16", kUInt16},    {"u32", kUInt32},
    {"u64", kUInt64},      {"f16", kFloat16},     {"f32", kFloat32},       {"f64", kFloat64},   {"bf16", kBFloat16},
    {"handle", kHandle},   {"int8", kInt8},       {"int16", kInt16},       {"int32", kInt32},   {"int64", kInt64},
    {"uint8", kUInt8},     {"uint16", kUInt16},   {"uint32", kUInt32},     {"uint64", kUInt64}, {"float16", kFloat16},
    {"float32", kFloat32}, {"float64", kFloat64}, {"bfloat16", kBFloat16},
};

}  // namespace

Result<DType> parse_dtype(std::string_view text) {
  int lanes = 1;
  std::string_view base = text;
  if (size_t x = text.rfind('x'); x != std::string_view::npos && x > 0) {
    const char* end = text.data() + text.size();
    auto [p, error] = std::from_chars(text.data() + x + 1, end, lanes);
    if (error != std::errc() || p != end || lanes < 1 || lanes > 1024)
      return Failure{"bad-dtype", "'" + std::string(text) + "' is no dtype"};
    base = text.substr(0, x);
  }
  for (const Name& name : kNames)
    if (name.text == base) return name.type.with_lanes(lanes);
  return Failure{"bad-dtype", "'" + std::string(text) + "' is no dtype; use a name such as f32, i64 or bool"};
}

}  // namespace tensmith
