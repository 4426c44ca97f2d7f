#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/dim_facts.h"
#include "graph/ops/arith.h"
#include "graph/ops/injective.h"
#include "graph/ops/loop_builder.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

/// Elements compared at a time with the worst one kept.
constexpr int kLanes = 16;

bool wants_largest(const AttrMap& attrs) { return attrs.get_int("largest", 1) != 0; }

/// Whether value `a` comes before `b`, vectors lane by lane. NaN counts as larger than all numbers, as in numpy's
/// order.
Expr comes_before(const Expr& a, const Expr& b, bool largest) {
  const Expr x = widen(a), y = widen(b);
  const Expr& above = largest ? x : y;
  const Expr& below = largest ? y : x;
  if (!x.dtype().is_float()) return above > below;
  return above > below || (call(Intrinsic::kIsNan, {above}) && logical_not(call(Intrinsic::kIsNan, {below})));
}

/// The k best of each row: a heap of the best so far whose root is the worst of them, filled from the front of the row,
/// so that a later element only enters when it is strictly better. O(n + swaps log k), most elements cost one
/// comparison.
class HeapSelect {
 public:
  HeapSelect(const Tensor& x, int axis, Expr k, bool largest)
      : x_(x), axis_(axis), k_(std::move(k)), largest_(largest) {}

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

Result<std::vector<TensorType>> infer_top_k(const InferContext& ctx) {
  const TensorType& data = ctx.input(0);
  const Result<int> axis = normalize_axis(ctx.node.attrs.get_int("axis", -1), data.rank());
  if (!axis) return axis.failure();
  if (!ctx.input(1).shape.empty())
    if (Result<void> ok = check_shape(ctx.input(1), {Expr(1)}, "input K"); !ok) return ok.failure();
  Shape shape = data.shape;
  if (const auto k = known_elements(ctx, 1)) {
    const auto number = known((*k)[0]), extent = known(shape[*axis]);
    if (number && (*number < 0 || (extent && *number > *extent)))
      return refuse("shape-mismatch") << "input K: expected 0 to " << dim_to_string(shape[*axis])
                                      << " elements of axis " << *axis << ", got " << *number;
    shape[*axis] = (*k)[0];
  } else {
    shape[*axis] = ctx.data_dim(0, *axis);
  }
  return std::vector<TensorType>{{data.dtype, shape, {}}, {kInt64, shape, {}}};
}

std::vector<Tensor> compute_top_k(const ComputeContext& ctx) {
  const Tensor& x = ctx.input(0);
  const int axis = normalize_axis(ctx.node.attrs.get_int("axis", -1), x.rank()).value();
  const bool largest = wants_largest(ctx.node.attrs);
  const Shape& shape = ctx.output_type().shape;
  std::vector<Tensor> outputs;
  if (is_empty(shape)) {
    outputs = {injective("top_k", {x.dtype(), shape, {}}, {}), injective("top_k_indices", {kInt64, shape, {}}, {})};
  } else if (is_const_int(shape[axis], 1) && known(x.shape()[axis]) && (largest || !x.dtype().is_float())) {
    // The first best one is a reduction, which is scheduled as such. (Among the smallest, NaN comes last; arg_min puts
    // it first.)
    outputs =
        reduce_multi("top_1", shape,
                     {{x.shape()[axis]},
                      [&](const Indices& i, const Indices& r) {
                        Indices at = i;
                        at[axis] = r[0];
                        return std::vector<Expr>{x(at), r[0]};
                      },
                      largest ? arg_max_reducer(x.dtype(), kInt64, false) : arg_min_reducer(x.dtype(), kInt64, false)});
  } else {
    outputs = HeapSelect(x, axis, shape[axis], largest).stage(shape);
  }
  outputs.resize(ctx.node.types.size());
  return outputs;
}

Result<void> reference_top_k(ReferenceContext& ctx) {
  const RefTensor& x = ctx.input(0);
  int64_t axis = ctx.node.attrs.get_int("axis", -1);
  if (axis < 0) axis += static_cast<int64_t>(x.shape.size());
  const AxisView view(x.shape, static_cast<size_t>(axis));
  const int64_t k = ctx.input(1).i[0];
  if (k < 0 || k > view.axis)
    return Failure{"shape-mismatch", std::to_string(k) + " of " + std::to_string(view.axis) + " elements"};
  const bool largest = wants_largest(ctx.node.attrs);
  Dims shape = x.shape;
  shape[axis] = k;
  const size_t asked = ctx.outputs.size();
  make_output(ctx, x.dtype, shape, 0);
  if (asked > 1) make_output(ctx, kInt64, shape, 1);
  const auto less = [&](int64_t a, int64_t b) {
    if (x.is_float()) return x.f[a] < x.f[b] || (std::isnan(x.f[b]) && !std::isnan(x.f[a]));
    return x.dtype.is_uint() ? static_cast<uint64_t>(x.i[a]) < static_cast<uint64_t>(x.i[b]) : x.i[a] < x.i[b];
  };
  std::vector<int64_t> order(static_cast<size_t>(view.axis));
  for (int64_t row = 0; row < view.outer * view.inner; ++row) {
    const int64_t base = row / view.inner * view.axis * view.inner + row % view.inner,
                  to = row / view.inner * k * view.inner + row % view.inner;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const int64_t x_at = base + a * view.inner, y_at = base + b * view.inner;
      return largest ? less(y_at, x_at) : less(x_at, y_at);
    });
    for (int64_t p = 0; p < k; ++p) {
      copy_element(ctx.outputs[0], to + p * view.inner, x, base + order[p] * view.inner);
      if (asked > 1) ctx.outputs[1].i[to + p * view.inner] = order[p];
    }
  }
  return {};
}

}  // namespace

