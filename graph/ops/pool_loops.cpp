#include "graph/ops/pool_loops.h"

namespace tensmith::graph::ops {

std::vector<AttrSpec> pool_attrs(int dilations_since, int ceil_mode_since) {
  std::vector<AttrSpec> attrs = window_attrs(/*kernel_required=*/true);
  for (AttrSpec& spec : attrs)
    if (std::string_view(spec.name) == "dilations") spec.since = dilations_since;
  attrs.push_back({.name = "ceil_mode", .kind = AttrKind::kInt, .default_value = int64_t{0}, .since = ceil_mode_since});
  return attrs;
}

Result<Window> resolve_pool(const AttrMap& attrs, const TensorType& x) {
  if (Result<void> ok = check_rank(x, 3, 5, "input X"); !ok) return ok.failure();
  return resolve_window(attrs, Shape(x.shape.begin() + 2, x.shape.end()), {});
}

Shape pool_output(const Window& window, const TensorType& x) {
  Shape out{x.shape[0], x.shape[1]};
  out.insert(out.end(), window.out.begin(), window.out.end());
  return out;
}

Reduction pool_reduction(const Window& window) {
  Reduction reduction;
  reduction.extents = to_shape(window.kernel);
  bool clipped = false;
  for (size_t d = 0; d < window.rank(); ++d) clipped = clipped || may_leave_input(window, d);
  if (clipped)
    reduction.where = [&window](const Indices& i, const Indices& r) {
      return taps_inside(window, std::span(i).subspan(2), r);
    };
  return reduction;
}

Indices pool_input_index(const Window& window, const Indices& i, const Indices& r) {
  Indices index{i[0], i[1]};
  for (size_t d = 0; d < window.rank(); ++d) index.push_back(tap_index(window, d, i[2 + d], r[d]));
  return index;
}

double pool_flops(const InferContext& ctx) {
  const Result<Window> window = resolve_pool(ctx.node.attrs, ctx.input(0));
  if (!window) return 0;
  double total = 1;
  for (const Expr& dim : pool_output(*window, ctx.input(0))) total *= static_cast<double>(known(dim).value_or(1));
  for (int64_t size : window->kernel) total *= static_cast<double>(size);
  return total;
}

}  // namespace tensmith::graph::ops
