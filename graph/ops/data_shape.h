/// Operators whose output shape only the data decides: their types when all inputs are constant, and how they are
/// refused otherwise.
#pragma once

#include "graph/op_def.h"

namespace tensmith::graph::ops {

/// The types of the outputs by running the operator's reference when all given inputs are constant; nothing otherwise.
/// Errors: those of the reference.
Result<std::optional<std::vector<TensorType>>> types_by_reference(const InferContext& ctx);
/// For `decompose`: the outputs of the operator's reference as constants, or none unless all inputs are constant.
std::vector<Value> outputs_by_reference(GraphEditor& editor, const Node& node);
/// For `supports`. Errors: `dynamic-shape` always, unless all inputs are constant.
Result<void> refuse_data_shape(const InferContext& ctx);
/// Whether the operator is one of these.
bool has_data_shape(const OpDef& op);

}  // namespace tensmith::graph::ops
