#include <cmath>
#include <limits>

#include "graph/ops/arith.h"
#include "graph/ops/known_ints.h"
#include "graph/ops/op_list.h"
#include "graph/ops/reduced_shape.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

enum class Kind { kSum, kProd, kMax, kMin };
enum class Map { kNone, kAbs, kSquare };          ///< applied to elements before they are reduced
enum class Finish { kNone, kLog, kSqrt, kMean };  ///< applied to the result

struct Row {
  const char* name;
  int axes_input_since;  ///< the opset in which axes became an input
  const char* doc;
  Kind kind;
  Map map = Map::kNone;
  Finish finish = Finish::kNone;
  bool log_sum_exp = false;
  double low = -2;  ///< of random samples
};

Expr mapped(Map map, const Expr& value) {
  if (map == Map::kNone || (map == Map::kAbs && value.dtype().is_uint())) return value;
  if (map == Map::kAbs) return call(Intrinsic::kAbs, {value});
  return with_value("x", value, [](const Expr& x) { return x * x; });
}

double mapped(Map map, double value) {
  return map == Map::kAbs ? std::fabs(value) : map == Map::kSquare ? value * value : value;
}

int64_t mapped_int(Map map, int64_t value, DType type) {
  const auto bits = static_cast<uint64_t>(value);
  if (map == Map::kSquare) return static_cast<int64_t>(bits * bits);
  return map == Map::kAbs && type.is_int() && value < 0 ? static_cast<int64_t>(-bits) : value;
}

/// A float function on an integer goes through float64 and is truncated, as numpy's astype does.
Expr finished(Finish finish, const Expr& value, const Expr& count) {
  const DType type = value.dtype();
  if (finish == Finish::kNone) return value;
  if (finish == Finish::kMean) return type.is_float() ? value / cast(type, count) : trunc_div(value, cast(type, count));
  const Intrinsic id = finish == Finish::kLog ? Intrinsic::kLog : Intrinsic::kSqrt;
  return type.is_float() ? call(id, {value}) : cast(type, call(id, {cast(kFloat64, value)}));
}

double finished(Finish finish, double value, int64_t count) {
  switch (finish) {
    case Finish::kLog: return std::log(value);
    case Finish::kSqrt: return std::sqrt(value);
    case Finish::kMean: return value / static_cast<double>(count);
    default: return value;
  }
}

/// The axes of the node. Errors: `dynamic-shape`, `axis-out-of-range`, `duplicate-axis`.
template <typename Context>
Result<std::vector<int>> axes_of(const Context& ctx, int rank) {
  const Result<std::vector<int64_t>> given = known_ints_of(ctx, 1, "axes");
  if (!given) return given.failure();
  if (given->empty())
    return ctx.node.attrs.get_int("noop_with_empty_axes", 0) ? std::vector<int>{} : axes_from(0, rank);
  return normalize_axes(*given, rank);
}

bool keeps_dims(const Node& node) { return node.attrs.get_int("keepdims", 1) != 0; }

/// Sums, products and extrema of known elements (sizes computed from shapes).
void follow_values(const InferContext& ctx, const Row& row, const std::vector<int>& axes, TensorType& type) {
  const auto values = ctx.int_values(0);
  if (!values || values->empty() || ctx.input(0).rank() != 1 || axes.size() != 1 || row.map != Map::kNone ||
      row.finish != Finish::kNone || row.log_sum_exp || ctx.input(0).dtype.is_bool())
    return;
  Expr total = (*values)[0];
  for (size_t k = 1; k < values->size(); ++k) {
    const Expr& next = (*values)[k];
    total = row.kind == Kind::kSum    ? total + next
            : row.kind == Kind::kProd ? total * next
            : row.kind == Kind::kMax  ? max(total, next)
                                      : min(total, next);
  }
  type.value = {total};
}

Reducer reducer_of(Kind kind, DType type) {
  if (type.is_bool()) return kind == Kind::kMax ? any_reducer() : all_reducer();
  switch (kind) {
    case Kind::kSum: return sum_reducer(type);
    case Kind::kProd: return prod_reducer(type);
    case Kind::kMax: return max_reducer(type);
    default: return min_reducer(type);
  }
}

