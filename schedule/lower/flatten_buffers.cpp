#include "schedule/lower/flatten_buffers.h"

#include <algorithm>

#include "tensor/walk.h"

namespace tensmith {

namespace {

/// Elements from one index to the next in each dimension; false when an extent is symbolic.
bool constant_strides(const Buffer& buffer, std::vector<int64_t>* strides) {
  strides->assign(buffer->shape.size(), 1);
  int64_t stride = 1;
  for (size_t d = buffer->shape.size(); d-- > 0;) {
    (*strides)[d] = stride;
    int64_t extent = 0;
    if (!as_const_int(buffer->shape[d], &extent) || __builtin_mul_overflow(stride, extent, &stride)) return false;
  }
  return true;
}

/// Constant indices, which unrolling leaves most of, end in one constant: a fifth of the nodes of the nested products.
Expr flat_index(const Buffer& buffer, const std::vector<Expr>& indices) {
  std::vector<int64_t> strides;
  if (!constant_strides(buffer, &strides)) {
    Expr flat(0);
    for (size_t d = 0; d < indices.size(); ++d) flat = d == 0 ? indices[0] : flat * buffer->shape[d] + indices[d];
    return flat;
  }
  Expr sum, vector;  // a vector comes last, so that all else stays scalar
  int64_t constant = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    int64_t index = 0;
    if (indices[d].dtype().is_scalar() && as_const_int(indices[d], &index)) {
      constant += index * strides[d];
      continue;
    }
    const Expr term = strides[d] == 1 ? indices[d] : indices[d] * strides[d];
    Expr& part = term.dtype().lanes > 1 ? vector : sum;
    part = part.get() ? part + term : term;
  }
  if (constant != 0 || (!sum.get() && !vector.get())) sum = sum.get() ? sum + constant : Expr(constant);
  if (!vector.get()) return sum;
  return sum.get() ? sum + vector : vector;
}

bool reads(const Expr& e) {
  bool found = false;
  visit(e, [&](const Expr& child) {
    found = found || child.kind() == NodeKind::kLoad;
    return !found;
  });
  return found;
}

class Flattener : public Mutator {
 public:
  Expr mutate(const Expr& e) override {
    const auto* read = e.as<Load>();
    if (!read) return mutate_children(e);
    // Most indices are plain arithmetic, whose parts need no look each.
    const bool plain = !read->predicate.get() && std::none_of(read->indices.begin(), read->indices.end(), reads);
    const Expr rebuilt = plain ? e : mutate_children(e);
    read = rebuilt.as<Load>();
    if (read->indices.size() == 1 && read->buffer->shape.size() == 1) return rebuilt;
    return Load::make(read->buffer, {flat_index(read->buffer, read->indices)}, read->predicate);
  }
  Stmt mutate(const Stmt& s) override {
    const Stmt rebuilt = mutate_children(s);
    const auto* store = rebuilt.as<Store>();
    if (!store || (store->indices.size() == 1 && store->buffer->shape.size() == 1)) return rebuilt;
    return Store::make(store->buffer, {flat_index(store->buffer, store->indices)}, store->value, store->predicate);
  }
};

}  // namespace

Stmt flatten_buffers(const Stmt& s) { return Flattener().mutate(s); }

}  // namespace tensmith
