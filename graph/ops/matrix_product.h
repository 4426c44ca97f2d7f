/// The sum of products behind all matrix products.
#pragma once

#include "graph/op_def.h"
#include "graph/ops/ref_loops.h"
#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

/// A product of (stacks of) matrices by numpy's rules: a vector on the left is a row, on the right a column, and loses
/// that dim.
struct ProductShape {
  Shape batch;  ///< broadcast dims in front
  Expr m, n, k;
  bool row = true;                                  ///< the output has dim m (A is no vector)
  bool column = true;                               ///< the output has dim n (B is no vector)
  bool transposed_a = false, transposed_b = false;  ///< last two dims swapped
  Shape out;
};
/// Errors: `rank-mismatch` (rank 0), `shape-mismatch`, `dynamic-shape`, `dynamic-broadcast`.
Result<ProductShape> resolve_product(const TensorType& a, const TensorType& b, bool transposed_a = false,
                                     bool transposed_b = false);

/// Indices into A (or B) for output index `i` and reduction index `k`.
Indices index_a(const ProductShape& shape, const Shape& a, const Indices& i, const Expr& k);
Indices index_b(const ProductShape& shape, const Shape& b, const Indices& i, const Expr& k);

/// One reduction over k. `term` makes the product from elements of A and B at output index `i`; `initial`: where the
/// sum starts.
struct ProductTerms {
  std::function<Expr(const Expr& a, const Expr& b, const Indices& i)> term;
  std::function<Expr(const Indices& i)> initial = nullptr;
};
Tensor multiply(const std::string& name, const ProductShape& shape, const Tensor& a, const Tensor& b, DType sum_type,
                const ProductTerms& terms);

/// Units: floating-point operations (two per product).
double product_flops(const ProductShape& shape);

/// c += a b for row-major m x k, k x n; blocked over k so that rows of b stay in cache.
template <typename T>
void reference_gemm(int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c) {
  constexpr int64_t kBlock = 64;
  for (int64_t k0 = 0; k0 < k; k0 += kBlock)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t p = k0; p < std::min(k, k0 + kBlock); ++p) {
        const T factor = a[i * k + p];
        const T* from = b + p * n;
        T* to = c + i * n;
        for (int64_t j = 0; j < n; ++j) to[j] += factor * from[j];
      }
}

/// Stacks of matrices, broadcast; `a` and `b` hold the elements in `a_dims`, `b_dims`, `c` the zeroed result in `out`
/// order.
template <typename T>
void reference_multiply(const ProductShape& shape, const std::vector<T>& a, Dims a_dims, const std::vector<T>& b,
                        Dims b_dims, std::vector<T>& c) {
  if (!shape.row) a_dims.insert(a_dims.begin(), 1);
  if (!shape.column) b_dims.push_back(1);
  const auto transposed = [](const std::vector<T>& from, Dims& dims) {
    const int64_t rows = dims[dims.size() - 2], columns = dims.back(),
                  planes = rows * columns == 0 ? 0 : static_cast<int64_t>(from.size()) / (rows * columns);
    std::vector<T> to(from.size());
    for (int64_t p = 0; p < planes; ++p)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t s = 0; s < columns; ++s) to[(p * columns + s) * rows + r] = from[(p * rows + r) * columns + s];
    std::swap(dims[dims.size() - 2], dims[dims.size() - 1]);
    return to;
  };
  std::vector<T> a_copy, b_copy;
  if (shape.transposed_a) a_copy = transposed(a, a_dims);
  if (shape.transposed_b) b_copy = transposed(b, b_dims);
  const T* a_data = shape.transposed_a ? a_copy.data() : a.data();
  const T* b_data = shape.transposed_b ? b_copy.data() : b.data();
  const int64_t m = a_dims[a_dims.size() - 2], k = a_dims.back(), n = b_dims.back();
  a_dims.resize(a_dims.size() - 2), b_dims.resize(b_dims.size() - 2);
  Dims batch;
  for (const Expr& dim : shape.batch) batch.push_back(known(dim).value());
  for_each_broadcast<2>(batch, {&a_dims, &b_dims}, [&](int64_t p, const std::array<int64_t, 2>& at) {
    reference_gemm(m, n, k, a_data + at[0] * m * k, b_data + at[1] * k * n, c.data() + p * m * n);
  });
}

}  // namespace tensmith::graph::ops
