/// Well-formed random functions of the loop IR with the data they run on, for differential tests.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/interpret.h"
#include "tests/support/random_exprs.h"

namespace tensmith {

/// A function with arguments for it.
struct RandomLoops {
  LoopFunction function;             ///< buffers: inputs, then outputs
  std::vector<InterpValue> buffers;  ///< filled with random values of their types
  std::vector<int64_t> scalars;
};

/// The same program for the same seed and options, on every machine. Every access is in bounds, parallel loops are free
/// of races, nothing uninitialised is read, floats meet zeros, infinities and NaN.
RandomLoops random_loops(uint64_t seed, const RandomLoopOptions& options = {});

/// Adds GoogleTest failures unless the values are equal; all NaNs are equal, and so are zeros of both signs.
void expect_same(const InterpValue& actual, const InterpValue& expected, const std::string& what);

}  // namespace tensmith
