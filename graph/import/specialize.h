/// Models whose shapes depend on the values of inputs.
#pragma once

#include <optional>

#include "graph/import/onnx_import.h"

namespace tensmith::graph {

/// Whether the model was read completely and every value in it has constant dims.
bool has_known_shapes(const ImportResult& result);

/// An import with inputs fixed at compile time.
struct SpecializedImport {
  ImportResult import;
  std::vector<std::string> fixed;  ///< names of the inputs that are constants of the graph, in the order of `given`
};

/// Imports with as few of the given inputs fixed as it takes to know every shape: those that hold axes, target shapes,
/// repeats, limits, scales. What is not needed stays an input. Nothing when even all of them do not suffice (a result
/// whose size depends on the data itself, such as NonZero's, is of that kind) or when an input is larger than 1,024
/// elements (which no shape is made of).
/// Errors: those of import_onnx with `options`. Cost: one import for each given input, and one more.
std::optional<SpecializedImport> specialize_shapes(const std::string& path, const ImportOptions& options,
                                                   const std::map<std::string, Constant>& given);

}  // namespace tensmith::graph
