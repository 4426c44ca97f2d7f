/// Sizes of tensors: arithmetic that reports overflow, limits, element and byte counts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/result.h"

namespace tensmith {

/// Largest dimension that input from outside may state.
inline constexpr int64_t kMaxDim = int64_t{1} << 40;
/// Largest number of dimensions.
inline constexpr int kMaxRank = 64;

/// a * b; false on overflow.
[[nodiscard]] inline bool checked_mul(int64_t a, int64_t b, int64_t* product) {
  return !__builtin_mul_overflow(a, b, product);
}
/// a + b; false on overflow.
[[nodiscard]] inline bool checked_add(int64_t a, int64_t b, int64_t* sum) { return !__builtin_add_overflow(a, b, sum); }

/// Product of the dimensions (1 for rank 0). A shape with a 0 has 0 elements even if the other dimensions overflow.
/// Errors: bad-shape (negative, above kMaxDim, rank above kMaxRank), shape-overflow.
Result<int64_t> element_count(std::span<const int64_t> shape);
/// Bytes of a dense tensor; types below 8 bits count one byte an element.
/// Errors: as element_count.
Result<int64_t> byte_count(std::span<const int64_t> shape, DType type);
/// Row-major strides in elements.
std::vector<int64_t> dense_strides(std::span<const int64_t> shape);
/// `[1,3,224,224]`; `[]` for rank 0.
std::string shape_to_string(std::span<const int64_t> shape);

/// Least multiple of `multiple` (> 0) that is not below n >= 0. Errors: TS_CHECK on overflow.
inline int64_t round_up(int64_t n, int64_t multiple) {
  int64_t sum = 0;
  TS_CHECK(checked_add(n, multiple - 1, &sum)) << "round_up of " << n;
  return sum / multiple * multiple;
}

}  // namespace tensmith
