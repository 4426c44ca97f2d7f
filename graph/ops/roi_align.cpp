#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/injective.h"
#include "graph/ops/loop_builder.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

/// The attributes, resolved.
struct RoiParams {
  int64_t rows, columns, ratio;
  double scale;
  bool half_pixel, average;
};

RoiParams roi_params(const AttrMap& attrs) {
  return {attrs.get_int("output_height", 1),
          attrs.get_int("output_width", 1),
          attrs.get_int("sampling_ratio", 0),
          attrs.get_float("spatial_scale", 1),
          attrs.get_string("coordinate_transformation_mode", "half_pixel") == "half_pixel",
          attrs.get_string("mode", "avg") == "avg"};
}

Result<std::vector<TensorType>> infer_roi_align(const InferContext& ctx) {
  const TensorType &x = ctx.input(0), &rois = ctx.input(1);
  if (Result<void> ok = check_rank(x, 4, 4, "input X"); !ok) return ok.failure();
  if (Result<void> ok = check_rank(rois, 2, 2, "input rois"); !ok) return ok.failure();
  if (Result<void> ok = check_shape(rois, {rois.shape[0], Expr(4)}, "input rois"); !ok) return ok.failure();
  if (Result<void> ok = check_shape(ctx.input(2), {rois.shape[0]}, "input batch_indices"); !ok) return ok.failure();
  const RoiParams p = roi_params(ctx.node.attrs);
  if (p.rows < 1 || p.columns < 1 || p.ratio < 0 || p.ratio > 1024)
    return refuse("bad-attribute")
           << "attributes: expected output_height and output_width of 1 or more and sampling_ratio from 0 to 1024, got "
           << p.rows << ", " << p.columns << " and " << p.ratio;
  return std::vector<TensorType>{{x.dtype, {rois.shape[0], x.shape[1], p.rows, p.columns}, {}}};
}

/// Where the bins of one region lie along one axis of the image.
struct BinAxis {
  Expr start, size;  // of the first bin, in pixels
};

/// The pixels on both sides of a sample and their weights, which are 0 when the sample lies outside of the image.
struct Taps {
  Expr low, high, low_weight, high_weight;
};

Taps taps_at(const Expr& position, const Expr& extent) {
  const DType type = position.dtype();
  const Expr limit = cast(type, extent), inside = position >= constant_like(position, -1) && position <= limit;
  const Expr at = max(min(position, limit - constant_like(position, 1)), constant_like(position, 0));
  const Expr whole = call(Intrinsic::kFloor, {at}), fraction = at - whole, zero = constant_like(position, 0);
  // Clamped once more as integers, for the sake of NaN.
  const Expr low = max(min(cast(kInt64, whole), extent - 1), 0);
  return {low, min(low + 1, extent - 1), select(inside, constant_like(position, 1) - fraction, zero),
          select(inside, fraction, zero)};
}

class RoiAlign {
 public:
  explicit RoiAlign(const ComputeContext& ctx)
      : ctx_(ctx), x_(ctx.input(0)), p_(roi_params(ctx.node.attrs)), wide_(compute_type(ctx.input(0).dtype())) {}

  /// axis 0: rows, 1: columns.
  BinAxis bins(const Expr& roi, int axis) const {
    const Tensor& rois = ctx_.input(1);
    const auto corner = [&](int k) {
      return widen(rois(roi, k)) * make_const(wide_, p_.scale) - make_const(wide_, p_.half_pixel ? 0.5 : 0.0);
    };
    const Expr start = corner(1 - axis);
    Expr length = corner(3 - axis) - start;
    if (!p_.half_pixel) length = max(length, make_const(wide_, 1));
    return {start, length / make_const(wide_, static_cast<double>(axis == 0 ? p_.rows : p_.columns))};
  }
  const Expr& extent(int axis) const { return x_.shape()[2 + axis]; }
  Expr position(const BinAxis& bins, const Expr& bin, const Expr& sample, const Expr& samples) const {
    const Expr step = (cast(wide_, sample) + make_const(wide_, 0.5)) / samples;
    return bins.start + (cast(wide_, bin) + step) * bins.size;
  }
  Expr image(const Expr& roi) const { return wrap_index(ctx_.input(2)(roi), x_.shape()[0]); }

