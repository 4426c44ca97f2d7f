#include "tensor/stmt.h"

#include "runtime/base/error.h"

namespace tensmith {

Stmt For::make(Var var, Expr min, Expr extent, ForKind kind, Stmt body, Attrs attrs) {
  TS_CHECK(var.dtype() == kInt64 && min.dtype() == kInt64 && extent.dtype() == kInt64) << "loop over " << var.name();
  if (!body) return {};
  return new For(std::move(var), std::move(min), std::move(extent), kind, std::move(body), std::move(attrs));
}

Stmt While::make(Expr cond, Stmt body) {
  TS_CHECK(cond.dtype() == kBool) << to_string(cond.dtype());
  return new While(std::move(cond), std::move(body));
}

Stmt If::make(Expr cond, Stmt then, Stmt otherwise) {
  TS_CHECK(cond.dtype() == kBool) << to_string(cond.dtype());
  if (!then && !otherwise) return {};
  return new If(std::move(cond), std::move(then), std::move(otherwise));
}

Stmt LetStmt::make(Var var, Expr value, Stmt body) {
  TS_CHECK(var.dtype() == value.dtype()) << var.name() << ": " << to_string(var.dtype()) << " = "
                                         << to_string(value.dtype());
  if (!body) return {};
  return new LetStmt(std::move(var), std::move(value), std::move(body));
}

Stmt Store::make(Buffer buffer, std::vector<Expr> indices, Expr value, Expr predicate) {
  int lanes = value.dtype().lanes;
  for (const Expr& index : indices) {
    TS_CHECK(index.dtype().element() == kInt64)
        << "index of type " << to_string(index.dtype()) << " into " << buffer->name;
    lanes = std::max<int>(lanes, index.dtype().lanes);
  }
  for (Expr& index : indices)
    if (index.dtype().lanes != lanes) index = Broadcast::make(index, lanes);
  if (value.dtype().lanes != lanes) value = Broadcast::make(value, lanes);
  TS_CHECK(value.dtype().element() == buffer->dtype)
      << "store of " << to_string(value.dtype()) << " into " << buffer->name << " of " << to_string(buffer->dtype);
  if (predicate) TS_CHECK(predicate.dtype() == kBool.with_lanes(lanes)) << to_string(predicate.dtype());
  return new Store(std::move(buffer), std::move(indices), std::move(value), std::move(predicate));
}

Stmt Block::make(std::vector<Stmt> stmts) {
  std::vector<Stmt> flat;
  flat.reserve(stmts.size());
  for (Stmt& s : stmts) {
    if (!s) continue;
    if (const auto* block = s.as<Block>()) flat.insert(flat.end(), block->stmts.begin(), block->stmts.end());
    else flat.push_back(std::move(s));
  }
  if (flat.empty()) return {};
  if (flat.size() == 1) return flat[0];
  return new Block(std::move(flat));
}

Stmt Allocate::make(Buffer buffer, Stmt body) {
  if (!body) return {};
  return new Allocate(std::move(buffer), std::move(body));
}

Stmt Evaluate::make(Expr value) { return new Evaluate(std::move(value)); }

Stmt Assert::make(Expr cond, int code, std::string message) {
  TS_CHECK(cond.dtype() == kBool && code != 0) << message;
  return new Assert(std::move(cond), code, std::move(message));
}

}  // namespace tensmith
