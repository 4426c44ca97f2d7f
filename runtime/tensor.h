/// Tensors in memory: dense, row-major, aligned for any vector width.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/result.h"
#include "runtime/base/shape.h"
#include "runtime/dl_tensor.h"

namespace tensmith {

/// Alignment of every buffer that we allocate; what generated code may assume of its own arena and constants.
inline constexpr int64_t kBufferAlignment = 64;

/// Memory aligned to kBufferAlignment, or to 2 MiB with a request for huge pages from 4 MiB on (measured: 35 % more
/// DRAM bandwidth for one thread). Its content is not initialised. Errors: out-of-memory (DeviceError).
class HostMemory {
 public:
  HostMemory() = default;
  explicit HostMemory(int64_t bytes);
  void* data() const { return data_.get(); }
  int64_t size() const { return size_; }

 private:
  struct Free {
    void operator()(void* p) const;
  };
  std::unique_ptr<void, Free> data_;
  int64_t size_ = 0;
};

/// A tensor that owns its memory or looks at somebody else's. Moving is cheap; copies are explicit (`clone`).
class HostTensor {
 public:
  /// A float32 scalar 0.
  HostTensor() : HostTensor({}, kFloat32) {}
  /// A tensor of zeros. Errors: UserError bad-shape or shape-overflow; DeviceError out-of-memory.
  HostTensor(std::vector<int64_t> shape, DType dtype);
  /// A dense tensor over memory that outlives it.
  static HostTensor view(void* data, std::vector<int64_t> shape, DType dtype);
  /// A scalar or a list from values, converted as `set` does.
  static HostTensor from_values(std::vector<int64_t> shape, DType dtype, std::span<const double> values);

  HostTensor(HostTensor&&) = default;
  HostTensor& operator=(HostTensor&&) = default;
  HostTensor clone() const;

  const std::vector<int64_t>& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  int64_t size() const { return size_; }
  int64_t bytes() const { return size_ * dtype_.bytes(); }
  void* raw() { return data_; }
  const void* raw() const { return data_; }
  /// Typed access; the width must fit the dtype (float16 and bfloat16 as uint16_t, bool as uint8_t or bool).
  template <typename T>
  std::span<T> data() {
    TS_CHECK(static_cast<int64_t>(sizeof(T)) == dtype_.bytes()) << to_string(dtype_);
    return {static_cast<T*>(data_), static_cast<size_t>(size_)};
  }
  template <typename T>
  std::span<const T> data() const {
    TS_CHECK(static_cast<int64_t>(sizeof(T)) == dtype_.bytes()) << to_string(dtype_);
    return {static_cast<const T*>(data_), static_cast<size_t>(size_)};
  }

  /// One element by its row-major number, as a double (64-bit integers may lose low bits).
  double get(int64_t index) const;
  /// One element as an integer; floats are truncated. Exact for all integer types; uint64 keeps its bits.
  int64_t get_int(int64_t index) const;
  /// Stores a value rounded to the element type; integers truncate and saturate, NaN gives 0; bool is value != 0.
  void set(int64_t index, double value);
  /// Stores an integer modulo the width.
  void set_int(int64_t index, int64_t value);

  /// The C view; valid while this tensor lives and is not moved.
  tensmith_tensor dl();

 private:
  struct Borrowed {};
  HostTensor(Borrowed, void* data, std::vector<int64_t> shape, DType dtype);

  std::vector<int64_t> shape_;
  DType dtype_;
  int64_t size_ = 0;
  HostMemory owned_;
  void* data_ = nullptr;
};

/// Copies any C tensor (strides, offset) into a dense one.
/// Errors: bad-tensor (null data, negative sizes, device, unknown dtype), shape-overflow.
Result<HostTensor> copy_from_dl(const tensmith_tensor& source);
/// Null if the C tensor has this shape and dtype, lies dense and row-major on the CPU; else what is wrong.
std::string check_dense_dl(const tensmith_tensor& t, std::span<const int64_t> shape, DType dtype);

/// Fills by a text of the command line: `zeros`, `ones`, `random:SEED`, `random:SEED:LOW:HIGH` (uniform).
/// `random` draws floats from the standard normal distribution; bool and integers of 32 and 64 bits from {0, 1}, which
/// are valid as masks, indices and token types; integers of 8 and 16 bits from all values of 8 bits. `name` is the
/// tensor's: each name has its own sequence. Errors: bad-fill.
Result<void> fill(HostTensor& tensor, std::string_view how, std::string_view name);

}  // namespace tensmith
