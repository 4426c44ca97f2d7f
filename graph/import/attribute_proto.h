/// Attributes of the model file.
#pragma once

#include "graph/import/tensor_proto.h"

namespace tensmith::graph {

/// The value in the form in which the file has it (an element type is still an int). Graphs are not read here.
/// Errors: bad-attribute, unsupported-attribute, and those of read_tensor.
Result<AttrValue> read_attribute(onnx::AttributeProto& proto, const std::string& what, ExternalData& files,
                                 const ImportLimits& limits);

}  // namespace tensmith::graph