  /// A sampling_ratio: the taps are tables over (region, bin, sample), shared by all channels, and each bin is a
  /// reduction.
  Tensor fixed_grid() const {
    const int64_t n = p_.ratio;
    const auto table = [&](const char* name, int axis) {
      return compute_multi(
          name, {ctx_.input(1).shape()[0], axis == 0 ? p_.rows : p_.columns, n}, [&](const Indices& i) {
            const Expr at = position(bins(i[0], axis), i[1], i[2], make_const(wide_, static_cast<double>(n)));
            const Taps taps = taps_at(at, extent(axis));
            return std::vector<Expr>{taps.low, taps.high, taps.low_weight, taps.high_weight};
          });
    };
    const std::vector<Tensor> row = table("roi_rows", 0), column = table("roi_columns", 1);
    const Reducer reducer = p_.average ? sum_reducer(wide_) : max_reducer(wide_);
    const Tensor pooled =
        reduce("roi_align", ctx_.output_type().shape, {n, n}, reducer, [&](const Indices& i, const Indices& r) {
          const auto taps = [&](const std::vector<Tensor>& t, int axis, const Expr& bin, const Expr& sample) {
            return Taps{bounded(t[0](i[0], bin, sample), axis), bounded(t[1](i[0], bin, sample), axis),
                        t[2](i[0], bin, sample), t[3](i[0], bin, sample)};
          };
          return sample(i[0], i[1], taps(row, 0, i[2], r[0]), taps(column, 1, i[3], r[1]));
        });
    return compute("roi_align_mean", pooled.shape(), [&](const Indices& i) {
      const Expr value = pooled(i);
      return cast(x_.dtype(), p_.average ? value * make_const(wide_, 1.0 / static_cast<double>(n * n)) : value);
    });
  }

  /// As many samples as pixels in each bin, so each region has loops of its own length.
  Tensor adaptive_grid() const {
    const Shape& shape = ctx_.output_type().shape;
    return imperative("roi_align", ctx_.inputs, {shape}, {x_.dtype()}, [&](const std::vector<Buffer>& outputs) {
      return loop_nest(
          shape, [&](const Indices& i) { return pool(outputs[0], i); }, ForKind::kParallel);
    })[0];
  }

 private:
  /// Table entries come back as data; the bounds are stated again so that they can be seen.
  Expr bounded(const Expr& index, int axis) const { return max(min(index, extent(axis) - 1), 0); }

  Expr sample(const Expr& roi, const Expr& channel, const Taps& row, const Taps& column) const {
    const auto part = [&](const Expr& y, const Expr& x, const Expr& wy, const Expr& wx) {
      return wy * wx * widen(x_(image(roi), channel, y, x));
    };
    const Expr a = part(row.low, column.low, row.low_weight, column.low_weight),
               b = part(row.low, column.high, row.low_weight, column.high_weight);
    const Expr c = part(row.high, column.low, row.high_weight, column.low_weight),
               d = part(row.high, column.high, row.high_weight, column.high_weight);
    return p_.average ? a + b + c + d : max(max(a, b), max(c, d));
  }

