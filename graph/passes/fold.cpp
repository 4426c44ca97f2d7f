#include "graph/passes/fold.h"

#include <algorithm>

#include "graph/inline.h"
#include "graph/interpret.h"
#include "graph/passes/fold_native.h"
#include "runtime/base/shape.h"

namespace tensmith::graph {

namespace {

/// Results up to this size are always made; above it they must not be much larger than the constants they come from.
constexpr int64_t kSmallBytes = int64_t{1} << 20;
constexpr int64_t kMaxGrowth = 8;
/// Units: operations, of one node and of one pass over the graph. The interpreter does some 10^8 a second.
constexpr double kMaxWork = 2e8, kMaxTotalWork = 1e9;

int64_t bytes_of(const TensorType& type) {
  const auto bytes = byte_count(type.static_shape(), type.dtype);
  return bytes ? *bytes : INT64_MAX;
}

class Folder {
 public:
  Folder(GraphEditor& edit, const PassOptions& options) : edit_(edit), graph_(edit.graph()), options_(options) {}

  int run() {
    for (NodeId id : graph_.topological_order()) {
      if (!graph_.alive(id)) continue;
      const Node& node = graph_.node(id);
      if (graph_.constant({id, 0}) || is_input(node)) continue;
      if (is_if(node) && inline_branch(node)) continue;
      fold_known_sizes(node);
      fold_node(node);
      hand_over_names(id);
    }
    if (count_ > 0) edit_.erase_dead();
    return count_;
  }

 private:
  static bool is_input(const Node& node) { return node.op->name == "Input" && node.op->domain == "tensmith"; }
  static bool is_if(const Node& node) { return node.op->name == "If" && node.op->domain.empty(); }

  bool used(const Node& node, size_t k) const { return !graph_.uses({node.id, static_cast<int>(k)}).empty(); }

  void replace(const Node& node, size_t k, Constant value) {
    const std::string name = node.output_names[k];
    const Value constant = edit_.add_constant(std::move(value), name);
    edit_.replace_uses({node.id, static_cast<int>(k)}, constant);
    made_.emplace_back(constant, name);
    ++count_;
  }

  /// The constants get the names of the values whose place they have taken, once the node is gone.
  void hand_over_names(NodeId id) {
    bool used_still = false;
    for (size_t k = 0; k < graph_.node(id).types.size(); ++k) used_still |= used(graph_.node(id), k);
    if (!made_.empty() && !used_still) {
      edit_.erase(id);
      for (const auto& [constant, name] : made_) edit_.set_output_name(constant, name);
    }
    made_.clear();
  }

  /// Outputs whose elements the type rule knows as numbers, whatever the inputs are (shapes of tensors of fixed size).
  void fold_known_sizes(const Node& node) {
    for (size_t k = 0; k < node.types.size(); ++k) {
      const TensorType& type = node.types[k];
      if (!used(node, k) || type.value.empty() || !type.is_static()) continue;
      std::vector<int64_t> elements;
      for (const Expr& element : type.value)
        if (const auto* imm = element.as<IntImm>()) elements.push_back(imm->value);
      if (elements.size() == type.value.size())
        replace(node, k, Constant::from_ints(type.dtype, type.static_shape(), elements));
    }
  }

  void fold_node(const Node& node) {
    std::vector<const Constant*> constants;
    int64_t in_bytes = 0;
    for (const Value& input : node.inputs) {
      constants.push_back(graph_.constant(input));
      if (input.given() && !constants.back()) return;
      if (constants.back()) in_bytes += constants.back()->num_bytes();
    }
    int64_t out_bytes = 0;
    bool any_used = false;
    for (size_t k = 0; k < node.types.size(); ++k) {
      if (!node.types[k].is_static()) continue;  // only the data decides the size, but the data are known
      out_bytes += std::min(bytes_of(node.types[k]), INT64_MAX / 64);
      any_used |= used(node, k);
    }
    for (size_t k = 0; k < node.types.size(); ++k) any_used |= used(node, k);
    if (!any_used || (out_bytes > options_.constant_limit_bytes && out_bytes > in_bytes)) return;
    if (out_bytes > kSmallBytes && (out_bytes / kMaxGrowth > in_bytes || feeds_only_gathers(node))) return;
    if (node.types[0].is_static())
      if (auto data = fold_natively(node, constants)) return replace(node, 0, std::move(*data));
    const double cost = work(node, constants);
    if (cost > kMaxWork || (work_done_ += cost) > kMaxTotalWork) return;
    evaluate(node, constants);
  }

