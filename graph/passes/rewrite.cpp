#include "graph/passes/rewrite.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

#include "graph/passes/written_number.h"

namespace tensmith::graph {

const Node* Rewriter::producer(Value v, std::string_view op) const {
  if (!v.given()) return nullptr;
  const Node& node = graph.node(v.node);
  return node.op->domain.empty() && node.op->name == op ? &node : nullptr;
}

std::optional<double> Rewriter::number(Value v) const {
  const Constant* c = constant(v);
  if (!c) return std::nullopt;
  const int64_t count = c->num_elements();
  if (count == 0) return std::nullopt;
  const double first = c->float_at(0);
  for (int64_t k = 1; k < count; ++k)
    if (c->float_at(k) != first) return std::nullopt;
  return first;
}

bool Rewriter::is_number(Value v, double wanted) const {
  const auto found = number(v);
  return found && *found == wanted;
}

bool Rewriter::is_about(Value v, double wanted) const {
  const auto found = number(v);
  return found && is_written_as(*found, wanted, type(v).dtype);
}

std::optional<std::vector<int64_t>> Rewriter::ints(Value v) const {
  const Constant* c = constant(v);
  if (!c || !c->dtype().is_integral()) return std::nullopt;
  return c->ints();
}

const Node* Rewriter::only_user(Value v, std::string_view op) const {
  const auto& uses = graph.uses(v);
  if (uses.size() != 1 || uses[0].node < 0) return nullptr;
  const Node& user = graph.node(uses[0].node);
  return user.op->domain.empty() && user.op->name == op ? &user : nullptr;
}

Value Rewriter::add(const Node& like, const std::string& op, std::vector<Value> inputs, AttrMap attrs) {
  const OpDef* def = find_op(op);
  if (!def) return {};
  for (size_t k = 0; k < inputs.size(); ++k)  // a null value is what a failed step before gives
    if (!inputs[k].given() && static_cast<int>(k) < min_inputs(*def)) return {};
  auto added = edit.try_add(*def, std::move(inputs), std::move(attrs), like.name);
  return added ? Value{*added, 0} : Value{};
}

Value Rewriter::add_ints(const Node& like, const std::vector<int64_t>& values) {
  return edit.add_constant(Constant::from_ints(kInt64, {static_cast<int64_t>(values.size())}, values),
                           like.name + ".ints");
}

Value Rewriter::add_places(const Node& like, Value data, const std::vector<int64_t>& strides) {
  const std::vector<int64_t> firsts(strides.size(), 0);
  std::vector<int64_t> ends, axes;
  for (size_t d = 0; d < strides.size(); ++d) {
    ends.push_back(0);
    TS_CHECK(as_const_int(type(data).shape[2 + d], &ends.back())) << like.name;
    axes.push_back(static_cast<int64_t>(2 + d));
  }
  return add(like, "Slice",
             {data, add_ints(like, firsts), add_ints(like, ends), add_ints(like, axes), add_ints(like, strides)});
}

Value Rewriter::add_number(const Node& like, double number, DType dtype, std::vector<int64_t> shape) {
  int64_t count = 1;
  for (int64_t dim : shape) count *= dim;
  const std::vector<double> values(static_cast<size_t>(count), number);
  return edit.add_constant(Constant::from_floats(dtype, std::move(shape), values), like.name + ".number");
}

Value Rewriter::reshape(const Node& like, Value v, const std::vector<Expr>& shape) {
  if (!v.given()) return {};
  if (same_type(type(v), {type(v).dtype, shape, {}})) return v;
  const auto spec = reshape_spec(type(v).shape, shape);
  return spec ? add(like, "Reshape", {v, add_ints(like, *spec)}) : Value{};
}

void Rewriter::erase_unused(NodeId id) {
  std::vector<NodeId> work{id};
  static const OpDef* const input_op = find_op("Input", "tensmith");
  while (!work.empty()) {
    const NodeId next = work.back();
    work.pop_back();
    if (!graph.alive(next)) continue;
    const Node& node = graph.node(next);
    bool used = node.op == input_op;
    for (size_t k = 0; k < node.types.size() && !used; ++k) used = !graph.uses({next, static_cast<int>(k)}).empty();
    if (used) continue;
    for (const Value& input : node.inputs)
      if (input.given()) work.push_back(input.node);
    edit.erase(next);
  }
}

bool Rewriter::replace(const Node& node, Value by) {
  const NodeId old = node.id;
  if (!by.given()) return false;
  if (by == Value{old, 0} || !same_type(type({old, 0}), type(by))) {
    erase_unused(by.node);
    return false;
  }
  const std::string name = node.output_names[0];
  const bool fresh = by.node > old && graph.uses(by).empty();
  edit.replace_uses({old, 0}, by);
  erase_unused(old);
  if (fresh && graph.alive(by.node) && !graph.alive(old)) edit.set_output_name(by, name);
  return true;
}

int apply_rules(GraphEditor& edit, std::span<const Rule> rules, int max_rounds) {
  std::unordered_map<std::string_view, std::vector<const Rule*>> by_op;
  for (const Rule& rule : rules) by_op[rule.op].push_back(&rule);
  Rewriter rewriter(edit);
  int total = 0;
  for (int round = 0; round < max_rounds; ++round) {
    int applied = 0;
    for (NodeId id : edit.graph().topological_order()) {
      if (!edit.graph().alive(id)) continue;
      const auto try_all = [&](std::string_view op) {
        const auto found = by_op.find(op);
        if (found == by_op.end()) return;
        for (const Rule* rule : found->second) {
          if (!edit.graph().alive(id)) return;
          const NodeId before = edit.graph().end_id();
          if (rule->apply(rewriter, edit.graph().node(id))) ++applied;
          else
            for (NodeId made = edit.graph().end_id() - 1; made >= before; --made)
              rewriter.erase_unused(made);  // attempts that failed
        }
      };
      const Node& node = edit.graph().node(id);
      if (node.op->domain.empty()) try_all(node.op->name);
      try_all("");
    }
    total += applied;
    if (applied == 0) break;
  }
  return total;
}

bool all_are(std::span<const int64_t> values, int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [&](int64_t value) { return value == wanted; });
}

