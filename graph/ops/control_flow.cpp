#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

/// Values of the surrounding graph that subgraphs read follow the operator's own inputs; this attribute counts them.
const AttrSpec kCaptures{.name = "captures", .kind = AttrKind::kInt, .default_value = int64_t{0}};

Refusal control_flow_refusal(const char* name) {
  return refuse("unsupported-control-flow")
         << name
         << " is not compiled yet: expected a model without branches and loops that the data decides; "
            "unroll it when exporting, or make its condition or count a constant";
}

std::vector<TensorType> output_types(const Graph& branch) {
  std::vector<TensorType> types;
  for (const Value& output : branch.outputs) types.push_back(branch.type(output));
  return types;
}

Result<std::vector<TensorType>> infer_if(const InferContext& ctx) {
  const auto then_branch = ctx.node.attrs.get_graph("then_branch"),
             else_branch = ctx.node.attrs.get_graph("else_branch");
  if (!then_branch || !else_branch)
    return refuse("missing-attribute") << "attributes then_branch, else_branch: expected graphs, got none";
  const std::vector<TensorType> yes = output_types(*then_branch), no = output_types(*else_branch);
  const auto condition = int_elements(ctx, 0);
  if (condition && condition->size() == 1 && known(condition->front())) return *known(condition->front()) ? yes : no;
  if (yes.size() != no.size())
    return refuse("bad-arity") << "branches: expected equal numbers of outputs, got " << yes.size() << " and "
                               << no.size();
  std::vector<TensorType> types;
  for (size_t k = 0; k < yes.size(); ++k) {
    if (yes[k].dtype != no[k].dtype)
      return refuse("dtype-mismatch") << "output " << k << ": expected one type in both branches, got "
                                      << to_string(yes[k]) << " and " << to_string(no[k]);
    if (yes[k].rank() != no[k].rank())
      return refuse("dynamic-rank") << "output " << k << ": expected one rank in both branches, got "
                                    << to_string(yes[k]) << " and " << to_string(no[k])
                                    << "; make the condition a constant";
    TensorType type{yes[k].dtype, yes[k].shape, {}};
    for (int axis = 0; axis < type.rank(); ++axis)
      if (!same_dim(yes[k].shape[axis], no[k].shape[axis])) type.shape[axis] = ctx.data_dim(static_cast<int>(k), axis);
    types.push_back(std::move(type));
  }
  return types;
}

OpDef refused_loop(const char* name, const char* doc, std::vector<InputSpec> inputs, std::vector<AttrSpec> attrs) {
  attrs.push_back({.name = "body", .kind = AttrKind::kGraph, .required = true});
  attrs.push_back(kCaptures);
  return OpDef{
      .name = name,
      .doc = doc,
      .inputs = std::move(inputs),
      .attrs = std::move(attrs),
      .min_outputs = 1,
      .max_outputs = -1,
      .fusion = FusionKind::kOpaque,
      .infer = [name](const InferContext&) -> Result<std::vector<TensorType>> { return control_flow_refusal(name); },
  };
}

}  // namespace

/// If (folded when its condition is known), Loop and Scan.
std::vector<OpDef> control_flow() {
  const InputSpec rest{.name = "values", .optional = true, .variadic = true};
  const auto ints_attr = [](const char* name) {
    return AttrSpec{.name = name, .kind = AttrKind::kInts, .no_default = true};
  };
  std::vector<OpDef> list;
  list.push_back(OpDef{
      .name = "If",
      .doc = "One of two graphs, chosen by a condition. Only for conditions that are known at compile time.",
      .inputs = {{.name = "cond", .types = TypeSet::kBool}, rest},
      .attrs = {{.name = "then_branch", .kind = AttrKind::kGraph, .required = true},
                {.name = "else_branch", .kind = AttrKind::kGraph, .required = true},
                kCaptures},
      .min_outputs = 1,
      .max_outputs = -1,
      .fusion = FusionKind::kOpaque,
      .infer = infer_if,
      .supports = [](const InferContext&) -> Result<void> { return control_flow_refusal("If"); },
      .samples = {{.name = "no_branches", .inputs = {given(kBool, {}, {1})}, .error_id = "missing-attribute"}},
  });
  list.push_back(refused_loop("Loop", "A graph repeated a number of times, or while a condition holds. Refused.",
                              {{.name = "M", .types = TypeSet::kInt64, .optional = true},
                               {.name = "cond", .types = TypeSet::kBool, .optional = true},
                               rest},
                              {}));
  list.push_back(refused_loop("Scan", "A graph run over the slices of tensors, with a state. Refused.", {rest},
                              {{.name = "num_scan_inputs", .kind = AttrKind::kInt, .required = true},
                               ints_attr("scan_input_axes"),
                               ints_attr("scan_input_directions"),
                               ints_attr("scan_output_axes"),
                               ints_attr("scan_output_directions")}));
  return list;
}

}  // namespace tensmith::graph::ops
