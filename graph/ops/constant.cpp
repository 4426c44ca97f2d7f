#include "graph/ops/op_list.h"

namespace tensmith::graph::ops {

namespace {

/// Largest number of elements whose values are kept as expressions in the type (TensorType::value).
constexpr int64_t kMaxKnownElements = 64;

Result<std::vector<TensorType>> infer_constant(const InferContext& ctx) {
  const Constant* value = ctx.node.attrs.get_tensor("value");
  if (!value || !*value) return Failure{"missing-attribute", "attribute value: expected a tensor, got none"};
  TensorType type{value->dtype(), {}, {}};
  for (int64_t dim : value->shape()) type.shape.push_back(dim);
  const bool countable = value->dtype().is_integral() || value->dtype().is_bool();
  if (countable && value->shape().size() <= 1 && value->num_elements() <= kMaxKnownElements)
    for (int64_t element : value->ints()) type.value.push_back(element);
  return std::vector<TensorType>{std::move(type)};
}

}  // namespace

/// Known data. All forms of ONNX's Constant become this one with attribute `value`.
OpDef constant() {
  return OpDef{
      .name = "Constant",
      .domain = "tensmith",
      .doc = "A tensor that is known at compile time.",
      .inputs = {},
      .attrs = {{.name = "value", .kind = AttrKind::kTensor, .required = true}},
      .is_source = true,
      .infer = infer_constant,
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const Constant& value = *ctx.node.attrs.get_tensor("value");
        RefTensor& out = ctx.output();
        const int64_t count = value.num_elements();
        if (out.is_float())
          for (int64_t k = 0; k < count; ++k) out.f[k] = value.float_at(k);
        else
          for (int64_t k = 0; k < count; ++k) out.i[k] = value.int_at(k);
        return {};
      },
  };
}

}  // namespace tensmith::graph::ops
