#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

namespace {

Stmt loop(const Var& var, const Expr& begin, const Expr& end, Stmt body) {
  return For::make(var, begin, end - begin, ForKind::kSerial, std::move(body));
}

/// Gaussian elimination with row pivoting on a copy of each matrix; the determinant is the signed product of the
/// pivots.
std::vector<Tensor> compute_det(const ComputeContext& ctx) {
  const Tensor& x = ctx.input(0);
  const DType type = x.dtype(), wide = compute_type(type);
  const Expr n = x.shape().back();
  const Shape& batch = ctx.output_type().shape;
  return imperative("det", {x}, {batch}, {type}, [&](const std::vector<Buffer>& outputs) {
    const Buffer a = make_buffer("a", wide, {n, n}, Scope::kGlobal),
                 product = make_buffer("product", wide, {}, Scope::kStack),
                 pivot = make_buffer("pivot", kInt64, {}, Scope::kStack);
    Indices at;
    std::vector<Var> vars;
    for (size_t d = 0; d < batch.size(); ++d) vars.emplace_back("b" + std::to_string(d)), at.push_back(vars.back());
    const auto magnitude = [&](const Expr& i, const Expr& j) { return call(Intrinsic::kAbs, {load(a, {i, j})}); };
    const Var i("i"), j("j"), k("k"), r("r"), c("c"), t("t", wide), f("f", wide);
    Indices source = at;
    source.push_back(i), source.push_back(j);
    const Stmt copy = loop(i, 0, n, loop(j, 0, n, Store::make(a, {i, j}, widen(x(source)))));
    // The stored row index is clamped for the bounds check; it never leaves [k, n).
    const Expr row = max(min(load(pivot, {}), n - 1), Expr(0));
    const Stmt find = Block::make(
        {Store::make(pivot, {}, k),
         loop(r, Expr(k) + 1, n, If::make(magnitude(r, k) > magnitude(row, k), Store::make(pivot, {}, r)))});
    const Stmt swap = If::make(
        load(pivot, {}) != Expr(k),
        Block::make(
            {loop(c, 0, n,
                  LetStmt::make(t, load(a, {k, c}),
                                Block::make({Store::make(a, {k, c}, load(a, {row, c})), Store::make(a, {row, c}, t)}))),
             Store::make(product, {}, -load(product, {}))}));
    const Stmt multiply = Store::make(product, {}, load(product, {}) * load(a, {k, k}));
    const Stmt eliminate = If::make(
        load(a, {k, k}) != make_zero(wide),
        loop(r, Expr(k) + 1, n,
             LetStmt::make(
                 f, load(a, {r, k}) / load(a, {k, k}),
                 loop(c, Expr(k) + 1, n, Store::make(a, {r, c}, load(a, {r, c}) - Expr(f) * load(a, {k, c}))))));
    Stmt one = Block::make({copy, Store::make(product, {}, make_const_int(wide, 1)),
                            loop(k, 0, n, Block::make({find, swap, multiply, eliminate})),
                            Store::make(outputs[0], at, cast(type, load(product, {})))});
    one = Allocate::make(a, Allocate::make(product, Allocate::make(pivot, one)));
    for (size_t d = batch.size(); d-- > 0;) one = loop(vars[d], 0, batch[d], one);
    return one;
  });
}

/// Expansion by the first row: slow, and nothing like elimination, so that both may be trusted when they agree.
double expand(const std::vector<double>& m, size_t n) {
  if (n == 0) return 1;
  if (n == 1) return m[0];
  double total = 0;
  for (size_t column = 0; column < n; ++column) {
    std::vector<double> minor;
    for (size_t i = 1; i < n; ++i)
      for (size_t j = 0; j < n; ++j)
        if (j != column) minor.push_back(m[i * n + j]);
    total += (column % 2 ? -1 : 1) * m[column] * expand(minor, n - 1);
  }
  return total;
}

double eliminate(std::vector<double> m, size_t n) {
  double product = 1;
  for (size_t k = 0; k < n; ++k) {
    size_t best = k;
    for (size_t i = k + 1; i < n; ++i)
      if (std::fabs(m[i * n + k]) > std::fabs(m[best * n + k])) best = i;
    if (m[best * n + k] == 0) return 0;
    for (size_t j = 0; best != k && j < n; ++j) std::swap(m[k * n + j], m[best * n + j]);
    product *= (best != k ? -1 : 1) * m[k * n + k];
    for (size_t i = k + 1; i < n; ++i)
      for (size_t j = n; j-- > k;) m[i * n + j] -= m[i * n + k] / m[k * n + k] * m[k * n + j];
  }
  return product;
}

}  // namespace

OpDef det() {
  return OpDef{
      .name = "Det",
      .since = 11,
      .doc = "The determinant of each matrix of a stack.",
      .inputs = {{.name = "X", .types = TypeSet::kFloat}},
      .fusion = FusionKind::kOpaque,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        const TensorType& x = ctx.input(0);
        if (Result<void> ok = check_rank(x, 2, 64, "input X"); !ok) return ok.failure();
        const Expr &rows = x.shape[x.shape.size() - 2], &columns = x.shape.back();
        if (!same_dim(rows, columns))
          return refuse(different_dim(rows, columns) ? "shape-mismatch" : "dynamic-shape")
                 << "input X: expected square matrices, got shape " << shape_text(x.shape);
        return std::vector<TensorType>{{x.dtype, Shape(x.shape.begin(), x.shape.end() - 2), {}}};
      },
      .compute = compute_det,
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const RefTensor& x = ctx.input(0);
        const auto n = static_cast<size_t>(x.shape.back());
        for (size_t k = 0; k < ctx.output().f.size(); ++k) {
          const std::vector<double> m(x.f.begin() + static_cast<int64_t>(k * n * n),
                                      x.f.begin() + static_cast<int64_t>((k + 1) * n * n));
          ctx.output().f[k] = n <= 6 ? expand(m, n) : eliminate(m, n);
        }
        return {};
      },
      .samples = {{.name = "two", .inputs = {f32({2, 2})}, .rtol = 1e-4},
                  {.name = "stack", .inputs = {f32({2, 3, 4, 4})}, .rtol = 1e-4, .atol = 1e-5},
                  {.name = "one", .inputs = {f32({1, 1})}},
                  {.name = "singular", .inputs = {given(kFloat32, {3, 3}, {1, 2, 3, 2, 4, 6, 1, 0, 1})}, .atol = 1e-5},
                  {.name = "zero_pivot", .inputs = {given(kFloat32, {3, 3}, {0, 2, 1, 1, 0, 3, 2, 1, 0})}},
                  {.name = "seven", .inputs = {f32({7, 7})}, .rtol = 1e-3, .atol = 1e-4},
                  {.name = "not_square", .inputs = {f32({2, 3})}, .error_id = "shape-mismatch"}},
  };
}

}  // namespace tensmith::graph::ops
