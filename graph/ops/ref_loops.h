/// Loops of the reference rules over dense row-major tensors.
#pragma once

#include <array>

#include "graph/op_def.h"

namespace tensmith::graph::ops {

using Dims = std::vector<int64_t>;

inline int64_t count_of(const Dims& dims, size_t begin = 0, size_t end = SIZE_MAX) {
  int64_t n = 1;
  for (size_t k = begin; k < std::min(end, dims.size()); ++k) n *= dims[k];
  return n;
}

/// Row-major strides of `dims` as seen from a shape of `rank` dims that it is broadcast to: 0 where it is stretched.
inline Dims broadcast_strides(const Dims& dims, size_t rank) {
  Dims strides(rank, 0);
  int64_t stride = 1;
  for (size_t k = dims.size(); k-- > 0;) {
    strides[rank - dims.size() + k] = dims[k] == 1 ? 0 : stride;
    stride *= dims[k];
  }
  return strides;
}

/// Calls `fn(position, offsets)` for each element of `out` in row-major order, where `offsets[n]` is the sum of index
/// times `strides[n]`. One turn of the inner loop costs N additions.
template <size_t N, typename Fn>
void for_each_strided(const Dims& out, const std::array<Dims, N>& strides, Fn fn) {
  if (count_of(out) == 0) return;
  std::array<int64_t, N> offsets{};
  if (out.empty()) {
    fn(int64_t{0}, offsets);
    return;
  }
  const size_t rank = out.size();
  const int64_t inner = out[rank - 1];
  Dims index(rank, 0);
  int64_t position = 0;
  for (;;) {
    std::array<int64_t, N> at = offsets;
    for (int64_t k = 0; k < inner; ++k) {
      fn(position++, at);
      for (size_t n = 0; n < N; ++n) at[n] += strides[n][rank - 1];
    }
    size_t dim = rank - 1;
    for (;;) {
      if (dim-- == 0) return;
      for (size_t n = 0; n < N; ++n) offsets[n] += strides[n][dim];
      if (++index[dim] < out[dim]) break;
      for (size_t n = 0; n < N; ++n) offsets[n] -= strides[n][dim] * out[dim];
      index[dim] = 0;
    }
  }
}

/// The same for tensors that are broadcast to `out`.
template <size_t N, typename Fn>
void for_each_broadcast(const Dims& out, const std::array<const Dims*, N>& inputs, Fn fn) {
  std::array<Dims, N> strides;
  for (size_t n = 0; n < N; ++n) strides[n] = broadcast_strides(*inputs[n], out.size());
  for_each_strided<N>(out, strides, fn);
}

/// The value as an integer of the type's width (two's complement; bool: not zero).
inline int64_t wrap_int(DType type, int64_t value) {
  if (type.is_bool()) return value != 0;
  if (type.bits >= 64) return value;
  const uint64_t mask = (uint64_t{1} << type.bits) - 1;
  const uint64_t bits = static_cast<uint64_t>(value) & mask;
  return static_cast<int64_t>(type.is_int() && (bits >> (type.bits - 1)) ? bits | ~mask : bits);
}

/// An axis of a tensor taken apart: `outer` blocks of `axis` rows of `inner` elements.
struct AxisView {
  int64_t outer, axis, inner;
  AxisView(const Dims& dims, size_t at) : outer(count_of(dims, 0, at)), axis(dims[at]), inner(count_of(dims, at + 1)) {}
};

}  // namespace tensmith::graph::ops
