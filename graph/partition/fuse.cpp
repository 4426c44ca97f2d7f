#include "graph/partition/fuse.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "graph/cost.h"
#include "graph/op_def.h"
#include "graph/partition/group_workload.h"
#include "graph/partition/index_limits.h"
#include "tensor/walk.h"

namespace tensmith::graph {

namespace {

// What a symbolic dim counts as.
constexpr double kSymbolicExtent = 64;
// Beyond this many nodes a kernel only gets slower to compile.
constexpr size_t kMaxGroupNodes = 24;
// Rows of a register tile, more or less, of which the product and the reduction's results lie side by side.
constexpr double kRowsAtOnce = 2 * 16;
// What all rows are multiplied with may be so many times as large: tiles of rows read it from L2 or, beside others,
// from L3 (keys and values of 4,096 places, 2 MiB a head: 89 ms joined, 136 ms apart, under load).
constexpr double kNearForAllRows = 8;

class Fuser {
 public:
  Fuser(const Graph& graph, const std::set<NodeId>& free, std::string* explanation)
      : graph_(graph), free_(free), explanation_(explanation), position_(static_cast<size_t>(graph.end_id()), -1) {
    const std::vector<NodeId> order = graph.topological_order();
    for (size_t k = 0; k < order.size(); ++k) {
      position_[static_cast<size_t>(order[k])] = static_cast<int>(k);
      if (is_kernel(order[k])) order_.push_back(order[k]);
    }
    parent_.resize(position_.size());
    members_.resize(position_.size());
    for (NodeId id : order_) {
      parent_[static_cast<size_t>(id)] = id;
      members_[static_cast<size_t>(id)] = {id};
    }
  }

  void run() {
    take_widening();
    // Anchors first take what follows them; then elementwise chains form; then kernels take what feeds them alone.
    for (FusionKind kind :
         {FusionKind::kContraction, FusionKind::kReduction, FusionKind::kInjective, FusionKind::kElementwise})
      for (NodeId id : order_)
        if (kind_of(id) == kind && (is_single(id) || (kind == FusionKind::kContraction && root(id) == id))) grow(id);
    for (FusionKind kind : {FusionKind::kReduction, FusionKind::kInjective, FusionKind::kElementwise})
      for (NodeId id : order_)
        if (kind_of(id) == kind) take_producers(id);
  }

  /// Puts a product and what reads its large result in windows (a depthwise convolution, a pool) into one kernel, which
  /// computes the rows of the product when the window comes to them. No cycle can come of it: nobody else reads the
  /// product.
  void join_windows(int64_t from_bytes) {
    for (NodeId id : order_) {
      if (kind_of(id) != FusionKind::kContraction && kind_of(id) != FusionKind::kReduction) continue;
      const NodeId reader = root(id);
      if (reader != id || !graph_.node(id).op->compute) continue;  // it is what its group grew from
      for (const Value& input : graph_.node(id).inputs) {
        if (!input.given() || input.output != 0 || !is_kernel(input.node)) continue;
        const NodeId product = root(input.node);
        if (product == reader || kind_of(product) != FusionKind::kContraction) continue;
        const std::vector<Graph::Use>& uses = graph_.uses(input);
        const double bytes =
            count_elements(graph_.type(input), kSymbolicExtent) * static_cast<double>(graph_.type(input).dtype.bytes());
        std::string why;
        if (bytes < static_cast<double>(from_bytes)) why = "the result stays in a near cache";
        else if (uses.size() != 1 || uses[0].node != id || graph_.node(input.node).types.size() != 1)
          why = "others read it too";
        else if (reads_windows(product, graph_.node(product).inputs[0])) why = "it takes no longer than copying it";
        else if (members(product).size() + members(reader).size() > kMaxGroupNodes) why = "the kernel is large enough";
        else if (!rows_fit(graph_.type(input), bytes, static_cast<double>(from_bytes)))
          why = "some rows of it are too large for a near cache";
        if ((why.empty() || explanation_) && !reads_windows(id, input)) continue;
        say(input.node, id, why.empty() ? "joined: rows are computed when the window comes to them" : "apart: " + why);
        if (why.empty()) merge(product, reader);
      }
    }
  }

