#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/injective.h"
#include "graph/ops/loop_builder.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

Result<std::vector<TensorType>> infer_max_roi_pool(const InferContext& ctx) {
  const TensorType &x = ctx.input(0), &rois = ctx.input(1);
  if (Result<void> ok = check_rank(x, 4, 4, "input X"); !ok) return ok.failure();
  if (Result<void> ok = check_rank(rois, 2, 2, "input rois"); !ok) return ok.failure();
  if (Result<void> ok = check_shape(rois, {rois.shape[0], Expr(5)}, "input rois"); !ok) return ok.failure();
  const std::vector<int64_t> pooled = ctx.node.attrs.get_ints("pooled_shape");
  if (pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1)
    return refuse("bad-attribute") << "attribute pooled_shape: expected two lengths of 1 or more";
  return std::vector<TensorType>{{x.dtype, {rois.shape[0], x.shape[1], pooled[0], pooled[1]}, {}}};
}

/// The rows (columns) of a bin: [begin, end).
struct Span {
  Expr begin, end;
};

std::vector<Tensor> compute_max_roi_pool(const ComputeContext& ctx) {
  const Tensor &x = ctx.input(0), &rois = ctx.input(1);
  const TensorType& type = ctx.output_type();
  const std::vector<int64_t> pooled = ctx.node.attrs.get_ints("pooled_shape");
  const double scale = ctx.node.attrs.get_float("spatial_scale", 1);
  if (is_empty(type.shape)) return {injective("max_roi_pool", type, {})};
  const DType wide = compute_type(type.dtype);
  // Halves go away from zero.
  const auto rounded = [&](const Expr& e) {
    const Expr half = call(Intrinsic::kCopySign, {constant_like(e, 0.5), e});
    return cast(kInt64, call(Intrinsic::kTrunc, {e + half}));
  };
  const auto bin = [&](const Indices& i, int first, int last, const Expr& at, int64_t bins, const Expr& extent) {
    const auto corner = [&](int k) { return rounded(widen(rois(i[0], k)) * make_const(wide, scale)); };
    const Expr start = corner(first), length = max(corner(last) - start + 1, 1);
    // floor(at * length / bins) and ceil((at + 1) * length / bins) exactly, clamped to the image.
    const auto clamped = [&](const Expr& e) { return max(min(e, extent), 0); };
    return Span{clamped(start + floor_div(at * length, bins)), clamped(start + ceil_div((at + 1) * length, bins))};
  };
  return imperative("max_roi_pool", {x, rois}, {type.shape}, {type.dtype}, [&](const std::vector<Buffer>& outputs) {
    return loop_nest(
        type.shape,
        [&](const Indices& i) {
          const Buffer best = local_scalar("best", wide);
          const Span rows = bin(i, 2, 4, i[2], pooled[0], x.shape()[2]),
                     columns = bin(i, 1, 3, i[3], pooled[1], x.shape()[3]);
          const Var row_begin("row_begin"), row_end("row_end"), begin("begin"), end("end"), image("image");
          const Stmt scan = loop("row", Expr(row_end) - row_begin, [&](const Expr& row) {
            return loop("column", Expr(end) - begin, [&](const Expr& column) {
              return set(best, max(get(best), widen(x(image, i[1], row + row_begin, column + begin))));
            });
          });
          const Expr some = Expr(row_begin) < row_end && Expr(begin) < end;
          Stmt pool =
              Block::make({set(best, min_value(wide)), scan,
                           Store::make(outputs[0], i, cast(type.dtype, select(some, get(best), make_zero(wide))))});
          pool = LetStmt::make(image, wrap_index(rois(i[0], 0), x.shape()[0]), with_buffers({best}, pool));
          pool = LetStmt::make(begin, columns.begin, LetStmt::make(end, columns.end, pool));
          return LetStmt::make(row_begin, rows.begin, LetStmt::make(row_end, rows.end, pool));
        },
        ForKind::kParallel);
  });
}