/// max + log(sum(exp(x - max))), with max taken as 0 where it is infinite.
Tensor log_sum_exp(const Tensor& x, const ReducedShape& shape, DType type) {
  const auto load = [&](const Indices& in) {
    const Expr value = widen(x(in));
    return value.dtype().is_float() ? value : cast(kFloat64, value);
  };
  const DType wide = x.dtype().is_float() ? compute_type(x.dtype()) : kFloat64;
  const Tensor top = reduce_axes("max", shape, max_reducer(wide), load);
  const auto base = [&](const Indices& i) {
    return select(call(Intrinsic::kIsInf, {top(i)}), make_zero(wide), top(i));
  };
  const Tensor total = sum_axes("exp_sum", shape, [&](const Indices& in) {
    return call(Intrinsic::kExp, {load(in) - base(shape.output_index(in))});
  });
  return compute("log_sum_exp", shape.out,
                 [&](const Indices& i) { return cast(type, call(Intrinsic::kLog, {total(i)}) + base(i)); });
}

std::vector<Tensor> compute_reduce(const ComputeContext& ctx, const Row& row) {
  const Tensor& x = ctx.input(0);
  const DType type = ctx.output_type().dtype;
  const ReducedShape shape(x.shape(), axes_of(ctx, x.rank()).value(), keeps_dims(ctx.node));
  if (row.log_sum_exp) return {log_sum_exp(x, shape, type)};
  // A mean of integers is the truncated quotient of an exact sum.
  const DType wide = row.finish == Finish::kMean && type.is_integral() ? kInt64 : compute_type(type);
  const Tensor total = reduce_axes("reduce", shape, reducer_of(row.kind, wide),
                                   [&](const Indices& in) { return mapped(row.map, cast(wide, x(in))); });
  if (row.finish == Finish::kNone) return {narrow(total, type)};
  return {compute("finish", shape.out,
                  [&](const Indices& i) { return cast(type, finished(row.finish, total(i), shape.count())); })};
}

double identity_of(Kind kind, DType type) {
  const double inf = std::numeric_limits<double>::infinity();
  switch (kind) {
    case Kind::kSum: return 0;
    case Kind::kProd: return 1;
    case Kind::kMax: return type.is_float() ? -inf : 0;
    default: return type.is_float() ? inf : 0;
  }
}

double combine(Kind kind, double a, double b) {
  switch (kind) {
    case Kind::kSum: return a + b;
    case Kind::kProd: return a * b;
    case Kind::kMax: return a != a || a > b ? a : b;
    default: return a != a || a < b ? a : b;
  }
}

int64_t combine_int(Kind kind, int64_t a, int64_t b, DType type) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  const bool less = type.is_uint() ? ua < ub : a < b;
  switch (kind) {
    case Kind::kSum: return static_cast<int64_t>(ua + ub);
    case Kind::kProd: return static_cast<int64_t>(ua * ub);
    case Kind::kMax: return less ? b : a;
    default: return less ? a : b;
  }
}

/// Exact integer reductions; functions that are not exact on integers go through double.
void reference_ints(const RefTensor& x, RefTensor& y, const Dims& strides, const Row& row) {
  const DType type = x.dtype;
  int64_t identity = row.kind == Kind::kProd ? 1 : 0;
  if (row.kind == Kind::kMax && type.is_int()) identity = static_cast<int64_t>(~uint64_t{0} << (type.bits - 1));
  if (row.kind == Kind::kMin)
    identity =
        type.is_bool() ? 1 : static_cast<int64_t>(~uint64_t{0} >> (type.is_int() ? 65 - type.bits : 64 - type.bits));
  y.i.assign(y.i.size(), identity);
  for_each_strided<1>(x.shape, {strides}, [&](int64_t k, const std::array<int64_t, 1>& at) {
    y.i[at[0]] = combine_int(row.kind, y.i[at[0]], mapped_int(row.map, x.i[k], type), type);
  });
  const int64_t count = y.i.empty() ? 1 : x.num_elements() / static_cast<int64_t>(y.i.size());
  for (int64_t& value : y.i) {
    if (row.finish == Finish::kMean) value = count ? value / count : 0;
    else if (row.finish != Finish::kNone)
      value = static_cast<int64_t>(finished(row.finish, static_cast<double>(wrap_int(type, value)), count));
    value = wrap_int(type, value);
  }
}