  /// Puts a product, the reduction of its rows that alone reads it (a softmax) and the product that alone reads the
  /// rows then into one kernel, which takes some rows at a time through all three. No cycle can come of it: nobody
  /// else reads what lies between.
  void join_rows(int64_t near_bytes) {
    for (NodeId id : order_) {
      if (kind_of(id) != FusionKind::kContraction || root(id) != id || !graph_.node(id).op->compute) continue;
      for (const Value& rows : graph_.node(id).inputs) {
        if (!rows.given() || !is_kernel(rows.node)) continue;
        const NodeId reduction = root(rows.node);
        if (reduction == id || kind_of(reduction) != FusionKind::kReduction) continue;
        const std::optional<Value> scores = product_read_by(reduction);
        if (!scores) continue;
        const NodeId product = root(scores->node);
        std::string why;
        if (!is_only_result(reduction, rows, id) || !is_only_result(product, *scores, reduction))
          why = "others read it too";
        else if (members(product).size() + members(reduction).size() + members(id).size() > kMaxGroupNodes)
          why = "the kernel is large enough";
        else if (!same_shape(graph_.type(*scores), graph_.type(rows)) || !reads_rows(reduction, *scores) ||
                 !reads_rows(id, rows))
          why = "each of its results needs more than a row";
        else if (!has_rows(graph_.type(rows))) why = "there are only a few rows";
        else if (row_bytes(graph_.type(rows)) * kRowsAtOnce > static_cast<double>(near_bytes))
          why = "some rows of it are too large for a near cache";
        else if (bytes_for_all_rows(product) + bytes_for_all_rows(id) >
                 kNearForAllRows * static_cast<double>(near_bytes))
          why = "what all rows are multiplied with does not stay in a near cache";
        say(rows.node, id, why.empty() ? "joined: some rows at a time go through both products" : "apart: " + why);
        if (!why.empty()) continue;
        merge(reduction, id);
        merge(product, id);
        break;
      }
    }
  }

  std::vector<Group> groups() const {
    std::vector<Group> groups;
    for (NodeId id : order_)
      if (root(id) == id) {
        std::vector<NodeId> nodes = members(id);
        std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) { return position(a) < position(b); });
        groups.push_back(make_group(nodes));
      }
    // Nodes that need no kernel hand the order on.
    for (NodeId id : free_) groups.push_back(make_group({id}));
    groups = sort_groups(std::move(groups));
    std::erase_if(groups, [&](const Group& group) { return free_.count(group.nodes[0]) != 0; });
    return groups;
  }

 private:
  FusionKind kind_of(NodeId id) const { return graph_.node(id).op->fusion; }
  int position(NodeId id) const { return position_[static_cast<size_t>(id)]; }
  bool is_kernel(NodeId id) const { return !graph_.node(id).op->is_source && !free_.count(id); }
  NodeId root(NodeId id) const {
    while (parent_[static_cast<size_t>(id)] != id) {
      NodeId& parent = parent_[static_cast<size_t>(id)];
      parent = parent_[static_cast<size_t>(parent)];
      id = parent;
    }
    return id;
  }
  const std::vector<NodeId>& members(NodeId root_id) const { return members_[static_cast<size_t>(root_id)]; }
  bool is_single(NodeId id) const { return root(id) == id && members(id).size() == 1; }
  bool in_group(NodeId id, NodeId root_id) const { return is_kernel(id) && root(id) == root_id; }
  /// Moves all of group `from` into group `to`; `to` stays the root.
  void merge(NodeId from, NodeId to) {
    std::vector<NodeId>& source = members_[static_cast<size_t>(from)];
    std::vector<NodeId>& target = members_[static_cast<size_t>(to)];
    target.insert(target.end(), source.begin(), source.end());
    source.clear();
    parent_[static_cast<size_t>(from)] = to;
  }
  void say(NodeId from, NodeId to, const std::string& text) const {
    if (explanation_) *explanation_ += graph_.node(from).name + " -> " + graph_.node(to).name + ": " + text + "\n";
  }
  static bool same_shape(const TensorType& a, const TensorType& b) {
    if (a.shape.size() != b.shape.size()) return false;
    for (size_t d = 0; d < a.shape.size(); ++d)
      if (!same_dim(a.shape[d], b.shape[d])) return false;
    return true;
  }

