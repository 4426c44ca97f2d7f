/// Types and operand counts of single nodes.
#pragma once

#include <string>

#include "tensor/stmt.h"

namespace tensmith::verifier {

/// What is wrong with the node itself (its children are taken as they are): "expected X, got Y". Empty when nothing is.
std::string type_error(const Expr& e);
std::string type_error(const Stmt& s);

}  // namespace tensmith::verifier
