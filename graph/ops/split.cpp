#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

/// The sizes of the parts along an axis of `extent`.
Result<Shape> part_sizes(const InferContext& ctx, const Expr& extent) {
  const int64_t parts = ctx.num_outputs;
  if (ctx.has(1)) {
    const auto given = int_elements(ctx, 1);
    if (!given) return data_shape(ctx, 0, static_cast<int>(parts));
    if (static_cast<int64_t>(given->size()) != parts)
      return refuse("bad-arity") << "input split: expected one size for each of the " << parts << " outputs, got "
                                 << given->size();
    Expr total(0);
    for (const Expr& size : *given) {
      if (known(size).value_or(0) < 0)
        return refuse("shape-mismatch") << "input split: expected sizes of 0 or more, got " << *known(size);
      total = total + size;
    }
    if (different_dim(total, extent))
      return refuse("shape-mismatch") << "input split: expected sizes that sum up to " << dim_to_string(extent)
                                      << ", got " << dim_to_string(total);
    return *given;
  }
  const bool uneven = ctx.node.attrs.has("num_outputs");
  if (uneven && ctx.node.attrs.get_int("num_outputs", 0) != parts)
    return refuse("bad-arity") << "attribute num_outputs: expected the number of outputs, " << parts << ", got "
                               << ctx.node.attrs.get_int("num_outputs", 0);
  if (const auto number = known(extent); number && !uneven && *number % parts != 0)
    return refuse("shape-mismatch") << "axis of " << *number << ": expected a multiple of the number of outputs, "
                                    << parts << "; give split or num_outputs";
  if (!uneven) return Shape(static_cast<size_t>(parts), floor_div(extent, parts));
  // The last parts are smaller, or empty where the first ones take all.
  const Expr size = ceil_div(extent, parts);
  Shape sizes;
  for (int64_t k = 0; k < parts; ++k) sizes.push_back(max(min(size, extent - size * k), 0));
  return sizes;
}

Result<std::vector<TensorType>> infer_split(const InferContext& ctx) {
  const TensorType& data = ctx.input(0);
  const Result<int> axis = normalize_axis(ctx.node.attrs.get_int("axis", 0), data.rank());
  if (!axis) return axis.failure();
  const Result<Shape> sizes = part_sizes(ctx, data.shape[*axis]);
  if (!sizes) return sizes.failure();
  std::vector<TensorType> types;
  std::optional<int64_t> start = 0;
  for (const Expr& size : *sizes) {
    TensorType type{data.dtype, data.shape, {}};
    type.shape[*axis] = size;
    if (start && follows_elements(type) && data.is_static()) {
      const AxisView from(data.static_shape(), static_cast<size_t>(*axis)),
          to(type.static_shape(), static_cast<size_t>(*axis));
      pass_elements(ctx, 0, type, [&](int64_t flat) {
        const int64_t block = to.axis * to.inner;
        return flat / block * from.axis * from.inner + *start * from.inner + flat % block;
      });
    }
    if (start && known(size)) *start += *known(size);
    else start.reset();
    types.push_back(std::move(type));
  }
  return types;
}

Result<void> supports_split(const InferContext& ctx) {
  if (Result<void> ok = require_elements(ctx, {1}); !ok) return ok;
  const TensorType& data = ctx.input(0);
  const int axis = normalize_axis(ctx.node.attrs.get_int("axis", 0), data.rank()).value();
  if (!ctx.has(1)) return {};  // equal parts fit by construction
  const Result<Shape> sizes = part_sizes(ctx, data.shape[axis]);
  if (!sizes) return sizes.failure();
  Expr total(0);
  for (const Expr& size : *sizes) total = total + size;
  return require_same_dim(total, data.shape[axis], "sum of the sizes");
}

