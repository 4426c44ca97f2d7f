#include "graph/ops/dim_product.h"

#include <numeric>

#include "tensor/simplify.h"

namespace tensmith::graph::ops {

namespace {

/// Removes the factors that both have. Different numbers of equal factors stay on the side that has more.
void cancel(DimProduct& a, DimProduct& b) {
  for (size_t i = 0; i < a.factors.size();) {
    size_t j = 0;
    while (j < b.factors.size() && !same_dim(a.factors[i], b.factors[j])) ++j;
    if (j == b.factors.size()) {
      ++i;
      continue;
    }
    a.factors.erase(a.factors.begin() + static_cast<ptrdiff_t>(i));
    b.factors.erase(b.factors.begin() + static_cast<ptrdiff_t>(j));
  }
}

}  // namespace

void DimProduct::multiply(const Expr& dim) {
  if (const auto* imm = dim.as<IntImm>()) {
    // A wrapped constant only makes a comparison fail; sizes that large are refused elsewhere.
    constant = static_cast<int64_t>(static_cast<uint64_t>(constant) * static_cast<uint64_t>(imm->value));
    return;
  }
  if (const auto* binary = dim.as<Binary>(); binary && binary->op == BinaryOp::kMul) {
    multiply(binary->a);
    multiply(binary->b);
    return;
  }
  LinearForm form = linear_form(dim);
  int64_t common = std::abs(form.constant);
  for (const auto& [term, coefficient] : form.terms) common = std::gcd(common, std::abs(coefficient));
  if (common <= 1) {
    factors.push_back(dim);
    return;
  }
  form.constant /= common;
  for (auto& [term, coefficient] : form.terms) coefficient /= common;
  multiply(common);
  const Expr rest = from_linear_form(form);
  if (const auto* product = rest.as<Binary>(); product && product->op == BinaryOp::kMul) multiply(rest);
  else factors.push_back(rest);
}

Expr DimProduct::to_expr() const {
  Expr result(constant);
  for (const Expr& factor : factors) result = result * factor;
  return result;
}

DimProduct dim_product(std::span<const Expr> dims) {
  DimProduct product;
  for (const Expr& dim : dims) product.multiply(dim);
  return product;
}

bool same_product(const DimProduct& a, const DimProduct& b) {
  if (a.constant == 0 && b.constant == 0) return true;
  DimProduct left = a, right = b;
  cancel(left, right);
  if (left.factors.empty() && right.factors.empty()) return left.constant == right.constant;
  return same_dim(left.to_expr(), right.to_expr());
}

Expr quotient(DimProduct a, DimProduct b) {
  cancel(a, b);
  if (const int64_t common = std::gcd(a.constant, b.constant); common > 1) {
    a.constant /= common;
    b.constant /= common;
  }
  return floor_div(a.to_expr(), b.to_expr());
}

}  // namespace tensmith::graph::ops
