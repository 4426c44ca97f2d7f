/// The reference interpreter of the loop IR: floats in double, integers exact with wrap-around, everything bounds-checked.
#pragma once

#include <span>
#include <vector>

#include "runtime/base/result.h"
#include "tensor/stmt.h"

namespace tensmith {

/// Storage of one buffer: floats in `f`, integers, bools in `i`; row-major logical elements.
struct InterpValue {
  DType dtype;
  std::vector<double> f;
  std::vector<int64_t> i;
};

/// How float arithmetic is done: kExact keeps all intermediate floats in double (the arbiter of accuracy); kRounded rounds
/// every operation to its type (to compare bit for bit with generated code where no FMA is involved).
enum class InterpFloat { kExact, kRounded };

/// Runs a function of the program (the last one unless named by index). `buffers` as in LoopFunction::buffers, written in place.
/// Errors: `interp-bounds` for an access outside a buffer, `assert-failed` with its code, `interp-limit` beyond `max_steps` statements.
Result<void> interpret(const LoopProgram& program, std::vector<InterpValue*> buffers, std::span<const int64_t> scalars,
                       InterpFloat mode = InterpFloat::kExact, int64_t max_steps = INT64_MAX);
Result<void> interpret(const LoopFunction& function, std::vector<InterpValue*> buffers, std::span<const int64_t> scalars,
                       InterpFloat mode = InterpFloat::kExact, int64_t max_steps = INT64_MAX);

/// Zeroed storage for `count` elements.
InterpValue make_interp_value(DType dtype, int64_t count);

}  // namespace tensmith
