/// Every operator's definition by name: one function per file of graph/ops/, listed here and called in op_list.cpp.
#pragma once

#include <vector>

#include "graph/op_def.h"

namespace tensmith::graph::ops {

// One line per operator file, alphabetical. A file that holds a table of similar operators gives them all at once.
std::vector<OpDef> activations();
std::vector<OpDef> binary_math();
OpDef cast_like();
OpDef cast_op();
OpDef clip();
OpDef constant();
OpDef conv();
OpDef dropout();
OpDef fused_matmul();
OpDef gemm();
OpDef identity();
OpDef input();
OpDef matmul();
OpDef pow();
OpDef prelu();
std::vector<OpDef> unary_math();
std::vector<OpDef> variadic();
OpDef where();

}  // namespace tensmith::graph::ops
