#include "graph/ops/arith.h"
#include "graph/ops/known_ints.h"
#include "graph/ops/op_list.h"
#include "graph/ops/ref_loops.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

/// -1 when the axis is computed at run time. Errors: `axis-out-of-range`, `shape-mismatch`.
template <typename Context>
Result<int> axis_of(const Context& ctx, int rank) {
  const Result<std::vector<int64_t>> given = known_ints_of(ctx, 1, "axis");
  if (!given) return -1;
  if (given->size() != 1) return refuse("shape-mismatch") << "input axis: expected one element, got " << given->size();
  return normalize_axis((*given)[0], rank, "input axis");
}

/// How a scan runs.
struct Scan {
  bool product_of, exclusive, reverse;
};

/// A loop along the axis for every line, with the total in a local of the compute type.
Stmt scan_lines(const Tensor& x, const Buffer& output, size_t axis, const Scan& scan) {
  const DType type = x.dtype(), wide = compute_type(type);
  const size_t rank = x.shape().size();
  std::vector<Var> vars;
  Indices at;
  for (size_t d = 0; d < rank; ++d) {
    vars.emplace_back("i" + std::to_string(d));
    at.push_back(d == axis && scan.reverse ? x.shape()[d] - 1 - vars[d] : Expr(vars[d]));
  }
  const Buffer total = make_buffer("total", wide, {}, Scope::kStack);
  const Expr next = scan.product_of ? load(total, {}) * widen(x(at)) : load(total, {}) + widen(x(at));
  const Stmt write = Store::make(output, at, cast(type, load(total, {})));
  const Stmt advance = Store::make(total, {}, next);
  Stmt loop = For::make(vars[axis], 0, x.shape()[axis], ForKind::kSerial,
                        scan.exclusive ? Block::make({write, advance}) : Block::make({advance, write}));
  loop =
      Allocate::make(total, Block::make({Store::make(total, {}, make_const_int(wide, scan.product_of ? 1 : 0)), loop}));
  for (size_t d = rank; d-- > 0;)
    if (d != axis) loop = For::make(vars[d], 0, x.shape()[d], ForKind::kSerial, loop);
  return loop;
}

/// With an axis computed at run time, one nest for each axis and a branch on its value.
std::vector<Tensor> compute_scan(const ComputeContext& ctx, bool product_of) {
  const Tensor &x = ctx.input(0), &axis = ctx.input(1);
  const int known_axis = axis_of(ctx, x.rank()).value();
  const Scan scan{product_of, ctx.node.attrs.get_int("exclusive", 0) != 0, ctx.node.attrs.get_int("reverse", 0) != 0};
  const std::vector<Tensor> inputs = known_axis < 0 ? std::vector<Tensor>{x, axis} : std::vector<Tensor>{x};
  return imperative(product_of ? "cum_prod" : "cum_sum", inputs, {x.shape()}, {x.dtype()},
                    [&](const std::vector<Buffer>& outputs) {
                      if (known_axis >= 0) return scan_lines(x, outputs[0], static_cast<size_t>(known_axis), scan);
                      const Expr value = cast(kInt64, axis(Indices(static_cast<size_t>(axis.rank()), Expr(0))));
                      Stmt chain = scan_lines(x, outputs[0], static_cast<size_t>(x.rank() - 1), scan);
                      for (int d = x.rank() - 2; d >= 0; --d)
                        chain = If::make(value == Expr(d) || value == Expr(d - x.rank()),
                                         scan_lines(x, outputs[0], static_cast<size_t>(d), scan), chain);
                      return chain;
                    });
}

template <typename T>
void scan_line(const T* x, T* y, int64_t count, int64_t step, bool product_of, bool exclusive, bool reverse) {
  T total = product_of ? 1 : 0;
  for (int64_t k = 0; k < count; ++k) {
    const int64_t at = (reverse ? count - 1 - k : k) * step;
    if (exclusive) y[at] = total;
    total = product_of ? total * x[at] : total + x[at];
    if (!exclusive) y[at] = total;
  }
}

