#include "graph/known_value.h"

#include "graph/interpret.h"

namespace tensmith::graph {

namespace {

constexpr int64_t kMaxElements = 1024;

class Evaluator {
 public:
  Evaluator(const Graph& graph, int budget) : graph_(graph), budget_(budget) {}

  const Constant* evaluate(Value v) {
    const auto [entry, fresh] = known_.try_emplace(v);  // a map does not move its entries
    if (fresh) entry->second = compute(v);
    return entry->second ? &*entry->second : nullptr;
  }

 private:
  std::optional<Constant> compute(Value v) {
    if (const Constant* constant = graph_.constant(v))
      return constant->num_elements() <= kMaxElements ? std::optional(*constant) : std::nullopt;
    const TensorType& type = graph_.type(v);
    if (!type.value.empty() && type.is_static()) {
      std::vector<int64_t> elements;
      for (const Expr& element : type.value)
        if (const auto* imm = element.as<IntImm>()) elements.push_back(imm->value);
      if (elements.size() == type.value.size()) return Constant::from_ints(type.dtype, type.static_shape(), elements);
    }
    const Node& node = graph_.node(v.node);
    if (node.inputs.empty() || --budget_ < 0) return std::nullopt;
    for (const TensorType& output : node.types) {
      int64_t elements = 1;
      for (const Expr& dim : output.shape) {
        const auto* imm = dim.as<IntImm>();
        if (!imm || imm->value > kMaxElements || (elements *= imm->value) > kMaxElements) return std::nullopt;
      }
    }
    std::vector<const Constant*> constants;
    std::vector<RefTensor> tensors(node.inputs.size());
    std::vector<const RefTensor*> inputs;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      constants.push_back(node.inputs[k].given() ? evaluate(node.inputs[k]) : nullptr);
      if (node.inputs[k].given() && !constants.back()) return std::nullopt;
      if (constants.back()) tensors[k] = to_ref_tensor(*constants.back());
      inputs.push_back(constants.back() ? &tensors[k] : nullptr);
    }
    const auto outputs = interpret_node(node, inputs, constants);
    if (!outputs || outputs->size() <= static_cast<size_t>(v.output)) return std::nullopt;
    return to_constant((*outputs)[static_cast<size_t>(v.output)]);
  }

  const Graph& graph_;
  int budget_;
  std::map<Value, std::optional<Constant>> known_;
};

}  // namespace

std::optional<Constant> known_value(const Graph& graph, Value value, int max_nodes) {
  if (!value.given()) return std::nullopt;
  Evaluator evaluator(graph, max_nodes);
  const Constant* found = evaluator.evaluate(value);
  return found ? std::optional(*found) : std::nullopt;
}

}  // namespace tensmith::graph
