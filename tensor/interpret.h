/// The reference interpreter of the loop IR: floats in double, integers exact with wrap-around, everything
/// bounds-checked.
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

/// How float arithmetic is done: kExact keeps all floats in double, casts to narrower floats included (the arbiter of
/// accuracy); kRounded rounds every operation to its type (to compare bit for bit with generated code where no FMA is
/// involved). Math functions are libm's on doubles. The tree of `reduce_add` and its like adds the upper half of the
/// lanes to the lower half until one is left (of an odd number the middle lane stays).
enum class InterpFloat { kExact, kRounded };

/// Runs the last function of the program. `buffers` as in LoopFunction::buffers, written in place; a buffer may hold
/// more elements than its shape says. A float among `scalars` is passed as the bits of a double. Loops of every kind
/// run serially, first iteration first. New buffers hold NaN or a bit pattern, never a convenient zero. `call_extern`
/// runs another function of the program: its buffers are `address_of(load)` (the rest of that buffer, or of an arena of
/// bytes), its value is the code of the assertion that failed inside, or 0; as a statement of its own it must not fail.
/// Errors: `interp-bounds` for an access outside a buffer (an address may stand right behind one), `assert-failed` with
/// its code, `interp-limit` beyond `max_steps` statements and loop turns, 200 nested calls or 2^28 allocated elements,
/// `interp-unknown-function`, `interp-arguments` for buffers and scalars that do not fit, `interp-malformed` for what
/// the verifier refuses. Cost: about 2 to 5 ns an operation and lane.
Result<void> interpret(const LoopProgram& program, std::vector<InterpValue*> buffers, std::span<const int64_t> scalars,
                       InterpFloat mode = InterpFloat::kExact, int64_t max_steps = INT64_MAX);
Result<void> interpret(const LoopFunction& function, std::vector<InterpValue*> buffers,
                       std::span<const int64_t> scalars, InterpFloat mode = InterpFloat::kExact,
                       int64_t max_steps = INT64_MAX);

/// Zeroed storage for `count` elements.
InterpValue make_interp_value(DType dtype, int64_t count);

}  // namespace tensmith
