#include "graph/dim_facts.h"
#include "graph/ops/arith.h"
#include "graph/ops/loop_builder.h"
#include "graph/ops/top_k_stages.h"
#include "tensor/simplify.h"

namespace tensmith::graph::ops {

Expr comes_before(const Expr& a, const Expr& b, bool largest) {
  const Expr x = widen(a), y = widen(b);
  const Expr& above = largest ? x : y;
  const Expr& below = largest ? y : x;
  if (!x.dtype().is_float()) return above > below;
  return above > below || (call(Intrinsic::kIsNan, {above}) && logical_not(call(Intrinsic::kIsNan, {below})));
}

namespace {

/// Elements compared at a time with the worst one kept.
constexpr int kLanes = 16;

/// The k best of each row: a heap of the best so far whose root is the worst of them, filled from the front of the row,
/// so that a later element only enters when it is strictly better. O(n + swaps log k), most elements cost one
/// comparison.
class HeapSelect {
 public:
  explicit HeapSelect(const TopKRows& rows) : x_(rows.x), axis_(rows.axis), k_(rows.k), largest_(rows.largest) {}

  std::vector<Tensor> stage(const Shape& shape) const {
    Shape rows = shape;
    rows.erase(rows.begin() + axis_);
    return imperative("top_k", {x_}, {shape, shape}, {x_.dtype(), kInt64}, [&](const std::vector<Buffer>& outputs) {
      return loop_nest(
          rows, [&](const Indices& row) { return select_row(outputs[0], outputs[1], row); }, ForKind::kParallel);
    });
  }

 private:
  Indices at(const Indices& row, const Expr& position) const {
    Indices index = row;
    index.insert(index.begin() + axis_, position);
    return index;
  }

  /// Statement that puts (value, index) at heap position `from` of `size` and lets it sink until no child is worse.
  Stmt sink(const Buffer& values, const Buffer& indices, const Indices& row, const Expr& from, const Expr& size,
            const Expr& value, const Expr& index) const {
    const Buffer hole = local_scalar("hole", kInt64), moving = local_scalar("moving", kBool);
    const Var v("v", value.dtype()), j("j", kInt64), child("child"), here("here"), left("left"), right("right");
    const auto value_at = [&](const Expr& p) { return load(values, at(row, p)); };
    const auto index_at = [&](const Expr& p) { return load(indices, at(row, p)); };
    // Later in the order of the result: a worse value, or an equal one with a higher index.
    const auto worse = [&](const Expr& a, const Expr& ia, const Expr& b, const Expr& ib) {
      return comes_before(b, a, largest_) || (logical_not(comes_before(a, b, largest_)) && ia > ib);
    };
    const auto put = [&](const Expr& p, const Expr& new_value, const Expr& new_index) {
      return Block::make({Store::make(values, at(row, p), new_value), Store::make(indices, at(row, p), new_index)});
    };
    // Positions that come out of memory are clamped, so that they can be seen to lie inside.
    const auto inside = [&](const Expr& p) { return max(min(p, k_ - 1), 0); };
    const Expr right_is_worse =
        Expr(here) * 2 + 2 < size && worse(value_at(right), index_at(right), value_at(left), index_at(left));
    Stmt step = If::make(worse(value_at(child), index_at(child), v, j),
                         Block::make({put(here, value_at(child), index_at(child)), set(hole, child)}),
                         set(moving, make_bool(false)));
    step = LetStmt::make(child, select(right_is_worse, right, left), step);
    step = LetStmt::make(left, inside(Expr(here) * 2 + 1), LetStmt::make(right, inside(Expr(here) * 2 + 2), step));
    step = LetStmt::make(here, inside(get(hole)), step);
    const Stmt sinking = Block::make({set(hole, from), set(moving, make_bool(true)),
                                      While::make(get(moving) && get(hole) * 2 + 1 < size, step),
                                      LetStmt::make(here, inside(get(hole)), put(here, v, j))});
    return LetStmt::make(v, value, LetStmt::make(j, index, with_buffers({hole, moving}, sinking)));
  }

  Stmt select_row(const Buffer& values, const Buffer& indices, const Indices& row) const {
    const Expr n = x_.shape()[axis_];
    const auto value_at = [&](const Expr& p) { return load(values, at(row, p)); };
    const auto index_at = [&](const Expr& p) { return load(indices, at(row, p)); };
    // Where n >= k cannot be known, missing elements are the worst ones, so that nothing behind the row is read.
    const bool enough = can_prove(k_ <= n, dim_facts(k_ + n));
    const Expr worst = largest_ ? min_value(x_.dtype()) : max_value(x_.dtype());
    const Stmt first = loop("p", k_, [&](const Expr& p) {
      const Expr value = enough ? x_(at(row, p)) : select(p < n, x_(at(row, p)), worst);
      return Block::make({Store::make(values, at(row, p), value), Store::make(indices, at(row, p), p)});
    });
    const Stmt heapify = loop("p", floor_div(k_, 2), [&](const Expr& up) {
      const Expr p = floor_div(k_, 2) - 1 - up;
      return sink(values, indices, row, p, k_, value_at(p), index_at(p));
    });
    const auto offer = [&](const Expr& p) {
      return If::make(comes_before(x_(at(row, p)), value_at(0), largest_),
                      sink(values, indices, row, 0, k_, x_(at(row, p)), p));
    };
    const Expr rest = max(n - k_, 0);
    Stmt scan;
    if (axis_ == x_.rank() - 1) {
      const Expr blocks = floor_div(rest, kLanes);
      const Stmt whole = loop("b", blocks, [&](const Expr& b) {
        const Expr start = k_ + b * kLanes;
        const Expr lanes = Load::make(x_.buffer(), at(row, Ramp::make(start, 1, kLanes)));
        const Expr any = Call::make(kBool, Intrinsic::kReduceOr,
                                    {comes_before(lanes, Broadcast::make(value_at(0), kLanes), largest_)});
        return If::make(any, loop("p", kLanes, [&](const Expr& p) { return offer(start + p); }));
      });
      scan = Block::make(
          {whole, loop("p", floor_mod(rest, kLanes), [&](const Expr& p) { return offer(k_ + blocks * kLanes + p); })});
    } else {
      scan = loop("p", rest, [&](const Expr& p) { return offer(k_ + p); });
    }
    // The root is the worst of those left: it goes to the end, the element from there sinks into the smaller heap.
    const Stmt sort = loop("p", max(k_ - 1, 0), [&](const Expr& done) {
      const Expr last = k_ - 1 - done;
      const Var value("value", x_.dtype()), index("index");
      const Stmt swap = Block::make({Store::make(values, at(row, last), value_at(0)),
                                     Store::make(indices, at(row, last), index_at(0)),
                                     sink(values, indices, row, 0, last, value, index)});
      return LetStmt::make(value, value_at(last), LetStmt::make(index, index_at(last), swap));
    });
    return Block::make({first, heapify, scan, sort});
  }

  const Tensor& x_;
  const int axis_;
  const Expr k_;
  const bool largest_;
};

}  // namespace

std::vector<Tensor> top_k_by_heap(const TopKRows& rows, const std::vector<Expr>& shape) {
  return HeapSelect(rows).stage(shape);
}

}  // namespace tensmith::graph::ops
