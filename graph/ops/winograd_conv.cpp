#include <cmath>
#include <tuple>

#include "graph/ops/arith.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shapes.h"
#include "graph/ops/winograd.h"

namespace tensmith::graph::ops {

namespace {

constexpr int kMargin = kWinogradKernel - 1;

std::vector<int64_t> pads_of(const Node& node) { return node.attrs.get_ints("pads", {0, 0, 0, 0}); }
const Winograd& transform_of(const Node& node) { return winograd(static_cast<int>(node.attrs.get_int("tile", 4))); }

Result<std::vector<TensorType>> infer(const InferContext& ctx) {
  const TensorType &x = ctx.input(0), &w = ctx.input(1);
  const std::vector<int64_t> pads = pads_of(ctx.node);
  const int64_t tile = ctx.node.attrs.get_int("tile", 4);
  if (tile != 2 && tile != 4)
    return Failure{"bad-attribute", "attribute tile: expected 2 or 4, got " + std::to_string(tile)};
  if (pads.size() != 4 || *std::min_element(pads.begin(), pads.end()) < 0)
    return Failure{"bad-attribute", "attribute pads: expected 4 numbers that are not negative"};
  if (x.rank() != 4 || w.rank() != 4)
    return Failure{"rank-mismatch",
                   "expected X and W of rank 4, got " + std::to_string(x.rank()) + " and " + std::to_string(w.rank())};
  for (int axis : {0, 1, 2}) {
    const Expr expected = axis < 2 ? Expr(tile + kMargin) : x.shape[1];
    const auto have = known(w.shape[axis]), want = known(expected);
    if (!have || !want)
      return Failure{"dynamic-shape", "input W: expected numbers of points and channels that are known when compiling"};
    if (*have != *want)
      return Failure{"shape-mismatch", "input W: dim " + std::to_string(axis) + ": expected " + std::to_string(*want) +
                                           ", got " + std::to_string(*have)};
  }
  if (ctx.has(2))
    if (Result<void> ok = check_shape(ctx.input(2), {w.shape[3]}, "input B"); !ok) return ok.failure();
  TensorType type{
      x.dtype,
      {x.shape[0], w.shape[3], x.shape[2] + (pads[0] + pads[2] - kMargin), x.shape[3] + (pads[1] + pads[3] - kMargin)},
      {}};
  return std::vector<TensorType>{std::move(type)};
}

/// The entry of `values` that `index` names; loops over the index are unrolled, so one of them is left.
Expr pick(const Expr& index, const std::vector<Expr>& values) {
  Expr result = values.back();
  for (size_t k = values.size() - 1; k-- > 0;)
    result = select(index == Expr(static_cast<int64_t>(k)), values[k], result);
  return result;
}

using Row = std::vector<double>;

/// Whether two rows differ in the signs of some entries alone, and not of all.
bool mirror(const Row& a, const Row& b) {
  bool same = false, opposite = false;
  for (size_t k = 0; k < a.size(); ++k) {
    if (std::abs(a[k]) != std::abs(b[k])) return false;
    if (a[k] != 0) (a[k] == b[k] ? same : opposite) = true;
  }
  return same && opposite;
}

/// Of two mirrored rows the entries that are equal and the other ones, as the first has them.
std::pair<Row, Row> halves(const Row& a, const Row& b) {
  Row equal(a.size()), other(a.size());
  for (size_t k = 0; k < a.size(); ++k) (a[k] == b[k] ? equal : other)[k] = a[k];
  return {equal, other};
}

/// The sum of entries times terms. At least one entry is not 0.
Expr weighted_sum(const Row& row, const std::vector<Expr>& terms) {
  Expr sum;
  for (size_t k = 0; k < row.size(); ++k) {
    if (row[k] == 0) continue;
    const Expr scaled = row[k] == 1 ? terms[k] : constant_like(terms[k], row[k]) * terms[k];
    sum = sum.get() == nullptr ? scaled : sum + scaled;
  }
  return sum;
}

/// For each row of a matrix the sum of its entries times the terms. A point and its negative give rows (or columns)
/// that differ in signs alone: what they share is written alike, so that it is computed once.
std::vector<Expr> product(const std::vector<Row>& matrix, const std::function<Expr(int)>& term) {
  std::vector<Row> columns(matrix[0].size(), Row(matrix.size()));
  std::vector<Expr> terms;
  for (size_t k = 0; k < columns.size(); ++k) {
    for (size_t r = 0; r < matrix.size(); ++r) columns[k][r] = matrix[r][k];
    terms.push_back(term(static_cast<int>(k)));
  }
  for (size_t a = 0; a < columns.size(); ++a)
    for (size_t b = a + 1; b < columns.size(); ++b)
      if (mirror(columns[a], columns[b])) {
        std::tie(columns[a], columns[b]) = halves(columns[a], columns[b]);
        const Expr sum = terms[a] + terms[b], difference = terms[a] - terms[b];
        terms[a] = sum;
        terms[b] = difference;
        break;
      }
  std::vector<Row> rows(matrix.size(), Row(columns.size()));
  for (size_t r = 0; r < rows.size(); ++r)
    for (size_t k = 0; k < columns.size(); ++k) rows[r][k] = columns[k][r];
  std::vector<Expr> sums(rows.size());
  for (size_t a = 0; a < rows.size(); ++a) {
    if (sums[a].get() != nullptr) continue;
    for (size_t b = a + 1; b < rows.size() && sums[a].get() == nullptr; ++b)
      if (mirror(rows[a], rows[b])) {
        const auto [equal, other] = halves(rows[a], rows[b]);
        const Expr shared = weighted_sum(equal, terms), rest = weighted_sum(other, terms);
        sums[a] = shared + rest;
        sums[b] = shared - rest;
      }
    if (sums[a].get() == nullptr) sums[a] = weighted_sum(rows[a], terms);
  }
  return sums;
}

std::vector<Tensor> compute_rule(const ComputeContext& ctx) {
  const Winograd& t = transform_of(ctx.node);
  const std::vector<int64_t> pads = pads_of(ctx.node);
  const Tensor &x = ctx.input(0), &w = ctx.input(1);
  const std::vector<Expr>& out = ctx.output_type().shape;
  const DType type = compute_type(ctx.output_type().dtype);
  const Expr tile(int64_t{t.tile}), points(int64_t{t.points}), channels = x.shape()[1], outs = out[1];
  const Expr rows = ceil_div(out[2], tile), columns = ceil_div(out[3], tile);
  // Stages hold channels last: they are what vectors run along.
  const Tensor padded =
      compute("padded", {out[0], rows * tile + kMargin, columns * tile + kMargin, channels}, [&](const Indices& i) {
        const Expr y = i[1] - pads[0], column = i[2] - pads[1];
        const Expr inside = y >= 0 && y < x.shape()[2] && column >= 0 && column < x.shape()[3];
        return select(inside, widen(x(i[0], i[3], y, column)), make_const(type, 0));
      });
  const Tensor by_rows = compute("by_rows", {out[0], rows, columns, points, points, channels}, [&](const Indices& i) {
    return pick(i[3], product(t.input,
                              [&](int k) { return padded(i[0], i[1] * tile + int64_t{k}, i[2] * tile + i[4], i[5]); }));
  });
  const Tensor patches = compute("patches", {points, points, out[0], rows, columns, channels}, [&](const Indices& i) {
    return pick(i[1], product(t.input, [&](int k) { return by_rows(i[2], i[3], i[4], i[0], Expr(int64_t{k}), i[5]); }));
  });
  const Tensor sums = sum("products", {points, points, out[0], rows, columns, outs}, {channels},
                          [&](const Indices& i, const Indices& r) {
                            return patches(i[0], i[1], i[2], i[3], i[4], r[0]) * widen(w(i[0], i[1], r[0], i[5]));
                          });
  const Tensor half = compute("half", {out[0], rows, columns, tile, points, outs}, [&](const Indices& i) {
    return pick(i[3], product(t.output, [&](int k) { return sums(Expr(int64_t{k}), i[4], i[0], i[1], i[2], i[5]); }));
  });
  const Tensor y = compute("winograd", out, [&](const Indices& i) {
    const Expr value = pick(floor_mod(i[3], tile), product(t.output, [&](int k) {
                              return half(i[0], floor_div(i[2], tile), floor_div(i[3], tile), floor_mod(i[2], tile),
                                          Expr(int64_t{k}), i[1]);
                            }));
    return ctx.has(2) ? value + widen(ctx.input(2)(i[1])) : value;
  });
  return {narrow(y, ctx.output_type().dtype)};
}

Result<void> reference(ReferenceContext& ctx) {
  const RefTensor &x = ctx.input(0), &w = ctx.input(1);
  RefTensor& y = ctx.output();
  const Winograd& t = transform_of(ctx.node);
  const std::vector<int64_t> pads = pads_of(ctx.node);
  const int64_t ins = x.shape[1], height = x.shape[2], width = x.shape[3], outs = y.shape[1], n = t.points;
  std::vector<double> patch(n * n), half(n * n), sums(n * n * outs);
  for (int64_t b = 0; b < x.shape[0]; ++b)
    for (int64_t top = 0; top < y.shape[2]; top += t.tile)
      for (int64_t left = 0; left < y.shape[3]; left += t.tile) {
        std::fill(sums.begin(), sums.end(), 0.0);
        for (int64_t c = 0; c < ins; ++c) {
          for (int64_t i = 0; i < n * n; ++i) {
            const int64_t row = top + i / n - pads[0], column = left + i % n - pads[1];
            const bool inside = row >= 0 && row < height && column >= 0 && column < width;
            patch[i] = inside ? x.f[((b * ins + c) * height + row) * width + column] : 0;
          }
          std::fill(half.begin(), half.end(), 0.0);
          for (int64_t i = 0; i < n; ++i)
            for (int64_t k = 0; k < n; ++k)
              for (int64_t j = 0; j < n; ++j) half[i * n + j] += t.input[i][k] * patch[k * n + j];
          for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < n; ++j) {
              double value = 0;
              for (int64_t k = 0; k < n; ++k) value += half[i * n + k] * t.input[j][k];
              for (int64_t o = 0; o < outs; ++o)
                sums[(i * n + j) * outs + o] += value * w.f[((i * n + j) * ins + c) * outs + o];
            }
        }
        for (int64_t o = 0; o < outs; ++o)
          for (int64_t i = 0; i < t.tile && top + i < y.shape[2]; ++i)
            for (int64_t j = 0; j < t.tile && left + j < y.shape[3]; ++j) {
              double value = ctx.has(2) ? ctx.input(2).f[o] : 0;
              for (int64_t a = 0; a < n; ++a)
                for (int64_t k = 0; k < n; ++k) value += t.output[i][a] * sums[(a * n + k) * outs + o] * t.output[j][k];
              y.f[((b * outs + o) * y.shape[2] + top + i) * y.shape[3] + left + j] = value;
            }
      }
  return {};
}

std::vector<OpSample> samples() {
  const auto tile = [](int size, std::vector<int64_t> pads) {
    return attrs({{"tile", size}, {"pads", ints(std::move(pads))}});
  };
  return {
      {.name = "whole_tiles",
       .inputs = {f32({1, 3, 8, 8}), f32({6, 6, 3, 5}), f32({5})},
       .attrs = tile(4, {1, 1, 1, 1}),
       .rtol = 1e-4,
       .atol = 1e-4},
      {.name = "tails",
       .inputs = {f32({2, 2, 7, 9}), f32({6, 6, 2, 3})},
       .attrs = tile(4, {0, 1, 2, 1}),
       .rtol = 1e-4,
       .atol = 1e-4},
      {.name = "vectors",
       .inputs = {f32({1, 16, 6, 6}), f32({6, 6, 16, 33}), f32({33})},
       .attrs = tile(4, {1, 1, 1, 1}),
       .rtol = 1e-4,
       .atol = 1e-3},
      {.name = "small_tiles",
       .inputs = {f32({1, 17, 7, 7}), f32({4, 4, 17, 16}), f32({16})},
       .attrs = tile(2, {1, 1, 1, 1}),
       .rtol = 1e-4,
       .atol = 1e-3},
      {.name = "other_tile",
       .inputs = {f32({1, 2, 8, 8}), f32({5, 5, 2, 2})},
       .attrs = tile(3, {1, 1, 1, 1}),
       .error_id = "bad-attribute"},
      {.name = "points_differ",
       .inputs = {f32({1, 2, 8, 8}), f32({6, 6, 2, 2})},
       .attrs = tile(2, {1, 1, 1, 1}),
       .error_id = "shape-mismatch"},
  };
}

/// The products of transformed tiles in place of the direct sum's (the transforms count for nothing, as moving data
/// does for the direct sum).
void products_of_tiles(const InferContext& ctx, OpWork& work) {
  const Winograd& transform = transform_of(ctx.node);
  const auto count = [](const Expr& dim) { return static_cast<double>(known(dim).value_or(1)); };
  const auto tiles = [&](const Expr& dim) { return std::ceil(count(dim) / transform.tile); };
  const Shape& y = ctx.node.types[0].shape;
  const double products = 2.0 * transform.points * transform.points * count(ctx.input(0).shape[1]) * count(y[1]) *
                          count(y[0]) * tiles(y[2]) * tiles(y[3]);
  work.flops = std::min(work.flops, products);
}

}  // namespace