  /// Products take the casts that widen their weights: they are made for the product, from what is read once.
  void take_widening() {
    for (NodeId id : order_) {
      if (kind_of(id) != FusionKind::kContraction) continue;
      for (const Value& input : graph_.node(id).inputs) {
        if (!input.given() || !is_kernel(input.node) || !is_single(input.node) || graph_.uses(input).size() != 1)
          continue;
        const Node& wider = graph_.node(input.node);
        if (wider.op->fusion != FusionKind::kElementwise || wider.inputs.size() != 1) continue;
        const Constant* weights = graph_.constant(wider.inputs[0]);
        if (!weights || weights->dtype().bytes() >= wider.types[0].dtype.bytes()) continue;
        say(input.node, id, "fused: weights are widened on the way");
        merge(input.node, id);
      }
    }
  }

  /// Adds elementwise nodes behind the group while its one output only feeds them: straight chains and diamonds that
  /// close.
  void grow(NodeId start) {
    NodeId tail = start;
    size_t size = members(start).size();
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
          frontier.insert({position(use.node), use.node});
        }
      };
      push_uses(tail);
      if (frontier.empty()) return;
      while (!failed && !closed) {
        const NodeId next = frontier.begin()->second;
        frontier.erase(frontier.begin());
        const Node& node = graph_.node(next);
        std::string why;
        if (!is_kernel(next)) why = "it needs no kernel";
        else if (node.op->fusion != FusionKind::kElementwise) why = "not elementwise";
        else if (node.types.size() != 1 || !same_shape(node.types[0], type)) why = "another shape";
        else if (!is_single(next)) why = "already in a kernel";
        else if (size + added.size() >= kMaxGroupNodes) why = "the kernel is large enough";
        if (!why.empty()) {
          say(tail, next, "not fused: " + why);
          failed = true;
          break;
        }
        added.push_back(next);
        if (frontier.empty()) closed = true;
        else push_uses(next);
      }
      if (failed || !closed) return;
      for (NodeId id : added) {
        say(tail, id, "fused: elementwise on the result");
        merge(id, start);
      }
      size += added.size();
      tail = added.back();
    }
  }

  /// Whether the nodes of a group only compute or move single elements and serve nobody but `target`.
  bool serves_only(NodeId group, NodeId target) const {
    for (NodeId n : members(group)) {
      const Node& node = graph_.node(n);
      const bool simple = node.op->fusion == FusionKind::kElementwise || node.op->fusion == FusionKind::kInjective;
      if (!simple || node.types.size() != 1 || !node.op->compute) return false;
      for (const Graph::Use& use : graph_.uses({n, 0})) {
        if (use.node < 0 || !(in_group(use.node, group) || in_group(use.node, target))) return false;
        // Indices are looked over before a kernel reads them, so they lie in memory.
        if (is_checked_index(graph_, use.node, use.input)) return false;
      }
    }
    return true;
  }

  /// Takes groups of elementwise and injective nodes that feed nobody else, when their elements are read about once:
  /// they are then computed on the way and need no memory. No cycle can come of it, here or in `grow`: everything that
  /// is taken serves the group alone, so nothing outside lies on a way from it to the group.
  void take_producers(NodeId id) {
    const NodeId target = root(id);
    std::vector<NodeId> open = members(target);
    while (!open.empty()) {
      const NodeId reader = open.back();
      open.pop_back();
      const Node& node = graph_.node(reader);
      if (node.op->fusion == FusionKind::kContraction || node.op->fusion == FusionKind::kOpaque) continue;
      for (const Value& input : node.inputs) {
        if (!input.given() || !is_kernel(input.node)) continue;
        const NodeId other = root(input.node);
        if (other == target || !serves_only(other, target)) continue;
        if (members(other).size() + members(target).size() > kMaxGroupNodes) continue;
        // Reading elements again and again would compute them as often.
        if (node.op->fusion != FusionKind::kReduction &&
            count_elements(node.types[0], kSymbolicExtent) > count_elements(graph_.type(input), kSymbolicExtent))
          continue;
        // Reductions pass over their operand more than once: only cheap steps along memory are repeated.
        if (node.op->fusion == FusionKind::kReduction && !all_elementwise(other)) continue;
        say(input.node, reader, "fused: feeds nobody else");
        open.insert(open.end(), members(other).begin(), members(other).end());
        merge(other, target);
      }
    }
  }
  bool all_elementwise(NodeId group) const {
    return std::all_of(members(group).begin(), members(group).end(),
                       [&](NodeId n) { return kind_of(n) == FusionKind::kElementwise; });
  }

  /// Whether so many rows of an image as a window reaches over are smaller than `room`. Units: bytes.
  static bool rows_fit(const TensorType& type, double bytes, double room) {
    constexpr double kRows = 8;  // a window of up to 7 in a ring whose length is a power of two
    int64_t rows;
    return type.rank() > 2 && as_const_int(type.shape[2], &rows) && bytes / static_cast<double>(rows) * kRows <= room;
  }

  /// The one product whose result a group of a reduction reads, if it reads one.
  std::optional<Value> product_read_by(NodeId group) const {
    std::optional<Value> found;
    for (NodeId n : members(group))
      for (const Value& input : graph_.node(n).inputs) {
        if (!input.given() || in_group(input.node, group) || !is_kernel(input.node)) continue;
        if (kind_of(root(input.node)) != FusionKind::kContraction || found == input) continue;
        if (found) return {};
        found = input;
      }
    return found;
  }

  /// Whether group `target` alone reads `value`, and nobody reads anything else of `group`.
  bool is_only_result(NodeId group, const Value& value, NodeId target) const {
    for (NodeId n : members(group)) {
      if (!graph_.node(n).op->compute || graph_.node(n).types.size() != 1) return false;
      for (const Graph::Use& use : graph_.uses({n, 0}))
        if (use.node < 0 || !(in_group(use.node, group) || (n == value.node && in_group(use.node, target))))
          return false;
    }
    return true;
  }

  /// Whether the rows are enough for a register tile of them.
  static bool has_rows(const TensorType& type) {
    constexpr int64_t kFewest = 8;
    int64_t extent = 0;
    return type.rank() > 1 && as_const_int(type.shape[type.shape.size() - 2], &extent) && extent >= kFewest;
  }
  /// Units: bytes.
  static double row_bytes(const TensorType& type) {
    int64_t extent = 0;
    return type.rank() > 0 && as_const_int(type.shape.back(), &extent)
               ? static_cast<double>(extent) * static_cast<double>(type.dtype.bytes())
               : 0;
  }

  /// Where the workload of a group's nodes reads an input: each load of it, with its stage. Nothing when a size of what
  /// is read or made is not known.
  using Read = std::pair<Stage, Expr>;
  std::optional<std::vector<Read>> reads_of(const std::vector<NodeId>& nodes, const Value& input) const {
    const auto known = [](const TensorType& type) {
      int64_t extent;
      return std::all_of(type.shape.begin(), type.shape.end(), [&](const Expr& e) { return as_const_int(e, &extent); });
    };
    if (!known(graph_.type(input)) || !known(graph_.node(nodes.back()).types[0])) return {};
    const GroupWorkload group = make_group_workload(graph_, make_group(nodes), "reader");
    const auto place = std::find(group.inputs.begin(), group.inputs.end(), input);
    if (place == group.inputs.end()) return {};
    const Buffer buffer = group.workload.inputs[static_cast<size_t>(place - group.inputs.begin())].buffer();
    std::vector<Read> reads;
    for (const Stage& stage : group.workload.stages)
      for (const Expr& body : stage->bodies)
        visit(body, [&](const Expr& e) {
          if (const auto* load = e.as<Load>(); load && load->buffer.same_as(buffer)) reads.emplace_back(stage, e);
          return true;
        });
    return reads;
  }

  /// Whether every dim of the input moves on with a dim of the result, and the shapes are known.
  bool reads_windows(NodeId id, const Value& input) const {
    const std::optional<std::vector<Read>> reads = reads_of({id}, input);
    if (!reads || reads->size() != 1) return false;
    const auto& [stage, load] = reads->front();
    const std::vector<Expr>& shape = graph_.type(input).shape;
    bool windows = stage->reducer.has_value();
    for (size_t d = 0; d < shape.size(); ++d)
      windows = windows && (as_one(shape[d]) || moves_with_axis(*stage, load.as<Load>()->indices[d]));
    return windows;
  }

  /// Whether a group reads the input row by row: all dims but the last one are axes of what it makes of it.
  bool reads_rows(NodeId group, const Value& input) const {
    std::vector<NodeId> nodes = members(group);
    std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) { return position(a) < position(b); });
    const std::optional<std::vector<Read>> reads = reads_of(nodes, input);
    const std::vector<Expr>& shape = graph_.type(input).shape;
    if (!reads || reads->empty() || shape.size() < 2) return false;
    return std::all_of(reads->begin(), reads->end(), [&](const Read& read) {
      const auto& [stage, load] = read;
      for (size_t d = 0; d + 1 < shape.size(); ++d) {
        const Expr& index = load.as<Load>()->indices[d];
        const bool is_axis = std::any_of(stage->axes.begin(), stage->axes.end(),
                                         [&](const Axis& axis) { return index.get() == axis.var.get(); });
        if (!is_axis && !as_one(shape[d])) return false;
      }
      return true;
    });
  }

  /// The operands that a product reads again for each of its rows, without those that only some rows share (the
  /// matrices of one batch). Units: bytes.
  double bytes_for_all_rows(NodeId product) const {
    const GroupWorkload group = make_group_workload(graph_, make_group({product}), "product");
    double bytes = 0;
    for (const Stage& stage : group.workload.stages) {
      if (!stage->reducer || stage->axes.size() < 2) continue;
      const Var& row = stage->axes[stage->axes.size() - 2].var;
      std::vector<const Load*> by_row, others;
      for (const Expr& body : stage->bodies)
        visit(body, [&](const Expr& e) {
          if (const auto* load = e.as<Load>()) (uses_var(e, row) ? by_row : others).push_back(load);
          return true;
        });
      const auto is_batch = [&](const Expr& index) {
        return std::any_of(stage->axes.begin(), stage->axes.end(),
                           [&](const Axis& axis) { return index.get() == axis.var.get(); }) &&
               std::any_of(by_row.begin(), by_row.end(), [&](const Load* load) {
                 return std::any_of(load->indices.begin(), load->indices.end(),
                                    [&](const Expr& own) { return own.get() == index.get(); });
               });
      };
      for (const Load* load : others) {
        double own = static_cast<double>(load->buffer->dtype.bytes());
        for (size_t d = 0; d < load->indices.size(); ++d) {
          int64_t extent = 0;
          if (!is_batch(load->indices[d]) && as_const_int(load->buffer->shape[d], &extent))
            own *= static_cast<double>(extent);
        }
        bytes += own;
      }
    }
    return bytes;
  }

  static bool as_one(const Expr& extent) {
    int64_t value;
    return as_const_int(extent, &value) && value == 1;
  }
  static bool moves_with_axis(const StageNode& stage, const Expr& index) {
    return std::any_of(stage.axes.begin(), stage.axes.end(),
                       [&](const Axis& axis) { return uses_var(index, axis.var); });
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
    const auto key = [&](size_t g) { return std::pair(position(groups[g].nodes.back()), g); };
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
  const std::set<NodeId>& free_;
  std::string* explanation_;
  std::vector<NodeId> order_;  // nodes that need a kernel, producers first
  std::vector<int> position_;  // by node
  // Union and find over nodes; the root of a group is the node that it grew from.
  mutable std::vector<NodeId> parent_;
  std::vector<std::vector<NodeId>> members_;  // by root
};

}  // namespace

std::vector<Group> fuse(const Graph& graph, const FuseOptions& options, std::string* explanation) {
  Fuser fuser(graph, options.free, explanation);
  if (options.enabled) fuser.run();
  if (options.enabled && options.near_bytes) {
    fuser.join_windows(*options.near_bytes);
    fuser.join_rows(*options.near_bytes);
  }
  return fuser.groups();
}

}  // namespace tensmith::graph
