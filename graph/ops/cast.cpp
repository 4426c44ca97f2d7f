#include <cmath>
#include <limits>

#include "graph/constant_math.h"
#include "graph/ops/op_list.h"
#include "graph/ops/ref_loops.h"
#include "graph/ops/sample.h"
#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

namespace {

TensorType cast_type(const InferContext& ctx, DType to) {
  TensorType type{to, ctx.input(0).shape, {}};
  const DType from = ctx.input(0).dtype;
  if (ctx.input(0).rank() > 1) return type;
  const std::optional<std::vector<Expr>> elements = known_elements(ctx, 0);
  if (!elements || static_cast<int64_t>(elements->size()) > kMaxKnownElements) return type;
  std::vector<Expr> values;
  for (const Expr& element : *elements) {
    const auto number = known_number(element);
    // Whole expressions are sizes: they fit every float and every integer type from 32 bits on.
    if (element.dtype() == kInt64 && (to.is_float() || to.bits >= 32 || to == from)) values.push_back(element);
    else if (number && to.is_float()) values.push_back(float_element(*number, to));
    else if (number && std::fabs(*number) < 9e18 && to.is_integral() && to.bits >= 32)
      values.push_back(static_cast<int64_t>(*number));
    else if (number && to.is_bool()) values.push_back(int64_t{*number != 0});
    else return type;
  }
  type.value = std::move(values);
  return type;
}

std::vector<Tensor> cast_compute(const ComputeContext& ctx) {
  const Tensor& x = ctx.input(0);
  const DType to = ctx.output_type().dtype;
  // Floats become 4-bit integers by way of i32: truncated, then the low bits kept, as ONNX defines it.
  const bool by_int = x.dtype().is_float() && to.is_integral() && to.bits < 8;
  return {compute("cast", x.shape(), [&](const Indices& i) { return cast(to, by_int ? cast(kInt32, x(i)) : x(i)); })};
}

/// Float to integer: truncate, saturate, NaN to 0.
int64_t to_int(double value, DType type) {
  if (type.is_bool()) return value != 0;
  if (std::isnan(value)) return 0;
  const int bits = type.is_int() ? type.bits - 1 : type.bits;
  const double above = std::ldexp(1.0, bits), truncated = std::trunc(value);
  const bool is_signed = type.is_int();
  if (truncated >= above)
    return is_signed ? static_cast<int64_t>((uint64_t{1} << bits) - 1)
                     : static_cast<int64_t>(bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1);
  if (truncated < (is_signed ? -above : 0.0)) return is_signed ? static_cast<int64_t>(~uint64_t{0} << bits) : 0;
  return is_signed ? static_cast<int64_t>(truncated) : static_cast<int64_t>(static_cast<uint64_t>(truncated));
}

Result<void> cast_reference(ReferenceContext& ctx) {
  const RefTensor& x = ctx.input(0);
  RefTensor& y = ctx.output();
  const int64_t count = x.num_elements();
  for (int64_t k = 0; k < count; ++k) {
    if (x.is_float() && y.is_float()) y.f[k] = x.f[k];  // the caller rounds to the type
    else if (x.is_float())
      y.i[k] = y.dtype.is_integral() && y.dtype.bits < 8 ? wrap_int(y.dtype, to_int(x.f[k], kInt32))
                                                         : to_int(x.f[k], y.dtype);
    else if (y.is_float())
      y.f[k] = x.dtype.is_uint() ? static_cast<double>(static_cast<uint64_t>(x.i[k])) : static_cast<double>(x.i[k]);
    else y.i[k] = wrap_int(y.dtype, x.i[k]);
  }
  return {};
}

std::optional<Constant> fold_cast(const Node& node, const std::vector<const Constant*>& inputs) {
  // Integers to integers wrap, and 64-bit integers are no doubles; special rounding is the interpreter's work.
  const Constant& in = *inputs[0];
  const DType to = node.types[0].dtype;
  if (!to.is_float() || (in.dtype().bits == 64 && !in.dtype().is_float()) || node.attrs.has("round_mode"))
    return std::nullopt;
  return map_elements(in, to, [](double x, int64_t) { return x; });
}

OpSample to(const char* name, OpSample::Input input, DType type) {
  const bool narrow = type.is_float() && type.bits == 16;
  return {.name = name,
          .inputs = {std::move(input)},
          .attrs = attrs({{"to", AttrValue(type)}}),
          .rtol = narrow ? 1e-2 : 1e-5,
          .atol = narrow ? 1e-3 : 1e-6};
}

}  // namespace

