#include <cmath>

#include "graph/ops/loop_builder.h"
#include "graph/ops/top_k_stages.h"

namespace tensmith::graph::ops {

namespace {

/// Merge sort from runs of one element on, between two halves of a buffer; no branch depends on the data.
class MergeSort {
 public:
  explicit MergeSort(const TopKRows& rows)
      : rows_(rows), n_(*known(rows.x.shape()[rows.axis])), largest_(rows.largest) {}

  std::vector<Tensor> stage(const Shape& shape) const {
    Shape outer = shape;
    outer.erase(outer.begin() + rows_.axis);
    // Every row has a place of its own in the buffers, which exist outside of the parallel loop.
    Shape halves = outer;
    halves.insert(halves.end(), {Expr(2), Expr(n_)});
    const Buffer keys = make_buffer("keys", rows_.x.dtype(), halves);
    const Buffer places = make_buffer("places", n_ < INT32_MAX ? kInt32 : kInt64, halves);
    return imperative(
        "top_k", {rows_.x}, {shape, shape}, {rows_.x.dtype(), kInt64}, [&](const std::vector<Buffer>& outputs) {
          return with_buffers(
              {keys, places},
              loop_nest(
                  outer, [&](const Indices& row) { return sort_row(keys, places, outputs, row); }, ForKind::kParallel));
        });
  }

 private:
  Indices at(const Indices& row, const Expr& position) const {
    Indices index = row;
    index.insert(index.begin() + rows_.axis, position);
    return index;
  }
  static Indices half(const Indices& row, int64_t which, const Expr& position) {
    Indices index = row;
    index.insert(index.end(), {Expr(which), position});
    return index;
  }

  Stmt sort_row(const Buffer& keys, const Buffer& places, const std::vector<Buffer>& outputs,
                const Indices& row) const {
    std::vector<Stmt> passes{loop("p", n_, [&](const Expr& p) {
      return Block::make({Store::make(keys, half(row, 0, p), rows_.x(at(row, p))),
                          Store::make(places, half(row, 0, p), cast(places->dtype, p))});
    })};
    int64_t from = 0;
    for (int64_t width = 1; width < n_; width *= 2, from = 1 - from)
      passes.push_back(merge_runs(keys, places, row, from, width));
    passes.push_back(loop("p", rows_.k, [&](const Expr& p) {
      return Block::make({Store::make(outputs[0], at(row, p), load(keys, half(row, from, p))),
                          Store::make(outputs[1], at(row, p), cast(kInt64, load(places, half(row, from, p))))});
    }));
    return Block::make(passes);
  }

  /// Runs of `width` joined to runs of twice that, from one half of the buffers to the other.
  Stmt merge_runs(const Buffer& keys, const Buffer& places, const Indices& row, int64_t from, int64_t width) const {
    const int64_t pairs = n_ / (2 * width), rest = n_ - pairs * 2 * width;
    const Stmt whole = loop(
        "run", pairs, [&](const Expr& run) { return merge_pair(keys, places, row, from, run * (2 * width), width); });
    if (rest == 0) return whole;
    return Block::make({whole, merge_rest(keys, places, row, from, n_ - rest, std::min(width, rest))});
  }

