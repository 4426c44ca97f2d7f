#include "schedule/lower/private_workspaces.h"

#include <map>

#include "tensor/walk.h"

namespace tensmith {

namespace {

/// The loop with its workspaces outside it.
Stmt move_out(const For& loop, const Stmt& original) {
  std::map<const BufferNode*, Buffer> parts;
  std::vector<Buffer> order;
  visit(loop.body, [&](const Stmt& s) {
    const auto* allocation = s.as<Allocate>();
    if (!allocation || allocation->buffer->scope != Scope::kGlobal || parts.count(allocation->buffer.get()))
      return true;
    std::vector<Expr> shape = allocation->buffer->shape;
    shape.insert(shape.begin(), loop.extent);
    const Buffer whole = make_buffer(allocation->buffer->name, allocation->buffer->dtype, shape, Scope::kGlobal);
    parts.emplace(allocation->buffer.get(), whole);
    order.push_back(whole);
    return true;
  });
  if (order.empty()) return original;
  const Expr part = is_const_int(loop.min, 0) ? Expr(loop.var) : Expr(loop.var) - loop.min;
  const auto in_part = [&](std::vector<Expr> indices) {
    indices.insert(indices.begin(), part);
    return indices;
  };
  Stmt body = rewrite(
      loop.body,
      [&](const Expr& e) {
        const auto* read = e.as<Load>();
        const auto found = read ? parts.find(read->buffer.get()) : parts.end();
        return found == parts.end() ? e : Load::make(found->second, in_part(read->indices), read->predicate);
      },
      [&](const Stmt& s) {
        if (const auto* store = s.as<Store>())
          if (const auto found = parts.find(store->buffer.get()); found != parts.end())
            return Store::make(found->second, in_part(store->indices), store->value, store->predicate);
        if (const auto* allocation = s.as<Allocate>(); allocation && parts.count(allocation->buffer.get()))
          return allocation->body;
        return s;
      });
  Stmt result = For::make(loop.var, loop.min, loop.extent, loop.for_kind, std::move(body), loop.attrs);
  for (auto buffer = order.rbegin(); buffer != order.rend(); ++buffer) result = Allocate::make(*buffer, result);
  return result;
}

}  // namespace

Stmt private_workspaces(const Stmt& s) {
  return rewrite(s, {}, [](const Stmt& inner) {
    const auto* loop = inner.as<For>();
    int64_t extent;
    if (!loop || loop->for_kind != ForKind::kParallel || !as_const_int(loop->extent, &extent)) return inner;
    return move_out(*loop, inner);
  });
}

}  // namespace tensmith
