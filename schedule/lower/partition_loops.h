/// Makes the inside of loops free of conditions that only concern their edges.
#pragma once

#include "tensor/stmt.h"

namespace tensmith {

/// A loop whose whole body stands under a condition on its variable runs over the range where it holds. A serial loop
/// with conditions further inside becomes up to three loops: before, inside (conditions gone) and after. Conditions are
/// comparisons that are linear in the variable and otherwise constant during the loop. Stands after unrolling, which
/// turns conditions on several variables into such, and before flattening.
Stmt partition_loops(const Stmt& s);

}  // namespace tensmith
