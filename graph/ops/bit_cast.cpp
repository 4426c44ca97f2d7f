#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

Result<std::vector<TensorType>> infer_bit_cast(const InferContext& ctx) {
  const DType from = ctx.input(0).dtype, to = ctx.node.attrs.get_dtype("to", kFloat32);
  if (from.bits != to.bits)
    return refuse("dtype-mismatch") << "attribute to: expected a type of " << int{from.bits} << " bits as "
                                    << to_string(from) << ", got " << to_string(to);
  return std::vector<TensorType>{{to, ctx.input(0).shape, {}}};
}

}  // namespace

OpDef bit_cast() {
  const auto to = [](DType dtype) { return attrs({{"to", AttrValue(dtype)}}); };
  return OpDef{
      .name = "BitCast",
      .since = 26,
      .doc = "The bits of each element read as another type of the same width.",
      .inputs = {{.name = "input"}},
      .attrs = {{.name = "to", .kind = AttrKind::kType, .required = true}},
      .fusion = FusionKind::kElementwise,
      .infer = infer_bit_cast,
      .compute = [](const ComputeContext& ctx) -> std::vector<Tensor> {
        const Tensor& x = ctx.input(0);
        const DType to = ctx.output_type().dtype;
        // A bool is a byte of 0 or 1, so its bits are its value; other bytes read as a bool count as true.
        if (x.dtype().is_bool() || to.is_bool())
          return {compute("bit_cast", x.shape(), [&](const Indices& i) { return cast(to, x(i)); })};
        return {compute("bit_cast", x.shape(),
                        [&](const Indices& i) { return Call::make(to, Intrinsic::kBitcast, {x(i)}); })};
      },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const DType to = ctx.node.attrs.get_dtype("to", kFloat32);
        const Constant bits = to_constant(ctx.input(0));
        ctx.output() = to_ref_tensor(Constant(to, bits.shape(), std::make_shared<Constant>(bits), bits.data()));
        if (to.is_bool())
          for (int64_t& v : ctx.output().i) v = v != 0;
        return {};
      },
      .samples =
          {
              {.name = "float_bits", .inputs = {f32({3, 5})}, .attrs = to(kInt32)},
              {.name = "int_as_float",
               .inputs = {given(kInt32, {3}, {0, 1065353216, -1073741824})},
               .attrs = to(kFloat32)},
              {.name = "double_bits", .inputs = {in(kFloat64, {17})}, .attrs = to(kUInt64)},
              {.name = "half_bits", .inputs = {in(kFloat16, {4})}, .attrs = to(kInt16)},
              {.name = "sign", .inputs = {in(kInt8, {5})}, .attrs = to(kUInt8)},
              {.name = "bools", .inputs = {in(kBool, {5}, 0, 1)}, .attrs = to(kUInt8)},
              {.name = "other_width", .inputs = {f32({3})}, .attrs = to(kInt64), .error_id = "dtype-mismatch"},
          },
  };
}

}  // namespace tensmith::graph::ops
