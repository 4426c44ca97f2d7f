#include "runtime/tensor.h"

#include <sys/mman.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "runtime/base/config.h"
#include "runtime/base/half.h"
#include "runtime/base/rng.h"

namespace tensmith {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

// Storage of the types that C++ lacks.
struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};
struct Bool {
  uint8_t bits;
};

/// Calls `f` with a null pointer of the C++ type that stores elements of `dtype`.
template <typename F>
auto with_element(DType dtype, F f) {
  switch (dtype.code) {
    case DType::Code::kBool: return f(static_cast<Bool*>(nullptr));
    case DType::Code::kBFloat:
      if (dtype.bits == 16) return f(static_cast<BFloat16*>(nullptr));
      break;
    case DType::Code::kFloat:
      if (dtype.bits == 16) return f(static_cast<Float16*>(nullptr));
      if (dtype.bits == 32) return f(static_cast<float*>(nullptr));
      if (dtype.bits == 64) return f(static_cast<double*>(nullptr));
      break;
    case DType::Code::kInt:  // 4-bit values lie one a byte, sign-extended
      if (dtype.bits <= 8) return f(static_cast<int8_t*>(nullptr));
      if (dtype.bits == 16) return f(static_cast<int16_t*>(nullptr));
      if (dtype.bits == 32) return f(static_cast<int32_t*>(nullptr));
      if (dtype.bits == 64) return f(static_cast<int64_t*>(nullptr));
      break;
    case DType::Code::kUInt:
      if (dtype.bits <= 8) return f(static_cast<uint8_t*>(nullptr));
      if (dtype.bits == 16) return f(static_cast<uint16_t*>(nullptr));
      if (dtype.bits == 32) return f(static_cast<uint32_t*>(nullptr));
      if (dtype.bits == 64) return f(static_cast<uint64_t*>(nullptr));
      break;
    case DType::Code::kHandle: break;
  }
  throw UserError("bad-tensor", "tensor: elements of type " + to_string(dtype) + " cannot be read or written");
}

template <typename T>
int64_t saturate_to_int(double value) {
  if (std::isnan(value)) return 0;
  // The limits as doubles may round up to one past the largest value, hence >=.
  if (value >= static_cast<double>(std::numeric_limits<T>::max()))
    return static_cast<int64_t>(std::numeric_limits<T>::max());
  if (value <= static_cast<double>(std::numeric_limits<T>::min()))
    return static_cast<int64_t>(std::numeric_limits<T>::min());
  return static_cast<int64_t>(static_cast<T>(value));
}

int64_t physical_memory() {
  static const int64_t bytes = [] {
    const int64_t pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? pages * page : INT64_MAX;
  }();
  return bytes;
}

}  // namespace

void HostMemory::Free::operator()(void* p) const { std::free(p); }

HostMemory::HostMemory(int64_t bytes) : size_(bytes) {
  TS_CHECK(bytes >= 0);
  const bool huge = bytes >= 2 * kHugePage && config()->huge_pages;
  const int64_t alignment = huge ? kHugePage : kBufferAlignment;
  // One more line at the end: vector code may read the whole last line of a buffer. More than the machine has is
  // refused at once: the system would promise it and end the process when it is touched.
  int64_t padded = 0;
  void* p = nullptr;
  if (checked_add(bytes, 2 * kBufferAlignment + alignment, &padded) && padded <= physical_memory())
    p = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(padded / alignment * alignment));
  if (!p)
    throw DeviceError("out-of-memory", "memory: expected " + std::to_string(bytes) + " bytes, the system gives none");
  if (huge) ::madvise(p, static_cast<size_t>(padded / alignment * alignment), MADV_HUGEPAGE);
  data_.reset(p);
}

HostTensor::HostTensor(std::vector<int64_t> shape, DType dtype) : shape_(std::move(shape)), dtype_(dtype) {
  Result<int64_t> count = element_count(shape_), bytes = byte_count(shape_, dtype);
  if (!bytes) throw UserError(bytes.failure().id, bytes.failure().message);
  TS_USER_CHECK(dtype.is_scalar(), "bad-tensor") << "tensor: expected a scalar element type, got " << to_string(dtype);
  size_ = *count;
  owned_ = HostMemory(*bytes);
  data_ = owned_.data();
  std::memset(data_, 0, static_cast<size_t>(*bytes));
}

