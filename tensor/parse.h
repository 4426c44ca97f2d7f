/// Reads the texts that print.h and workload.h write.
#pragma once

#include <string_view>

#include "runtime/base/result.h"
#include "tensor/stmt.h"
#include "tensor/workload.h"

namespace tensmith {

/// Errors: a Failure "parse-error" with line, column, what was expected and what was found. Depth is limited (1,000).
Result<LoopProgram> parse_program(std::string_view text);
Result<LoopFunction> parse_function(std::string_view text);

/// The workload that `to_text` wrote: equal text again, with the same names of stages and axes where those of the
/// original were distinct words. The text may come from anywhere. Errors: as above.
Result<Workload> parse_workload(std::string_view text);

}  // namespace tensmith
