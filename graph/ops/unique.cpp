#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/ops/data_shape.h"
#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

Result<std::vector<TensorType>> infer_unique(const InferContext& ctx) {
  const TensorType& data = ctx.input(0);
  TensorType type{data.dtype, {ctx.data_dim(0, 0)}, {}};
  Expr count = type.shape[0];
  if (ctx.node.attrs.has("axis")) {
    const Result<int> axis = normalize_axis(ctx.node.attrs.get_int("axis", 0), data.rank());
    if (!axis) return axis.failure();
    count = ctx.data_dim(0, *axis);
    type.shape = data.shape;
    type.shape[*axis] = count;
  }
  const auto known_types = types_by_reference(ctx);
  if (!known_types) return known_types.failure();
  if (*known_types) return **known_types;
  const Expr all = ctx.node.attrs.has("axis")
                       ? data.shape[normalize_axis(ctx.node.attrs.get_int("axis", 0), data.rank()).value()]
                       : product(data.shape);
  return std::vector<TensorType>{type, {kInt64, {count}, {}}, {kInt64, {all}, {}}, {kInt64, {count}, {}}};
}

Result<void> reference_unique(ReferenceContext& ctx) {
  const RefTensor& x = ctx.input(0);
  const bool flat = !ctx.node.attrs.has("axis"), sorted = ctx.node.attrs.get_int("sorted", 1) != 0;
  const Dims shape = flat ? Dims{count_of(x.shape)} : x.shape;
  int64_t axis = flat ? 0 : ctx.node.attrs.get_int("axis", 0);
  if (axis < 0) axis += static_cast<int64_t>(shape.size());
  const AxisView view(shape, static_cast<size_t>(axis));
  const auto element = [&](int64_t slice, int64_t k) {
    return k / view.inner * view.axis * view.inner + slice * view.inner + k % view.inner;
  };
  const int64_t slice_size = view.outer * view.inner;
  const auto compare = [&](int64_t a, int64_t b) {
    for (int64_t k = 0; k < slice_size; ++k) {
      const double va = x.get(element(a, k)), vb = x.get(element(b, k));
      if (va < vb || (std::isnan(vb) && !std::isnan(va))) return -1;
      if (vb < va || (std::isnan(va) && !std::isnan(vb))) return 1;
    }
    return 0;
  };
  std::vector<int64_t> order(static_cast<size_t>(view.axis));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
  std::vector<int64_t> first, group(static_cast<size_t>(view.axis)), counts;
  for (size_t k = 0; k < order.size(); ++k) {
    if (k == 0 || compare(order[k - 1], order[k]) != 0) {
      first.push_back(order[k]);
      counts.push_back(0);
    }
    group[static_cast<size_t>(order[k])] = static_cast<int64_t>(first.size()) - 1;
    ++counts.back();
  }
  std::vector<int64_t> rank(first.size()), place(first.size());
  std::iota(rank.begin(), rank.end(), 0);
  if (!sorted) std::sort(rank.begin(), rank.end(), [&](int64_t a, int64_t b) { return first[a] < first[b]; });
  for (size_t k = 0; k < rank.size(); ++k) place[static_cast<size_t>(rank[k])] = static_cast<int64_t>(k);
  const auto count = static_cast<int64_t>(first.size());
  Dims out = shape;
  out[axis] = count;
  const size_t asked = ctx.outputs.size();
  RefTensor& y = make_output(ctx, x.dtype, out, 0);
  for (int64_t k = 0; k < count; ++k)
    for (int64_t e = 0; e < slice_size; ++e) {
      const int64_t to = e / view.inner * count * view.inner + k * view.inner + e % view.inner;
      copy_element(y, to, x, element(first[rank[k]], e));
    }
  if (asked > 1) make_output(ctx, kInt64, {count}, 1);
  if (asked > 2) make_output(ctx, kInt64, {view.axis}, 2);
  if (asked > 3) make_output(ctx, kInt64, {count}, 3);
  for (int64_t k = 0; k < count; ++k) {
    if (asked > 1) ctx.outputs[1].i[k] = first[rank[k]];
    if (asked > 3) ctx.outputs[3].i[k] = counts[rank[k]];
  }
  for (int64_t k = 0; asked > 2 && k < view.axis; ++k) ctx.outputs[2].i[k] = place[group[k]];
  return {};
}

}  // namespace

OpDef unique() {
  return OpDef{
      .name = "Unique",
      .since = 11,
      .doc =
          "The different elements, or slices along an axis: their values, where each occurs first, which one each "
          "element is, and how often. "
          "Only for constants.",
      .inputs = {{.name = "X"}},
      .attrs = {{.name = "axis", .kind = AttrKind::kInt, .no_default = true},
                {.name = "sorted", .kind = AttrKind::kInt, .default_value = int64_t{1}}},
      .min_outputs = 1,
      .max_outputs = 4,
      .fusion = FusionKind::kOpaque,
      .infer = infer_unique,
      .supports = refuse_data_shape,
      .decompose = outputs_by_reference,
      .reference = reference_unique,
      .samples =
          {
              {.name = "sorted", .inputs = {given(kFloat32, {6}, {2, 1, 1, 3, 4, 3})}, .num_outputs = 4},
              {.name = "slices",
               .inputs = {given(kInt64, {3, 3}, {1, 0, 0, 1, 0, 0, 2, 3, 4})},
               .attrs = attrs({{"axis", 0}}),
               .num_outputs = 4},
              {.name = "axis_beyond",
               .inputs = {f32({3})},
               .attrs = attrs({{"axis", 1}}),
               .error_id = "axis-out-of-range"},
          },
  };
}

}  // namespace tensmith::graph::ops
