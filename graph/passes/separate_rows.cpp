#include "graph/passes/separate_rows.h"

#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>

#include "graph/op_def.h"

namespace tensmith::graph {

namespace {

// A first layer reads its few channels as planes.
constexpr int64_t kFewChannels = 4;

class Separator {
 public:
  /// `lanes`: of float32 in a vector of the target; 0: unknown.
  Separator(GraphEditor& edit, int64_t lanes) : edit_(edit), graph_(edit.graph()), lanes_(lanes) {}

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

  /// Whether it is a convolution of one tap, without a border.
  bool has_single_tap(const Node& node) const {
    if (node.op->name != "Conv" || !node.op->domain.empty() || !graph_.type(node.inputs[1]).is_static()) return false;
    const std::vector<int64_t> weights = graph_.type(node.inputs[1]).static_shape();
    return weights.size() > 2 && all_are(std::span(weights).subspan(2), 1) && all_are(node.attrs.get_ints("pads"), 0) &&
           node.attrs.get_string("auto_pad", "NOTSET") == "NOTSET";
  }

  /// Whether it is a 1x1 convolution between rows of the caller's: a product of filters by pixels as they lie. (9 to
  /// 165 channels of 51x52: two copies took three quarters of the time.)
  bool is_lone_point(const Node& node) const {
    if (!has_single_tap(node) || node.attrs.get_int("group", 1) != 1 || !reaches_output(graph_, node.id)) return false;
    if (!all_are(node.attrs.get_ints("strides"), 1)) return false;
    // Lines that leave lanes empty are no better than copies.
    int64_t width = 0;
    (void)as_const_int(node.types[0].shape.back(), &width);
    return lanes_ > 0 && 5 * width >= 4 * ((width + lanes_ - 1) / lanes_ * lanes_);
  }

  /// Whether planes serve the operator as well: few results or one channel for each leave no vectors of channels.
  bool likes_planes(NodeId id) const {
    const Node& node = graph_.node(id);
    const int64_t group = node.attrs.get_int("group", 1);
    return channels_of(node.types[0]) <= kFewChannels || is_lone_point(node) ||
           (group > 1 && channels_of(graph_.type(node.inputs[0])) == group);
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
    const std::vector<int64_t> strides = strides_of_points(node);
    const auto [entry, fresh] = copies_.try_emplace({data, strides}, NodeId{-1});
    if (fresh) {
      // What is never read need not be copied.
      const Value read = strides.empty() ? data : Rewriter(edit_).add_places(node, data, strides);
      entry->second = edit_.add("ToChannels", {read}, {}, node.name + ".channels");
    }
    edit_.set_input(id, 0, {entry->second, 0});
    if (!strides.empty()) edit_.set_attr(id, "strides", std::vector<int64_t>(strides.size(), 1));
    return 1;
  }

  /// The strides of a convolution with a single tap, which reads but some of the places; empty for others.
  std::vector<int64_t> strides_of_points(const Node& node) const {
    const std::vector<int64_t> strides = node.attrs.get_ints("strides");
    return has_single_tap(node) && !all_are(strides, 1) ? strides : std::vector<int64_t>();
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
  const int64_t lanes_;
  std::unordered_map<NodeId, bool> chain_;
  std::map<std::pair<Value, std::vector<int64_t>>, NodeId> copies_;  // by data and strides
};

}  // namespace

int separate_rows(GraphEditor& edit, const PassOptions& options) {
  return Separator(edit, options.target ? options.target->lanes(4) : 0).run();
}

}  // namespace tensmith::graph
