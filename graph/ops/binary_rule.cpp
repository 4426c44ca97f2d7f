#include "graph/ops/binary_rule.h"

#include "graph/constant_math.h"
#include "graph/ops/arith.h"
#include "graph/ops/ref_loops.h"
#include "graph/ops/sample.h"
#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

namespace {

std::vector<OpSample> default_samples(const BinaryRow& row) {
  std::vector<OpSample> samples = row.more_samples;
  const auto add = [&](const char* name, DType type, Dims a, Dims b) {
    if (!accepts(row.types, type)) return;
    const double low = type.is_uint() || type.is_bool() ? 0 : -2, high = type.is_bool()       ? 1
                                                                         : type.is_integral() ? 9
                                                                                              : 2;
    const bool divides = row.low_b > 0;
    OpSample sample{.name = name,
                    .inputs = {in(type, std::move(a), low, high),
                               in(type, std::move(b), divides ? row.low_b : low, divides ? row.high_b : high)},
                    .attrs = row.sample_attrs};
    if (type.is_float() && type.bits == 16) sample.rtol = type.is_bfloat() ? 1e-2 : 2e-3, sample.atol = 1e-3;
    samples.push_back(std::move(sample));
  };
  if (row.reference) {
    add("same", kFloat32, {3, 17}, {3, 17});
    add("broadcast_row", kFloat32, {2, 3, 5}, {5});
    add("broadcast_both", kFloat32, {3, 1}, {1, 4});
    add("scalars", kFloat32, {}, {});
    add("scalar_right", kFloat32, {17}, {});
    add("half", kFloat16, {3, 5}, {5});
    add("brain", kBFloat16, {4}, {4});
    add("double", kFloat64, {4}, {4});
    add("empty", kFloat32, {0, 3}, {3});
  }
  if (row.int_reference) {
    add("int32", kInt32, {3, 4}, {4});
    add("int64", kInt64, {3, 1}, {1, 2});
    add("int8", kInt8, {5}, {5});
    add("uint8", kUInt8, {5}, {5});
    add("uint32", kUInt32, {5}, {5});
    add("uint64", kUInt64, {3}, {3});
    add("bool", kBool, {2, 3}, {3});
  }
  if (!samples.empty()) {
    OpSample bad{.name = "dims_differ",
                 .inputs = {samples.back().inputs[0], samples.back().inputs[1]},
                 .attrs = samples.back().attrs,
                 .error_id = "shape-mismatch"};
    bad.inputs[0].shape = {2, 3};
    bad.inputs[1].shape = {2};
    bad.inputs[0].values.clear(), bad.inputs[1].values.clear();
    samples.push_back(std::move(bad));
  }
  return samples;
}

}  // namespace

Result<TensorType> infer_broadcast(const InferContext& ctx, DType result) {
  std::vector<const Shape*> shapes;
  for (const TensorType* input : ctx.inputs) shapes.push_back(&input->shape);
  Result<Shape> shape = broadcast_shapes(shapes);
  if (!shape) return shape.failure();
  return TensorType{result, *shape, {}};
}

OpDef make_binary(const BinaryRow& row) {
  OpDef op{
      .name = row.name,
      .since = row.since,
      .doc = row.doc,
      .inputs = {{.name = "A", .types = row.types}, {.name = "B", .types = row.types, .same_type_as = "A"}},
      .attrs = row.attrs,
      .fusion = FusionKind::kElementwise,
      .infer = nullptr,
      .samples = default_samples(row),
  };
  op.infer = [row](const InferContext& ctx) -> Result<std::vector<TensorType>> {
    if (row.check)
      if (Result<void> ok = row.check(ctx); !ok) return ok.failure();
    Result<TensorType> type = infer_broadcast(ctx, row.gives_bool ? kBool : ctx.input(0).dtype);
    if (!type) return type.failure();
    TensorType result = *type;
    ValueRule rule;
    rule.whole_of_floats = row.whole_of_floats;
    if (row.known_value) rule.whole = [&](const std::vector<Expr>& x) { return row.known_value(x[0], x[1]); };
    if (row.reference)
      rule.numbers = [&](const std::vector<double>& x) { return row.reference(x[0], x[1], ctx.node.attrs); };
    if (!ctx.input(0).dtype.is_uint()) propagate_values(ctx, result, rule);
    return std::vector<TensorType>{std::move(result)};
  };
  op.compute = [name = std::string(row.name), body = row.body](const ComputeContext& ctx) {
    const DType result = ctx.output_type().dtype;
    return std::vector<Tensor>{compute(name, ctx.output_type().shape, [&](const Indices& i) {
      return cast(result,
                  body(widen(broadcast_load(ctx.input(0), i)), widen(broadcast_load(ctx.input(1), i)), ctx.node.attrs));
    })};
  };
  op.reference = [reference = row.reference, int_reference = row.int_reference](ReferenceContext& ctx) -> Result<void> {
    const RefTensor &a = ctx.input(0), &b = ctx.input(1);
    RefTensor& y = ctx.output();
    const AttrMap& attrs = ctx.node.attrs;
    for_each_broadcast<2>(y.shape, {&a.shape, &b.shape}, [&](int64_t k, const std::array<int64_t, 2>& at) {
      if (!a.is_float()) y.i[k] = wrap_int(y.dtype, int_reference(a.i[at[0]], b.i[at[1]], a.dtype, attrs));
      else if (y.is_float()) y.f[k] = reference(a.f[at[0]], b.f[at[1]], attrs);
      else y.i[k] = reference(a.f[at[0]], b.f[at[1]], attrs) != 0;
    });
    return {};
  };
  if (row.reference && !row.gives_bool)
    op.fold = [reference = row.reference](const Node& node,
                                          const std::vector<const Constant*>& inputs) -> std::optional<Constant> {
      if (inputs.size() != 2 || !inputs[1] || inputs[1]->num_elements() == 0 || inputs[0]->dtype() != kFloat32 ||
          inputs[1]->dtype() != kFloat32)
        return std::nullopt;
      return combine_elements(*inputs[0], *inputs[1], node.types[0].static_shape(),
                              [&](double a, double b) { return reference(a, b, node.attrs); });
    };
  return op;
}

std::vector<OpDef> make_binary_table(const std::vector<BinaryRow>& rows) {
  std::vector<OpDef> list;
  for (const BinaryRow& row : rows) list.push_back(make_binary(row));
  return list;
}

}  // namespace tensmith::graph::ops
