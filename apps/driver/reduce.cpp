#include "apps/driver/reduce.h"

#include <set>

#include "apps/driver/subgraph.h"
#include "graph/op_def.h"
#include "runtime/timer.h"

namespace tensmith {

namespace {

/// The nodes of [begin, end) with all they need as inputs, and all that others or the caller read as outputs.
Result<graph::Graph> part_of(const graph::Graph& graph, const std::vector<graph::NodeId>& order, size_t begin,
                             size_t end) {
  const std::vector<graph::NodeId> nodes(order.begin() + static_cast<std::ptrdiff_t>(begin),
                                         order.begin() + static_cast<std::ptrdiff_t>(end));
  const std::set<graph::NodeId> inside(nodes.begin(), nodes.end());
  std::vector<graph::Value> inputs, outputs;
  std::set<graph::Value> seen;
  for (graph::NodeId id : nodes) {
    const graph::Node& node = graph.node(id);
    for (const graph::Value& input : node.inputs)
      if (input.given() && !inside.count(input.node) && !graph.constant(input) && seen.insert(input).second)
        inputs.push_back(input);
    for (int k = 0; k < static_cast<int>(node.types.size()); ++k) {
      bool is_output = false;
      for (const graph::Graph::Use& use : graph.uses({id, k}))
        is_output = is_output || use.node < 0 || !inside.count(use.node);
      if (is_output) outputs.push_back({id, k});
    }
  }
  return cut_subgraph(graph, nodes, inputs, outputs);
}

}  // namespace

graph::Graph reduce_graph(const graph::Graph& graph, const std::function<bool(const graph::Graph&)>& fails,
                          double seconds) {
  const Timer timer;
  std::vector<graph::NodeId> order;
  for (graph::NodeId id : graph.topological_order())
    if (const std::string& op = graph.node(id).op->name; op != "Input" && op != "Constant") order.push_back(id);
  const auto still = [&](size_t begin, size_t end) {
    if (timer.ms() > seconds * 1e3) return false;
    const Result<graph::Graph> part = part_of(graph, order, begin, end);
    return part && fails(part.value());
  };
  if (order.empty() || !still(0, order.size())) return graph.clone();
  size_t bad = order.size();
  for (size_t good = 0; bad - good > 1;) {
    const size_t middle = good + (bad - good) / 2;
    (still(0, middle) ? bad : good) = middle;
  }
  size_t begin = 0;
  for (size_t limit = bad; limit - begin > 1;) {
    const size_t middle = begin + (limit - begin) / 2;
    (still(middle, bad) ? begin : limit) = middle;
  }
  return part_of(graph, order, begin, bad).value();
}

graph::Graph reduce_to_failure(const graph::Graph& graph, const std::function<void(const graph::Graph&)>& run,
                               std::string_view message, double seconds) {
  const auto fails = [&](const graph::Graph& part) {
    try {
      run(part);
    } catch (const InternalError& e) {
      return e.message() == message;
    } catch (const Error&) {
    }
    return false;
  };
  return reduce_graph(graph, fails, seconds);
}

}  // namespace tensmith
