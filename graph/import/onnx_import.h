/// From an ONNX model to a graph.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/import/report.h"

namespace tensmith::graph {

/// The opsets of the default domain that import understands.
inline constexpr int64_t kOldestOpset = 1, kNewestOpset = 27;

/// What import accepts. The defaults suit files of unknown origin.
struct ImportLimits {
  int64_t file_bytes = int64_t{2} << 30;     ///< of the model file (external data not counted)
  int64_t tensor_bytes = int64_t{64} << 30;  ///< of one tensor
  int64_t nodes = 1'000'000;                 ///< after inlining of functions
  int nesting = 64;                          ///< of subgraphs, and of function calls
  int64_t unrolled_nodes = 50'000;           ///< that all loops of the model together may become
};

/// How a model is imported.
struct ImportOptions {
  /// Sizes for open dims, by the dim's name, or by INPUT.AXIS (which wins over the name).
  std::map<std::string, int64_t> dims = {};
  /// Shapes of inputs, by name, from which open dims that `dims` does not name take their sizes.
  std::map<std::string, std::vector<int64_t>> input_shapes = {};
  /// Inputs that are fixed at compile time, by name; they are no inputs of the graph any more.
  std::map<std::string, Constant> constants = {};
  ImportLimits limits = {};
};

/// Where a model comes from, as it says itself.
struct ModelInfo {
  std::string name, producer, producer_version, description;
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets;
  std::map<std::string, std::string> metadata;
};

/// The open dims of a graph's inputs, in words; all empty when there are none.
struct OpenSizes {
  std::string inputs;  ///< `x: f32[n, 3], y: f32[n]`
  std::string dims;    ///< `--dim n=SIZE`
  std::string arrays;  ///< `--input x=@FILE.npy --input y=@FILE.npy`
};
OpenSizes open_sizes(const Graph& graph);

/// Either a graph, or the list of all that is not supported.
struct ImportResult {
  Graph graph;     ///< complete exactly when `unsupported` is empty
  OpenSizes open;  ///< of the model's inputs; an incomplete graph has more, for results of nodes that are missing
  UnsupportedReport unsupported;
  std::vector<std::string> warnings;  ///< e.g. declared shapes that are wrong
  ModelInfo info;

  bool ok() const { return unsupported.empty(); }
  /// Whether inputs have open dims and nothing else stands in the way: with sizes for them it would be another table.
  bool needs_sizes() const;
  /// The graph. Errors: UserError "symbolic-dims" that asks for sizes where only these are missing, UnsupportedError
  /// "unsupported-model" with the table.
  Graph take() &&;
};

/// Reads a model file; external data are mapped from the file's folder.
/// Errors: UserError: cannot-read, file-too-large, not-a-model, truncated-model, bad-opset, bad-ir-version,
/// unknown-input, cyclic-graph, duplicate-name, bad-initializer, external-data-outside, external-data-missing,
/// unknown-dim, recursive-function, too-many-nodes, too-deep, bad-attribute, and what the type rules find wrong
/// (shape-mismatch, ...).
ImportResult import_onnx(const std::string& path, const ImportOptions& options = {});
/// The same from memory; `folder` is where external data may lie (empty: nowhere).
ImportResult import_onnx_bytes(const void* data, size_t size, const ImportOptions& options = {},
                               const std::string& folder = {});

}  // namespace tensmith::graph
