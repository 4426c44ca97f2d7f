/// Single elements of a workload's outputs by the float64 interpreter, without computing the rest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/result.h"
#include "tensor/interpret.h"
#include "tensor/workload.h"

namespace tensmith {

/// The element of output `output` at row-major index `element`, from `inputs` (in the workload's order). Each stage
/// computes only the box of elements that the stages behind it read, found by interval analysis; stages of loops and
/// indices that depend on data compute or read everything.
/// Errors: those of `interpret`: `interp-limit` when it takes more than `max_steps`.
class PointReference {
 public:
  PointReference(const Workload& workload, std::vector<InterpValue> inputs, int64_t max_steps);
  /// Floats as doubles; integers in `i`.
  Result<InterpValue> element(size_t output, int64_t element);

 private:
  const Workload& workload_;
  std::vector<InterpValue> inputs_;
  int64_t max_steps_;
  LoopFunction loops_;
};

}  // namespace tensmith