Result<void> reference_reduce(ReferenceContext& ctx, const Row& row) {
  const RefTensor& x = ctx.input(0);
  const Result<std::vector<int>> axes = axes_of(ctx, static_cast<int>(x.shape.size()));
  if (!axes) return axes.failure();
  const ReducedShape shape(to_shape(x.shape), *axes, keeps_dims(ctx.node));
  RefTensor& y = ctx.output();
  Dims out;
  for (const Expr& dim : shape.out) out.push_back(known(dim).value());
  y = make_ref_tensor(x.dtype, out);
  const Dims strides = reduced_strides(x.shape, shape.reduced);
  using At = std::array<int64_t, 1>;
  if (!x.is_float() && !row.log_sum_exp) {
    reference_ints(x, y, strides, row);
    return {};
  }
  std::vector<double> total(static_cast<size_t>(y.num_elements()),
                            row.log_sum_exp ? 0 : identity_of(row.kind, x.dtype));
  if (row.log_sum_exp) {
    std::vector<double> top(total.size(), -std::numeric_limits<double>::infinity());
    for_each_strided<1>(x.shape, {strides},
                        [&](int64_t k, const At& at) { top[at[0]] = combine(Kind::kMax, top[at[0]], x.get(k)); });
    for (double& value : top)
      if (std::isinf(value)) value = 0;
    for_each_strided<1>(x.shape, {strides},
                        [&](int64_t k, const At& at) { total[at[0]] += std::exp(x.get(k) - top[at[0]]); });
    for (size_t k = 0; k < total.size(); ++k) y.set(static_cast<int64_t>(k), std::log(total[k]) + top[k]);
    return {};
  }
  for_each_strided<1>(x.shape, {strides}, [&](int64_t k, const At& at) {
    total[at[0]] = combine(row.kind, total[at[0]], mapped(row.map, x.f[k]));
  });
  const int64_t count = known(shape.count()).value();
  for (size_t k = 0; k < total.size(); ++k) y.f[k] = finished(row.finish, total[k], count);
  return {};
}

std::vector<OpSample> samples(const Row& row) {
  const double low = row.low;
  std::vector<OpSample> list = {
      {.name = "last_axis", .inputs = {f32({3, 17}, low), known_ints({-1})}},
      {.name = "first_axis", .inputs = {f32({3, 5}, low), known_ints({0})}, .attrs = attrs({{"keepdims", 0}})},
      {.name = "middle_axis", .inputs = {f32({2, 3, 5}, low), known_ints({1})}, .attrs = attrs({{"keepdims", 0}})},
      {.name = "two_axes", .inputs = {f32({2, 3, 4, 5}, low), known_ints({-1, 1})}},
      {.name = "all", .inputs = {f32({3, 4}, low)}, .attrs = attrs({{"keepdims", 0}})},
      {.name = "all_kept", .inputs = {f32({3, 4}, low)}},
      {.name = "noop", .inputs = {f32({3, 4}, low)}, .attrs = attrs({{"noop_with_empty_axes", 1}})},
      {.name = "scalar", .inputs = {f32({}, low)}},
      {.name = "empty_axis", .inputs = {f32({2, 0, 3}, low), known_ints({1})}},
      {.name = "one", .inputs = {f32({1, 1}, low), known_ints({0})}},
      {.name = "double", .inputs = {in(kFloat64, {3, 4}, low), known_ints({1})}},
      {.name = "half", .inputs = {in(kFloat16, {3, 9}, low), known_ints({1})}, .rtol = 2e-3, .atol = 2e-3},
      {.name = "int32", .inputs = {in(kInt32, {3, 4}, row.low < 0 ? -3 : 1, 4), known_ints({1})}},
      {.name = "int64", .inputs = {in(kInt64, {3, 2}, row.low < 0 ? -3 : 1, 4), known_ints({0})}},
      {.name = "axis_out_of_range", .inputs = {f32({3, 4}), known_ints({2})}, .error_id = "axis-out-of-range"},
      {.name = "axis_twice", .inputs = {f32({3, 4}), known_ints({1, -1})}, .error_id = "duplicate-axis"},
  };
  if (row.kind == Kind::kMax || row.kind == Kind::kMin) {
    list.push_back({.name = "uint8", .inputs = {in(kUInt8, {3, 4}, 0, 250), known_ints({1})}});
    list.push_back({.name = "uint64", .inputs = {given(kUInt64, {3}, {1e19, 5, 2e18})}});
    list.push_back({.name = "bool", .inputs = {in(kBool, {5, 2}, 0, 1), known_ints({1})}});
    list.push_back({.name = "nan", .inputs = {given(kFloat32, {2, 2}, {1, NAN, 2, 3}), known_ints({1})}});
  }
  if (row.log_sum_exp)
    list.push_back(
        {.name = "infinite",
         .inputs = {given(kFloat32, {3, 2}, {-INFINITY, -INFINITY, INFINITY, 1, 900, 901}), known_ints({1})}});
  return list;
}

