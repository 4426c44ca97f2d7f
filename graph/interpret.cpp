#include "graph/interpret.h"

#include <algorithm>

#include "graph/dim_facts.h"
#include "runtime/base/rng.h"
#include "tensor/interpret.h"
#include "tensor/walk.h"

namespace tensmith::graph {

namespace {

/// Inputs up to this size are shown to type rules and decompositions as constants, since they may steer shapes.
constexpr int64_t kMaxSteeringElements = 1024;

/// The node with types that hold for the very inputs of this run.
class BoundNode {
 public:
  BoundNode(const Node& node, const std::vector<const RefTensor*>& inputs,
            const std::vector<const Constant*>& constants)
      : node_(node) {
    for (size_t k = 0; k < inputs.size(); ++k) {
      const Constant* constant = k < constants.size() ? constants[k] : nullptr;
      types_.push_back(inputs[k] ? static_type(inputs[k]->dtype, inputs[k]->shape) : TensorType{});
      if (!constant && inputs[k] && inputs[k]->num_elements() <= kMaxSteeringElements) {
        made_.push_back(std::make_unique<Constant>(to_constant(*inputs[k])));
        constant = made_.back().get();
      }
      constants_.push_back(constant);
    }
    for (size_t k = 0; k < inputs.size(); ++k) pointers_.push_back(inputs[k] ? &types_[k] : nullptr);
  }

  Result<void> infer() {
    const int count = static_cast<int>(node_.types.size());
    node_.types.clear();
    auto types = infer_types(InferContext{node_, pointers_, constants_, count});
    if (!types) return types.failure();
    node_.types = std::move(types).value();
    return {};
  }

  /// Whether the compute rule serves the node.
  Result<void> supported() const {
    if (!node_.op->supports) return {};
    return node_.op->supports(InferContext{node_, pointers_, constants_, static_cast<int>(node_.types.size())});
  }

  const Node& node() const { return node_; }
  const std::vector<const TensorType*>& types() const { return pointers_; }
  const std::vector<const Constant*>& constants() const { return constants_; }

 private:
  Node node_;
  std::vector<TensorType> types_;
  std::vector<const TensorType*> pointers_;
  std::vector<const Constant*> constants_;
  std::vector<std::unique_ptr<Constant>> made_;
};

Failure at_node(const Node& node, const Failure& failure) {
  return {failure.id, "node '" + node.name + "' (" + node.op->name + "): " + failure.message};
}

bool all_static(const Node& node) {
  return std::all_of(node.types.begin(), node.types.end(), [](const TensorType& type) { return type.is_static(); });
}

Result<std::vector<RefTensor>> run_reference(const Node& node, const std::vector<const RefTensor*>& inputs) {
  ReferenceContext context{node, inputs, {}};
  for (const TensorType& type : node.types)
    context.outputs.push_back(type.is_static() ? make_ref_tensor(type.dtype, type.static_shape())
                                               : RefTensor{type.dtype, {}, {}, {}});
  if (auto ok = node.op->reference(context); !ok) return at_node(node, ok.failure());
  for (const RefTensor& output : context.outputs)
    TS_CHECK(static_cast<int64_t>(output.is_float() ? output.f.size() : output.i.size()) == output.num_elements())
        << "reference of " << node.op->name << " gives data that does not fill its shape";
  return std::move(context.outputs);
}

Result<std::vector<RefTensor>> run_decomposed(const BoundNode& bound, const std::vector<const RefTensor*>& inputs,
                                              const InterpretOptions& options) {
  const Node& node = bound.node();
  Graph scratch;
  GraphEditor editor(scratch);
  std::vector<Value> values;
  std::vector<RefTensor> given;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k]) {
      values.push_back({});
    } else if (bound.constants()[k]) {
      values.push_back(editor.add_constant(*bound.constants()[k]));
    } else {
      values.push_back(editor.add_input("x" + std::to_string(k), *bound.types()[k]));
      given.push_back(*inputs[k]);
    }
  }
  const NodeId id = editor.add(*node.op, values, node.attrs, node.name, static_cast<int>(node.types.size()));
  const std::vector<Value> outputs = node.op->decompose(editor, scratch.node(id));
  std::vector<std::string> names;
  for (size_t k = 0; k < outputs.size(); ++k) names.push_back("y" + std::to_string(k));
  editor.set_outputs(outputs, names);
  editor.erase_dead();
  TS_CHECK(!scratch.alive(id)) << "decomposition of " << node.op->name << " uses the node itself";
  return interpret(scratch, std::move(given), {options.round_each, options.by_compute, options.noise, nullptr});
}

