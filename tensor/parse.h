/// Reads the text that print.h writes.
#pragma once

#include <string_view>

#include "runtime/base/result.h"
#include "tensor/stmt.h"

namespace tensmith {

/// Errors: a Failure "parse-error" with line, column, what was expected and what was found. Depth is limited (1,000).
Result<LoopProgram> parse_program(std::string_view text);
Result<LoopFunction> parse_function(std::string_view text);

}  // namespace tensmith
