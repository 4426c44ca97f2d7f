/// Programs that hold every kind of node, and the checks of their text form.
#pragma once

#include "tensor/stmt.h"

namespace tensmith {

/// Every kind of statement, in every form that prints differently.
LoopFunction every_statement_function();
/// Every kind of expression, every operation and every intrinsic; runs in bounds.
LoopFunction every_expression_function();

/// Adds GoogleTest failures unless the text of `f` parses back to an equal function with the same text and the same
/// hash.
void expect_round_trip(const LoopFunction& f);

}  // namespace tensmith
