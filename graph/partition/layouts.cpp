#include "graph/partition/layouts.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <sstream>

#include "graph/partition/layout_price.h"

namespace tensmith::graph {

namespace {

Layout layout_of_form(ChannelForm form, int rank) {
  std::vector<int> order{0};
  if (form.block == 0) {
    for (int d = 2; d < rank; ++d) order.push_back(d);
    order.push_back(1);
    return Layout::permuted(order);
  }
  for (int d = 1; d < rank; ++d) order.push_back(d);
  return Layout::blocked(order, 1, form.block);
}

/// Values that share one form, and the nodes that make them.
struct Chain {
  std::vector<Value> values;
  std::vector<NodeId> nodes;
};

class Chains {
 public:
  explicit Chains(const Graph& graph) : graph_(graph) {
    for (NodeId id : graph.topological_order()) {
      const Node& node = graph.node(id);
      if (node.op->is_source || node.types.empty()) continue;
      const int rank = node.types[0].rank();
      if (rank < 3) continue;
      const LayoutRole role = layout_role(*node.op);
      std::vector<size_t> meets;
      for (const Value& input : node.inputs)
        if (const auto it = member_.find(input); it != member_.end() && graph.type(input).rank() == rank)
          meets.push_back(it->second);
      if (role == LayoutRole::kRowMajor || (role == LayoutRole::kFollows && meets.empty())) continue;
      const size_t own = parent_.size();
      parent_.push_back(own);
      nodes_.push_back(id);
      for (size_t other : meets) parent_[root(other)] = root(own);
      for (size_t o = 0; o < node.types.size(); ++o)
        if (node.types[o].rank() == rank) member_[{id, static_cast<int>(o)}] = own;
    }
  }

  std::vector<Chain> take() {
    std::map<size_t, Chain> chains;
    for (size_t k = 0; k < nodes_.size(); ++k) chains[root(k)].nodes.push_back(nodes_[k]);
    for (const auto& [value, k] : member_) chains[root(k)].values.push_back(value);
    std::vector<Chain> list;
    for (auto& [k, chain] : chains) list.push_back(std::move(chain));
    return list;
  }

 private:
  size_t root(size_t k) {
    while (parent_[k] != k) k = parent_[k] = parent_[parent_[k]];
    return k;
  }

  const Graph& graph_;
  std::vector<NodeId> nodes_;  // by entry
  std::vector<size_t> parent_;
  std::map<Value, size_t> member_;
};

double price_of_chain(const Graph& graph, const Chain& chain, ChannelForm form, const Target& target) {
  double price = 0;
  const std::set<NodeId> inside(chain.nodes.begin(), chain.nodes.end());
  for (NodeId id : chain.nodes) price += price_of_node(graph, graph.node(id), form, target);
  // The rest of the graph reads rows; all channels of a place in one piece are read through strides instead.
  if (form.block == 0) return price;
  for (const Value& value : chain.values)
    for (const Graph::Use& use : graph.uses(value))
      if (use.node < 0 || !inside.count(use.node)) {
        price += price_of_conversion(graph.type(value), form);
        break;
      }
  return price;
}

std::string text_of(ChannelForm form) {
  return form.block == 0 ? "channels-last" : "blocks-of-" + std::to_string(form.block);
}

ChannelForm cheapest(const Graph& graph, const Chain& chain, const Target& target, std::string* explanation,
                     const Chooser& chooser) {
  const int64_t lanes = std::max(1, target.lanes(4));
  // With few registers a block may also be two vectors: each place is then as long as a cache line.
  std::vector<ChannelForm> forms = {{0}, {lanes}};
  if (target.vector_registers <= 16 && lanes * 8 <= target.line_bytes) forms.push_back({2 * lanes});
  ChoiceSite site;
  double best_price = 0;
  std::ostringstream text;
  text << graph.node(chain.nodes[0]).name << " and " << chain.nodes.size() - 1 << " more:";
  for (const ChannelForm& form : forms) {
    const double price = price_of_chain(graph, chain, form, target);
    text << (form.block == 0 ? " channels last " : " blocks of " + std::to_string(form.block) + " ")
         << static_cast<int64_t>(price / 1000) << " kcycles,";
    if (form.block == 0 || price < best_price) {
      site.by_price = site.ways.size();
      best_price = price;
    }
    site.ways.push_back(text_of(form));
  }
  const bool has_products = std::any_of(chain.nodes.begin(), chain.nodes.end(), [&](NodeId id) {
    return graph.node(id).op->fusion == FusionKind::kContraction;
  });
  const Node& first = graph.node(chain.nodes[0]);
  site.name = "layout of " + std::to_string(chain.nodes.size()) + " operators from " + first.op->name + " " +
              to_string(first.types[0]);
  const ChannelForm best = forms[has_products ? choose(chooser, site) : site.by_price];
  if (explanation) *explanation += text.str() + " taken: " + text_of(best) + "\n";
  return best;
}

}  // namespace

LayoutMap choose_layouts(const Graph& graph, const Target& target, LayoutChoice choice, std::string* explanation,
                         const Chooser& chooser) {
  LayoutMap layouts;
  for (const Chain& chain : Chains(graph).take()) {
    ChannelForm form;
    if (choice == LayoutChoice::kBlocked) form.block = std::max(1, target.lanes(4));
    if (choice == LayoutChoice::kPriced) form = cheapest(graph, chain, target, explanation, chooser);
    for (const Value& value : chain.values) layouts[value] = layout_of_form(form, graph.type(value).rank());
  }
  // What the caller sees is row-major.
  for (const Value& output : graph.outputs) layouts.erase(output);
  return layouts;
}

}  // namespace tensmith::graph
