/// Arithmetic of narrow numbers, exactly as the loop IR defines it, on 64-bit cells.
#pragma once

#include <cstdint>

#include "runtime/base/dtype.h"

namespace tensmith::interp {

/// One lane of a value: floats of every type in `f`, integers, bools and handles in `i` (sign- or zero-extended from
/// their width).
union Cell {
  double f;
  int64_t i;
};
static_assert(sizeof(Cell) == 8);

/// The value modulo 2^bits, extended again; bool: 0 or 1.
int64_t wrap_int(DType type, int64_t value);

/// The nearest value of the format, ties to even; beyond the largest value: infinity.
double round_f32(double value);
double round_f16(double value);
double round_bf16(double value);
double round_float(DType type, double value);

/// An integer as a double that rounds to every narrower format as the integer itself would (rounded to odd).
double odd_from_int(int64_t value);
double odd_from_uint(uint64_t value);
/// a * b + c as a double that rounds to every format of at most 24 digits as the exact value would; a, b, c must be of
/// such a format.
double odd_fma(double a, double b, double c);

/// Truncates and saturates; NaN gives 0.
int64_t float_to_int(DType type, double value);

/// The bits of one lane in memory, and back. Floats are rounded to the type first.
uint64_t to_bits(DType type, Cell cell);
Cell from_bits(DType type, uint64_t bits);

}  // namespace tensmith::interp
