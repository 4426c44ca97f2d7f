#include "graph/dim_facts.h"
#include "graph/graph.h"
#include "graph/text.h"
#include "tensor/equal_hash.h"
#include "tensor/simplify.h"
#include "tensor/walk.h"

namespace tensmith::graph {

bool TensorType::is_static() const {
  for (const Expr& dim : shape)
    if (!dim.as<IntImm>()) return false;
  return true;
}

std::vector<int64_t> TensorType::static_shape() const {
  std::vector<int64_t> numbers;
  for (const Expr& dim : shape) {
    const auto* imm = dim.as<IntImm>();
    TS_CHECK(imm) << "shape of " << to_string(*this) << " is not static";
    numbers.push_back(imm->value);
  }
  return numbers;
}

TensorType static_type(DType dtype, const std::vector<int64_t>& shape) {
  TensorType type{dtype, {}, {}};
  for (int64_t dim : shape) type.shape.push_back(dim);
  return type;
}

std::string dim_to_string(const Expr& dim) {
  return dim_text(dim, [](const VarNode* var) { return is_plain_dim_name(var->name) ? var->name : quote(var->name); });
}

std::string to_string(const TensorType& type) {
  std::string text = to_string(type.dtype) + "[";
  for (size_t k = 0; k < type.shape.size(); ++k) text += (k ? ", " : "") + dim_to_string(type.shape[k]);
  return text + "]";
}

Facts dim_facts(const Expr& e) {
  Facts facts;
  for (const VarNode* var : collect_vars(e)) facts.set(Var(var), VarFacts{.lo = 0, .hi = int64_t{1} << 40});
  return facts;
}

Expr simplify_dim(const Expr& e) {
  if (e.as<IntImm>() || e.as<VarNode>()) return e;
  return simplify(e, dim_facts(e));
}

bool same_dim(const Expr& a, const Expr& b) {
  if (a.same_as(b)) return true;
  if (a.dtype() != b.dtype()) return false;  // an element of a float tensor that is no whole number
  const auto *x = a.as<IntImm>(), *y = b.as<IntImm>();
  if (x && y) return x->value == y->value;
  if (a.as<VarNode>() && b.as<VarNode>()) return false;
  if (equal(a, b)) return true;
  if (a.dtype().is_float()) return false;
  if ((x && b.as<VarNode>()) || (y && a.as<VarNode>())) return false;
  return is_const_int(simplify_dim(a - b), 0);
}

bool same_type(const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype || a.shape.size() != b.shape.size()) return false;
  for (size_t k = 0; k < a.shape.size(); ++k)
    if (!same_dim(a.shape[k], b.shape[k])) return false;
  return true;
}

}  // namespace tensmith::graph
