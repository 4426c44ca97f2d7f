/// Generated code that looks over index data before a kernel reads it.
#pragma once

#include <string>

#include "tensor/layout.h"
#include "tensor/stmt.h"

namespace tensmith {

/// What is looked over: a tensor of indices as a kernel finds it, and what its numbers index.
struct IndexCheck {
  std::string name;  ///< of the function
  DType dtype;
  std::vector<int64_t> shape;
  Layout layout;                 ///< without dims: row-major
  std::vector<int64_t> extents;  ///< one for all numbers, or one for each position along the last dim
  int code = 1;                  ///< what the function returns when a number is outside
  std::string message;           ///< what the code means
};

/// A function of one buffer that returns 0 where every number lies from -extent to extent - 1, else the code. It is
/// kept out of the kernels, whose loops stay free of branches.
/// Cost: for one extent and row-major order a minimum and a maximum over vectors; else two comparisons a number.
LoopFunction index_check(const IndexCheck& check);

}  // namespace tensmith