/// A tensor that is a placeholder or stands twice among the outputs gets a stage of its own.
std::vector<Tensor> own_stages(std::vector<Tensor> outputs) {
  for (size_t k = 0; k < outputs.size(); ++k) {
    const auto same = [&](const Tensor& other) { return other.buffer().same_as(outputs[k].buffer()); };
    const bool repeated = std::any_of(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(k), same);
    if (outputs[k].stage()->stage_kind != StageKind::kPlaceholder && !repeated) continue;
    const Tensor source = outputs[k];
    outputs[k] = compute("copy", source.shape(), [&](const Indices& i) { return source(i); });
  }
  return outputs;
}

Result<std::vector<RefTensor>> run_computed(const BoundNode& bound, const std::vector<const RefTensor*>& inputs,
                                            const InterpretOptions& options) {
  const Node& node = bound.node();
  if (!all_static(node)) return at_node(node, {"dynamic-shape", "the compute rule needs fixed dims"});
  ComputeContext context{node, {}, bound.types(), bound.constants()};
  std::vector<Tensor> placeholders;
  std::vector<InterpValue> storage;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k]) {
      context.inputs.emplace_back();
      continue;
    }
    placeholders.push_back(placeholder("x" + std::to_string(k), bound.types()[k]->shape, inputs[k]->dtype));
    context.inputs.push_back(placeholders.back());
    storage.push_back({inputs[k]->dtype, inputs[k]->f, inputs[k]->i});
  }
  const std::vector<Tensor> outputs = own_stages(node.op->compute(context));
  for (size_t k = 0; k < outputs.size(); ++k) {
    int64_t count = 1;
    for (int64_t dim : node.types[k].static_shape()) count *= dim;
    storage.push_back(make_interp_value(outputs[k].dtype(), count));
  }
  const LoopFunction loops = reference_loops(make_workload(node.op->name, placeholders, outputs));
  std::vector<InterpValue*> buffers;
  for (InterpValue& value : storage) buffers.push_back(&value);
  if (auto ok =
          tensmith::interpret(loops, buffers, {}, options.round_each ? InterpFloat::kRounded : InterpFloat::kExact);
      !ok)
    return at_node(node, ok.failure());
  std::vector<RefTensor> results;
  for (size_t k = 0; k < outputs.size(); ++k) {
    InterpValue& value = storage[placeholders.size() + k];
    results.push_back({node.types[k].dtype, node.types[k].static_shape(), std::move(value.f), std::move(value.i)});
  }
  return results;
}

/// If: the branch that the condition chooses, on the captured values.
Result<std::vector<RefTensor>> run_if(const Node& node, const std::vector<const RefTensor*>& inputs,
                                      const InterpretOptions& options) {
  if (inputs.empty() || !inputs[0] || inputs[0]->i.size() != 1)
    return at_node(node, {"bad-input", "the condition must be one bool"});
  const auto branch = node.attrs.get_graph(inputs[0]->i[0] != 0 ? "then_branch" : "else_branch");
  if (!branch) return at_node(node, {"missing-attribute", "the branch is missing"});
  std::vector<RefTensor> captured;
  for (size_t k = 1; k < inputs.size(); ++k) captured.push_back(*inputs[k]);
  return interpret(*branch, std::move(captured), options);
}

/// Sizes of symbolic dims from the shapes of the inputs.
Result<VarMap> bind_inputs(const Graph& graph, const std::vector<RefTensor>& inputs) {
  if (inputs.size() != graph.inputs.size())
    return Failure{"bad-input", "graph " + graph.name + ": expected " + std::to_string(graph.inputs.size()) +
                                    " inputs, got " + std::to_string(inputs.size())};
  VarMap sizes;
  const auto mismatch = [&](const Node& node, const RefTensor& given) {
    return Failure{"bad-input", "input " + node.name + ": expected " + to_string(node.types[0]) + ", got " +
                                    to_string(static_type(given.dtype, given.shape))};
  };
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Node& node = graph.node(graph.inputs[k]);
    const TensorType& type = node.types[0];
    if (type.dtype != inputs[k].dtype || type.shape.size() != inputs[k].shape.size()) return mismatch(node, inputs[k]);
    for (size_t d = 0; d < type.shape.size(); ++d)
      if (const auto* var = type.shape[d].as<VarNode>()) sizes.try_emplace(var, inputs[k].shape[d]);
  }
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Node& node = graph.node(graph.inputs[k]);
    for (size_t d = 0; d < inputs[k].shape.size(); ++d)
      if (const Expr expected = simplify_dim(substitute(node.types[0].shape[d], sizes));
          expected.as<IntImm>() && !is_const_int(expected, inputs[k].shape[d]))
        return mismatch(node, inputs[k]);
  }
  return sizes;
}

}  // namespace

