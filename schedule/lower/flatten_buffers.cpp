#include "schedule/lower/flatten_buffers.h"

#include "tensor/walk.h"

namespace tensmith {

namespace {

std::vector<Expr> flat_index(const Buffer& buffer, const std::vector<Expr>& indices) {
  Expr flat(0);
  for (size_t d = 0; d < indices.size(); ++d) flat = d == 0 ? indices[0] : flat * buffer->shape[d] + indices[d];
  return {flat};
}

class Flattener : public Mutator {
 public:
  Expr mutate(const Expr& e) override {
    const Expr rebuilt = mutate_children(e);
    const auto* read = rebuilt.as<Load>();
    if (!read || (read->indices.size() == 1 && read->buffer->shape.size() == 1)) return rebuilt;
    return Load::make(read->buffer, flat_index(read->buffer, read->indices), read->predicate);
  }
  Stmt mutate(const Stmt& s) override {
    const Stmt rebuilt = mutate_children(s);
    const auto* store = rebuilt.as<Store>();
    if (!store || (store->indices.size() == 1 && store->buffer->shape.size() == 1)) return rebuilt;
    return Store::make(store->buffer, flat_index(store->buffer, store->indices), store->value, store->predicate);
  }
};

}  // namespace

Stmt flatten_buffers(const Stmt& s) { return Flattener().mutate(s); }

}  // namespace tensmith
