#include "graph/ops/reshape_index.h"

#include "graph/ops/dim_product.h"
#include "graph/ops/injective.h"

namespace tensmith::graph::ops {

namespace {

/// Positions of the dims that are not provably 1.
std::vector<size_t> wide_dims(const Shape& shape) {
  std::vector<size_t> wide;
  for (size_t k = 0; k < shape.size(); ++k)
    if (!is_const_int(shape[k], 1)) wide.push_back(k);
  return wide;
}

/// Fills `index` at the dims `from_dims` with the index that belongs to `i` at the dims `to_dims`.
void map_group(const Shape& from, std::span<const size_t> from_dims, const Shape& to, std::span<const size_t> to_dims,
               const Indices& i, Indices& index) {
  if (from_dims.empty()) return;
  Expr flat(0);
  for (size_t dim : to_dims) flat = flat * to[dim] + i[dim];
  Expr rest = flat;
  // From the innermost dim outwards: what is left of the flat index shrinks, the outermost dim takes all of it.
  for (size_t k = from_dims.size(); k-- > 0;) {
    const Expr& dim = from[from_dims[k]];
    index[from_dims[k]] = k == 0 ? rest : floor_mod(rest, dim);
    if (k > 0) rest = floor_div(rest, dim);
  }
}

}  // namespace

Indices reshape_index(const Shape& from, const Shape& to, const Indices& i) {
  Indices index(from.size(), Expr(0));
  const std::vector<size_t> source = wide_dims(from), target = wide_dims(to);
  // Prefix products of both sides; a group ends where they are equal.
  std::vector<DimProduct> ends;
  DimProduct product;
  for (size_t dim : target) {
    product.multiply(to[dim]);
    ends.push_back(product);
  }
  size_t source_done = 0, target_done = 0;
  DimProduct reached;
  for (size_t s = 0; s < source.size(); ++s) {
    reached.multiply(from[source[s]]);
    size_t t = target_done;
    while (t < target.size() && !same_product(reached, ends[t])) ++t;
    if (t == target.size()) continue;
    const bool last = s + 1 == source.size() || t + 1 == target.size();
    const size_t source_end = last ? source.size() : s + 1, target_end = last ? target.size() : t + 1;
    map_group(from, std::span(source).subspan(source_done, source_end - source_done), to,
              std::span(target).subspan(target_done, target_end - target_done), i, index);
    source_done = source_end;
    target_done = target_end;
    if (last) return index;
  }
  map_group(from, std::span(source).subspan(source_done), to, std::span(target).subspan(target_done), i, index);
  return index;
}

Tensor reshaped(const std::string& name, const Tensor& tensor, const Shape& to) {
  return injective(name, {tensor.dtype(), to, {}},
                   [&](const Indices& i) { return tensor(reshape_index(tensor.shape(), to, i)); });
}

}  // namespace tensmith::graph::ops
