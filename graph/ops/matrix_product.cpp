#include "graph/ops/matrix_product.h"

namespace tensmith::graph::ops {

namespace {

/// The index of a matrix in a stack: batch dims broadcast, then row and column.
Indices matrix_index(const Shape& dims, const Indices& i, const Expr& row, const Expr& column, bool swapped) {
  const Shape stack(dims.begin(), dims.end() - 2);
  // Output indices begin with the batch; broadcast_index counts from the back of what it is given.
  Indices index = broadcast_index(stack, i);
  index.push_back(swapped ? column : row);
  index.push_back(swapped ? row : column);
  return index;
}

}  // namespace

Result<ProductShape> resolve_product(const TensorType& a, const TensorType& b, bool transposed_a, bool transposed_b) {
  for (const auto& [type, name] : {std::pair{&a, "input A"}, {&b, "input B"}})
    if (Result<void> ok = check_rank(*type, 1, 64, name); !ok) return ok.failure();
  ProductShape shape;
  shape.row = a.rank() > 1, shape.column = b.rank() > 1;
  shape.transposed_a = transposed_a && shape.row, shape.transposed_b = transposed_b && shape.column;
  const auto from_back = [](const TensorType& type, int k) { return type.shape[static_cast<size_t>(type.rank() - k)]; };
  shape.m = shape.row ? from_back(a, shape.transposed_a ? 1 : 2) : Expr(1);
  shape.k = from_back(a, shape.transposed_a ? 2 : 1);
  const Expr k_of_b = shape.column ? from_back(b, shape.transposed_b ? 1 : 2) : b.shape[0];
  shape.n = shape.column ? from_back(b, shape.transposed_b ? 2 : 1) : Expr(1);
  if (!same_dim(shape.k, k_of_b))
    return refuse(different_dim(shape.k, k_of_b) ? "shape-mismatch" : "dynamic-shape")
           << "inputs " << shape_text(a.shape) << " and " << shape_text(b.shape)
           << ": expected equal dims to sum over, got " << dim_to_string(shape.k) << " and " << dim_to_string(k_of_b);
  const Shape stack_a(a.shape.begin(), a.shape.end() - (shape.row ? 2 : 1)),
      stack_b(b.shape.begin(), b.shape.end() - (shape.column ? 2 : 1));
  const Result<Shape> batch = broadcast_shapes({&stack_a, &stack_b});
  if (!batch) return batch.failure();
  shape.batch = *batch;
  shape.out = shape.batch;
  if (shape.row) shape.out.push_back(shape.m);
  if (shape.column) shape.out.push_back(shape.n);
  return shape;
}

Indices index_a(const ProductShape& shape, const Shape& a, const Indices& i, const Expr& k) {
  if (!shape.row) return {k};
  const Indices batch(i.begin(), i.begin() + static_cast<int64_t>(shape.batch.size()));
  return matrix_index(a, batch, i[shape.batch.size()], k, shape.transposed_a);
}

Indices index_b(const ProductShape& shape, const Shape& b, const Indices& i, const Expr& k) {
  if (!shape.column) return {k};
  const Indices batch(i.begin(), i.begin() + static_cast<int64_t>(shape.batch.size()));
  return matrix_index(b, batch, k, i.back(), shape.transposed_b);
}

Tensor multiply(const std::string& name, const ProductShape& shape, const Tensor& a, const Tensor& b, DType sum_type,
                const ProductTerms& terms) {
  Reduction reduction;
  reduction.extents = {shape.k};
  reduction.reducer = sum_reducer(sum_type);
  reduction.body = [&](const Indices& i, const Indices& r) {
    return std::vector<Expr>{
        terms.term(a(index_a(shape, a.shape(), i, r[0])), b(index_b(shape, b.shape(), i, r[0])), i)};
  };
  if (terms.initial) reduction.initial = [&](const Indices& i) { return std::vector<Expr>{terms.initial(i)}; };
  return reduce_multi(name, shape.out, reduction)[0];
}

double product_flops(const ProductShape& shape) {
  double total = 2 * static_cast<double>(known(shape.k).value_or(1));
  for (const Expr& dim : shape.out) total *= static_cast<double>(known(dim).value_or(1));
  return total;
}

}  // namespace tensmith::graph::ops
