#include "graph/ops/arith.h"
#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

bool is_circular(const AttrMap& attrs) { return attrs.get_string("mode", "linear") == "circular"; }

Result<int> sequence_axis(const AttrMap& attrs, int rank) {
  Result<int> axis = normalize_axis(attrs.get_int("axis", -2), rank);
  if (axis && *axis == 0)
    return refuse("axis-out-of-range") << "attribute axis: expected an axis behind the batch, got 0";
  return axis;
}

Result<std::vector<TensorType>> infer_tensor_scatter(const InferContext& ctx) {
  const TensorType &cache = ctx.input(0), &update = ctx.input(1);
  const Result<int> axis = sequence_axis(ctx.node.attrs, cache.rank());
  if (!axis) return axis.failure();
  Shape wanted = cache.shape;
  if (update.rank() == cache.rank()) wanted[*axis] = update.shape[*axis];
  if (Result<void> ok = check_shape(update, wanted, "input update"); !ok) return ok.failure();
  const auto length = known(update.shape[*axis]), limit = known(cache.shape[*axis]);
  if (length && limit && *length > *limit)
    return refuse("shape-mismatch") << "input update: expected at most " << *limit << " at axis " << *axis
                                    << ", got shape " << shape_text(update.shape);
  if (ctx.has(2))
    if (Result<void> ok = check_shape(ctx.input(2), {cache.shape[0]}, "input write_indices"); !ok) return ok.failure();
  return std::vector<TensorType>{{cache.dtype, cache.shape, {}}};
}

std::vector<Tensor> compute_tensor_scatter(const ComputeContext& ctx) {
  const Tensor &cache = ctx.input(0), &update = ctx.input(1);
  const int axis = sequence_axis(ctx.node.attrs, cache.rank()).value();
  const Expr length = update.shape()[axis];
  return {injective("tensor_scatter", ctx.output_type(), [&](const Indices& i) {
    const Expr start = ctx.has(2) ? ctx.input(2)(i[0]) : Expr(0);
    const Expr behind = i[axis] - start;
    return with_value("behind", is_circular(ctx.node.attrs) ? floor_mod(behind, cache.shape()[axis]) : behind,
                      [&](const Expr& at) {
                        Indices index = i;
                        index[axis] = at;
                        return select(at >= 0 && at < length, update(index), cache(i));
                      });
  })};
}

Result<void> reference_tensor_scatter(ReferenceContext& ctx) {
  const RefTensor &cache = ctx.input(0), &update = ctx.input(1);
  int64_t axis = ctx.node.attrs.get_int("axis", -2);
  if (axis < 0) axis += static_cast<int64_t>(cache.shape.size());
  copy_elements(ctx, cache.shape);
  RefTensor& y = ctx.output();
  Result<void> result;
  for_each_index(update.shape, [&](int64_t position, const Dims& index) {
    Dims to = index;
    to[axis] += ctx.has(2) ? ctx.input(2).i[index[0]] : 0;
    if (is_circular(ctx.node.attrs)) to[axis] = (to[axis] % cache.shape[axis] + cache.shape[axis]) % cache.shape[axis];
    if (to[axis] < 0 || to[axis] >= cache.shape[axis])
      result =
          Failure{"index-out-of-range", "input write_indices: the update does not fit at " + std::to_string(to[axis])};
    else copy_element(y, flat_index(cache.shape, to), update, position);
  });
  return result;
}

}  // namespace

OpDef tensor_scatter() {
  return OpDef{
      .name = "TensorScatter",
      .since = 24,
      .doc =
          "A cache with an update written along its sequence axis, at a place of its own for each sample of the batch.",
      .inputs = {{.name = "past_cache"},
                 {.name = "update", .same_type_as = "past_cache"},
                 {.name = "write_indices", .types = TypeSet::kInt64, .optional = true}},
      .attrs = {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{-2}},
                {.name = "mode",
                 .kind = AttrKind::kString,
                 .default_value = std::string("linear"),
                 .allowed = {"linear", "circular"}}},
      .fusion = FusionKind::kInjective,
      .infer = infer_tensor_scatter,
      .compute = compute_tensor_scatter,
      .reference = reference_tensor_scatter,
      .samples =
          {
              {.name = "at_start", .inputs = {f32({2, 7, 3}), f32({2, 4, 3})}},
              {.name = "linear", .inputs = {f32({2, 3, 7, 5}), f32({2, 3, 2, 5}), given(kInt64, {2}, {1, 5})}},
              {.name = "circular",
               .inputs = {f32({3, 5, 2}), f32({3, 3, 2}), given(kInt64, {3}, {1, 4, 7})},
               .attrs = attrs({{"mode", "circular"}})},
              {.name = "other_axis",
               .inputs = {f32({2, 3, 5}), f32({2, 3, 1}), given(kInt64, {2}, {4, 0})},
               .attrs = attrs({{"axis", -1}})},
              {.name = "too_long", .inputs = {f32({2, 3, 5}), f32({2, 4, 5})}, .error_id = "shape-mismatch"},
              {.name = "batch_axis",
               .inputs = {f32({2, 3, 5}), f32({2, 3, 5})},
               .attrs = attrs({{"axis", 0}}),
               .error_id = "axis-out-of-range"},
          },
  };
}

}  // namespace tensmith::graph::ops