HostTensor::HostTensor(Borrowed, void* data, std::vector<int64_t> shape, DType dtype)
    : shape_(std::move(shape)), dtype_(dtype), data_(data) {
  Result<int64_t> bytes = byte_count(shape_, dtype);
  if (!bytes) throw UserError(bytes.failure().id, bytes.failure().message);
  size_ = *element_count(shape_);
}

HostTensor HostTensor::view(void* data, std::vector<int64_t> shape, DType dtype) {
  return HostTensor(Borrowed{}, data, std::move(shape), dtype);
}

HostTensor HostTensor::from_values(std::vector<int64_t> shape, DType dtype, std::span<const double> values) {
  HostTensor t(std::move(shape), dtype);
  TS_CHECK(static_cast<int64_t>(values.size()) == t.size())
      << values.size() << " values for " << shape_to_string(t.shape());
  for (int64_t i = 0; i < t.size(); ++i) t.set(i, values[static_cast<size_t>(i)]);
  return t;
}

HostTensor HostTensor::clone() const {
  HostTensor copy(shape_, dtype_);
  if (size_) std::memcpy(copy.data_, data_, static_cast<size_t>(bytes()));
  return copy;
}

double HostTensor::get(int64_t index) const {
  TS_CHECK(index >= 0 && index < size_) << index << " of " << size_;
  return with_element(dtype_, [&](auto* null) -> double {
    using T = std::remove_pointer_t<decltype(null)>;
    const T value = static_cast<const T*>(data_)[index];
    if constexpr (std::is_same_v<T, Float16>) return from_float16_bits(value.bits);
    else if constexpr (std::is_same_v<T, BFloat16>) return from_bfloat16_bits(value.bits);
    else if constexpr (std::is_same_v<T, Bool>) return value.bits != 0;
    else return static_cast<double>(value);
  });
}

int64_t HostTensor::get_int(int64_t index) const {
  TS_CHECK(index >= 0 && index < size_) << index << " of " << size_;
  return with_element(dtype_, [&](auto* null) -> int64_t {
    using T = std::remove_pointer_t<decltype(null)>;
    if constexpr (std::is_integral_v<T>) return static_cast<int64_t>(static_cast<const T*>(data_)[index]);
    else return saturate_to_int<int64_t>(get(index));
  });
}

void HostTensor::set(int64_t index, double value) {
  TS_CHECK(index >= 0 && index < size_) << index << " of " << size_;
  with_element(dtype_, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    T& out = static_cast<T*>(data_)[index];
    if constexpr (std::is_same_v<T, Float16>) out.bits = to_float16_bits(value);
    else if constexpr (std::is_same_v<T, BFloat16>) out.bits = to_bfloat16_bits(value);
    else if constexpr (std::is_same_v<T, Bool>) out.bits = value != 0;
    else if constexpr (std::is_integral_v<T>) out = static_cast<T>(saturate_to_int<T>(value));
    else out = static_cast<T>(value);
  });
}

void HostTensor::set_int(int64_t index, int64_t value) {
  TS_CHECK(index >= 0 && index < size_) << index << " of " << size_;
  with_element(dtype_, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    if constexpr (std::is_integral_v<T>) static_cast<T*>(data_)[index] = static_cast<T>(value);
    else set(index, static_cast<double>(value));
  });
}

tensmith_tensor HostTensor::dl() {
  tensmith_tensor t = {};
  t.data = data_;
  t.device_type = TENSMITH_DEVICE_CPU;
  t.ndim = static_cast<int32_t>(shape_.size());
  t.dtype_code = static_cast<uint8_t>(dtype_.code);
  t.dtype_bits = dtype_.bits;
  t.dtype_lanes = dtype_.lanes;
  t.shape = shape_.data();
  return t;
}

std::string check_dense_dl(const tensmith_tensor& t, std::span<const int64_t> shape, DType dtype) {
  if (t.device_type != TENSMITH_DEVICE_CPU)
    return "expected memory of the CPU, got device type " + std::to_string(t.device_type);
  const DType got{static_cast<DType::Code>(t.dtype_code), t.dtype_bits, t.dtype_lanes};
  if (got != dtype) return "expected dtype " + to_string(dtype) + ", got " + to_string(got);
  if (t.ndim < 0 || t.ndim > kMaxRank || (t.ndim > 0 && !t.shape))
    return "expected a shape, got " + std::to_string(t.ndim) + " dimensions";
  const std::span<const int64_t> got_shape(t.shape, static_cast<size_t>(t.ndim));
  if (!std::equal(shape.begin(), shape.end(), got_shape.begin(), got_shape.end()))
    return "expected shape " + shape_to_string(shape) + ", got " + shape_to_string(got_shape);
  int64_t expected = 1;
  bool empty = false;
  for (int64_t dim : got_shape) empty |= dim == 0;
  for (int i = t.ndim - 1; i >= 0 && t.strides && !empty; --i) {
    if (t.shape[i] != 1 && t.strides[i] != expected) return "expected a dense row-major layout, got other strides";
    if (!checked_mul(expected, t.shape[i], &expected)) return "the element count overflows 64 bits";
  }
  if (!t.data && !empty) return "expected data, got a null pointer";
  return "";
}

