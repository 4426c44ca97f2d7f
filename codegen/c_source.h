/// Loop IR as plain C99, to be read, built by any C compiler and run beside the generated code.
///
///     #include <stdint.h> ...
///     static inline int64_t ts_floor_div_i64(int64_t a, int64_t b) { ... }      only what the program needs
///     int32_t scale(const float *restrict A, float *restrict B, int64_t n) {
///       for (int64_t i = 0; i < n; ++i) { // parallel
///         for (int64_t l = 0; l < 8; ++l) B[8 * i + l] = A[8 * i + l] * 2.0f;
///
/// Every function takes its buffers, then its scalars (16-bit floats as their bits) and returns 0, the code of the
/// assertion that failed or the code of a function it called as a statement. Vectors are loops over lanes, parallel
/// loops run serially. Values are those of tensor/expr.h; functions such as exp are libm's.
#pragma once

#include <string>

#include "tensor/stmt.h"

namespace tensmith {

/// The program as one C file. Multi-dimensional and flat accesses are both fine; loops of any kind.
/// Errors: UnsupportedError `codegen-scope` for a buffer in GPU memory.
std::string to_c(const LoopProgram& program);

}  // namespace tensmith