OpDef make(const Row& row) {
  const bool any_type = row.kind == Kind::kMax || row.kind == Kind::kMin;
  OpDef op{
      .name = row.name,
      .doc = row.doc,
      .inputs = {{.name = "data", .types = any_type ? TypeSet::kAny : TypeSet::kNumeric},
                 {.name = "axes", .types = TypeSet::kInt64, .optional = true}},
      .attrs = {{.name = "axes",
                 .kind = AttrKind::kInts,
                 .no_default = true,
                 .until = row.axes_input_since - 1,
                 .becomes_input = 1},
                {.name = "keepdims", .kind = AttrKind::kInt, .default_value = int64_t{1}},
                {.name = "noop_with_empty_axes",
                 .kind = AttrKind::kInt,
                 .default_value = int64_t{0},
                 .since = row.axes_input_since}},
      .fusion = FusionKind::kReduction,
      .layout = LayoutRole::kFollows,
      .infer = nullptr,
      .samples = samples(row),
  };
  op.infer = [row](const InferContext& ctx) -> Result<std::vector<TensorType>> {
    const TensorType& x = ctx.input(0);
    const Result<std::vector<int>> axes = axes_of(ctx, x.rank());
    if (!axes) return axes.failure();
    TensorType type{x.dtype, ReducedShape(x.shape, *axes, keeps_dims(ctx.node)).out, {}};
    follow_values(ctx, row, *axes, type);
    return std::vector<TensorType>{std::move(type)};
  };
  op.compute = [row](const ComputeContext& ctx) { return compute_reduce(ctx, row); };
  op.reference = [row](ReferenceContext& ctx) { return reference_reduce(ctx, row); };
  op.flops = [row](const InferContext& ctx) {
    double count = row.log_sum_exp ? 12 : 1;
    for (const Expr& dim : ctx.input(0).shape) count *= static_cast<double>(known(dim).value_or(1));
    return count;
  };
  return op;
}

}  // namespace

/// Reductions along axes: one row each.
std::vector<OpDef> reduce_table() {
  const Row rows[] = {
      {.name = "ReduceL1",
       .axes_input_since = 18,
       .doc = "The sum of magnitudes.",
       .kind = Kind::kSum,
       .map = Map::kAbs},
      {.name = "ReduceL2",
       .axes_input_since = 18,
       .doc = "The root of the sum of squares.",
       .kind = Kind::kSum,
       .map = Map::kSquare,
       .finish = Finish::kSqrt},
      {.name = "ReduceLogSum",
       .axes_input_since = 18,
       .doc = "The logarithm of the sum.",
       .kind = Kind::kSum,
       .finish = Finish::kLog,
       .low = 0.5},
      {.name = "ReduceLogSumExp",
       .axes_input_since = 18,
       .doc = "The logarithm of the sum of exponentials.",
       .kind = Kind::kSum,
       .log_sum_exp = true},
      {.name = "ReduceMax", .axes_input_since = 18, .doc = "The greatest element; NaN if one is.", .kind = Kind::kMax},
      {.name = "ReduceMean",
       .axes_input_since = 18,
       .doc = "The mean; of integers truncated.",
       .kind = Kind::kSum,
       .finish = Finish::kMean},
      {.name = "ReduceMin", .axes_input_since = 18, .doc = "The least element; NaN if one is.", .kind = Kind::kMin},
      {.name = "ReduceProd", .axes_input_since = 18, .doc = "The product.", .kind = Kind::kProd},
      {.name = "ReduceSum", .axes_input_since = 13, .doc = "The sum.", .kind = Kind::kSum},
      {.name = "ReduceSumSquare",
       .axes_input_since = 18,
       .doc = "The sum of squares.",
       .kind = Kind::kSum,
       .map = Map::kSquare},
  };
  std::vector<OpDef> list;
  for (const Row& row : rows) list.push_back(make(row));
  return list;
}

}  // namespace tensmith::graph::ops
