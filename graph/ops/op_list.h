/// Every operator's definition by name: one function per file of graph/ops/, listed here and called in op_list.cpp.
#pragma once

#include <vector>

#include "graph/op_def.h"

namespace tensmith::graph::ops {

// One line per operator file, alphabetical. A file that holds a table of similar operators gives them all at once.
OpDef constant();
OpDef input();

}  // namespace tensmith::graph::ops
