#include "graph/partition/support.h"

#include "graph/op_def.h"

namespace tensmith::graph {

UnsupportedReport unsupported_nodes(const Graph& graph) {
  UnsupportedReport report;
  for (NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    const auto refuse = [&](std::string why_id, std::string why, std::string way_out) {
      report.add({node.op->name, node.op->domain, node.op->since, 1, node.name, std::move(why_id), std::move(why),
                  std::move(way_out)});
    };
    bool is_static = true;
    for (const TensorType& type : node.types)
      if (!type.is_static()) {
        if (is_static)
          refuse("dynamic-shape", "node '" + node.name + "': expected constant dims, got " + to_string(type),
                 "give open dims a size with --dim NAME=SIZE, and inputs that decide shapes as constants of the model");
        is_static = false;
      }
    if (node.op->is_source || !is_static) continue;
    if (!node.op->compute) {
      refuse("no-compute", "the operator has no compute rule for this node",
             "rewrite this part of the model with other operators");
      continue;
    }
    if (!node.op->supports) continue;
    InferContext context{node, {}, {}, static_cast<int>(node.types.size())};
    for (const Value& input : node.inputs) {
      context.inputs.push_back(input.given() ? &graph.type(input) : nullptr);
      context.constants.push_back(input.given() ? graph.constant(input) : nullptr);
    }
    if (const Result<void> served = node.op->supports(context); !served)
      refuse(served.failure().id, "node '" + node.name + "': " + served.failure().message,
             "rewrite this part of the model with other operators");
  }
  return report;
}

}  // namespace tensmith::graph
