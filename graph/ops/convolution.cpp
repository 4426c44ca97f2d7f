#include "graph/ops/convolution.h"

namespace tensmith::graph::ops {

std::vector<AttrSpec> conv_attrs() {
  std::vector<AttrSpec> attrs = window_attrs(/*kernel_required=*/false);
  attrs.push_back({.name = "group", .kind = AttrKind::kInt, .default_value = int64_t{1}});
  return attrs;
}

Result<ConvShape> resolve_conv(const AttrMap& attrs, const TensorType& x, const TensorType& w) {
  if (Result<void> ok = check_rank(x, 3, 5, "input X"); !ok) return ok.failure();
  if (w.rank() != x.rank())
    return refuse("rank-mismatch") << "input W: expected rank " << x.rank() << " as X, got shape "
                                   << shape_text(w.shape);
  ConvShape conv;
  conv.group = attrs.get_int("group", 1);
  std::vector<int64_t> kernel;
  for (int d = 2; d < w.rank(); ++d) {
    const auto size = known(w.shape[d]);
    if (!size)
      return refuse("dynamic-shape") << "input W: expected spatial dims known at compile time, got "
                                     << shape_text(w.shape);
    kernel.push_back(*size);
  }
  if (conv.group < 1 || conv.group > INT32_MAX)
    return refuse("bad-attribute") << "attribute group: expected 1 to " << INT32_MAX << ", got " << conv.group;
  const auto outs = known(w.shape[0]), per_group = known(w.shape[1]);
  if (conv.group > 1 && (!outs || !per_group))
    return refuse("dynamic-shape") << "input W: expected channels known at compile time for a grouped convolution, got "
                                   << shape_text(w.shape);
  if (outs && *outs % conv.group != 0)
    return refuse("shape-mismatch") << "input W: expected a number of output channels divisible by group " << conv.group
                                    << ", got " << *outs;
  const Expr channels = w.shape[1] * Expr(conv.group);
  if (different_dim(channels, x.shape[1]))
    return refuse("shape-mismatch") << "input X: expected " << dim_to_string(channels) << " channels for weights "
                                    << shape_text(w.shape) << " in " << conv.group << " groups, got "
                                    << shape_text(x.shape);
  if (!same_dim(channels, x.shape[1]))
    return refuse("dynamic-shape") << "input X: expected " << dim_to_string(channels) << " channels, got "
                                   << shape_text(x.shape)
                                   << ", which may differ at run time; give the dim a size with --dim";
  Result<Window> window = resolve_window(attrs, Shape(x.shape.begin() + 2, x.shape.end()), kernel);
  if (!window) return window.failure();
  conv.window = *window;
  conv.out = {x.shape[0], w.shape[0]};
  conv.out.insert(conv.out.end(), conv.window.out.begin(), conv.window.out.end());
  return conv;
}

Result<void> check_conv_bias(const TensorType& bias, const TensorType& w) {
  return check_shape(bias, {w.shape[0]}, "input B");
}

Tensor convolve(const std::string& name, const ConvShape& shape, const Tensor& x, const Tensor& w, DType sum_type,
                const ConvTerms& terms) {
  const Window& window = shape.window;
  const size_t rank = window.rank();
  const Expr per_group = w.shape()[1];
  Reduction reduction;
  reduction.extents = {per_group};
  for (int64_t size : window.kernel) reduction.extents.push_back(size);
  reduction.reducer = sum_reducer(sum_type);
  reduction.body = [&](const Indices& i, const Indices& r) {
    // Output channel o of group o / (O / g) reads the input channels of that group.
    const Expr channel =
        shape.group == 1 ? r[0] : floor_div(i[1], floor_div(w.shape()[0], Expr(shape.group))) * per_group + r[0];
    Indices from{i[0], channel}, weight{i[1], r[0]};
    for (size_t d = 0; d < rank; ++d) {
      from.push_back(tap_index(window, d, i[2 + d], r[1 + d]));
      weight.push_back(r[1 + d]);
    }
    return std::vector<Expr>{terms.term(x(from), w(weight), i[1])};
  };
  bool clipped = false;
  for (size_t d = 0; d < rank; ++d) clipped = clipped || may_leave_input(window, d);
  if (clipped)
    reduction.where = [&](const Indices& i, const Indices& r) {
      return taps_inside(window, std::span(i).subspan(2), std::span(r).subspan(1));
    };
  if (terms.initial) reduction.initial = [&](const Indices& i) { return std::vector<Expr>{terms.initial(i[1])}; };
  return reduce_multi(name, shape.out, reduction)[0];
}

double conv_flops(const ConvShape& shape, const TensorType& w) {
  double total = 2;
  for (const Expr& dim : shape.out) total *= static_cast<double>(known(dim).value_or(1));
  for (size_t d = 1; d < w.shape.size(); ++d) total *= static_cast<double>(known(w.shape[d]).value_or(1));
  return total;
}

}  // namespace tensmith::graph::ops