Result<void> reference_max_roi_pool(ReferenceContext& ctx) {
  const RefTensor &x = ctx.input(0), &rois = ctx.input(1);
  const std::vector<int64_t> pooled = ctx.node.attrs.get_ints("pooled_shape");
  const double scale = ctx.node.attrs.get_float("spatial_scale", 1);
  RefTensor& y = make_output(ctx, x.dtype, {rois.shape[0], x.shape[1], pooled[0], pooled[1]});
  Result<void> result;
  for_each_index(y.shape, [&](int64_t position, const Dims& i) {
    const double* roi = rois.f.data() + i[0] * 5;
    const auto image = static_cast<int64_t>(roi[0]);
    if (image < 0 || image >= x.shape[0]) {
      result = Failure{"index-out-of-range", "a region of image " + std::to_string(image)};
      return;
    }
    int64_t begin[2], end[2];
    for (int axis = 0; axis < 2; ++axis) {
      const auto start = static_cast<int64_t>(std::round(roi[2 - axis] * scale)),
                 stop = static_cast<int64_t>(std::round(roi[4 - axis] * scale));
      const double size =
          static_cast<double>(std::max<int64_t>(stop - start + 1, 1)) / static_cast<double>(pooled[axis]);
      const auto limit = [&](double at) {
        return std::max<int64_t>(0, std::min(start + static_cast<int64_t>(at), x.shape[2 + axis]));
      };
      const auto bin = static_cast<double>(i[2 + axis]);
      begin[axis] = limit(std::floor(bin * size + 1e-9));
      end[axis] = limit(std::ceil((bin + 1) * size - 1e-9));
    }
    double best = begin[0] < end[0] && begin[1] < end[1] ? -INFINITY : 0;
    for (int64_t row = begin[0]; row < end[0]; ++row)
      for (int64_t column = begin[1]; column < end[1]; ++column)
        best = std::max(best, x.f[flat_index(x.shape, {image, i[1], row, column})]);
    y.f[position] = best;
  });
  return result;
}

}  // namespace

OpDef max_roi_pool() {
  const auto shape = [](int64_t rows, int64_t columns) { return ints({rows, columns}); };
  return OpDef{
      .name = "MaxRoiPool",
      .doc =
          "The maximum of each bin of regions of images; a region is (image, x1, y1, x2, y2) with both corners inside.",
      .inputs = {{.name = "X", .types = TypeSet::kFloat},
                 {.name = "rois", .types = TypeSet::kFloat, .same_type_as = "X"}},
      .attrs = {{.name = "pooled_shape", .kind = AttrKind::kInts, .required = true},
                {.name = "spatial_scale", .kind = AttrKind::kFloat, .default_value = 1.0}},
      .fusion = FusionKind::kOpaque,
      .infer = infer_max_roi_pool,
      .compute = compute_max_roi_pool,
      .reference = reference_max_roi_pool,
      .samples =
          {
              {.name = "regions",
               .inputs = {f32({2, 3, 7, 9}), given(kFloat32, {3, 5}, {0, 1, 1, 5, 6, 1, 0, 2, 8, 4, 1, 3, 3, 3, 3})},
               .attrs = attrs({{"pooled_shape", shape(2, 3)}})},
              {.name = "scaled",
               .inputs = {f32({1, 1, 5, 5}), given(kFloat32, {2, 5}, {0, 2, 2, 9, 9, 0, -4, -4, 20, 20})},
               .attrs = attrs({{"pooled_shape", shape(3, 1)}, {"spatial_scale", 0.5}})},
              {.name = "outside",
               .inputs = {f32({1, 1, 3, 3}), given(kFloat32, {1, 5}, {0, 5, 5, 9, 9})},
               .attrs = attrs({{"pooled_shape", shape(1, 1)}})},
              {.name = "four_numbers",
               .inputs = {f32({1, 1, 3, 3}), f32({1, 4})},
               .attrs = attrs({{"pooled_shape", shape(1, 1)}}),
               .error_id = "shape-mismatch"},
          },
  };
}

}  // namespace tensmith::graph::ops
