#include "graph/partition/fuse.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "graph/op_def.h"

namespace tensmith::graph {

namespace {

// Beyond this many nodes a kernel only gets slower to compile.
constexpr size_t kMaxGroupNodes = 24;

/// Operators that move no element in row-major order: a reshape by any name.
bool only_renames(const Node& node) {
  const std::string& op = node.op->name;
  return node.op->fusion == FusionKind::kInjective &&
         (op == "Reshape" || op == "Squeeze" || op == "Unsqueeze" || op == "Flatten");
}

class Fuser {
 public:
  Fuser(const Graph& graph, std::string* explanation) : graph_(graph), explanation_(explanation) {
    const std::vector<NodeId> order = graph.topological_order();
    for (size_t k = 0; k < order.size(); ++k) {
      position_[order[k]] = static_cast<int>(k);
      if (is_kernel(order[k])) order_.push_back(order[k]);
    }
    for (NodeId id : order_) group_of_[id] = id;
  }

  void run() {
    // Anchors first take what follows them; then elementwise chains form; then reductions take what feeds them.
    for (FusionKind kind :
         {FusionKind::kContraction, FusionKind::kReduction, FusionKind::kInjective, FusionKind::kElementwise})
      for (NodeId id : order_)
        if (graph_.node(id).op->fusion == kind && group_of_[id] == id && !only_renames(graph_.node(id))) grow(id);
    for (NodeId id : order_)
      if (graph_.node(id).op->fusion == FusionKind::kReduction) take_producers(id);
  }

  std::vector<Group> groups() const {
    std::map<NodeId, std::vector<NodeId>> members;
    for (NodeId id : order_) members[root(id)].push_back(id);
    std::vector<Group> groups;
    for (auto& [root_id, nodes] : members) {
      std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) { return position_.at(a) < position_.at(b); });
      groups.push_back(make_group(nodes));
    }
    return sort_groups(std::move(groups));
  }

 private:
  bool is_kernel(NodeId id) const {
    const std::string& op = graph_.node(id).op->name;
    return op != "Input" && op != "Constant";
  }
  NodeId root(NodeId id) const {
    while (group_of_.at(id) != id) id = group_of_.at(id);
    return id;
  }
  bool in_group(NodeId id, NodeId root_id) const { return root(id) == root_id; }
  void say(NodeId from, NodeId to, const std::string& text) const {
    if (explanation_) *explanation_ += graph_.node(from).name + " -> " + graph_.node(to).name + ": " + text + "\n";
  }
  static bool same_shape(const TensorType& a, const TensorType& b) {
    if (a.shape.size() != b.shape.size()) return false;
    for (size_t d = 0; d < a.shape.size(); ++d)
      if (!same_dim(a.shape[d], b.shape[d])) return false;
    return true;
  }
  std::vector<NodeId> members(NodeId root_id) const {
    std::vector<NodeId> nodes;
    for (NodeId id : order_)
      if (in_group(id, root_id)) nodes.push_back(id);
    return nodes;
  }

  /// Adds elementwise nodes behind the group while its one output only feeds them: straight chains and diamonds that
  /// close.
  void grow(NodeId start) {
    NodeId tail = start;
    size_t size = 1;
    while (graph_.node(tail).types.size() == 1) {
      const TensorType& type = graph_.node(tail).types[0];
      std::set<std::pair<int, NodeId>> frontier;  // by topological position
      std::vector<NodeId> added;
      bool closed = false, failed = false;
      const auto push_uses = [&](NodeId id) {
        for (const Graph::Use& use : graph_.uses({id, 0})) {
          if (use.node < 0) {
            failed = true;
            return;
          }
          frontier.insert({position_.at(use.node), use.node});
        }
      };
      push_uses(tail);
      if (frontier.empty()) return;
      while (!failed && !closed) {
        const NodeId next = frontier.begin()->second;
        frontier.erase(frontier.begin());
        const Node& node = graph_.node(next);
        std::string why;
        if (node.op->fusion != FusionKind::kElementwise) why = "not elementwise";
        else if (node.types.size() != 1 || !same_shape(node.types[0], type)) why = "another shape";
        else if (root(next) != next || !members_single(next)) why = "already in a kernel";
        else if (size + added.size() >= kMaxGroupNodes) why = "the kernel is large enough";
        if (!why.empty()) {
          say(tail, next, "not fused: " + why);
          failed = true;
          break;
        }
        added.push_back(next);
        if (frontier.empty()) closed = true;
        else push_uses(next);
        if (closed) break;
      }
      if (failed || !closed) return;
      for (NodeId id : added) {
        say(tail, id, "fused: elementwise on the result");
        group_of_[id] = root(start);
      }
      size += added.size();
      tail = added.back();
    }
  }
  bool members_single(NodeId id) const {
    for (const auto& [other, parent] : group_of_)
      if (parent == id && other != id) return false;
    return true;
  }