/// An internal operator: Conv with 3 x 3 weights, stride 1 and no groups, by transformed tiles. The choose-algorithm
/// pass makes it, with weights that are transformed at compile time.
OpDef winograd_conv() {
  return OpDef{
      .name = "WinogradConv",
      .domain = "tensmith",
      .doc =
          "Convolution with 3 x 3 weights that are given transformed, [points, points, C, O] (graph/ops/winograd.h).",
      .inputs = {{.name = "X", .types = TypeSet::kFloat},
                 {.name = "W", .types = TypeSet::kFloat, .same_type_as = "X"},
                 {.name = "B", .types = TypeSet::kFloat, .optional = true, .same_type_as = "X"}},
      .attrs = {{.name = "tile", .kind = AttrKind::kInt, .default_value = int64_t{4}},
                {.name = "pads", .kind = AttrKind::kInts, .default_value = std::vector<int64_t>{0, 0, 0, 0}}},
      .fusion = FusionKind::kContraction,
      .layout = LayoutRole::kChannels,
      .infer = infer,
      .compute = compute_rule,
      .reference = reference,
      // Of the convolution that it stands for, so that figures stay comparable.
      .flops =
          [](const InferContext& ctx) {
            double points = 2;
            for (const Expr& dim : ctx.node.types[0].shape) {
              int64_t value;
              points *= as_const_int(dim, &value) ? static_cast<double>(value) : 1.0;
            }
            int64_t channels;
            if (as_const_int(ctx.input(0).shape[1], &channels)) points *= static_cast<double>(channels);
            return points * kWinogradKernel * kWinogradKernel;
          },
      .work = products_of_tiles,
      .samples = samples(),
  };
}

}  // namespace tensmith::graph::ops
