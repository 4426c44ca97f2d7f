#include "codegen/c_helpers.h"

#include "runtime/base/error.h"

namespace tensmith {

namespace {

std::string int_type(DType type) {
  const int bits = type.bits < 8 ? 8 : type.bits;
  return (type.is_uint() ? "uint" : "int") + std::to_string(bits) + "_t";
}

std::string unsigned_type(DType type) { return "uint" + std::to_string(type.bits < 32 ? 32 : type.bits) + "_t"; }

bool is_half(DType type) { return type.is_float() && type.bits == 16; }

/// `{T}` is the type, `{U}` the unsigned type to compute in, `{N}` its bits.
std::string filled(std::string text, DType type) {
  const auto put = [&](const std::string& mark, const std::string& with) {
    for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += with.size())
      text.replace(at, mark.size(), with);
  };
  put("{T}", c_type(type));
  put("{U}", unsigned_type(type));
  put("{N}", std::to_string(type.bits));
  return text;
}

/// The bodies of operations on two values. Signed division by -1 wraps, by 0 gives 0.
std::string body_of(BinaryOp op, DType type) {
  const bool is_signed = type.is_int();
  const std::string by_minus_one = is_signed ? "  if (b == -1) return ({T})(0 - ({U})a);\n" : "";
  const std::string no_rest = is_signed ? "  if (b == -1) return 0;\n" : "";
  switch (op) {
    case BinaryOp::kTruncDiv: return "  if (b == 0) return 0;\n" + by_minus_one + "  return ({T})(a / b);\n";
    case BinaryOp::kTruncMod: return "  if (b == 0) return 0;\n" + no_rest + "  return ({T})(a % b);\n";
    case BinaryOp::kFloorDiv:
      if (!is_signed) return body_of(BinaryOp::kTruncDiv, type);
      return "  if (b == 0) return 0;\n" + by_minus_one +
             "  return ({T})(a / b - (a % b != 0 && (a < 0) != (b < 0)));\n";
    case BinaryOp::kFloorMod:
      if (!is_signed) return body_of(BinaryOp::kTruncMod, type);
      return "  if (b == 0) return 0;\n" + no_rest +
             "  const {T} rest = ({T})(a % b);\n  return ({T})(rest != 0 && (rest < 0) != (b < 0) ? rest + b : "
             "rest);\n";
    case BinaryOp::kMin: return type.is_float() ? "  return a < b || a != a ? a : b;\n" : "  return a < b ? a : b;\n";
    case BinaryOp::kMax: return type.is_float() ? "  return a > b || a != a ? a : b;\n" : "  return a > b ? a : b;\n";
    case BinaryOp::kShl: return "  return (uint64_t)b >= {N} ? 0 : ({T})(({U})a << b);\n";
    case BinaryOp::kShr:
      return is_signed ? "  return (uint64_t)b >= {N} ? (a < 0 ? -1 : 0) : ({T})(a >> b);\n"
                       : "  return (uint64_t)b >= {N} ? 0 : ({T})(a >> b);\n";
    default: break;
  }
  TS_UNREACHABLE() << "C has operator " << static_cast<int>(op);
}

const char* name_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::kTruncDiv: return "trunc_div";
    case BinaryOp::kTruncMod: return "trunc_mod";
    case BinaryOp::kFloorDiv: return "floor_div";
    case BinaryOp::kFloorMod: return "floor_mod";
    case BinaryOp::kMin: return "min";
    case BinaryOp::kMax: return "max";
    case BinaryOp::kShl: return "shl";
    default: return "shr";
  }
}

}  // namespace

bool c_library_has(const std::string& name) {
  static const std::set<std::string> known = {
      "acos",  "acosh", "asin", "asinh", "atan",  "atan2",  "atanh",     "ceil",   "copysign", "cos",     "cosh",
      "erf",   "erfc",  "exp",  "exp2",  "expm1", "fabs",   "floor",     "fma",    "fmax",     "fmin",    "fmod",
      "isinf", "isnan", "log",  "log10", "log1p", "log2",   "nearbyint", "pow",    "rint",     "round",   "signbit",
      "sin",   "sinh",  "sqrt", "tan",   "tanh",  "tgamma", "trunc",     "lgamma", "memcpy",   "memmove", "memset"};
  const bool is_single = !name.empty() && name.back() == 'f';
  return known.count(name) != 0 || (is_single && known.count(name.substr(0, name.size() - 1)) != 0);
}

std::string c_type(DType type) {
  if (type.is_bool()) return "bool";
  if (type.is_handle()) return "void *";
  if (type.is_float()) return type.bits == 64 ? "double" : "float";
  return int_type(type);
}

std::string c_storage_type(DType type) { return is_half(type) ? "uint16_t" : c_type(type); }

std::string CHelpers::add(const std::string& name, const std::string& definition) {
  if (known_.insert(name).second) text_ += definition + "\n";
  return name;
}