Result<std::vector<RefTensor>> interpret_node(const Node& node, const std::vector<const RefTensor*>& inputs,
                                              const std::vector<const Constant*>& constants,
                                              const InterpretOptions& options) {
  const auto run = [&]() -> Result<std::vector<RefTensor>> {
    const bool computes = options.by_compute && node.op->compute;
    if (!node.op->reference && node.op->name == "If" && node.op->domain.empty()) return run_if(node, inputs, options);
    if (node.op->reference && all_static(node) && !computes) return run_reference(node, inputs);
    BoundNode bound(node, inputs, constants);
    if (auto ok = bound.infer(); !ok) return ok.failure();
    if (computes && all_static(bound.node())) {
      if (auto ok = bound.supported(); !ok) return at_node(node, ok.failure());
      return run_computed(bound, inputs, options);
    }
    if (node.op->reference) return run_reference(bound.node(), inputs);
    if (node.op->decompose) return run_decomposed(bound, inputs, options);
    if (node.op->compute) return run_computed(bound, inputs, options);
    return at_node(node, {"unsupported-op", "the operator has no reference, decomposition or compute rule"});
  };
  auto outputs = run();
  if (!outputs) return outputs;
  std::vector<RefTensor> tensors = std::move(outputs).value();
  // All elements alike, as where equal rows are summed in the same order: independent errors would cancel out in means.
  const double factor = 1 + (Rng(static_cast<uint64_t>(node.id) + 1).chance(0.5) ? options.noise : -options.noise);
  for (RefTensor& tensor : tensors) {
    if (options.noise > 0)
      for (double& x : tensor.f) x *= factor;
    if (options.round_each || !tensor.is_float()) round_to_dtype(tensor);
  }
  return tensors;
}

Result<std::vector<RefTensor>> interpret(const Graph& graph, std::vector<RefTensor> inputs,
                                         const InterpretOptions& options) {
  if (auto sizes = bind_inputs(graph, inputs); !sizes) return sizes.failure();
  std::map<Value, RefTensor> values;
  std::map<Value, size_t> uses_left;
  for (size_t k = 0; k < inputs.size(); ++k) values[{graph.inputs[k], 0}] = std::move(inputs[k]);
  static const OpDef* const input_op = find_op("Input", "tensmith");

  // Constants are converted when first used, so that the weights of a large model do not all lie in memory as doubles.
  const auto fetch = [&](Value v) -> const RefTensor* {
    if (!v.given()) return nullptr;
    const auto [it, fresh] = values.try_emplace(v);
    if (fresh) {
      const Constant* constant = graph.constant(v);
      TS_CHECK(constant) << "value " << graph.value_name(v) << " was not computed";
      it->second = to_ref_tensor(*constant);
    }
    return &it->second;
  };
  const auto release = [&](Value v) {
    if (!v.given()) return;
    const auto [it, fresh] = uses_left.try_emplace(v, graph.uses(v).size());
    if (--it->second == 0) values.erase(v);
  };

  for (NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (node.op == input_op || graph.constant({id, 0})) continue;
    std::vector<const RefTensor*> arguments;
    std::vector<const Constant*> constants;
    for (const Value& input : node.inputs) {
      arguments.push_back(fetch(input));
      constants.push_back(graph.constant(input));
    }
    auto outputs = interpret_node(node, arguments, constants, options);
    if (!outputs) return outputs;
    std::vector<RefTensor> tensors = std::move(outputs).value();
    if (options.on_node) options.on_node(node, tensors);
    for (const Value& input : node.inputs) release(input);
    for (size_t k = 0; k < node.types.size() && k < tensors.size(); ++k) {
      const Value v{id, static_cast<int>(k)};
      if (!graph.uses(v).empty()) values[v] = std::move(tensors[k]);
    }
  }
  std::vector<RefTensor> results;
  for (const Value& output : graph.outputs) results.push_back(*fetch(output));
  return results;
}

}  // namespace tensmith::graph
