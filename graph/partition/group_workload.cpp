#include "graph/partition/group_workload.h"

#include <map>

namespace tensmith::graph {

namespace {

bool is_single_element(const Constant& constant) { return constant.num_elements() == 1; }

/// A constant of one element as an expression, so that it becomes an immediate operand.
Tensor immediate(const Constant& constant, const std::string& name) {
  std::vector<Expr> shape;
  for (int64_t extent : constant.shape()) shape.push_back(Expr(extent));
  const Expr value = constant.dtype().is_float() ? make_const(constant.dtype(), constant.float_at(0))
                                                 : make_const_int(constant.dtype(), constant.int_at(0));
  return compute(name, shape, [&](const Indices&) { return value; });
}

}  // namespace

GroupWorkload make_group_workload(const Graph& graph, const Group& group, const std::string& name) {
  GroupWorkload result;
  std::map<Value, Tensor> tensors;
  std::vector<Tensor> inputs, outputs;
  for (const Value& input : group.inputs) {
    const TensorType& type = graph.type(input);
    const Constant* constant = graph.constant(input);
    if (constant && is_single_element(*constant)) {
      tensors[input] = immediate(*constant, "c" + std::to_string(tensors.size()));
      continue;
    }
    tensors[input] = placeholder("in" + std::to_string(inputs.size()), type.shape, type.dtype, constant != nullptr);
    inputs.push_back(tensors[input]);
    result.inputs.push_back(input);
  }
  for (NodeId id : group.nodes) {
    const Node& node = graph.node(id);
    if (!node.op->compute)
      throw UnsupportedError("no-compute", node.name + ": operator " + node.op->name +
                                               " has no compute rule; it must be decomposed first");
    ComputeContext context{node, {}, {}, {}};
    for (const Value& input : node.inputs) {
      context.inputs.push_back(input.given() ? tensors.at(input) : Tensor());
      context.input_types.push_back(input.given() ? &graph.type(input) : nullptr);
      context.constants.push_back(input.given() ? graph.constant(input) : nullptr);
    }
    const std::vector<Tensor> results = node.op->compute(context);
    TS_CHECK(results.size() >= node.types.size()) << node.name;
    for (size_t o = 0; o < node.types.size(); ++o) tensors[{id, static_cast<int>(o)}] = results[o];
  }
  for (const Value& output : group.outputs) {
    Tensor tensor = tensors.at(output);
    // A rule may hand an input through, or the same tensor for two outputs: copy, so that each output is a stage of its
    // own.
    bool taken = tensor.stage()->stage_kind == StageKind::kPlaceholder;
    for (const Tensor& other : outputs) taken = taken || other.buffer().same_as(tensor.buffer());
    if (taken)
      tensor =
          compute("copy" + std::to_string(outputs.size()), tensor.shape(), [&](const Indices& i) { return tensor(i); });
    outputs.push_back(tensor);
    result.outputs.push_back(output);
  }
  result.workload = make_workload(name, inputs, outputs);
  return result;
}

}  // namespace tensmith::graph