std::string CHelpers::binary(BinaryOp op, DType type) {
  const std::string name = std::string("ts_") + name_of(op) + "_" + to_string(type);
  return add(name, "static inline " + filled("{T} " + name + "({T} a, {T} b) {\n" + body_of(op, type) + "}\n", type));
}

std::string CHelpers::from_double(DType to) {
  const std::string name = "ts_" + to_string(to) + "_from_double";
  std::string body;
  if (to.is_int())
    body =
        "  if (x != x) return 0;\n  if (x >= ldexp(1, {N} - 1)) return ({T})((({U})1 << ({N} - 1)) - 1);\n"
        "  if (x < -ldexp(1, {N} - 1)) return ({T})(-(({T})((({U})1 << ({N} - 1)) - 1)) - 1);\n  return ({T})x;\n";
  else
    body =
        "  if (!(x > 0)) return 0;\n  return x >= ldexp(1, {N}) ? ({T})(({U})-1 >> (8 * sizeof({U}) - {N})) : "
        "({T})x;\n";
  return add(name, filled("static inline {T} " + name + "(double x) {\n" + body + "}\n", to));
}

std::string CHelpers::round(DType type) {
  // Below the smallest normal number adding a large one rounds to the step of the subnormals; above it the digits that
  // the type lacks are rounded off, ties to even.
  const std::string name = "ts_round_" + to_string(type);
  const char* figures = type.is_bfloat()
                            ? "const int drop = 45;\n  const double least = 0x1p-126, most = 0x1.fep127, "
                              "large = 0x1.8p-81;\n"
                            : "const int drop = 42;\n  const double least = 0x1p-14, most = 65504, large = "
                              "0x1.8p28;\n";
  return add(name,
             "static inline float " + name + "(double x) {\n  " + figures +
                 "  if (!(fabs(x) < INFINITY)) return (float)x;\n"
                 "  if (fabs(x) < least) return (float)copysign((x + copysign(large, x)) - copysign(large, x), x);\n"
                 "  uint64_t bits;\n"
                 "  memcpy(&bits, &x, sizeof bits);\n"
                 "  bits += (((uint64_t)1 << (drop - 1)) - 1) + ((bits >> drop) & 1);\n"
                 "  bits &= ~(((uint64_t)1 << drop) - 1);\n"
                 "  memcpy(&x, &bits, sizeof x);\n"
                 "  return (float)(fabs(x) > most ? copysign(INFINITY, x) : x);\n"
                 "}\n");
}

std::string CHelpers::narrow_bits() {
  return add(
      "ts_narrow_bits",
      "/* The bits of a float format that holds x. */\n"
      "static inline uint16_t ts_narrow_bits(double x, int exponent_bits, int fraction_bits) {\n"
      "  const int bias = (1 << (exponent_bits - 1)) - 1;\n"
      "  const uint32_t sign = (uint32_t)(signbit(x) != 0) << 15, top = ((1u << exponent_bits) - 1) << fraction_bits;\n"
      "  if (isnan(x)) return (uint16_t)(sign | top | 1u << (fraction_bits - 1));\n"
      "  if (isinf(x)) return (uint16_t)(sign | top);\n"
      "  if (x == 0) return (uint16_t)sign;\n"
      "  int exponent;\n"
      "  const double fraction = frexp(fabs(x), &exponent);\n"
      "  const int biased = exponent - 1 + bias;\n"
      "  if (biased < 1) return (uint16_t)(sign | (uint32_t)ldexp(fabs(x), fraction_bits - 1 + bias));\n"
      "  return (uint16_t)(sign | (((uint32_t)(biased - 1) << fraction_bits) + (uint32_t)ldexp(fraction, fraction_bits "
      "+ 1)));\n"
      "}\n");
}

std::string CHelpers::narrow_value() {
  return add("ts_narrow_value",
             "/* The number that bits of a float format say. */\n"
             "static inline float ts_narrow_value(uint16_t bits, int exponent_bits, int fraction_bits) {\n"
             "  const int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;\n"
             "  const int fraction = bits & ((1 << fraction_bits) - 1), exponent = bits >> fraction_bits & top;\n"
             "  const float sign = bits >> 15 ? -1.0f : 1.0f;\n"
             "  if (exponent == top) return fraction ? NAN : sign * INFINITY;\n"
             "  if (exponent == 0) return sign * (float)ldexp(fraction, 1 - bias - fraction_bits);\n"
             "  return sign * (float)ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);\n"
             "}\n");
}

std::string CHelpers::from_bits(DType type) {
  const std::string narrow = narrow_value(), name = "ts_" + to_string(type) + "_value";
  return add(name, "static inline float " + name + "(uint16_t bits) { return " + narrow + "(bits, " +
                       (type.is_bfloat() ? "8, 7" : "5, 10") + "); }\n");
}

std::string CHelpers::to_bits(DType type) {
  const std::string narrow = narrow_bits(), name = "ts_" + to_string(type) + "_bits";
  return add(name, "static inline uint16_t " + name + "(float x) { return " + narrow + "(x, " +
                       (type.is_bfloat() ? "8, 7" : "5, 10") + "); }\n");
}

