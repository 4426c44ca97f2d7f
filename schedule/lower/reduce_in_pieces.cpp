#include "schedule/lower/reduce_in_pieces.h"

#include <functional>

#include "tensor/walk.h"

namespace tensmith {

namespace {

/// The nest with other stores in place of those into the buffer.
Stmt with_stores(const Stmt& nest, const Buffer& buffer, const std::function<Stmt(const Store&)>& make) {
  return rewrite(nest, {}, [&](const Stmt& s) {
    const auto* store = s.as<Store>();
    return store && store->buffer.same_as(buffer) ? make(*store) : s;
  });
}

}  // namespace

Stmt reduce_in_pieces(const Stmt& start, const Stmt& main, const Buffer& target, const Reducer& reducer,
                      int64_t piece) {
  const auto* loop = main.as<For>();
  int64_t extent;
  if (!loop || loop->for_kind != ForKind::kSerial || !as_const_int(loop->extent, &extent)) return {};
  if (piece < 1 || piece >= extent || extent % piece != 0 || reducer.lhs.size() != 1) return {};
  const Buffer total =
      make_buffer(target->name + "_total", target->dtype, target->shape, target->scope, target->alignment);
  const Stmt keep = with_stores(start, target, [&](const Store& s) {
    return Store::make(total, s.indices, Load::make(target, s.indices), s.predicate);
  });
  const Stmt clear = with_stores(
      start, target, [&](const Store& s) { return Store::make(target, s.indices, reducer.identity[0], s.predicate); });
  const Stmt add = with_stores(start, target, [&](const Store& s) {
    const Expr sum = substitute(reducer.combined[0], {{reducer.lhs[0].get(), Load::make(total, s.indices)},
                                                      {reducer.rhs[0].get(), Load::make(target, s.indices)}});
    return Store::make(target, s.indices, sum, s.predicate);
  });
  Attrs attrs = loop->attrs;
  attrs.erase(kPieceKey);
  const Var outer(loop->var.name() + "_piece"), inner(loop->var.name());
  const Stmt body = substitute(loop->body, {{loop->var.get(), loop->min + Expr(outer) * Expr(piece) + Expr(inner)}});
  const Stmt steps = For::make(inner, Expr(0), Expr(piece), ForKind::kSerial, body, attrs);
  // No exception for the first piece: branches around the moves had LLVM spill inside the steps of products with gelu.
  const Stmt all = Block::make({keep, clear, steps, add});
  return Allocate::make(total,
                        Block::make({start, For::make(outer, Expr(0), Expr(extent / piece), ForKind::kSerial, all)}));
}

}  // namespace tensmith
