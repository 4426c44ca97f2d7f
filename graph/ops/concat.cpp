#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

std::string input_text(size_t k) { return "input " + std::to_string(k); }

/// The elements of the output when those of all inputs are known.
void follow(const InferContext& ctx, int axis, TensorType& type) {
  if (!follows_elements(type)) return;
  const Dims out = type.static_shape();
  std::vector<Elements> parts;
  std::vector<int64_t> rows;  // elements of each input that lie side by side
  for (size_t k = 0; k < ctx.inputs.size(); ++k) {
    auto elements = any_elements(ctx, static_cast<int>(k));
    if (!elements) return;
    parts.push_back(std::move(*elements));
    rows.push_back(count_of(ctx.inputs[k]->static_shape(), static_cast<size_t>(axis)));
  }
  Elements result;
  for (int64_t outer = 0; outer < count_of(out, 0, static_cast<size_t>(axis)); ++outer)
    for (size_t k = 0; k < parts.size(); ++k)
      for (int64_t at = 0; at < rows[k]; ++at) result.push_back(parts[k][static_cast<size_t>(outer * rows[k] + at)]);
  set_elements(type, std::move(result));
}

Result<std::vector<TensorType>> infer_concat(const InferContext& ctx) {
  TensorType type{ctx.input(0).dtype, ctx.input(0).shape, {}};
  const Result<int> axis = normalize_axis(ctx.node.attrs.get_int("axis", 0), type.rank());
  if (!axis) return axis.failure();
  for (size_t k = 1; k < ctx.inputs.size(); ++k) {
    const Shape& shape = ctx.inputs[k]->shape;
    if (shape.size() != type.shape.size())
      return refuse("rank-mismatch") << input_text(k) << ": expected rank " << type.rank()
                                     << " as of input 0, got shape " << shape_text(shape);
    for (int dim = 0; dim < type.rank(); ++dim) {
      if (dim == *axis) {
        type.shape[dim] = type.shape[dim] + shape[dim];
        continue;
      }
      if (different_dim(type.shape[dim], shape[dim]))
        return refuse("shape-mismatch") << input_text(k) << ": expected dim " << dim_to_string(type.shape[dim])
                                        << " at axis " << dim << ", got shape " << shape_text(shape);
      if (known(shape[dim])) type.shape[dim] = shape[dim];
    }
  }
  follow(ctx, *axis, type);
  return std::vector<TensorType>{std::move(type)};
}

Result<void> supports_concat(const InferContext& ctx) {
  const Shape& first = ctx.input(0).shape;
  const int axis = normalize_axis(ctx.node.attrs.get_int("axis", 0), static_cast<int>(first.size())).value();
  for (size_t k = 1; k < ctx.inputs.size(); ++k)
    for (size_t dim = 0; dim < first.size(); ++dim)
      if (static_cast<int>(dim) != axis)
        if (Result<void> ok = require_same_dim(first[dim], ctx.inputs[k]->shape[dim],
                                               input_text(k) + ", axis " + std::to_string(dim));
            !ok)
          return ok;
  return {};
}

std::vector<Tensor> compute_concat(const ComputeContext& ctx) {
  const Shape& shape = ctx.output_type().shape;
  const int axis = normalize_axis(ctx.node.attrs.get_int("axis", 0), static_cast<int>(shape.size())).value();
  std::vector<const Tensor*> parts;
  std::vector<Expr> starts;
  Expr at(0);
  for (const Tensor& input : ctx.inputs) {
    if (is_const_int(input.shape()[axis], 0)) continue;
    parts.push_back(&input);
    starts.push_back(at);
    at = at + input.shape()[axis];
  }
  return {injective("concat", ctx.output_type(), [&](const Indices& i) {
    // A balanced tree: the number of comparisons on the way to a part grows with the logarithm of the number of parts.
    const std::function<Expr(size_t, size_t)> choose = [&](size_t begin, size_t end) {
      if (end - begin > 1) {
        const size_t middle = begin + (end - begin) / 2;
        return select(i[axis] < starts[middle], choose(begin, middle), choose(middle, end));
      }
      Indices index = i;
      index[axis] = i[axis] - starts[begin];
      return (*parts[begin])(index);
    };
    return choose(0, parts.size());
  })};
}

Result<void> reference_concat(ReferenceContext& ctx) {
  const auto rank = static_cast<int64_t>(ctx.input(0).shape.size());
  int64_t axis = ctx.node.attrs.get_int("axis", 0);
  if (axis < 0) axis += rank;
  Dims shape = ctx.input(0).shape;
  shape[axis] = 0;
  for (const RefTensor* input : ctx.inputs) shape[axis] += input->shape[axis];
  RefTensor& y = make_output(ctx, ctx.input(0).dtype, shape);
  const int64_t outer = count_of(shape, 0, static_cast<size_t>(axis));
  int64_t at = 0;
  for (int64_t o = 0; o < outer; ++o)
    for (const RefTensor* input : ctx.inputs) {
      const int64_t row = count_of(input->shape, static_cast<size_t>(axis));
      for (int64_t k = 0; k < row; ++k) copy_element(y, at++, *input, o * row + k);
    }
  return {};
}

}  // namespace

OpDef concat() {
  return OpDef{
      .name = "Concat",
      .since = 4,
      .doc = "Tensors side by side along one axis.",
      .inputs = {{.name = "inputs", .variadic = true, .same_type_as = "inputs"}},
      .attrs = {{.name = "axis", .kind = AttrKind::kInt, .required = true}},
      .fusion = FusionKind::kInjective,
      .layout = LayoutRole::kFollows,
      .infer = infer_concat,
      .compute = compute_concat,
      .supports = supports_concat,
      .reference = reference_concat,
      .samples =
          {
              {.name = "channels",
               .inputs = {f32({2, 3, 5}), f32({2, 1, 5}), f32({2, 17, 5})},
               .attrs = attrs({{"axis", 1}})},
              {.name = "last", .inputs = {f32({2, 3}), f32({2, 4})}, .attrs = attrs({{"axis", -1}})},
              {.name = "many",
               .inputs = {f32({1}), f32({2}), f32({1}), f32({3}), f32({1}), f32({1}), f32({5}), f32({1}), f32({2})},
               .attrs = attrs({{"axis", 0}})},
              {.name = "single", .inputs = {in(kInt64, {3})}, .attrs = attrs({{"axis", 0}})},
              {.name = "one_empty", .inputs = {f32({2, 0}), f32({2, 3}), f32({2, 0})}, .attrs = attrs({{"axis", 1}})},
              {.name = "all_empty", .inputs = {f32({0, 3}), f32({0, 3})}, .attrs = attrs({{"axis", 0}})},
              {.name = "bools", .inputs = {in(kBool, {3}, 0, 1), in(kBool, {1}, 0, 1)}, .attrs = attrs({{"axis", 0}})},
              {.name = "dims_differ",
               .inputs = {f32({2, 3}), f32({3, 3})},
               .attrs = attrs({{"axis", 1}}),
               .error_id = "shape-mismatch"},
              {.name = "ranks_differ",
               .inputs = {f32({2, 3}), f32({2})},
               .attrs = attrs({{"axis", 0}}),
               .error_id = "rank-mismatch"},
              {.name = "scalars",
               .inputs = {f32({}), f32({})},
               .attrs = attrs({{"axis", 0}}),
               .error_id = "axis-out-of-range"},
          },
  };
}

}  // namespace tensmith::graph::ops