  /// A table of weights of which only rows are picked: converting the rows behind the Gather is less work and less
  /// memory.
  bool feeds_only_gathers(const Node& node, int depth = 4) const {
    if (depth == 0 || !works_by_row(node)) return false;
    const auto& uses = graph_.uses({node.id, 0});
    return std::all_of(uses.begin(), uses.end(), [&](const Graph::Use& use) {
      if (use.node < 0) return false;
      const Node& user = graph_.node(use.node);
      if (user.op->name == "Gather" && user.op->domain.empty())
        return use.input == 0 && user.attrs.get_int("axis", 0) == 0;
      return feeds_only_gathers(user, depth - 1);
    });
  }

  double work(const Node& node, const std::vector<const Constant*>& constants) const {
    if (node.op->flops) {
      InferContext context{node, {}, constants, static_cast<int>(node.types.size())};
      for (const Value& input : node.inputs) context.inputs.push_back(input.given() ? &graph_.type(input) : nullptr);
      return node.op->flops(context);
    }
    double elements = 0;
    for (const TensorType& type : node.types)
      if (type.is_static()) elements += static_cast<double>(bytes_of(type)) / static_cast<double>(type.dtype.bytes());
    return elements;
  }

  void evaluate(const Node& node, const std::vector<const Constant*>& constants) {
    std::vector<RefTensor> tensors(constants.size());
    std::vector<const RefTensor*> inputs;
    for (size_t k = 0; k < constants.size(); ++k) {
      if (constants[k]) tensors[k] = to_ref_tensor(*constants[k]);
      inputs.push_back(constants[k] ? &tensors[k] : nullptr);
    }
    const auto outputs = interpret_node(node, inputs, constants);
    if (!outputs) return;  // it will be refused where the node is compiled, with the same reason
    for (size_t k = 0; k < node.types.size() && k < outputs->size(); ++k) {
      if (!used(node, k)) continue;
      const RefTensor& tensor = (*outputs)[k];
      if (same_type(node.types[k], static_type(tensor.dtype, tensor.shape))) {
        replace(node, k, to_constant(tensor));
      } else if (!node.types[k].is_static() &&
                 tensor.num_elements() * tensor.dtype.bytes() <= options_.constant_limit_bytes) {
        // The data decided the size, so the consumers' types change with it.
        const Value constant = edit_.add_constant(to_constant(tensor), node.output_names[k]);
        edit_.replace_uses_retyped({node.id, static_cast<int>(k)}, constant);
        made_.emplace_back(constant, node.output_names[k]);
        ++count_;
      }
    }
  }

  /// If(known condition) --> the branch that is taken.
  bool inline_branch(const Node& node) {
    const Constant* condition = graph_.constant(node.inputs.at(0));
    if (!condition || condition->num_elements() != 1) return false;
    const auto branch = node.attrs.get_graph(condition->int_at(0) ? "then_branch" : "else_branch");
    if (!branch) return false;
    const std::vector<Value> captures(node.inputs.begin() + 1, node.inputs.end());
    const NodeId id = node.id;
    const std::vector<Value> outputs = inline_graph(edit_, *branch, captures, node.name);
    for (size_t k = 0; k < outputs.size() && k < node.types.size(); ++k)
      edit_.replace_uses_retyped({id, static_cast<int>(k)}, outputs[k]);
    edit_.erase(id);
    ++count_;
    return true;
  }

  GraphEditor& edit_;
  const Graph& graph_;
  const PassOptions& options_;
  std::vector<std::pair<Value, std::string>> made_;  // by the node at hand
  double work_done_ = 0;
  int count_ = 0;
};

}  // namespace

int fold(GraphEditor& edit, const PassOptions& options) {
  int total = 0;
  // An inlined branch brings new nodes, which the next round sees.
  while (const int count = Folder(edit, options).run()) total += count;
  return total;
}

}  // namespace tensmith::graph
