/// Runs loop IR given as text, for tests that state a program and what it must give.
#pragma once

#include <string>
#include <vector>

#include "tensor/interpret.h"

namespace tensmith {

/// A buffer's content: floats or integers as its type says.
InterpValue float_values(DType dtype, std::vector<double> values);
InterpValue int_values(DType dtype, std::vector<int64_t> values);

/// Parses the program and runs its last function; a text that does not parse fails the test.
Result<void> run_text(const std::string& text, const std::vector<InterpValue*>& buffers,
                      const std::vector<int64_t>& scalars = {}, InterpFloat mode = InterpFloat::kExact,
                      int64_t max_steps = 1000000);

/// The value of an expression over no variables: `floats_of("f32", "1.0 + 2.0")` stores it in a buffer and gives the
/// content. `lanes` > 1 gives that many. Failures of the run fail the test.
std::vector<double> floats_of(const std::string& dtype, const std::string& expression, int lanes = 1,
                              InterpFloat mode = InterpFloat::kRounded);
std::vector<int64_t> ints_of(const std::string& dtype, const std::string& expression, int lanes = 1,
                             InterpFloat mode = InterpFloat::kRounded);

}  // namespace tensmith
