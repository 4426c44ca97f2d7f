#include "graph/partition/layouts.h"

#include <set>

#include "graph/op_def.h"

namespace tensmith::graph {

namespace {

Layout channels_last(int rank) {
  std::vector<int> order{0};
  for (int d = 2; d < rank; ++d) order.push_back(d);
  order.push_back(1);
  return Layout::permuted(order);
}

/// Operators whose second axis is a channel axis that every output element reads across or carries along.
bool is_spatial(const Node& node) {
  static const std::set<std::string> kSpatial = {
      "Conv",   "ConvTranspose", "MaxPool", "AveragePool",        "GlobalAveragePool", "GlobalMaxPool", "LpPool",
      "Resize", "Upsample",      "LRN",     "BatchNormalization", "DepthToSpace",      "SpaceToDepth",
  };
  return kSpatial.count(node.op->name) != 0;
}

}  // namespace

LayoutMap choose_layouts(const Graph& graph, const std::vector<Group>& groups, const Target&) {
  LayoutMap layouts;
  const std::set<Value> caller(graph.outputs.begin(), graph.outputs.end());
  // Each node's wish, producers first.
  for (NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (node.op->name == "Input" || node.op->name == "Constant" || node.types.empty()) continue;
    const int rank = node.types[0].rank();
    if (rank < 3) continue;
    bool last = is_spatial(node);
    const bool follows = node.op->fusion == FusionKind::kElementwise || node.op->name == "Concat" ||
                         node.op->name == "Split" || node.op->name == "Slice" || node.op->name == "Pad" ||
                         node.op->name == "ReduceMean" || node.op->name == "InstanceNormalization";
    if (!last && follows)
      for (const Value& input : node.inputs)
        last = last || (input.given() && graph.type(input).rank() == rank && layouts.count(input));
    if (!last) continue;
    for (size_t o = 0; o < node.types.size(); ++o)
      if (node.types[o].rank() == rank) layouts[{id, static_cast<int>(o)}] = channels_last(rank);
  }
  // Inside a kernel values have no memory; what the caller sees is row-major.
  std::set<Value> stored;
  for (const Group& group : groups)
    for (const Value& output : group.outputs) stored.insert(output);
  for (auto it = layouts.begin(); it != layouts.end();)
    it = caller.count(it->first) || !stored.count(it->first) ? layouts.erase(it) : std::next(it);
  return layouts;
}

}  // namespace tensmith::graph