bool is_broadcasting(const Node& node) {
  static constexpr std::array<std::string_view, 24> kNames = {
      "Add",  "And",         "BitwiseAnd", "BitwiseOr", "BitwiseXor",
      "Clip", "Div",         "Equal",      "Greater",   "GreaterOrEqual",
      "Less", "LessOrEqual", "Max",        "Mean",      "Min",
      "Mod",  "Mul",         "Or",         "PRelu",     "Pow",
      "Sub",  "Sum",         "Where",      "Xor"};
  return node.op->domain.empty() && node.types.size() == 1 &&
         std::find(kNames.begin(), kNames.end(), node.op->name) != kNames.end();
}

bool works_by_row(const Node& node) {
  if (!node.op->domain.empty() || node.types.size() != 1 || node.types[0].rank() < 2) return false;
  if (node.op->name == "DequantizeLinear")
    return node.attrs.get_int("block_size", 0) == 0 && !node.attrs.has("axis") && node.types[0].rank() == 2;
  return node.op->name == "Cast" || is_broadcasting(node);
}

std::optional<std::vector<int64_t>> reshape_spec(const std::vector<Expr>& from, const std::vector<Expr>& to) {
  std::vector<int64_t> spec;
  int open = -1;
  bool empty = false;
  for (size_t k = 0; k < to.size(); ++k) {
    if (const auto* imm = to[k].as<IntImm>()) {
      empty |= imm->value == 0;
      spec.push_back(imm->value);
    } else if (k < from.size() && same_dim(from[k], to[k])) {
      spec.push_back(0);
    } else if (open < 0) {
      open = static_cast<int>(k);
      spec.push_back(-1);
    } else {
      return std::nullopt;
    }
  }
  // A 0 in the spec means "copy"; a dim that is 0 can only be said where the source has one at the same place.
  if (empty) {
    if (open >= 0) return std::nullopt;
    for (size_t k = 0; k < to.size(); ++k)
      if (is_const_int(to[k], 0) && !(k < from.size() && is_const_int(from[k], 0))) return std::nullopt;
  }
  return spec;
}

bool reaches_output(const Graph& graph, NodeId id) {
  constexpr size_t kMostNodes = 24;  // a kernel takes no more
  std::set<NodeId> seen{id};
  std::vector<NodeId> open{id};
  while (!open.empty()) {
    const NodeId next = open.back();
    open.pop_back();
    for (const Graph::Use& use : graph.uses({next, 0})) {
      if (use.node < 0) return true;
      if (graph.node(use.node).op->fusion == FusionKind::kElementwise && seen.size() < kMostNodes &&
          seen.insert(use.node).second)
        open.push_back(use.node);
    }
  }
  return false;
}

}  // namespace tensmith::graph
