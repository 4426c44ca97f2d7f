/// Large weights of a model file, read straight to where they stay instead of through the parser.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/base/result.h"

namespace onnx {
class ModelProto;
class TensorProto;
}  // namespace onnx

namespace tensmith::graph {

/// A piece of the model file. Units: bytes.
struct FileRange {
  int64_t offset = 0, size = 0;
};

/// A model without the raw data of its large initializers.
struct SlimModel {
  std::string bytes;            ///< serialized; those initializers have raw data of no bytes
  std::vector<FileRange> data;  ///< what was taken from the main graph's initializer k; size 0: nothing
};

/// Takes the raw data of large initializers out of a serialized model. Nothing when there are none, or when the bytes
/// are not formed as usual (a damaged model, a field twice): the parser has to judge those whole. Cost: a glance at
/// each field, whatever the size of the weights.
std::optional<SlimModel> without_large_data(const uint8_t* data, size_t size);

/// The pieces of an open model file that were taken out, by the initializer that they belong to.
class LargeData {
 public:
  LargeData() = default;
  /// `model` is what `slim.bytes` parsed to; it and `file` must outlive this.
  LargeData(int file, const SlimModel& slim, const onnx::ModelProto& model);

  /// Where the tensor's data lie; null for a tensor that holds them itself.
  const FileRange* find(const onnx::TensorProto& tensor) const;
  /// The bytes, aligned to 64, in memory of their own. Errors: cannot-read.
  Result<std::shared_ptr<const void>> read(const FileRange& range) const;

 private:
  int file_ = -1;
  std::unordered_map<const onnx::TensorProto*, FileRange> ranges_;
};

}  // namespace tensmith::graph