  /// Two runs of equal length, from the front and from the back at once: each side takes `width` elements, so that
  /// neither can run out of one of the runs, and the two chains of loads and comparisons overlap.
  Stmt merge_pair(const Buffer& keys, const Buffer& places, const Indices& row, int64_t from, const Expr& begin,
                  int64_t width) const {
    const Buffer front = local_scalar("front", kInt64), back = local_scalar("back", kInt64);
    const auto side = [&](const Expr& t, bool from_back) {
      const Buffer& taken = from_back ? back : front;
      const Var l("l"), r("r"), a("a", keys->dtype), b("b", keys->dtype), takes("takes", kBool);
      // Elements taken of the left run; a power of two less one as a mask shows that it is below `width`.
      const auto inside = [&](const Expr& count) { return Binary::make(BinaryOp::kAnd, count, Expr(width - 1)); };
      const Expr of_left = inside(get(taken)), of_right = inside(t - get(taken));
      // Of equal ones the left one comes first, so the right one comes last.
      const Expr right_first = comes_before(b, a, largest_);
      const Expr to = from_back ? begin + (2 * width - 1) - t : begin + t;
      const auto put = [&](const Buffer& buffer, const Expr& left, const Expr& right) {
        return Store::make(buffer, half(row, 1 - from, to), select(takes, left, right));
      };
      const auto at_left = [&](const Buffer& buffer) { return load(buffer, half(row, from, l)); };
      const auto at_right = [&](const Buffer& buffer) { return load(buffer, half(row, from, r)); };
      const Var pa("pa", places->dtype), pb("pb", places->dtype);
      Stmt body = Block::make({put(keys, a, b), put(places, pa, pb), set(taken, get(taken) + cast(kInt64, takes))});
      body = LetStmt::make(takes, from_back ? right_first : logical_not(right_first), body);
      body = LetStmt::make(pa, at_left(places), LetStmt::make(pb, at_right(places), body));
      body = LetStmt::make(a, at_left(keys), LetStmt::make(b, at_right(keys), body));
      body = LetStmt::make(r, from_back ? begin + (2 * width - 1) - of_right : begin + width + of_right, body);
      return LetStmt::make(l, from_back ? begin + (width - 1) - of_left : begin + of_left, body);
    };
    const Stmt merge = loop("t", width, [&](const Expr& t) {
      return Block::make({side(t, /*from_back=*/false), side(t, /*from_back=*/true)});
    });
    return with_buffers({front, back}, Block::make({set(front, 0), set(back, 0), merge}));
  }

  /// What is left at the end of the row: a run of `width` and a shorter one, which may be empty.
  Stmt merge_rest(const Buffer& keys, const Buffer& places, const Indices& row, int64_t from, int64_t begin,
                  int64_t width) const {
    const int64_t middle = begin + width;
    const Buffer left = local_scalar("left", kInt64), right = local_scalar("right", kInt64);
    const Stmt merge = loop("o", n_ - begin, [&](const Expr& o) {
      const Var l("l"), r("r"), takes("takes", kBool);
      // Both candidates are read whether they count or not, so positions stay inside.
      const auto inside = [&](const Expr& p) { return max(min(p, n_ - 1), 0); };
      const auto both = [&](const Buffer& buffer) {
        return Store::make(buffer, half(row, 1 - from, begin + o),
                           select(takes, load(buffer, half(row, from, l)), load(buffer, half(row, from, r))));
      };
      const Expr left_first =
          logical_not(comes_before(load(keys, half(row, from, r)), load(keys, half(row, from, l)), largest_));
      const Stmt write = Block::make({both(keys), both(places), set(left, get(left) + cast(kInt64, takes)),
                                      set(right, get(right) + 1 - cast(kInt64, takes))});
      const Stmt body = LetStmt::make(takes, get(left) < middle && (get(right) >= n_ || left_first), write);
      return LetStmt::make(l, inside(get(left)), LetStmt::make(r, inside(get(right)), body));
    });
    return with_buffers({left, right}, Block::make({set(left, begin), set(right, middle), merge}));
  }

  const TopKRows& rows_;
  const int64_t n_;
  const bool largest_;
};

}  // namespace

std::vector<Tensor> top_k_by_sorting(const TopKRows& rows, const Shape& shape) { return MergeSort(rows).stage(shape); }

std::vector<Tensor> best_of_rows(const TopKRows& rows, const Shape& shape) {
  const auto n = known(rows.x.shape()[rows.axis]), k = known(rows.k);
  if (!n || !k || *n < 2) return top_k_by_heap(rows, shape);
  const auto all = static_cast<double>(*n), best = static_cast<double>(*k);
  const double levels = std::log2(best + 1);
  const double heap = 0.5 * all + best * std::log(all / best + 1) * levels * 10 + best * levels * 45;
  return heap > 3 * all * std::log2(all) ? top_k_by_sorting(rows, shape) : top_k_by_heap(rows, shape);
}

}  // namespace tensmith::graph::ops
