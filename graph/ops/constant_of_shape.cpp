#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

/// The attribute `value`, or the float32 zero that stands for it.
Constant fill_value(const AttrMap& attrs) {
  const Constant* value = attrs.get_tensor("value");
  return value ? *value : Constant::allocate(kFloat32, {});
}

Result<std::vector<TensorType>> infer_constant_of_shape(const InferContext& ctx) {
  if (Result<void> ok = check_rank(ctx.input(0), 1, 1, "input"); !ok) return ok.failure();
  const Constant value = fill_value(ctx.node.attrs);
  if (value.num_elements() != 1)
    return refuse("bad-attribute") << "attribute value: expected one element, got " << value.num_elements();
  TensorType type{value.dtype(), {}, {}};
  if (const auto dims = int_elements(ctx, 0)) {
    for (const Expr& dim : *dims)
      if (known(dim).value_or(0) < 0)
        return refuse("shape-mismatch") << "input: expected dims of 0 or more, got " << *known(dim);
    type.shape = *dims;
  } else {
    const auto rank = known(ctx.input(0).shape[0]);
    if (!rank)
      return refuse("dynamic-rank") << "input: expected a known number of dims, got "
                                    << dim_to_string(ctx.input(0).shape[0]);
    type.shape = data_shape(ctx, 0, static_cast<int>(*rank));
  }
  if (follows_elements(type)) {
    const Expr element =
        value.dtype().is_float() ? float_element(value.float_at(0), value.dtype()) : Expr(value.int_at(0));
    set_elements(type, Elements(static_cast<size_t>(count_of(type.static_shape())), element));
  }
  return std::vector<TensorType>{std::move(type)};
}

}  // namespace

OpDef constant_of_shape() {
  const auto one = [](DType dtype, double value) {
    return AttrValue(Constant::from_floats(dtype, {1}, std::vector<double>{value}));
  };
  return OpDef{
      .name = "ConstantOfShape",
      .since = 9,
      .doc = "A tensor of the given shape, all of whose elements are `value` (float32 zero when absent).",
      .inputs = {{.name = "input", .types = TypeSet::kInt64}},
      .attrs = {{.name = "value", .kind = AttrKind::kTensor, .no_default = true}},
      .fusion = FusionKind::kInjective,
      .infer = infer_constant_of_shape,
      .compute = [](const ComputeContext& ctx) -> std::vector<Tensor> {
        const Constant value = fill_value(ctx.node.attrs);
        const DType dtype = value.dtype();
        return {compute("fill", ctx.output_type().shape, [&](const Indices&) {
          return dtype.is_float() ? make_const(dtype, value.float_at(0)) : make_const_int(dtype, value.int_at(0));
        })};
      },
      .supports = [](const InferContext& ctx) { return require_elements(ctx, {0}); },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const Constant value = fill_value(ctx.node.attrs);
        for (int64_t dim : ctx.input(0).i)
          if (dim < 0) return Failure{"shape-mismatch", "a tensor with a dim of " + std::to_string(dim)};
        RefTensor& y = make_output(ctx, value.dtype(), ctx.input(0).i);
        for (double& v : y.f) v = value.float_at(0);
        for (int64_t& v : y.i) v = value.int_at(0);
        return {};
      },
      .samples =
          {
              {.name = "zeros", .inputs = {known_ints({2, 3})}},
              {.name = "ones", .inputs = {known_ints({17})}, .attrs = attrs({{"value", one(kInt64, 1)}})},
              {.name = "half", .inputs = {known_ints({3})}, .attrs = attrs({{"value", one(kFloat16, 0.1)}})},
              {.name = "scalar", .inputs = {known_ints({})}, .attrs = attrs({{"value", one(kBool, 1)}})},
              {.name = "empty", .inputs = {known_ints({0, 2})}},
              {.name = "negative", .inputs = {known_ints({2, -1})}, .error_id = "shape-mismatch"},
          },
  };
}

}  // namespace tensmith::graph::ops