std::vector<Tensor> compute_split(const ComputeContext& ctx) {
  const Tensor& x = ctx.input(0);
  const int axis = normalize_axis(ctx.node.attrs.get_int("axis", 0), x.rank()).value();
  std::vector<Tensor> parts;
  Expr start(0);
  for (size_t k = 0; k < ctx.node.types.size(); ++k) {
    const TensorType& type = ctx.output_type(static_cast<int>(k));
    parts.push_back(injective("split_" + std::to_string(k), type, [&](const Indices& i) {
      Indices index = i;
      index[axis] = i[axis] + start;
      return x(index);
    }));
    start = start + type.shape[axis];
  }
  return parts;
}

Result<void> reference_split(ReferenceContext& ctx) {
  const RefTensor& x = ctx.input(0);
  const auto rank = static_cast<int64_t>(x.shape.size());
  int64_t axis = ctx.node.attrs.get_int("axis", 0);
  if (axis < 0) axis += rank;
  const AxisView from(x.shape, static_cast<size_t>(axis));
  const auto parts = static_cast<int64_t>(ctx.outputs.size());
  int64_t start = 0;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t even = (from.axis + parts - 1) / parts;
    const int64_t size = ctx.has(1) ? ctx.input(1).i[part] : std::max<int64_t>(0, std::min(even, from.axis - start));
    if (start + size > from.axis)
      return Failure{"shape-mismatch", "the parts are longer than the axis of " + std::to_string(from.axis)};
    Dims shape = x.shape;
    shape[axis] = size;
    RefTensor& y = make_output(ctx, x.dtype, shape, static_cast<int>(part));
    int64_t at = 0;
    for (int64_t outer = 0; outer < from.outer; ++outer)
      for (int64_t k = 0; k < size * from.inner; ++k)
        copy_element(y, at++, x, (outer * from.axis + start) * from.inner + k);
    start += size;
  }
  return {};
}

}  // namespace

OpDef split() {
  return OpDef{
      .name = "Split",
      .since = 2,
      .doc =
          "Cuts a tensor along one axis: into parts of the given sizes, or equal parts (the last one smaller when "
          "num_outputs is given).",
      .inputs = {{.name = "input"}, {.name = "split", .types = TypeSet::kInt64, .optional = true}},
      .attrs = {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{0}},
                {.name = "num_outputs", .kind = AttrKind::kInt, .no_default = true, .since = 18},
                {.name = "split", .kind = AttrKind::kInts, .no_default = true, .until = 12, .becomes_input = 1}},
      .max_outputs = -1,
      .fusion = FusionKind::kInjective,
      .layout = LayoutRole::kFollows,
      .infer = infer_split,
      .compute = compute_split,
      .supports = supports_split,
      .reference = reference_split,
      .samples =
          {
              {.name = "even", .inputs = {f32({2, 6, 3})}, .attrs = attrs({{"axis", 1}}), .num_outputs = 3},
              {.name = "sizes",
               .inputs = {f32({2, 17}), known_ints({1, 13, 3})},
               .attrs = attrs({{"axis", -1}}),
               .num_outputs = 3},
              {.name = "smaller_last", .inputs = {f32({7, 3})}, .attrs = attrs({{"num_outputs", 3}}), .num_outputs = 3},
              {.name = "empty_last", .inputs = {f32({3})}, .attrs = attrs({{"num_outputs", 4}}), .num_outputs = 4},
              {.name = "one", .inputs = {f32({3, 1})}, .num_outputs = 1},
              {.name = "zero_size", .inputs = {in(kInt32, {3}), known_ints({0, 3})}, .num_outputs = 2},
              {.name = "not_even", .inputs = {f32({7})}, .num_outputs = 2, .error_id = "shape-mismatch"},
              {.name = "wrong_sum",
               .inputs = {f32({7}), known_ints({3, 3})},
               .num_outputs = 2,
               .error_id = "shape-mismatch"},
              {.name = "wrong_count",
               .inputs = {f32({7}), known_ints({3, 4})},
               .num_outputs = 3,
               .error_id = "bad-arity"},
          },
  };
}

}  // namespace tensmith::graph::ops
