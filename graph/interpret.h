/// The reference interpreter of graphs: every operator by its plain reference in double, integers exact.
#pragma once

#include <functional>
#include <vector>

#include "graph/op_def.h"

namespace tensmith::graph {

/// How a graph is interpreted.
struct InterpretOptions {
  bool round_each = true;   ///< round floats to their dtype after every operator; false: float64 throughout
  bool by_compute = false;  ///< run compute rules as plain loops wherever there is one, not references
  double noise = 0;         ///< moves all float results of an operator by that part of themselves, up or down
  /// Called after every node (not for inputs and constants) with its outputs.
  std::function<void(const Node&, const std::vector<RefTensor>& outputs)> on_node = nullptr;
};

/// Runs the graph. Symbolic dims take their sizes from the inputs; intermediate results are freed after their last use.
/// Errors: a Failure "bad-input" (count, dtype or shape of an input), or the id that an operator's reference gives,
/// naming the node.
Result<std::vector<RefTensor>> interpret(const Graph& graph, std::vector<RefTensor> inputs,
                                         const InterpretOptions& options = {});

/// Runs one node on given inputs (null: not given). `constants` are the inputs known at compile time, or empty.
/// An operator without a reference runs what `decompose` makes of it, or else its compute rule as plain loops.
Result<std::vector<RefTensor>> interpret_node(const Node& node, const std::vector<const RefTensor*>& inputs,
                                              const std::vector<const Constant*>& constants = {},
                                              const InterpretOptions& options = {});

}  // namespace tensmith::graph
