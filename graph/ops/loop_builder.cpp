#include "graph/ops/loop_builder.h"

namespace tensmith::graph::ops {

namespace {

/// Iterations at a time; lowering splits the vector where the target's registers are narrower.
constexpr int64_t kLanes = 16;

}  // namespace

Stmt loop(const char* name, const Expr& extent, const std::function<Stmt(const Expr&)>& body, ForKind kind) {
  const Var var(name);
  return For::make(var, 0, extent, kind, body(var));
}

Stmt loop_nest(const Shape& extents, const std::function<Stmt(const Indices&)>& body, ForKind outer) {
  std::vector<Var> vars;
  Indices index;
  size_t outermost = 0;
  for (size_t k = 0; k < extents.size(); ++k) {
    vars.emplace_back("i" + std::to_string(k));
    index.push_back(vars.back());
    if (outermost == k && is_const_int(extents[k], 1)) ++outermost;
  }
  Stmt nest = body(index);
  for (size_t k = extents.size(); k-- > 0;)
    nest = For::make(vars[k], 0, extents[k], k == outermost ? outer : ForKind::kSerial, nest);
  return nest;
}

Stmt vector_nest(const Shape& extents, const std::function<Stmt(const Indices&)>& body, ForKind outer) {
  if (extents.empty()) return body({});
  const Expr inner = extents.back();
  const auto size = known(inner);
  const auto row = [&](const Indices& rows) {
    const auto at = [&](const Expr& last) {
      Indices index = rows;
      index.push_back(last);
      return body(index);
    };
    if (size && *size < kLanes) return loop("j", inner, at);
    const Expr whole = floor_div(inner, kLanes);
    const Stmt vectors = loop("j", whole, [&](const Expr& j) {
      return loop(
          "lane", kLanes, [&](const Expr& lane) { return at(j * kLanes + lane); }, ForKind::kVectorized);
    });
    if (size && *size % kLanes == 0) return vectors;
    return Block::make(
        {vectors, loop("j", floor_mod(inner, kLanes), [&](const Expr& j) { return at(whole * kLanes + j); })});
  };
  return loop_nest(Shape(extents.begin(), extents.end() - 1), row, outer);
}

Stmt fill(const Buffer& to, const std::function<Expr(const Indices&)>& value) {
  return vector_nest(
      to->shape, [&](const Indices& index) { return Store::make(to, index, value(index)); }, ForKind::kParallel);
}

Stmt unless_empty(const Expr& extent, Stmt body) { return known(extent) ? body : If::make(extent > 0, body); }

Buffer local_scalar(const char* name, DType dtype) { return make_buffer(name, dtype, {Expr(1)}, Scope::kStack); }

Stmt set(const Buffer& scalar, const Expr& value) { return Store::make(scalar, {Expr(0)}, value); }

Stmt with_buffers(const std::vector<Buffer>& buffers, Stmt body) {
  for (size_t k = buffers.size(); k-- > 0;) body = Allocate::make(buffers[k], body);
  return body;
}

}  // namespace tensmith::graph::ops