OpDef make(const char* name, int since, bool product_of) {
  OpDef op{
      .name = name,
      .since = since,
      .doc = std::string("Running ") + (product_of ? "products" : "sums") +
             " along an axis, forwards or in reverse, with or without the element itself.",
      .inputs = {{.name = "x", .types = TypeSet::kNumeric}, {.name = "axis", .types = TypeSet::kIndex}},
      .attrs = {{.name = "exclusive", .kind = AttrKind::kInt, .default_value = int64_t{0}},
                {.name = "reverse", .kind = AttrKind::kInt, .default_value = int64_t{0}}},
      .fusion = FusionKind::kOpaque,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        if (Result<void> ok = check_rank(ctx.input(0), 1, 64, "input x"); !ok) return ok.failure();
        if (Result<int> axis = axis_of(ctx, ctx.input(0).rank()); !axis) return axis.failure();
        return std::vector<TensorType>{{ctx.input(0).dtype, ctx.input(0).shape, {}}};
      },
      .samples = {{.name = "line", .inputs = {f32({17}), known_scalar(kInt32, 0)}},
                  {.name = "rows", .inputs = {f32({3, 5}), known_scalar(kInt64, -1)}},
                  {.name = "columns", .inputs = {f32({3, 5}), known_scalar(kInt64, 0)}},
                  {.name = "exclusive",
                   .inputs = {f32({2, 3, 4}), known_scalar(kInt64, 1)},
                   .attrs = attrs({{"exclusive", 1}})},
                  {.name = "reverse", .inputs = {f32({5}), known_scalar(kInt64, 0)}, .attrs = attrs({{"reverse", 1}})},
                  {.name = "both",
                   .inputs = {f32({2, 5}), known_scalar(kInt64, 1)},
                   .attrs = attrs({{"reverse", 1}, {"exclusive", 1}})},
                  {.name = "int32", .inputs = {in(kInt32, {5}, -9, 9), known_scalar(kInt64, 0)}},
                  {.name = "half", .inputs = {in(kFloat16, {9}), known_scalar(kInt64, 0)}, .rtol = 2e-3, .atol = 2e-3},
                  {.name = "empty", .inputs = {f32({2, 0}), known_scalar(kInt64, 1)}},
                  {.name = "axis_out_of_range",
                   .inputs = {f32({5}), known_scalar(kInt64, 1)},
                   .error_id = "axis-out-of-range"},
                  {.name = "axis_computed", .inputs = {f32({2, 3, 4}), given(kInt64, {}, {1})}},
                  {.name = "axis_computed_negative",
                   .inputs = {f32({2, 3}), given(kInt32, {1}, {-2})},
                   .attrs = attrs({{"reverse", 1}})},
                  {.name = "scalar", .inputs = {f32({}), known_scalar(kInt64, 0)}, .error_id = "rank-mismatch"}},
  };
  op.compute = [product_of](const ComputeContext& ctx) { return compute_scan(ctx, product_of); };
  op.reference = [product_of](ReferenceContext& ctx) -> Result<void> {
    const RefTensor& x = ctx.input(0);
    RefTensor& y = ctx.output();
    const Result<int> axis = axis_of(ctx, static_cast<int>(x.shape.size()));
    if (!axis) return axis.failure();
    const bool exclusive = ctx.node.attrs.get_int("exclusive", 0) != 0,
               reverse = ctx.node.attrs.get_int("reverse", 0) != 0;
    const AxisView view(x.shape, static_cast<size_t>(*axis));
    const std::vector<uint64_t> bits(x.i.begin(), x.i.end());
    std::vector<uint64_t> sums(bits.size());
    for (int64_t o = 0; o < view.outer; ++o)
      for (int64_t n = 0; n < view.inner; ++n) {
        const int64_t base = o * view.axis * view.inner + n;
        if (x.is_float())
          scan_line(x.f.data() + base, y.f.data() + base, view.axis, view.inner, product_of, exclusive, reverse);
        else scan_line(bits.data() + base, sums.data() + base, view.axis, view.inner, product_of, exclusive, reverse);
      }
    for (size_t k = 0; k < sums.size(); ++k) y.i[k] = wrap_int(y.dtype, static_cast<int64_t>(sums[k]));
    return {};
  };
  return op;
}

}  // namespace

/// CumSum and CumProd.
std::vector<OpDef> cumulative() { return {make("CumProd", 26, true), make("CumSum", 11, false)}; }

}  // namespace tensmith::graph::ops