  Stmt pool(const Buffer& out, const Indices& i) const {
    const Buffer total = local_scalar("total", wide_);
    const BinAxis rows = bins(i[0], 0), columns = bins(i[0], 1);
    const Var row_start("row_start", wide_), row_size("row_size", wide_), column_start("column_start", wide_),
        column_size("column_size", wide_);
    const Var row_count("row_count"), column_count("column_count");
    // Four samples a pixel of the whole image bound what a region far larger than its image can cost.
    const auto samples = [&](const Expr& size, int axis) {
      return max(min(cast(kInt64, call(Intrinsic::kCeil, {size})), extent(axis) * 4), 0);
    };
    const Stmt scan = loop("row", row_count, [&](const Expr& r) {
      return loop("column", column_count, [&](const Expr& c) {
        const Taps row = taps_at(position({row_start, row_size}, i[2], r, cast(wide_, row_count)), extent(0));
        const Taps column =
            taps_at(position({column_start, column_size}, i[3], c, cast(wide_, column_count)), extent(1));
        const Var value("value", wide_);
        const Expr first = r == 0 && c == 0;
        const Expr next = p_.average ? get(total) + value : select(first, value, max(get(total), value));
        return LetStmt::make(value, sample(i[0], i[1], row, column), set(total, next));
      });
    });
    const Expr count = cast(wide_, max(Expr(row_count) * column_count, 1));
    Stmt body = Block::make({set(total, make_zero(wide_)), scan,
                             Store::make(out, i, cast(x_.dtype(), p_.average ? get(total) / count : get(total)))});
    body = LetStmt::make(row_count, samples(row_size, 0),
                         LetStmt::make(column_count, samples(column_size, 1), with_buffers({total}, body)));
    body = LetStmt::make(column_start, columns.start, LetStmt::make(column_size, columns.size, body));
    return LetStmt::make(row_start, rows.start, LetStmt::make(row_size, rows.size, body));
  }

  const ComputeContext& ctx_;
  const Tensor& x_;
  const RoiParams p_;
  const DType wide_;
};

std::vector<Tensor> compute_roi_align(const ComputeContext& ctx) {
  if (is_empty(ctx.output_type().shape)) return {injective("roi_align", ctx.output_type(), {})};
  const RoiAlign roi(ctx);
  return {roi_params(ctx.node.attrs).ratio > 0 ? roi.fixed_grid() : roi.adaptive_grid()};
}

Result<void> reference_roi_align(ReferenceContext& ctx) {
  const RefTensor &x = ctx.input(0), &rois = ctx.input(1);
  const RoiParams p = roi_params(ctx.node.attrs);
  const double shift = p.half_pixel ? 0.5 : 0;
  RefTensor& y = make_output(ctx, x.dtype, {rois.shape[0], x.shape[1], p.rows, p.columns});
  for (int64_t image : ctx.input(2).i)
    if (image < 0 || image >= x.shape[0])
      return Failure{"index-out-of-range", "a region of image " + std::to_string(image)};
  for_each_index(y.shape, [&](int64_t position, const Dims& i) {
    const int64_t extents[2] = {x.shape[2], x.shape[3]}, bins[2] = {p.rows, p.columns};
    const double* roi = rois.f.data() + i[0] * 4;
    double start[2], size[2];
    int64_t count[2];
    for (int axis = 0; axis < 2; ++axis) {
      start[axis] = roi[1 - axis] * p.scale - shift;
      double length = roi[3 - axis] * p.scale - shift - start[axis];
      if (!p.half_pixel) length = std::max(length, 1.0);
      size[axis] = length / static_cast<double>(bins[axis]);
      count[axis] = p.ratio > 0 ? p.ratio : std::max<int64_t>(0, static_cast<int64_t>(std::ceil(size[axis])));
    }
    double total = 0;
    bool first = true;
    for (int64_t r = 0; r < count[0]; ++r)
      for (int64_t c = 0; c < count[1]; ++c) {
        const double at[2] = {
            start[0] +
                (static_cast<double>(i[2]) + (static_cast<double>(r) + 0.5) / static_cast<double>(count[0])) * size[0],
            start[1] +
                (static_cast<double>(i[3]) + (static_cast<double>(c) + 0.5) / static_cast<double>(count[1])) * size[1]};
        double parts[4] = {0, 0, 0, 0};
        const bool inside = at[0] >= -1 && at[0] <= static_cast<double>(extents[0]) && at[1] >= -1 &&
                            at[1] <= static_cast<double>(extents[1]);
        for (int corner = 0; inside && corner < 4; ++corner) {
          double weight = 1;
          int64_t pixel[2];
          for (int axis = 0; axis < 2; ++axis) {
            const double clamped = std::max(0.0, std::min(at[axis], static_cast<double>(extents[axis] - 1))),
                         whole = std::floor(clamped);
            const bool high = axis == 0 ? corner >= 2 : corner % 2 == 1;
            pixel[axis] = std::min(static_cast<int64_t>(whole) + (high ? 1 : 0), extents[axis] - 1);
            weight *= high ? clamped - whole : 1 - (clamped - whole);
          }
          parts[corner] = weight * x.f[flat_index(x.shape, {ctx.input(2).i[i[0]], i[1], pixel[0], pixel[1]})];
        }
        const double best = std::max(std::max(parts[0], parts[1]), std::max(parts[2], parts[3]));
        total = p.average ? total + parts[0] + parts[1] + parts[2] + parts[3] : first ? best : std::max(total, best);
        first = false;
      }
    y.f[position] = p.average ? total / static_cast<double>(std::max<int64_t>(count[0] * count[1], 1)) : total;
  });
  return {};
}

}  // namespace

