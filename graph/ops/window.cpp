#include "graph/ops/window.h"

#include "graph/dim_facts.h"

namespace tensmith::graph::ops {

namespace {

/// A list attribute of one positive number per spatial dim, or the fallback.
Result<std::vector<int64_t>> positive_list(const AttrMap& attrs, const char* name, size_t rank,
                                           std::vector<int64_t> fallback) {
  std::vector<int64_t> list = attrs.get_ints(name);
  if (list.empty()) list = std::move(fallback);
  if (list.size() != rank)
    return refuse("bad-attribute") << "attribute " << name << ": expected " << rank << " numbers, got " << list.size();
  for (int64_t value : list)
    if (value < 1 || value > INT32_MAX)
      return refuse("bad-attribute") << "attribute " << name << ": expected numbers from 1 to " << INT32_MAX << ", got "
                                     << value;
  return list;
}

}  // namespace

std::vector<AttrSpec> window_attrs(bool kernel_required) {
  return {
      {.name = "auto_pad",
       .kind = AttrKind::kString,
       .default_value = std::string("NOTSET"),
       .allowed = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}},
      {.name = "dilations", .kind = AttrKind::kInts, .no_default = true},
      {.name = "kernel_shape", .kind = AttrKind::kInts, .required = kernel_required, .no_default = true},
      {.name = "pads", .kind = AttrKind::kInts, .no_default = true},
      {.name = "strides", .kind = AttrKind::kInts, .no_default = true},
  };
}

Result<Window> resolve_window(const AttrMap& attrs, const Shape& spatial, const std::vector<int64_t>& kernel) {
  const size_t rank = spatial.size();
  const std::vector<int64_t> ones(rank, 1);
  Window window;
  window.in = spatial;
  const auto kernel_list = positive_list(attrs, "kernel_shape", rank, kernel);
  const auto stride_list = positive_list(attrs, "strides", rank, ones);
  const auto dilation_list = positive_list(attrs, "dilations", rank, ones);
  for (const auto* list : {&kernel_list, &stride_list, &dilation_list})
    if (!*list) return list->failure();
  window.kernel = *kernel_list, window.stride = *stride_list, window.dilation = *dilation_list;
  if (!kernel.empty() && window.kernel != kernel)
    return refuse("bad-attribute")
           << "attribute kernel_shape: expected the spatial dims of the weights, got other numbers";
  window.ceil = attrs.get_int("ceil_mode", 0) != 0;
  const std::string auto_pad = attrs.get_string("auto_pad", "NOTSET");
  std::vector<int64_t> pads = attrs.get_ints("pads");
  if (pads.empty() || auto_pad == "VALID") pads.assign(2 * rank, 0);
  if (pads.size() != 2 * rank)
    return refuse("bad-attribute") << "attribute pads: expected " << 2 * rank << " numbers, got " << pads.size();
  for (size_t d = 0; d < rank; ++d) {
    const int64_t reach = (window.kernel[d] - 1) * window.dilation[d] + 1, stride = window.stride[d];
    const Expr& in = window.in[d];
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      const Expr out = ceil_div(in, Expr(stride));
      const Expr total = max((out - 1) * Expr(stride) + Expr(reach) - in, Expr(0));
      const Expr small = floor_div(total, Expr(2)), large = total - small;
      window.pad_begin.push_back(auto_pad == "SAME_UPPER" ? small : large);
      window.pad_end.push_back(auto_pad == "SAME_UPPER" ? large : small);
      window.out.push_back(out);
      continue;
    }
    for (int64_t pad : {pads[d], pads[rank + d]})
      if (pad < 0 || pad > INT32_MAX)
        return refuse("bad-attribute") << "attribute pads: expected numbers from 0 to " << INT32_MAX << ", got " << pad;
    window.pad_begin.push_back(pads[d]);
    window.pad_end.push_back(pads[rank + d]);
    const Expr room = in + Expr(pads[d] + pads[rank + d] - reach);
    if (auto size = known(room); size && *size < 0)
      return refuse("shape-mismatch") << "spatial dim " << d << ": expected at least " << reach
                                      << " elements with padding for the kernel, got " << *size + reach;
    // With ceil_mode a last window that would start in the padding behind the input is left out.
    window.out.push_back(window.ceil ? min(ceil_div(room, Expr(stride)) + 1, ceil_div(in + Expr(pads[d]), Expr(stride)))
                                     : floor_div(room, Expr(stride)) + 1);
  }
  for (Shape* dims : {&window.out, &window.pad_begin, &window.pad_end})
    for (Expr& dim : *dims) dim = simplify_dim(dim);
  return window;
}

bool may_leave_input(const Window& window, size_t d) {
  return window.ceil || !is_const_int(window.pad_begin[d], 0) || !is_const_int(window.pad_end[d], 0);
}

Expr tap_index(const Window& window, size_t d, const Expr& o, const Expr& k) {
  return o * Expr(window.stride[d]) + k * Expr(window.dilation[d]) - window.pad_begin[d];
}

Expr taps_inside(const Window& window, std::span<const Expr> o, std::span<const Expr> k) {
  Expr all = make_bool(true);
  for (size_t d = 0; d < window.rank(); ++d) {
    if (!may_leave_input(window, d)) continue;
    const Expr index = tap_index(window, d, o[d], k[d]);
    all = all && index >= Expr(0) && index < window.in[d];
  }
  return is_const_int(all, 1) ? Expr() : all;
}

Expr count_taps(const Window& window, size_t d, const Expr& o, bool with_padding) {
  const Expr kernel(window.kernel[d]), dilation(window.dilation[d]);
  // Tap k reads index start + k dilation; it counts for low <= start + k dilation < high.
  const Expr start = o * Expr(window.stride[d]) - window.pad_begin[d];
  const Expr high = with_padding ? window.in[d] + window.pad_end[d] : window.in[d];
  const Expr last = min(kernel, ceil_div(high - start, dilation));
  if (with_padding) return last;
  return last - max(Expr(0), ceil_div(-start, dilation));
}

StaticWindow to_static(const Window& window) {
  StaticWindow result;
  TS_CHECK(window.rank() >= 1 && window.rank() <= 3) << "window of rank " << window.rank();
  for (size_t d = 0; d < window.rank(); ++d) {
    StaticWindow::Dim& dim = result.dims[3 - window.rank() + d];
    dim = {known(window.in[d]).value(),
           known(window.out[d]).value(),
           window.kernel[d],
           window.stride[d],
           window.dilation[d],
           known(window.pad_begin[d]).value(),
           known(window.pad_end[d]).value()};
  }
  return result;
}

}  // namespace tensmith::graph::ops
