#include "runtime/base/shape.h"

namespace tensmith {

Result<int64_t> element_count(std::span<const int64_t> shape) {
  if (shape.size() > static_cast<size_t>(kMaxRank))
    return Failure{"bad-shape", "shape: expected at most " + std::to_string(kMaxRank) + " dimensions, got " +
                                    std::to_string(shape.size())};
  bool empty = false;
  for (int64_t dim : shape) {
    if (dim < 0 || dim > kMaxDim)
      return Failure{"bad-shape", "shape " + shape_to_string(shape) + ": expected dimensions from 0 to 2^40, got " +
                                      std::to_string(dim)};
    empty |= dim == 0;
  }
  if (empty) return int64_t{0};
  int64_t count = 1;
  for (int64_t dim : shape)
    if (!checked_mul(count, dim, &count))
      return Failure{"shape-overflow", "shape " + shape_to_string(shape) + ": the element count overflows 64 bits"};
  return count;
}

Result<int64_t> byte_count(std::span<const int64_t> shape, DType type) {
  Result<int64_t> count = element_count(shape);
  if (!count) return count;
  int64_t bytes = 0;
  if (!checked_mul(*count, type.bytes() * type.lanes, &bytes))
    return Failure{"shape-overflow",
                   "shape " + shape_to_string(shape) + " of " + to_string(type) + ": the byte count overflows 64 bits"};
  return bytes;
}

std::vector<int64_t> dense_strides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) {
    // A dimension of 0 or 1 never moves; 1 keeps the strides of the others meaningful.
    TS_CHECK(checked_mul(strides[i], shape[i] > 0 ? shape[i] : 1, &strides[i - 1])) << shape_to_string(shape);
  }
  return strides;
}

std::string shape_to_string(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? "," : "") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace tensmith
