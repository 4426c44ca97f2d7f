/// Every operator's definition by name: one function per file of graph/ops/, listed here and called in op_list.cpp.
#pragma once

#include <vector>

#include "graph/op_def.h"

namespace tensmith::graph::ops {

// One line per operator file, alphabetical. A file that holds a table of similar operators gives them all at once.
std::vector<OpDef> activations();
std::vector<OpDef> arg_reduce();
OpDef batch_normalization();
std::vector<OpDef> binary_math();
OpDef cast_like();
OpDef cast_op();
OpDef clip();
OpDef concat();
OpDef constant();
OpDef constant_of_shape();
OpDef conv();
std::vector<OpDef> cumulative();
OpDef dropout();
OpDef expand();
OpDef flatten();
OpDef fused_matmul();
OpDef gather();
OpDef gather_elements();
OpDef gather_nd();
OpDef gemm();
OpDef group_normalization();
OpDef identity();
OpDef input();
OpDef instance_normalization();
OpDef layer_normalization();
OpDef lp_normalization();
OpDef lrn();
OpDef matmul();
OpDef mean_variance_normalization();
OpDef pad();
OpDef pow();
OpDef prelu();
OpDef range();
std::vector<OpDef> reduce_table();
OpDef reshape();
OpDef rms_normalization();
OpDef scatter_elements();
OpDef scatter_nd();
OpDef shape();
OpDef size();
OpDef slice();
std::vector<OpDef> softmax();
OpDef split();
OpDef squeeze();
OpDef tensor_scatter();
OpDef tile();
OpDef transpose();
std::vector<OpDef> unary_math();
OpDef unsqueeze();
std::vector<OpDef> variadic();
OpDef where();

}  // namespace tensmith::graph::ops
