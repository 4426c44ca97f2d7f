#include "graph/ops/unary_rule.h"

#include "graph/ops/arith.h"
#include "graph/ops/ref_loops.h"
#include "graph/ops/sample.h"
#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

namespace {

UnaryParams resolve(const std::vector<AttrSpec>& specs, const AttrMap& attrs) {
  UnaryParams params;
  for (const AttrSpec& spec : specs) {
    if (spec.kind == AttrKind::kFloat)
      params.number.push_back(attrs.get_float(spec.name, std::get<double>(spec.default_value)));
    else if (spec.kind == AttrKind::kInt)
      params.number.push_back(static_cast<double>(attrs.get_int(spec.name, std::get<int64_t>(spec.default_value))));
    else params.text = attrs.get_string(spec.name, std::get<std::string>(spec.default_value));
  }
  return params;
}

/// Random samples of several ranks and types.
std::vector<OpSample> default_samples(const UnaryRow& row) {
  std::vector<OpSample> samples = row.more_samples;
  const auto add = [&](const char* name, DType type, Dims shape) {
    OpSample sample{.name = name, .inputs = {in(type, std::move(shape), row.low, row.high)}};
    if (type.is_float() && type.bits == 16) sample.rtol = type.is_bfloat() ? 1e-2 : 2e-3, sample.atol = 1e-3;
    if (accepts(row.types, type)) samples.push_back(std::move(sample));
  };
  if (row.reference) {
    add("vector", kFloat32, {17});
    add("matrix", kFloat32, {3, 5});
    add("scalar", kFloat32, {});
    add("half", kFloat16, {3, 4});
    add("brain", kBFloat16, {5});
    add("double", kFloat64, {2, 3});
    add("empty", kFloat32, {0, 3});
  }
  if (row.int_reference) {
    add("int32", kInt32, {2, 1, 3});
    add("int8", kInt8, {5});
    add("uint8", kUInt8, {5});
    add("int64", kInt64, {2});
    add("bool", kBool, {4});
  }
  return samples;
}

}  // namespace

OpDef make_unary(const UnaryRow& row) {
  OpDef op{
      .name = row.name,
      .domain = row.domain,
      .since = row.since,
      .doc = row.doc,
      .inputs = {{.name = "X", .types = row.types}},
      .attrs = row.attrs,
      .fusion = FusionKind::kElementwise,
      .infer = nullptr,
      .samples = default_samples(row),
  };
  op.infer = [row](const InferContext& ctx) -> Result<std::vector<TensorType>> {
    TensorType type{row.gives_bool ? kBool : ctx.input(0).dtype, ctx.input(0).shape, {}};
    if (row.gives_bool || type.dtype.is_uint() || type.dtype.is_bool()) return std::vector<TensorType>{std::move(type)};
    const UnaryParams params = resolve(row.attrs, ctx.node.attrs);
    ValueRule rule;
    rule.whole_of_floats = row.keeps_whole;
    if (row.keeps_whole) rule.whole = [](const std::vector<Expr>& x) { return x[0]; };
    else if (row.int_reference) rule.whole = [&](const std::vector<Expr>& x) { return row.body(x[0], params); };
    if (row.reference) rule.numbers = [&](const std::vector<double>& x) { return row.reference(x[0], params); };
    propagate_values(ctx, type, rule);
    return std::vector<TensorType>{std::move(type)};
  };
  op.compute = [name = std::string(row.name), body = row.body, specs = row.attrs](const ComputeContext& ctx) {
    const UnaryParams params = resolve(specs, ctx.node.attrs);
    const Tensor& x = ctx.input(0);
    const DType result = ctx.output_type().dtype;
    return std::vector<Tensor>{
        compute(name, x.shape(), [&](const Indices& i) { return cast(result, body(widen(x(i)), params)); })};
  };
  op.reference = [reference = row.reference, int_reference = row.int_reference,
                  specs = row.attrs](ReferenceContext& ctx) -> Result<void> {
    const UnaryParams params = resolve(specs, ctx.node.attrs);
    const RefTensor& x = ctx.input(0);
    RefTensor& y = ctx.output();
    const int64_t count = x.num_elements();
    if (!x.is_float() && int_reference) {
      for (int64_t k = 0; k < count; ++k) y.i[k] = wrap_int(y.dtype, int_reference(x.i[k], x.dtype));
    } else if (!x.is_float()) {
      for (int64_t k = 0; k < count; ++k) y.set(k, reference(x.get(k), params));
    } else if (y.is_float()) {
      for (int64_t k = 0; k < count; ++k) y.f[k] = reference(x.f[k], params);
    } else {
      for (int64_t k = 0; k < count; ++k) y.i[k] = reference(x.f[k], params) != 0;
    }
    return {};
  };
  if (row.work != 1)
    op.flops = [work = row.work](const InferContext& ctx) {
      int64_t count = 1;
      for (const Expr& dim : ctx.input(0).shape) count *= known(dim).value_or(1);
      return work * static_cast<double>(count);
    };
  return op;
}

std::vector<OpDef> make_unary_table(const std::vector<UnaryRow>& rows) {
  std::vector<OpDef> list;
  for (const UnaryRow& row : rows) list.push_back(make_unary(row));
  return list;
}

}  // namespace tensmith::graph::ops
