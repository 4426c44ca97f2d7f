/// Tensors whose content is known at compile time.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/error.h"

namespace tensmith::graph {

/// Immutable dense row-major data; copies share the storage (which may be a mapped file).
class Constant {
 public:
  Constant() = default;
  /// Shapes: `bytes` holds the product of `shape` elements of `dtype` (bool one byte each, int4 and uint4 unpacked to
  /// one byte each).
  Constant(DType dtype, std::vector<int64_t> shape, std::shared_ptr<const void> owner, const void* data);

  /// Zeroed storage that the maker fills through `mutable_data` before sharing it.
  static Constant allocate(DType dtype, std::vector<int64_t> shape);
  /// Scalars and vectors from values, converted to the type.
  static Constant from_ints(DType dtype, std::vector<int64_t> shape, std::span<const int64_t> values);
  static Constant from_floats(DType dtype, std::vector<int64_t> shape, std::span<const double> values);

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t num_elements() const;
  int64_t num_bytes() const { return num_elements() * dtype_.bytes(); }
  const void* data() const { return data_; }
  void* mutable_data() { return const_cast<void*>(data_); }
  /// The same storage in another shape with as many elements.
  Constant with_shape(std::vector<int64_t> shape) const;
  explicit operator bool() const { return data_ != nullptr; }

  /// One element by flat index, converted (f16 and bf16 exactly).
  double float_at(int64_t index) const;
  int64_t int_at(int64_t index) const;
  /// All elements as integers.
  std::vector<int64_t> ints() const;

 private:
  DType dtype_;
  std::vector<int64_t> shape_;
  std::shared_ptr<const void> owner_;
  const void* data_ = nullptr;
};

}  // namespace tensmith::graph
