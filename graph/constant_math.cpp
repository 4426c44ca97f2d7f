#include "graph/constant_math.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "graph/element.h"
#include "runtime/base/shape.h"

namespace tensmith::graph {

namespace {

template <typename T>
void transpose_elements(const Constant& value, const std::vector<int64_t>& perm, void* to) {
  const std::vector<int64_t> strides = dense_strides(value.shape());
  std::vector<int64_t> shape, step;
  for (int64_t axis : perm) {
    // Axes that stay together are walked as one.
    if (!shape.empty() && step.back() == value.shape()[axis] * strides[axis]) {
      shape.back() *= value.shape()[axis];
      step.back() = strides[axis];
    } else {
      shape.push_back(value.shape()[axis]);
      step.push_back(strides[axis]);
    }
  }
  const int rank = static_cast<int>(shape.size());
  const T* in = static_cast<const T*>(value.data());
  T* out = static_cast<T*>(to);
  if (rank <= 1) {
    std::copy_n(in, value.num_elements(), out);
    return;
  }
  // The two innermost axes go in squares, so that both sides use whole cache lines.
  constexpr int64_t kBlock = 32;
  const int64_t rows = shape[rank - 2], columns = shape[rank - 1], row_step = step[rank - 2],
                column_step = step[rank - 1];
  std::vector<int64_t> index(static_cast<size_t>(rank) - 2, 0);
  for (;;) {
    int64_t base = 0;
    for (int k = 0; k < rank - 2; ++k) base += index[k] * step[k];
    for (int64_t r0 = 0; r0 < rows; r0 += kBlock)
      for (int64_t c0 = 0; c0 < columns; c0 += kBlock)
        for (int64_t r = r0; r < std::min(rows, r0 + kBlock); ++r)
          for (int64_t c = c0; c < std::min(columns, c0 + kBlock); ++c)
            out[r * columns + c] = in[base + r * row_step + c * column_step];
    out += rows * columns;
    int k = rank - 3;
    for (; k >= 0 && ++index[k] == shape[k]; --k) index[k] = 0;
    if (k < 0) return;
  }
}

/// Elements go through doubles a few at a time: one loop for each type on either side, not one for each pair.
constexpr int64_t kChunk = 1024;

/// The offset of each row of `shape` (all but the last axis) in an operand that broadcasts to it.
std::vector<int64_t> row_offsets(const std::vector<int64_t>& shape, const std::vector<int64_t>& operand) {
  const size_t rank = shape.size(), missing = rank - operand.size();
  const std::vector<int64_t> strides = dense_strides(operand);
  std::vector<int64_t> offsets = {0};
  for (size_t axis = 0; axis + 1 < rank; ++axis) {
    const int64_t step = axis < missing || operand[axis - missing] == 1 ? 0 : strides[axis - missing];
    std::vector<int64_t> next;
    next.reserve(offsets.size() * static_cast<size_t>(shape[axis]));
    for (int64_t offset : offsets)
      for (int64_t k = 0; k < shape[axis]; ++k) next.push_back(offset + k * step);
    offsets = std::move(next);
  }
  return offsets;
}

}  // namespace

Constant map_elements(const Constant& in, DType dtype, const std::function<double(double, int64_t)>& fn) {
  Constant result = Constant::allocate(dtype, in.shape());
  const int64_t count = in.num_elements();
  std::array<double, kChunk> buffer;
  for (int64_t start = 0; start < count; start += kChunk) {
    const int64_t length = std::min(kChunk, count - start);
    with_element_type(in.dtype(), [&]<typename E>(E) {
      for (int64_t k = 0; k < length; ++k) buffer[k] = E::to_float(load_element<E>(in.data(), start + k));
    });
    for (int64_t k = 0; k < length; ++k) buffer[k] = fn(buffer[k], start + k);
    with_element_type(dtype, [&]<typename E>(E) {
      auto* out = static_cast<typename E::Stored*>(result.mutable_data()) + start;
      for (int64_t k = 0; k < length; ++k) out[k] = E::from_float(buffer[k]);
    });
  }
  return result;
}

Constant transpose(const Constant& value, const std::vector<int64_t>& perm) {
  std::vector<int64_t> shape;
  for (int64_t axis : perm) shape.push_back(value.shape().at(static_cast<size_t>(axis)));
  Constant result = Constant::allocate(value.dtype(), shape);
  if (result.num_elements() == 0) return result;
  switch (value.dtype().bytes()) {
    case 1: transpose_elements<uint8_t>(value, perm, result.mutable_data()); break;
    case 2: transpose_elements<uint16_t>(value, perm, result.mutable_data()); break;
    case 4: transpose_elements<uint32_t>(value, perm, result.mutable_data()); break;
    default: transpose_elements<uint64_t>(value, perm, result.mutable_data()); break;
  }
  return result;
}

Constant combine_elements(const Constant& a, const Constant& b, const std::vector<int64_t>& shape,
                          const std::function<double(double, double)>& fn) {
  TS_CHECK(a.dtype() == kFloat32 && b.dtype() == kFloat32);
  Constant result = Constant::allocate(kFloat32, shape);
  const int64_t columns = shape.empty() ? 1 : shape.back();
  const std::vector<int64_t> a_rows = row_offsets(shape, a.shape()), b_rows = row_offsets(shape, b.shape());
  const int64_t a_step = a.shape().empty() || a.shape().back() == 1 ? 0 : 1,
                b_step = b.shape().empty() || b.shape().back() == 1 ? 0 : 1;
  using E = FloatElement<float>;
  auto* out = static_cast<float*>(result.mutable_data());
  for (size_t row = 0; row < a_rows.size(); ++row)
    for (int64_t c = 0; c < columns; ++c)
      *out++ = static_cast<float>(fn(E::to_float(load_element<E>(a.data(), a_rows[row] + c * a_step)),
                                     E::to_float(load_element<E>(b.data(), b_rows[row] + c * b_step))));
  return result;
}

Constant concatenate(const std::vector<const Constant*>& parts, int axis) {
  TS_CHECK(!parts.empty());
  const Constant& first = *parts[0];
  std::vector<int64_t> shape = first.shape();
  shape[static_cast<size_t>(axis)] = 0;
  int64_t outer = 1, inner = first.dtype().bytes();
  for (size_t d = 0; d < shape.size(); ++d) {
    if (static_cast<int>(d) < axis) outer *= shape[d];
    if (static_cast<int>(d) > axis) inner *= shape[d];
  }
  for (const Constant* part : parts) shape[static_cast<size_t>(axis)] += part->shape()[static_cast<size_t>(axis)];
  Constant result = Constant::allocate(first.dtype(), shape);
  auto* out = static_cast<uint8_t*>(result.mutable_data());
  for (int64_t row = 0; row < outer; ++row)
    for (const Constant* part : parts) {
      const int64_t bytes = part->shape()[static_cast<size_t>(axis)] * inner;
      std::memcpy(out, static_cast<const uint8_t*>(part->data()) + row * bytes, static_cast<size_t>(bytes));
      out += bytes;
    }
  return result;
}

}  // namespace tensmith::graph
