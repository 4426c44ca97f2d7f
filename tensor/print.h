/// Stable text of the loop IR; `parse` reads it back.
#pragma once

#include <string>

#include "tensor/stmt.h"
#include "tensor/workload.h"

namespace tensmith {

/// Names are made unique (`i`, `i_1`); two-space indentation; one statement a line.
std::string to_string(const Expr& e);
std::string to_string(const Stmt& s);
std::string to_string(const LoopFunction& f);
std::string to_string(const LoopProgram& p);

}  // namespace tensmith