Result<HostTensor> copy_from_dl(const tensmith_tensor& source) {
  auto bad = [](const std::string& text) { return Failure{"bad-tensor", "tensor: " + text}; };
  if (source.device_type != TENSMITH_DEVICE_CPU)
    return bad("expected memory of the CPU, got device type " + std::to_string(source.device_type));
  if (source.ndim < 0 || source.ndim > kMaxRank || (source.ndim > 0 && !source.shape))
    return bad("expected a shape of at most 64 dimensions");
  const DType dtype{static_cast<DType::Code>(source.dtype_code), source.dtype_bits, source.dtype_lanes};
  if (Result<DType> known = parse_dtype(to_string(dtype)); !known || dtype == kHandle || !dtype.is_scalar())
    return bad("unknown element type code " + std::to_string(source.dtype_code) + ", bits " +
               std::to_string(source.dtype_bits));
  const std::vector<int64_t> shape(source.shape, source.shape + source.ndim);
  if (Result<int64_t> bytes = byte_count(shape, dtype); !bytes) return bytes.failure();
  HostTensor out(shape, dtype);
  if (out.size() == 0) return out;
  if (!source.data) return bad("expected data, got a null pointer");
  const char* from = static_cast<const char*>(source.data) + source.byte_offset;
  const int64_t width = dtype.bytes();
  if (!source.strides) {
    std::memcpy(out.raw(), from, static_cast<size_t>(out.bytes()));
    return out;
  }
  std::vector<int64_t> index(shape.size(), 0);
  char* to = static_cast<char*>(out.raw());
  for (int64_t n = 0; n < out.size(); ++n, to += width) {
    int64_t offset = 0;
    for (size_t d = 0; d < shape.size(); ++d) offset += index[d] * source.strides[d];
    std::memcpy(to, from + offset * width, static_cast<size_t>(width));
    for (size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];) index[d] = 0;
  }
  return out;
}

Result<void> fill(HostTensor& tensor, std::string_view how, std::string_view name) {
  auto bad = [&] {
    return Failure{"bad-fill", "input " + std::string(name) +
                                   ": expected zeros, ones, random:SEED or random:SEED:LOW:HIGH, got '" +
                                   std::string(how) + "'"};
  };
  if (how == "zeros" || how == "ones") {
    for (int64_t i = 0; i < tensor.size(); ++i) tensor.set_int(i, how == "ones");
    return {};
  }
  if (!how.starts_with("random:")) return bad();
  std::vector<std::string_view> words;
  for (std::string_view rest = how.substr(7);;) {
    const size_t colon = rest.find(':');
    words.push_back(rest.substr(0, colon));
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  auto number = [](std::string_view text, auto& value) {
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
  };
  int64_t seed = 0;
  double low = 0, high = 0;
  if (!number(words[0], seed) || (words.size() != 1 && words.size() != 3)) return bad();
  const bool ranged = words.size() == 3;
  if (ranged && (!number(words[1], low) || !number(words[2], high) || !(low <= high) || !std::isfinite(low) ||
                 !std::isfinite(high)))
    return bad();
  Rng rng(static_cast<uint64_t>(seed), name);
  const DType dtype = tensor.dtype();
  if (dtype.is_float()) {
    for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, ranged ? rng.uniform(low, high) : rng.normal());
    return {};
  }
  int64_t first = 0, last = 1;
  if (ranged) {
    first = saturate_to_int<int64_t>(low);
    last = std::max(first, saturate_to_int<int64_t>(std::ceil(high)) - 1);
  } else if (dtype.is_integral() && dtype.bits < 32) {
    const int bits = std::min<int>(dtype.bits, 8);
    first = dtype.is_int() ? -(int64_t{1} << (bits - 1)) : 0;
    last = first + (int64_t{1} << bits) - 1;
  }
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set_int(i, rng.between(first, last));
  return {};
}

}  // namespace tensmith