std::string CHelpers::lane_of_bytes(DType type) {
  const std::string storage = c_storage_type(type), name = "ts_lane_" + to_string(type);
  const std::string value = is_half(type) ? from_bits(type) + "(lane)" : "lane";
  return add(name, "static inline " + c_type(type) + " " + name + "(const void *bytes, int number) {\n  " + storage +
                       " lane;\n  memcpy(&lane, (const char *)bytes + (size_t)number * sizeof lane, sizeof lane);\n  "
                       "return " +
                       value + ";\n}\n");
}

std::string CHelpers::reduce(const char* name, DType type, const std::string& combine) {
  const std::string full = std::string("ts_reduce_") + name + "_" + to_string(type);
  return add(full, filled("static inline {T} " + full +
                              "({T} *v, int count) {\n"
                              "  for (int half; count > 1; count = half) {\n"
                              "    half = (count + 1) / 2;\n"
                              "    for (int k = 0; k + half < count; ++k) {\n"
                              "      const {T} a = v[k], b = v[k + half];\n"
                              "      v[k] = " +
                              combine + ";\n    }\n  }\n  return v[0];\n}\n",
                          type));
}

std::string CHelpers::intrinsic(Intrinsic id, DType type) {
  const std::string name = std::string("ts_") + intrinsic_info(id).name + "_" + to_string(type);
  const auto define = [&](const char* parameters, const char* body) {
    return add(name, filled("static inline {T} " + name + "(" + parameters + ") {\n" + body + "}\n", type));
  };
  switch (id) {
    case Intrinsic::kAbs: return define("{T} a", "  return a < 0 ? ({T})(0 - ({U})a) : a;\n");
    case Intrinsic::kPopCount:
      return define("{T} a",
                    "  int count = 0;\n  for (int bit = 0; bit < {N}; ++bit) count += (({U})a >> bit & 1) != 0;\n"
                    "  return ({T})count;\n");
    case Intrinsic::kLeadingZeros:
      return define("{T} a",
                    "  int count = 0;\n  while (count < {N} && !(({U})a >> ({N} - 1 - count) & 1)) ++count;\n"
                    "  return ({T})count;\n");
    case Intrinsic::kMulHigh:
      if (type.bits < 64)
        return define("{T} a, {T} b", type.is_int() ? "  return ({T})(((int64_t)a * b) >> {N});\n"
                                                    : "  return ({T})(((uint64_t)a * b) >> {N});\n");
      return define("{T} a, {T} b",
                    type.is_int() ? "  const uint64_t x = (uint64_t)a, y = (uint64_t)b, low = 0xffffffff;\n"
                                    "  const uint64_t middle = (x >> 32) * (y & low) + ((x & low) * (y & low) >> 32);\n"
                                    "  const uint64_t upper = (x & low) * (y >> 32) + (middle & low);\n"
                                    "  uint64_t high = (x >> 32) * (y >> 32) + (middle >> 32) + (upper >> 32);\n"
                                    "  high -= (a < 0 ? y : 0) + (b < 0 ? x : 0);\n"
                                    "  return (int64_t)high;\n"
                                  : "  const uint64_t low = 0xffffffff;\n"
                                    "  const uint64_t middle = (a >> 32) * (b & low) + ((a & low) * (b & low) >> 32);\n"
                                    "  const uint64_t upper = (a & low) * (b >> 32) + (middle & low);\n"
                                    "  return (a >> 32) * (b >> 32) + (middle >> 32) + (upper >> 32);\n");
    case Intrinsic::kSigmoid: return define("{T} a", "  return ({T})(1 / (1 + exp(-(double)a)));\n");
    case Intrinsic::kRsqrt: return define("{T} a", "  return ({T})(1 / sqrt((double)a));\n");
    case Intrinsic::kMinNum: return define("{T} a, {T} b", "  return a < b ? a : b;\n");
    case Intrinsic::kMaxNum: return define("{T} a, {T} b", "  return a > b ? a : b;\n");
    default: break;
  }
  TS_UNREACHABLE() << "C has " << intrinsic_info(id).name;
}

std::string CHelpers::prefetch() {
  return add("TS_PREFETCH",
             "#ifdef __GNUC__\n#define TS_PREFETCH(address) __builtin_prefetch(address)\n#else\n"
             "#define TS_PREFETCH(address) ((void)(address))\n#endif\n");
}

std::string CHelpers::runtime(const std::string& symbol) {
  if (symbol == "tensmith_thread_index")
    return add("ts_thread_index", "static inline int64_t ts_thread_index(void) { return 0; }\n");
  if (symbol == "tensmith_num_threads")
    return add("ts_num_threads", "static inline int64_t ts_num_threads(void) { return 1; }\n");
  return add("ts_on_kernel",
             "static inline int32_t ts_on_kernel(int64_t index, int64_t is_end) {\n  (void)index, (void)is_end;\n  "
             "return 0;\n}\n");
}

}  // namespace tensmith