OpDef cast_op() {
  return OpDef{
      .name = "Cast",
      .since = 6,
      .doc =
          "Converts elements: floats to integers truncate and saturate (NaN gives 0; to 4 bits they wrap), integers "
          "wrap, anything to bool is `!= 0`.",
      .inputs = {{.name = "input"}},
      .attrs = {{.name = "to", .kind = AttrKind::kType, .required = true},
                {.name = "saturate", .kind = AttrKind::kInt, .default_value = int64_t{1}, .since = 19},
                {.name = "round_mode", .kind = AttrKind::kString, .default_value = std::string("up"), .since = 24}},
      .fusion = FusionKind::kElementwise,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        return std::vector<TensorType>{cast_type(ctx, ctx.node.attrs.get_dtype("to", kFloat32))};
      },
      .compute = cast_compute,
      .reference = cast_reference,
      .fold = fold_cast,
      .samples = {to("to_half", f32({3, 5}), kFloat16),
                  to("to_brain", f32({17}), kBFloat16),
                  to("to_double", f32({3}), kFloat64),
                  to("from_half", in(kFloat16, {4}), kFloat32),
                  to("truncates", given(kFloat32, {5}, {1.9, -1.9, 0.5, -0.5, 7}), kInt32),
                  to("saturates", given(kFloat32, {5}, {1e20, -1e20, NAN, 300, -300}), kInt8),
                  to("saturates_wide", given(kFloat64, {4}, {1e30, -1e30, INFINITY, NAN}), kInt64),
                  to("to_unsigned", given(kFloat32, {4}, {-1, 3.7, 1e20, 255}), kUInt8),
                  to("int4_wraps", given(kFloat32, {4}, {-9, 8, 7.9, -1.5}), kInt4),
                  to("wraps", given(kInt32, {4}, {200, -200, 128, 70000}), kInt8),
                  to("to_bool", given(kFloat32, {4}, {0, 0.3, -1, NAN}), kBool),
                  to("int_to_bool", given(kInt64, {3}, {0, 256, -1}), kBool),
                  to("from_bool", in(kBool, {5}, 0, 1), kFloat32),
                  to("uint64_to_double", given(kUInt64, {2}, {1e19, 3}), kFloat64),
                  to("scalar", in(kInt64, {}, -9, 9), kFloat32),
                  to("same", f32({2}), kFloat32),
                  {.name = "no_type", .inputs = {f32({2})}, .error_id = "missing-attribute"}},
  };
}

OpDef cast_like() {
  return OpDef{
      .name = "CastLike",
      .since = 15,
      .doc = "Converts elements to the type of the second input, by the rules of Cast.",
      .inputs = {{.name = "input"}, {.name = "target_type"}},
      .attrs = {{.name = "saturate", .kind = AttrKind::kInt, .default_value = int64_t{1}, .since = 19},
                {.name = "round_mode", .kind = AttrKind::kString, .default_value = std::string("up"), .since = 24}},
      .fusion = FusionKind::kElementwise,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        return std::vector<TensorType>{cast_type(ctx, ctx.input(1).dtype)};
      },
      .compute = cast_compute,
      .reference = cast_reference,
      .samples = {{.name = "to_int", .inputs = {f32({3, 5}), in(kInt32, {1})}},
                  {.name = "to_float", .inputs = {in(kInt64, {}, -9, 9), f32({2, 2})}}},
  };
}

}  // namespace tensmith::graph::ops