OpDef roi_align() {
  const auto regions = given(kFloat32, {3, 4}, {0, 0, 6, 5, 1.5, 2.25, 7.5, 4, -2, -3, 3, 12});
  const auto images = given(kInt64, {3}, {0, 1, 1});
  const auto grid = [](int rows, int columns, int ratio) {
    return attrs({{"output_height", rows}, {"output_width", columns}, {"sampling_ratio", ratio}});
  };
  const auto with = [](AttrMap map, const char* name, AttrValue value) {
    map.set(name, std::move(value));
    return map;
  };
  return OpDef{
      .name = "RoiAlign",
      .since = 10,
      .doc =
          "The mean (or largest) of bilinear samples in each bin of regions (x1, y1, x2, y2) of images, without "
          "rounding the corners.",
      .inputs = {{.name = "X", .types = TypeSet::kFloat},
                 {.name = "rois", .types = TypeSet::kFloat, .same_type_as = "X"},
                 {.name = "batch_indices", .types = TypeSet::kInt64}},
      .attrs =
          {{.name = "coordinate_transformation_mode",
            .kind = AttrKind::kString,
            .default_value = std::string("half_pixel"),
            .since = 16,
            .allowed = {"half_pixel", "output_half_pixel"}},
           {.name = "mode", .kind = AttrKind::kString, .default_value = std::string("avg"), .allowed = {"avg", "max"}},
           {.name = "output_height", .kind = AttrKind::kInt, .default_value = int64_t{1}},
           {.name = "output_width", .kind = AttrKind::kInt, .default_value = int64_t{1}},
           {.name = "sampling_ratio", .kind = AttrKind::kInt, .default_value = int64_t{0}},
           {.name = "spatial_scale", .kind = AttrKind::kFloat, .default_value = 1.0}},
      .fusion = FusionKind::kOpaque,
      .infer = infer_roi_align,
      .compute = compute_roi_align,
      .reference = reference_roi_align,
      .samples =
          {
              {.name = "fixed",
               .inputs = {f32({2, 3, 7, 9}), regions, images},
               .attrs = grid(2, 3, 2),
               .rtol = 1e-4,
               .atol = 1e-4},
              {.name = "adaptive",
               .inputs = {f32({2, 3, 7, 9}), regions, images},
               .attrs = grid(3, 2, 0),
               .rtol = 1e-4,
               .atol = 1e-4},
              {.name = "largest",
               .inputs = {f32({2, 1, 5, 5}), regions, images},
               .attrs = with(grid(2, 2, 3), "mode", std::string("max")),
               .rtol = 1e-4,
               .atol = 1e-4},
              {.name = "largest_adaptive",
               .inputs = {f32({2, 1, 5, 5}), regions, images},
               .attrs = with(grid(2, 2, 0), "mode", std::string("max")),
               .rtol = 1e-4,
               .atol = 1e-4},
              {.name = "scaled",
               .inputs = {f32({2, 2, 4, 4}), regions, images},
               .attrs = with(with(grid(2, 2, 1), "spatial_scale", 0.5), "coordinate_transformation_mode",
                             std::string("output_half_pixel")),
               .rtol = 1e-4,
               .atol = 1e-4},
              {.name = "five_numbers",
               .inputs = {f32({1, 1, 4, 4}), f32({3, 5}), images},
               .attrs = grid(1, 1, 1),
               .error_id = "shape-mismatch"},
          },
  };
}

}  // namespace tensmith::graph::ops