  /// A reduction reads its input once per pass: elementwise producers that nobody else needs are computed on the way.
  void take_producers(NodeId reduction) {
    const NodeId target = root(reduction);
    bool changed = true;
    while (changed) {
      changed = false;
      for (NodeId id : members(target)) {
        for (const Value& input : graph_.node(id).inputs) {
          if (!input.given() || !is_kernel(input.node) || in_group(input.node, target)) continue;
          const NodeId other = root(input.node);
          const std::vector<NodeId> nodes = members(other);
          if (nodes.size() + members(target).size() > kMaxGroupNodes) continue;
          bool fits = true;
          for (NodeId n : nodes) {
            const Node& node = graph_.node(n);
            fits = fits && node.op->fusion == FusionKind::kElementwise && node.types.size() == 1;
            for (const Graph::Use& use : graph_.uses({n, 0}))
              fits = fits && use.node >= 0 && (in_group(use.node, other) || in_group(use.node, target));
          }
          if (!fits || creates_cycle(other, target)) continue;
          for (NodeId n : nodes) group_of_[n] = target;
          say(input.node, id, "fused: feeds the reduction");
          changed = true;
        }
        if (changed) break;
      }
    }
  }

  /// Whether a path leads from group `a` to group `b` through nodes outside of both.
  bool creates_cycle(NodeId a, NodeId b) const {
    std::set<NodeId> seen;
    std::vector<NodeId> stack;
    for (NodeId id : members(a)) stack.push_back(id);
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      for (size_t o = 0; o < graph_.node(id).types.size(); ++o)
        for (const Graph::Use& use : graph_.uses({id, static_cast<int>(o)})) {
          if (use.node < 0 || in_group(use.node, a)) continue;
          if (in_group(use.node, b)) {
            if (!in_group(id, a)) return true;
            continue;
          }
          if (seen.insert(use.node).second) stack.push_back(use.node);
        }
    }
    return false;
  }

  Group make_group(const std::vector<NodeId>& nodes) const {
    Group group;
    group.nodes = nodes;
    const std::set<NodeId> inside(nodes.begin(), nodes.end());
    std::set<Value> seen;
    for (NodeId id : nodes) {
      for (const Value& input : graph_.node(id).inputs)
        if (input.given() && !inside.count(input.node) && seen.insert(input).second) group.inputs.push_back(input);
      for (size_t o = 0; o < graph_.node(id).types.size(); ++o) {
        const Value v{id, static_cast<int>(o)};
        const auto& uses = graph_.uses(v);
        if (std::any_of(uses.begin(), uses.end(),
                        [&](const Graph::Use& use) { return use.node < 0 || !inside.count(use.node); }))
          group.outputs.push_back(v);
      }
    }
    group.is_view = nodes.size() == 1 && only_renames(graph_.node(nodes[0]));
    return group;
  }

  /// Kahn's algorithm over groups, ties by position of the last node.
  std::vector<Group> sort_groups(std::vector<Group> groups) const {
    std::unordered_map<NodeId, size_t> owner;
    for (size_t g = 0; g < groups.size(); ++g)
      for (NodeId id : groups[g].nodes) owner[id] = g;
    std::vector<int> missing(groups.size());
    std::vector<std::vector<size_t>> readers(groups.size());
    for (size_t g = 0; g < groups.size(); ++g) {
      std::set<size_t> producers;
      for (const Value& input : groups[g].inputs)
        if (const auto it = owner.find(input.node); it != owner.end() && it->second != g) producers.insert(it->second);
      missing[g] = static_cast<int>(producers.size());
      for (size_t p : producers) readers[p].push_back(g);
    }
    std::set<std::pair<int, size_t>> ready;
    const auto key = [&](size_t g) { return std::pair(position_.at(groups[g].nodes.back()), g); };
    for (size_t g = 0; g < groups.size(); ++g)
      if (missing[g] == 0) ready.insert(key(g));
    std::vector<Group> sorted;
    while (!ready.empty()) {
      const size_t g = ready.begin()->second;
      ready.erase(ready.begin());
      for (size_t reader : readers[g])
        if (--missing[reader] == 0) ready.insert(key(reader));
      sorted.push_back(std::move(groups[g]));
    }
    TS_CHECK(sorted.size() == groups.size()) << "fusion made a cycle";
    return sorted;
  }

  const Graph& graph_;
  std::string* explanation_;
  std::vector<NodeId> order_;
  std::unordered_map<NodeId, int> position_;
  std::unordered_map<NodeId, NodeId> group_of_;
};

}  // namespace

std::vector<Group> fuse(const Graph& graph, const FuseOptions& options, std::string* explanation) {
  Fuser fuser(graph, explanation);
  if (options.enabled) fuser.run();
  return fuser.groups();
}

}  // namespace tensmith::graph
