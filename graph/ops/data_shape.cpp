#include "graph/ops/data_shape.h"

#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

Result<std::optional<std::vector<TensorType>>> types_by_reference(const InferContext& ctx) {
  using Types = std::optional<std::vector<TensorType>>;
  std::vector<RefTensor> contents(ctx.inputs.size());
  ReferenceContext reference{ctx.node, {}, std::vector<RefTensor>(static_cast<size_t>(ctx.num_outputs))};
  for (size_t k = 0; k < ctx.inputs.size(); ++k) {
    if (ctx.inputs[k] && (k >= ctx.constants.size() || !ctx.constants[k])) return Types{};
    if (ctx.inputs[k]) contents[k] = to_ref_tensor(*ctx.constants[k]);
    reference.inputs.push_back(ctx.inputs[k] ? &contents[k] : nullptr);
  }
  if (Result<void> ok = ctx.node.op->reference(reference); !ok) return ok.failure();
  std::vector<TensorType> types;
  for (const RefTensor& output : reference.outputs) {
    TensorType type = static_type(output.dtype, output.shape);
    if (!output.is_float()) set_elements(type, Elements(output.i.begin(), output.i.end()));
    types.push_back(std::move(type));
  }
  return Types{std::move(types)};
}

std::vector<Value> outputs_by_reference(GraphEditor& editor, const Node& node) {
  std::vector<RefTensor> contents(node.inputs.size());
  ReferenceContext reference{node, {}, std::vector<RefTensor>(node.types.size())};
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    const Constant* constant = node.inputs[k].given() ? editor.graph().constant(node.inputs[k]) : nullptr;
    if (!constant && node.inputs[k].given()) return {};
    if (constant) contents[k] = to_ref_tensor(*constant);
    reference.inputs.push_back(constant ? &contents[k] : nullptr);
  }
  const Result<void> ok = node.op->reference(reference);
  TS_CHECK(ok.ok()) << node.name << ": " << ok.failure().message;
  std::vector<Value> outputs;
  for (const RefTensor& output : reference.outputs)
    outputs.push_back(editor.add_constant(to_constant(output), node.name));
  return outputs;
}

Result<void> refuse_data_shape(const InferContext& ctx) {
  for (size_t k = 0; k < ctx.inputs.size(); ++k)
    if (ctx.inputs[k] && (k >= ctx.constants.size() || !ctx.constants[k]))
      return refuse("dynamic-shape") << "input " << ctx.node.op->inputs[k].name
                                     << ": expected a constant, since its content decides the shape of the output, got "
                                        "data; compute this operator "
                                        "outside of the model";
  return {};
}

bool has_data_shape(const OpDef& op) {
  const auto* rule = op.supports.target<Result<void> (*)(const InferContext&)>();
  return rule && *rule == refuse_data_shape;
}

}  // namespace tensmith::graph::ops