OpDef top_k() {
  const auto k = [](double value) { return known_ints({value}); };
  return OpDef{
      .name = "TopK",
      .doc = "The k largest or smallest elements along an axis and their indices, best first; of equal ones the first.",
      .inputs = {{.name = "X", .types = TypeSet::kNumeric}, {.name = "K", .types = TypeSet::kInt64}},
      .attrs = {{.name = "axis", .kind = AttrKind::kInt, .default_value = int64_t{-1}},
                {.name = "largest", .kind = AttrKind::kInt, .default_value = int64_t{1}, .since = 11},
                {.name = "sorted", .kind = AttrKind::kInt, .default_value = int64_t{1}, .since = 11}},
      .min_outputs = 1,
      .max_outputs = 2,
      .fusion = FusionKind::kOpaque,
      .infer = infer_top_k,
      .compute = compute_top_k,
      .supports = [](const InferContext& ctx) { return require_elements(ctx, {1}); },
      .reference = reference_top_k,
      .samples =
          {
              {.name = "largest", .inputs = {f32({3, 17}), k(3)}, .num_outputs = 2},
              {.name = "smallest",
               .inputs = {f32({5, 4}), k(2)},
               .attrs = attrs({{"axis", 0}, {"largest", 0}}),
               .num_outputs = 2},
              {.name = "long_row", .inputs = {f32({2, 100}), k(7)}, .num_outputs = 2},
              {.name = "sort_all", .inputs = {f32({2, 33}), k(33)}, .attrs = attrs({{"largest", 0}}), .num_outputs = 2},
              {.name = "first", .inputs = {f32({3, 17, 2}), k(1)}, .attrs = attrs({{"axis", 1}}), .num_outputs = 2},
              {.name = "first_smallest",
               .inputs = {in(kInt32, {17}), k(1)},
               .attrs = attrs({{"largest", 0}}),
               .num_outputs = 2},
              {.name = "ties", .inputs = {in(kInt64, {3, 40}, 0, 3), k(9)}, .num_outputs = 2},
              {.name = "unsigned", .inputs = {in(kUInt8, {20}, 0, 255), k(5)}, .num_outputs = 2},
              {.name = "half", .inputs = {in(kFloat16, {3, 18}), k(4)}, .num_outputs = 2},
              {.name = "values_only", .inputs = {f32({3, 9}), k(4)}},
              {.name = "none", .inputs = {f32({3, 9}), k(0)}, .num_outputs = 2},
              {.name = "too_many", .inputs = {f32({3, 9}), k(10)}, .num_outputs = 2, .error_id = "shape-mismatch"},
          },
  };
}

}  // namespace tensmith::graph::ops
