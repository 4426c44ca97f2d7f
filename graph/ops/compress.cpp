#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

/// Positions that a condition selects.
std::vector<int64_t> selected(const std::vector<int64_t>& condition) {
  std::vector<int64_t> positions;
  for (size_t k = 0; k < condition.size(); ++k)
    if (condition[k]) positions.push_back(static_cast<int64_t>(k));
  return positions;
}

Result<std::vector<TensorType>> infer_compress(const InferContext& ctx) {
  const TensorType& data = ctx.input(0);
  if (Result<void> ok = check_rank(ctx.input(1), 1, 1, "input condition"); !ok) return ok.failure();
  const bool flat = !ctx.node.attrs.has("axis");
  const Result<int> axis = flat ? Result<int>(0) : normalize_axis(ctx.node.attrs.get_int("axis", 0), data.rank());
  if (!axis) return axis.failure();
  TensorType type{data.dtype, flat ? Shape{product(data.shape)} : data.shape, {}};
  const Constant* condition = ctx.constants.size() > 1 ? ctx.constants[1] : nullptr;
  if (!condition) {
    type.shape[*axis] = ctx.data_dim(0, *axis);
    return std::vector<TensorType>{std::move(type)};
  }
  const std::vector<int64_t> positions = selected(condition->ints());
  if (const auto extent = known(type.shape[*axis]); extent && !positions.empty() && positions.back() >= *extent)
    return refuse("shape-mismatch") << "input condition: expected at most " << *extent << " elements, got "
                                    << condition->num_elements();
  type.shape[*axis] = static_cast<int64_t>(positions.size());
  return std::vector<TensorType>{std::move(type)};
}

std::vector<Value> gather_selected(GraphEditor& editor, const Node& node) {
  const Constant* condition = editor.graph().constant(node.inputs[1]);
  if (!condition) return {};
  const std::vector<int64_t> positions = selected(condition->ints());
  const Value indices = editor.add_constant(
      Constant::from_ints(kInt64, {static_cast<int64_t>(positions.size())}, positions), node.name + ".indices");
  Value data = node.inputs[0];
  AttrMap attrs;
  if (node.attrs.has("axis")) {
    attrs.set("axis", node.attrs.get_int("axis", 0));
  } else {
    const int64_t all = -1;
    const Value shape = editor.add_constant(Constant::from_ints(kInt64, {1}, std::span(&all, 1)), node.name + ".shape");
    data = {editor.add("Reshape", {data, shape}, {}, node.name + ".flat"), 0};
  }
  return {{editor.add("Gather", {data, indices}, std::move(attrs), node.name + ".gather"), 0}};
}

Result<void> reference_compress(ReferenceContext& ctx) {
  const RefTensor& x = ctx.input(0);
  const bool flat = !ctx.node.attrs.has("axis");
  const Dims shape = flat ? Dims{count_of(x.shape)} : x.shape;
  int64_t axis = flat ? 0 : ctx.node.attrs.get_int("axis", 0);
  if (axis < 0) axis += static_cast<int64_t>(shape.size());
  const std::vector<int64_t> positions = selected(ctx.input(1).i);
  Dims out = shape;
  out[axis] = static_cast<int64_t>(positions.size());
  if (!positions.empty() && positions.back() >= shape[axis])
    return Failure{"shape-mismatch", "the condition is longer than the axis"};
  move_elements(make_output(ctx, x.dtype, out), x, [&](const Dims& index) {
    Dims at = index;
    at[axis] = positions[index[axis]];
    return flat_index(shape, at);
  });
  return {};
}

}  // namespace

OpDef compress() {
  const auto condition = [](std::vector<double> values) {
    OpSample::Input input = given(kBool, {static_cast<int64_t>(values.size())}, values);
    input.constant = true;
    return input;
  };
  return OpDef{
      .name = "Compress",
      .since = 9,
      .doc = "The slices along an axis (or the elements in row-major order) where a constant condition holds.",
      .inputs = {{.name = "input"}, {.name = "condition", .types = TypeSet::kBool}},
      .attrs = {{.name = "axis", .kind = AttrKind::kInt, .no_default = true}},
      .fusion = FusionKind::kInjective,
      .infer = infer_compress,
      .supports = [](const InferContext& ctx) -> Result<void> {
        if (ctx.constants.size() > 1 && ctx.constants[1]) return {};
        return refuse("dynamic-shape") << "input condition: expected a constant, since it decides the shape of the "
                                          "output, got data; make it a constant";
      },
      .decompose = gather_selected,
      .reference = reference_compress,
      .samples =
          {
              {.name = "rows", .inputs = {f32({3, 2}), condition({0, 1, 1})}, .attrs = attrs({{"axis", 0}})},
              {.name = "short_condition",
               .inputs = {f32({2, 17}), condition({1, 0, 1})},
               .attrs = attrs({{"axis", -1}})},
              {.name = "flat", .inputs = {f32({3, 2}), condition({0, 1, 0, 0, 1})}},
              {.name = "nothing", .inputs = {f32({3}), condition({0, 0, 0})}},
              {.name = "too_long", .inputs = {f32({3}), condition({0, 0, 0, 1})}, .error_id = "shape-mismatch"},
          },
  };
}

}  // namespace tensmith::graph::ops
