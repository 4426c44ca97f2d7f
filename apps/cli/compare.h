/// Comparing results with a reference.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/options.h"
#include "graph/interpret.h"
#include "runtime/tensor.h"

namespace tensmith::cli {

struct Comparison {
  bool same = false;
  double max_abs = 0;  ///< largest difference
  double scale = 0;    ///< largest finite magnitude of the reference
  std::string text;    ///< where it differs first
};
/// |got - want| <= atol + rtol * |want| for every element; with `scale_atol` atol counts in units of the reference's
/// scale. NaN equals NaN, infinities by sign; shapes and dtypes must be equal (16-bit floats may come as their bits).
Comparison compare(const HostTensor& got, const HostTensor& want, double rtol, double atol, bool scale_atol);

graph::RefTensor to_reference(const HostTensor& tensor);
HostTensor from_reference(const graph::RefTensor& tensor);

/// What the graph interpreter gives (float64 throughout). Errors: those of the interpreter as UserError.
std::vector<HostTensor> interpreter_outputs(const graph::Graph& graph, const std::vector<HostTensor>& inputs);
/// The same with floats as the interpreter has them, float64 whatever the model's types.
std::vector<HostTensor> exact_outputs(const graph::Graph& graph, const std::vector<HostTensor>& inputs);
/// The same with every result rounded to its type and moved by one part in 10^6, as long sums in another order are:
/// what rounding alone makes of these inputs.
std::vector<HostTensor> rounded_outputs(const graph::Graph& graph, const std::vector<HostTensor>& inputs);

struct NodeReport {
  int compared = 0, wrong = 0;
  std::string text;  ///< the first that differs on top
};
/// Makes every intermediate value an output of an unfused compilation and compares each with the interpreter.
NodeReport compare_per_node(const graph::Graph& graph, const Options& options, std::vector<HostTensor>& inputs);

}  // namespace tensmith::cli
