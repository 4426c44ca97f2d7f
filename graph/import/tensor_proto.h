/// Tensors of the model file.
#pragma once

#include "graph/constant.h"
#include "graph/import/external_data.h"
#include "graph/import/large_data.h"
#include "graph/import/onnx_import.h"
#include "onnx.pb.h"

namespace tensmith::graph {

/// The element type of a number as TensorProto.DataType has it (the numbers of types newer than the proto included).
/// Errors: unsupported-dtype, which names the type.
Result<DType> onnx_dtype(int64_t data_type);

/// The content; raw data is moved out of `proto`, not copied, or read from the place where `large` says that it lies.
/// `what` names the tensor in errors.
/// Errors: bad-initializer, unsupported-dtype, too-large, and those of ExternalData and LargeData.
Result<Constant> read_tensor(onnx::TensorProto& proto, const std::string& what, ExternalData& files,
                             const ImportLimits& limits, const LargeData& large = {});
/// A sparse tensor as a dense one.
Result<Constant> read_sparse_tensor(onnx::SparseTensorProto& proto, const std::string& what, ExternalData& files,
                                    const ImportLimits& limits);

}  // namespace tensmith::graph
