#include <algorithm>
#include <deque>

#include "graph/dim_facts.h"
#include "graph/op_def.h"
#include "tensor/walk.h"

namespace tensmith::graph {

namespace {

InferContext make_context(const Graph& graph, const Node& node, int num_outputs) {
  InferContext context{node, {}, {}, num_outputs};
  for (const Value& input : node.inputs) {
    context.inputs.push_back(input.given() ? &graph.type(input) : nullptr);
    context.constants.push_back(graph.constant(input));
  }
  return context;
}

[[noreturn]] void refuse(const Failure& failure) {
  const std::string_view id = failure.id;
  if (id.starts_with("unsupported-") || id.starts_with("dynamic-")) throw UnsupportedError(failure.id, failure.message);
  throw UserError(failure.id, failure.message);
}

/// Same dtype, dims and known elements.
bool same_in_full(const TensorType& a, const TensorType& b) {
  if (!same_type(a, b) || a.value.size() != b.value.size()) return false;
  for (size_t k = 0; k < a.value.size(); ++k)
    if (!same_dim(a.value[k], b.value[k])) return false;
  return true;
}

}  // namespace

Result<NodeId> GraphEditor::try_add(const OpDef& op, std::vector<Value> inputs, AttrMap attrs, std::string name,
                                    int num_outputs) {
  for (const Value& input : inputs)
    TS_CHECK(!input.given() ||
             (graph_.alive(input.node) && input.output < static_cast<int>(graph_.node(input.node).types.size())))
        << op.name << " '" << name << "' reads a value that does not exist";
  while (!inputs.empty() && !inputs.back().given()) inputs.pop_back();
  auto node = std::make_unique<Node>();
  node->id = static_cast<NodeId>(graph_.nodes_.size());
  node->op = &op;
  node->name = name.empty() ? op.name + "_" + std::to_string(node->id) : std::move(name);
  node->inputs = std::move(inputs);
  node->attrs = std::move(attrs);
  const int count = num_outputs < 0 ? op.min_outputs : num_outputs;
  auto types = infer_types(make_context(graph_, *node, count));
  if (!types) return types.failure();
  node->types = std::move(types).value();
  return insert(std::move(node));
}

NodeId GraphEditor::add(const OpDef& op, std::vector<Value> inputs, AttrMap attrs, std::string name, int num_outputs) {
  auto added = try_add(op, std::move(inputs), std::move(attrs), std::move(name), num_outputs);
  if (!added) refuse(added.failure());
  return *added;
}

NodeId GraphEditor::add(const std::string& op, std::vector<Value> inputs, AttrMap attrs, std::string name,
                        int num_outputs) {
  const OpDef* def = find_op(op);
  if (!def) def = find_op(op, "tensmith");
  TS_CHECK(def) << "no operator " << op;
  return add(*def, std::move(inputs), std::move(attrs), std::move(name), num_outputs);
}

NodeId GraphEditor::insert(std::unique_ptr<Node> node) {
  const NodeId id = node->id;
  std::vector<std::vector<Graph::Use>> uses(node->types.size());
  for (size_t k = 0; k < node->types.size(); ++k)
    node->output_names.push_back(free_name(k == 0 ? node->name : node->name + "." + std::to_string(k)));
  for (size_t i = 0; i < node->inputs.size(); ++i)
    if (const Value input = node->inputs[i]; input.given())
      graph_.uses_[input.node][input.output].push_back({id, static_cast<int>(i)});
  graph_.nodes_.push_back(std::move(node));
  graph_.uses_.push_back(std::move(uses));
  ++graph_.alive_;
  return id;
}

std::string GraphEditor::free_name(const std::string& wanted) {
  if (graph_.value_names_.insert(wanted).second) return wanted;
  for (int& suffix = graph_.next_suffix_[wanted];;) {
    std::string name = wanted + "_" + std::to_string(++suffix);
    if (graph_.value_names_.insert(name).second) return name;
  }
}

Value GraphEditor::add_input(const std::string& name, TensorType type) {
  auto node = std::make_unique<Node>();
  node->id = static_cast<NodeId>(graph_.nodes_.size());
  node->op = find_op("Input", "tensmith");
  node->name = name;
  for (const Expr& dim : type.shape)
    visit(dim, [&](const Expr& e) {
      const auto same = [&](const Var& known) { return known.same_as(e); };
      if (const auto* var = e.as<VarNode>(); var && std::none_of(graph_.dims.begin(), graph_.dims.end(), same))
        graph_.dims.push_back(Var(var));
      return true;
    });
  node->types = {std::move(type)};
  const NodeId id = insert(std::move(node));
  graph_.inputs.push_back(id);
  return {id, 0};
}

Value GraphEditor::add_constant(Constant value, const std::string& name) {
  AttrMap attrs;
  attrs.set("value", std::move(value));
  return {add(*find_op("Constant", "tensmith"), {}, std::move(attrs), name), 0};
}

Var GraphEditor::dim(const std::string& name) {
  for (const Var& known : graph_.dims)
    if (known.name() == name) return known;
  graph_.dims.push_back(Var(name));
  return graph_.dims.back();
}

void GraphEditor::replace_uses(Value from, Value to) {
  if (from == to) return;
  TS_CHECK(same_type(graph_.type(from), graph_.type(to)))
      << graph_.value_name(from) << " of " << to_string(graph_.type(from)) << " replaced by "
      << to_string(graph_.type(to));
  replace_uses_retyped(from, to);
}

void GraphEditor::replace_uses_retyped(Value from, Value to) {
  if (from == to) return;
  std::vector<Graph::Use> moved;
  std::swap(moved, graph_.uses_[from.node][from.output]);
  auto& target = graph_.uses_[to.node][to.output];
  for (const Graph::Use& use : moved) {
    if (use.node < 0) graph_.outputs[use.input] = to;
    else graph_.nodes_[use.node]->inputs[use.input] = to;
    target.push_back(use);
  }
  // The new value may be known better (a constant, known elements): let the consumers see it.
  for (const Graph::Use& use : moved)
    if (use.node >= 0) refresh_types(use.node);
}

void GraphEditor::remove_use(Value value, Graph::Use use) {
  if (!value.given()) return;
  auto& list = graph_.uses_[value.node][value.output];
  const auto found = std::find_if(list.begin(), list.end(),
                                  [&](const Graph::Use& u) { return u.node == use.node && u.input == use.input; });
  TS_CHECK(found != list.end()) << "use of " << graph_.value_name(value) << " is not recorded";
  list.erase(found);
}

void GraphEditor::set_input(NodeId node, int input, Value value) {
  Node& target = *graph_.nodes_.at(node);
  TS_CHECK(input >= 0) << input;
  if (input >= static_cast<int>(target.inputs.size())) target.inputs.resize(static_cast<size_t>(input) + 1);
  remove_use(target.inputs[input], {node, input});
  target.inputs[input] = value;
  if (value.given()) graph_.uses_[value.node][value.output].push_back({node, input});
  while (!target.inputs.empty() && !target.inputs.back().given()) target.inputs.pop_back();
  refresh_types(node);
}

void GraphEditor::set_attr(NodeId node, const std::string& attr, AttrValue value) {
  graph_.nodes_.at(node)->attrs.set(attr, std::move(value));
  refresh_types(node);
}

void GraphEditor::erase_attr(NodeId node, const std::string& attr) {
  graph_.nodes_.at(node)->attrs.erase(attr);
  refresh_types(node);
}

void GraphEditor::set_outputs(std::vector<Value> outputs, std::vector<std::string> names) {
  TS_CHECK(outputs.size() == names.size()) << outputs.size() << " outputs, " << names.size() << " names";
  for (size_t k = 0; k < graph_.outputs.size(); ++k) remove_use(graph_.outputs[k], {-1, static_cast<int>(k)});
  graph_.outputs = std::move(outputs);
  graph_.output_names = std::move(names);
  for (size_t k = 0; k < graph_.outputs.size(); ++k) {
    const Value v = graph_.outputs[k];
    TS_CHECK(v.given() && graph_.alive(v.node)) << "graph output " << graph_.output_names[k] << " does not exist";
    graph_.uses_[v.node][v.output].push_back({-1, static_cast<int>(k)});
  }
}

void GraphEditor::set_output_name(Value v, const std::string& name) {
  std::string& current = graph_.nodes_.at(v.node)->output_names.at(v.output);
  if (current == name) return;
  graph_.value_names_.erase(current);
  current = free_name(name);
}

void GraphEditor::refresh_types(NodeId start) {
  // Consumers are visited in the order in which they turn up; a node whose inputs change twice is inferred twice.
  std::deque<NodeId> work{start};
  std::unordered_set<NodeId> queued{start};
  while (!work.empty()) {
    const NodeId id = work.front();
    work.pop_front();
    queued.erase(id);
    Node& node = *graph_.nodes_.at(id);
    auto types = infer_types(make_context(graph_, node, static_cast<int>(node.types.size())));
    if (!types) refuse(types.failure());
    std::vector<TensorType> fresh = std::move(types).value();
    for (size_t k = 0; k < node.types.size(); ++k) {
      const bool changed = !same_in_full(node.types[k], fresh[k]);
      node.types[k] = std::move(fresh[k]);
      // A constant's consumers read its content, of which the type may say nothing.
      if (!changed && !(id == start && graph_.constant({id, 0}))) continue;
      for (const Graph::Use& use : graph_.uses_[id][k])
        if (use.node >= 0 && queued.insert(use.node).second) work.push_back(use.node);
    }
  }
}

void GraphEditor::bind_dims(const std::map<std::string, int64_t>& sizes) {
  VarMap map;
  for (const Var& dim : graph_.dims) {
    const auto found = sizes.find(dim.name());
    if (found == sizes.end()) continue;
    TS_USER_CHECK(found->second >= 0 && found->second <= (int64_t{1} << 40), "bad-dim")
        << "dim " << dim.name() << ": expected 0 to 2^40, got " << found->second;
    map[dim.operator->()] = found->second;
  }
  for (const auto& [name, size] : sizes) {
    const auto known = [&](const Var& dim) { return dim.name() == name; };
    if (std::any_of(graph_.dims.begin(), graph_.dims.end(), known)) continue;
    std::string names;
    for (const Var& dim : graph_.dims) names += (names.empty() ? "" : ", ") + dim.name();
    TS_USER_CHECK(false, "unknown-dim")
        << "dim " << name << ": expected "
        << (names.empty() ? "no such option, since all sizes of the model are fixed" : "one of " + names);
  }
  if (!map.empty()) substitute_dims(map);
}

void GraphEditor::substitute_dims(const VarMap& map) {
  const auto replace = [&](std::vector<Expr>& list) {
    for (Expr& e : list) e = simplify_dim(substitute(e, map));
  };
  std::erase_if(graph_.dims, [&](const Var& dim) { return map.count(dim.operator->()) != 0; });
  for (const NodeId id : graph_.topological_order()) {
    Node& node = *graph_.nodes_[id];
    for (const auto& [name, value] : node.attrs.all())
      if (const auto* subgraph = std::get_if<std::shared_ptr<Graph>>(&value); subgraph && *subgraph) {
        GraphEditor inner(**subgraph);
        inner.substitute_dims(map);
      }
    // Data dims are kept by identity, so old types are replaced too before the rule sees them.
    for (TensorType& type : node.types) {
      replace(type.shape);
      replace(type.value);
    }
    auto types = infer_types(make_context(graph_, node, static_cast<int>(node.types.size())));
    if (!types) refuse(types.failure());
    node.types = std::move(types).value();
  }
}

void GraphEditor::erase(NodeId id) {
  Node& node = *graph_.nodes_.at(id);
  for (const auto& uses : graph_.uses_[id]) TS_CHECK(uses.empty()) << "node '" << node.name << "' is still used";
  for (size_t i = 0; i < node.inputs.size(); ++i) remove_use(node.inputs[i], {id, static_cast<int>(i)});
  for (const std::string& name : node.output_names) graph_.value_names_.erase(name);
  std::erase(graph_.inputs, id);
  graph_.uses_[id].clear();
  graph_.nodes_[id].reset();
  --graph_.alive_;
}

int GraphEditor::erase_dead() {
  const std::vector<NodeId> order = graph_.topological_order();
  const OpDef* const input_op = find_op("Input", "tensmith");
  int erased = 0;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const auto& uses = graph_.uses_[*it];
    const bool dead = std::all_of(uses.begin(), uses.end(), [](const auto& list) { return list.empty(); });
    if (!dead || graph_.node(*it).op == input_op) continue;
    erase(*it);
    ++erased;
  }
  return erased;
}

}  // namespace tensmith::graph
