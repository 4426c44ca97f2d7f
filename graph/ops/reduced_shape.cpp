#include "graph/ops/reduced_shape.h"

namespace tensmith::graph::ops {

ReducedShape::ReducedShape(const Shape& in, const std::vector<int>& axes, bool keep)
    : reduced(in.size(), false), keep_dims(keep) {
  for (int axis : axes) reduced[static_cast<size_t>(axis)] = true;
  for (size_t d = 0; d < in.size(); ++d) {
    if (reduced[d]) extents.push_back(in[d]);
    if (!reduced[d]) out.push_back(in[d]);
    else if (keep_dims) out.push_back(1);
  }
}

Indices ReducedShape::input_index(const Indices& i, const Indices& r) const {
  Indices index;
  size_t from_out = 0, from_reduced = 0;
  for (bool is_reduced : reduced) {
    index.push_back(is_reduced ? r[from_reduced++] : i[from_out]);
    if (!is_reduced || keep_dims) ++from_out;
  }
  return index;
}

Indices ReducedShape::output_index(const Indices& in) const {
  Indices index;
  for (size_t d = 0; d < reduced.size(); ++d) {
    if (!reduced[d]) index.push_back(in[d]);
    else if (keep_dims) index.push_back(0);
  }
  return index;
}

Dims reduced_strides(const Dims& in, const std::vector<bool>& reduced) {
  Dims strides(in.size(), 0);
  int64_t stride = 1;
  for (size_t d = in.size(); d-- > 0;) {
    if (reduced[d]) continue;
    strides[d] = stride;
    stride *= in[d];
  }
  return strides;
}

Tensor reduce_axes(const std::string& name, const ReducedShape& shape, const Reducer& reducer,
                   const std::function<Expr(const Indices&)>& body) {
  return reduce(name, shape.out, shape.extents, reducer,
                [&](const Indices& i, const Indices& r) { return body(shape.input_index(i, r)); });
}

Tensor sum_axes(const std::string& name, const ReducedShape& shape, const std::function<Expr(const Indices&)>& body) {
  return sum(name, shape.out, shape.extents,
             [&](const Indices& i, const Indices& r) { return body(shape.input_index(i, r)); });
}

Tensor mean_axes(const std::string& name, const ReducedShape& shape, const std::function<Expr(const Indices&)>& body) {
  const Tensor total = sum_axes(name + "_sum", shape, body);
  return compute(name, shape.out, [&](const Indices& i) { return total(i) / cast(total.dtype(), shape.count()); });
}

std::vector<int> axes_from(int first, int rank) {
  std::vector<int> axes;
  for (int axis = first; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

}  // namespace tensmith::graph::ops
