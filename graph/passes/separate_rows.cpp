#include "graph/passes/separate_rows.h"

#include <map>
#include <unordered_map>

#include "graph/op_def.h"

namespace tensmith::graph {

namespace {

// A first layer reads its few channels as planes.
constexpr int64_t kFewChannels = 4;

class Separator {
 public:
  explicit Separator(GraphEditor& edit) : edit_(edit), graph_(edit.graph()) {}

  int run() {
    int changes = 0;
    const std::vector<NodeId> order = graph_.topological_order();
    for (NodeId id : order) in_chain({id, 0});  // producers first: no chain, however long, needs a deep stack
    for (NodeId id : order) changes += feed(id);
    std::vector<Value> outputs = graph_.outputs;
    for (Value& output : outputs) changes += hand_out(output);
    if (outputs != graph_.outputs) edit_.set_outputs(outputs, graph_.output_names);
    return changes;
  }

 private:
  /// Channels of a tensor with places behind them; 0 where rows and channels are the same order, or sizes are open.
  static int64_t channels_of(const TensorType& type) {
    int64_t places = 1, channels = 0;
    if (type.rank() < 3 || !as_const_int(type.shape[1], &channels)) return 0;
    for (int d = 2; d < type.rank(); ++d) {
      int64_t extent;
      if (!as_const_int(type.shape[static_cast<size_t>(d)], &extent)) return 0;
      places *= extent;
    }
    return places > 1 && channels > 1 ? channels : 0;
  }

  /// Whether the value is made by an operator with channels, or follows one.
  bool in_chain(const Value& value) {
    const auto [entry, fresh] = chain_.try_emplace(value.node, false);
    if (!fresh) return entry->second;
    const Node& node = graph_.node(value.node);
    bool in = false;
    if (!node.op->is_source && !node.types.empty() && node.types[0].rank() >= 3) {
      const LayoutRole role = layout_role(*node.op);
      in = role == LayoutRole::kChannels;
      if (role == LayoutRole::kFollows)
        for (const Value& input : node.inputs)
          in = in || (input.given() && graph_.type(input).rank() == node.types[0].rank() && in_chain(input));
    }
    return chain_[value.node] = in;
  }

  /// Whether planes serve the operator as well: few results or one channel for each leave no vectors of channels.
  bool likes_planes(NodeId id) const {
    const Node& node = graph_.node(id);
    const int64_t channels = channels_of(node.types[0]);
    return channels <= kFewChannels || node.attrs.get_int("group", 1) == channels;
  }

  /// The convolution or pool whose loop over channels writes the value, with what is computed on its result; -1: none.
  NodeId anchor_of(const Value& value) const {
    constexpr int kMostSteps = 24;
    Value at = value;
    for (int step = 0; step < kMostSteps; ++step) {
      const Node& node = graph_.node(at.node);
      if (node.op->is_source) return -1;
      if (node.op->fusion == FusionKind::kContraction || node.op->fusion == FusionKind::kReduction)
        return layout_role(*node.op) == LayoutRole::kChannels ? at.node : -1;
      if (node.op->fusion != FusionKind::kElementwise || node.inputs.empty() || !node.inputs[0].given()) return -1;
      at = node.inputs[0];
    }
    return -1;
  }

  int feed(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op->fusion != FusionKind::kContraction || layout_role(*node.op) != LayoutRole::kChannels) return 0;
    const Value data = node.inputs[0];
    if (!data.given() || graph_.constant(data) || in_chain(data) || likes_planes(id) ||
        channels_of(graph_.type(data)) <= kFewChannels)
      return 0;
    const auto [entry, fresh] = copies_.try_emplace(data, NodeId{-1});
    if (fresh) entry->second = edit_.add("ToChannels", {data}, {}, node.name + ".channels");
    edit_.set_input(id, 0, {entry->second, 0});
    return 1;
  }

  int hand_out(Value& output) {
    if (!in_chain(output) || channels_of(graph_.type(output)) == 0) return 0;
    const NodeId anchor = anchor_of(output);
    if (anchor < 0 || (likes_planes(anchor) && !in_chain(graph_.node(anchor).inputs[0]))) return 0;
    output = {edit_.add("ToRows", {output}, {}, graph_.node(output.node).name + ".rows"), 0};
    return 1;
  }

  GraphEditor& edit_;
  const Graph& graph_;
  std::unordered_map<NodeId, bool> chain_;
  std::map<Value, NodeId> copies_;
};

}  // namespace

int separate_rows(GraphEditor& edit, const PassOptions&) { return Separator(edit).run(); }

}  // namespace tensmith::graph
