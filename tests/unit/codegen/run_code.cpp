#include "tests/unit/codegen/run_code.h"

#include <cmath>
#include <cstring>

namespace tensmith {

std::vector<std::string> runnable_targets() {
  std::vector<std::string> names;
  for (const char* name : {"x86-64", "x86-64-v3", "host"}) {
    Result<Target> target = Target::parse(name);
    if (target.ok() && !target.value().missing_on_host()) names.push_back(name);
  }
  return names;
}

std::string test_name(const std::string& target) {
  std::string name;
  for (char c : target) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

namespace {

/// Bits of a value that is exact in the 16-bit format.
uint16_t small_float_bits(DType type, double v) {
  const int mantissa = type.is_bfloat() ? 7 : 10, bias = type.is_bfloat() ? 127 : 15;
  const uint16_t sign = std::signbit(v) ? 0x8000 : 0, infinity = static_cast<uint16_t>((2 * bias + 1) << mantissa);
  if (std::isnan(v)) return static_cast<uint16_t>(sign | infinity | 1 << (mantissa - 1));
  if (std::isinf(v)) return sign | infinity;
  if (v == 0) return sign;
  int exponent;
  std::frexp(v, &exponent);  // 0.5 <= |fraction| < 1
  const int biased = std::max(exponent - 1 + bias, 0);
  const double scale = std::ldexp(1.0, mantissa - ((biased == 0 ? 1 : biased) - bias));
  const auto digits = static_cast<int>(std::fabs(v) * scale);
  return static_cast<uint16_t>(sign | (biased == 0 ? digits : (biased << mantissa) | (digits - (1 << mantissa))));
}

double small_float_value(DType type, uint16_t bits) {
  const int mantissa = type.is_bfloat() ? 7 : 10, bias = type.is_bfloat() ? 127 : 15;
  const int exponent = (bits & 0x7fff) >> mantissa, digits = bits & ((1 << mantissa) - 1);
  double v = exponent == 0 ? std::ldexp(digits, 1 - bias - mantissa)
                           : std::ldexp(digits + (1 << mantissa), exponent - bias - mantissa);
  if (exponent == 2 * bias + 1) v = digits ? std::nan("") : HUGE_VAL;
  return bits & 0x8000 ? -v : v;
}

template <typename T>
void put(std::vector<uint8_t>& bytes, size_t index, T value) {
  std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
}
template <typename T>
T get(const std::vector<uint8_t>& bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

size_t count_of(const InterpValue& v) { return v.dtype.is_float() ? v.f.size() : v.i.size(); }

}  // namespace

std::vector<uint8_t> to_bytes(const InterpValue& value) {
  const size_t count = count_of(value);
  std::vector<uint8_t> bytes(count * value.dtype.bytes());
  for (size_t i = 0; i < count; ++i) {
    if (!value.dtype.is_float()) std::memcpy(bytes.data() + i * value.dtype.bytes(), &value.i[i], value.dtype.bytes());
    else if (value.dtype.bits == 64) put(bytes, i, value.f[i]);
    else if (value.dtype.bits == 32) put(bytes, i, static_cast<float>(value.f[i]));
    else put(bytes, i, small_float_bits(value.dtype, value.f[i]));
  }
  return bytes;
}

void from_bytes(const std::vector<uint8_t>& bytes, InterpValue* value) {
  const DType t = value->dtype;
  for (size_t i = 0; i < count_of(*value); ++i) {
    if (t.is_float()) {
      value->f[i] = t.bits == 64   ? get<double>(bytes, i)
                    : t.bits == 32 ? get<float>(bytes, i)
                                   : small_float_value(t, get<uint16_t>(bytes, i));
      continue;
    }
    int64_t v = 0;
    std::memcpy(&v, bytes.data() + i * t.bytes(), t.bytes());
    const int unused = 64 - 8 * static_cast<int>(t.bytes());
    value->i[i] = t.is_int() ? static_cast<int64_t>(static_cast<uint64_t>(v) << unused) >> unused : v;
  }
}

InterpValue values(DType type, const std::vector<double>& numbers) {
  InterpValue value{type, {}, {}};
  for (double v : numbers) value.f.push_back(std::isnan(v) ? v : FloatImm::make(type, v).as<FloatImm>()->value);
  return value;
}

InterpValue int_values(DType type, const std::vector<int64_t>& numbers) {
  InterpValue value{type, {}, {}};
  for (int64_t v : numbers) value.i.push_back(IntImm::make(type, v).as<IntImm>()->value);
  return value;
}

namespace {

struct AlignedBytes {
  explicit AlignedBytes(const std::vector<uint8_t>& bytes) : size(bytes.size()) {
    data = static_cast<uint8_t*>(std::aligned_alloc(64, (size + 64) / 64 * 64));
    std::memcpy(data, bytes.data(), size);
  }
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
  ~AlignedBytes() { std::free(data); }
  uint8_t* data;
  size_t size;
};

// Pointers and 64-bit integers travel in the same registers and stack slots, so one signature serves any function of up
// to twelve such arguments on x86-64 and AArch64.
int32_t call(void* function, const tensmith_context* ctx, std::vector<int64_t> a) {
  TS_CHECK(a.size() <= 12) << a.size() << " arguments";
  a.resize(12);
  using I = int64_t;
  using Function = int32_t(const tensmith_context*, I, I, I, I, I, I, I, I, I, I, I, I);
  return reinterpret_cast<Function*>(function)(ctx, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10],
                                               a[11]);
}

}  // namespace

int32_t run_code(const LoopProgram& program, const std::string& target, const std::vector<InterpValue*>& buffers,
                 const std::vector<int64_t>& scalars, const tensmith_context* ctx, const CodegenOptions& options) {
  const ObjectCode object = compile(program, Target::parse(target).value(), options);
  const JitModule module = JitModule::load(std::span(&object, 1));
  std::vector<std::unique_ptr<AlignedBytes>> memory;
  std::vector<int64_t> args;
  for (InterpValue* buffer : buffers) {
    memory.push_back(std::make_unique<AlignedBytes>(to_bytes(*buffer)));
    args.push_back(reinterpret_cast<int64_t>(memory.back()->data));
  }
  args.insert(args.end(), scalars.begin(), scalars.end());
  const int32_t result = call(module.find(program.functions.back().name), ctx, args);
  for (size_t i = 0; i < buffers.size(); ++i)
    from_bytes({memory[i]->data, memory[i]->data + memory[i]->size}, buffers[i]);
  return result;
}

int32_t run_code(const LoopFunction& f, const std::string& target, const std::vector<InterpValue*>& buffers,
                 const std::vector<int64_t>& scalars, const tensmith_context* ctx, const CodegenOptions& options) {
  return run_code(LoopProgram{{f}}, target, buffers, scalars, ctx, options);
}

InterpValue map_elements(const std::string& target, const std::vector<InterpValue>& inputs, DType out, int lanes,
                         const std::function<Expr(const std::vector<Expr>&)>& body, const CodegenOptions& options) {
  const auto count = static_cast<int64_t>(count_of(inputs[0]));
  TS_CHECK(count % lanes == 0) << count << " elements, " << lanes << " lanes";
  LoopFunction f;
  f.name = "map";
  Var i("i");
  const Expr index = lanes == 1 ? Expr(i) : Ramp::make(i * lanes, Expr(1), lanes);
  std::vector<Expr> loads;
  std::vector<InterpValue> storage = inputs;
  for (const InterpValue& input : inputs) {
    f.buffers.push_back(make_buffer("in" + std::to_string(f.buffers.size()), input.dtype, {Expr(count)}));
    loads.push_back(Load::make(f.buffers.back(), {index}));
  }
  Buffer result = make_buffer("out", out, {Expr(count)});
  f.buffers.push_back(result);
  f.outputs = {result};
  f.body = For::make(i, Expr(0), Expr(count / lanes), ForKind::kSerial, Store::make(result, {index}, body(loads)));
  storage.push_back(make_interp_value(out, count));
  std::vector<InterpValue*> pointers;
  for (InterpValue& value : storage) pointers.push_back(&value);
  EXPECT_EQ(run_code(f, target, pointers, {}, nullptr, options), 0);
  return storage.back();
}

void expect_equal(const InterpValue& got, const InterpValue& want, const std::string& what) {
  ASSERT_EQ(got.dtype, want.dtype) << what;
  ASSERT_EQ(count_of(got), count_of(want)) << what;
  int failures = 0;
  for (size_t i = 0; i < count_of(got) && failures < 5; ++i) {
    if (got.dtype.is_float()) {
      const double a = got.f[i], b = want.f[i];
      const bool same = std::isnan(b) ? std::isnan(a) : a == b && std::signbit(a) == std::signbit(b);
      if (!same) ++failures, ADD_FAILURE() << what << ": element " << i << ": got " << a << ", want " << b;
    } else if (got.i[i] != want.i[i]) {
      ++failures, ADD_FAILURE() << what << ": element " << i << ": got " << got.i[i] << ", want " << want.i[i];
    }
  }
}

}  // namespace tensmith
