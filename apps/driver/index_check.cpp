#include "apps/driver/index_check.h"

namespace tensmith {

namespace {

constexpr int64_t kLanes = 8;

Stmt refuse_outside(const IndexCheck& check, const Expr& lowest, const Expr& highest, int64_t extent) {
  return Assert::make(cast(kInt64, lowest) >= -extent && cast(kInt64, highest) < extent, check.code, check.message);
}

Stmt number_by_number(const IndexCheck& check, const Buffer& indices) {
  const bool plain = check.layout.dims().empty();
  const std::vector<int64_t> extents = plain ? check.shape : check.layout.physical_shape(check.shape);
  const auto inside = [&](const std::vector<Expr>& at, int64_t extent) {
    Expr flat(0);
    const std::vector<Expr> place = plain ? at : check.layout.physical_index(at);
    for (size_t d = 0; d < place.size(); ++d) flat = flat * extents[d] + place[d];
    const Var number("number");
    return LetStmt::make(number, cast(kInt64, load(indices, {flat})), refuse_outside(check, number, number, extent));
  };
  std::vector<Var> loops;
  std::vector<Expr> at;
  for (size_t d = 0; d < check.shape.size(); ++d) {
    loops.emplace_back("i" + std::to_string(d));
    at.emplace_back(loops.back());
  }
  const bool by_position = check.extents.size() > 1;
  Stmt body;
  if (by_position) {
    std::vector<Stmt> parts;
    for (size_t k = 0; k < check.extents.size(); ++k) {
      at.back() = Expr(static_cast<int64_t>(k));
      parts.push_back(inside(at, check.extents[k]));
    }
    body = Block::make(parts);
  } else {
    body = inside(at, check.extents[0]);
  }
  for (size_t d = check.shape.size() - (by_position ? 1 : 0); d-- > 0;)
    body = For::make(loops[d], 0, Expr(check.shape[d]), ForKind::kSerial, body);
  return body;
}

/// Row-major numbers with one extent: the least and the greatest lane by lane, from 0, which is always inside.
Stmt in_vectors(const IndexCheck& check, const Buffer& indices, int64_t count) {
  const int lanes = static_cast<int>(kLanes);
  const auto extreme = [&](const char* name) {
    return make_buffer(name, check.dtype, {Expr(kLanes)}, Scope::kStack, static_cast<int>(check.dtype.bytes()));
  };
  const Buffer low = extreme("low"), high = extreme("high");
  const Expr all = Ramp::make(Expr(0), Expr(1), lanes), none = Broadcast::make(make_const_int(check.dtype, 0), lanes);
  const Var block("block"), rest("rest");
  const Expr numbers = Load::make(indices, {Ramp::make(block * kLanes, Expr(1), lanes)});
  std::vector<Stmt> body = {Store::make(low, {all}, none), Store::make(high, {all}, none),
                            For::make(block, 0, Expr(count / kLanes), ForKind::kSerial,
                                      Block::make({Store::make(low, {all}, min(Load::make(low, {all}), numbers)),
                                                   Store::make(high, {all}, max(Load::make(high, {all}), numbers))}))};
  for (int64_t lane = 0; lane < kLanes; ++lane)
    body.push_back(refuse_outside(check, load(low, {Expr(lane)}), load(high, {Expr(lane)}), check.extents[0]));
  if (count % kLanes != 0) {
    const Expr last = load(indices, {rest});
    body.push_back(For::make(rest, Expr(count / kLanes * kLanes), Expr(count % kLanes), ForKind::kSerial,
                             refuse_outside(check, last, last, check.extents[0])));
  }
  return Allocate::make(low, Allocate::make(high, Block::make(body)));
}

}  // namespace

LoopFunction index_check(const IndexCheck& check) {
  const bool plain = check.layout.dims().empty() || check.layout.is_row_major();
  const std::vector<int64_t> shape = plain ? check.shape : check.layout.physical_shape(check.shape);
  int64_t count = 1;
  for (int64_t extent : shape) TS_CHECK(!__builtin_mul_overflow(count, extent, &count)) << check.name;
  const Buffer indices =
      make_buffer("indices", check.dtype, {Expr(count)}, Scope::kGlobal, static_cast<int>(check.dtype.bytes()));
  const bool in_line = plain && check.extents.size() == 1 && count >= 2 * kLanes;
  LoopFunction function;
  function.name = check.name;
  function.buffers = {indices};
  function.body = in_line ? in_vectors(check, indices, count) : number_by_number(check, indices);
  return function;
}

}  // namespace tensmith
