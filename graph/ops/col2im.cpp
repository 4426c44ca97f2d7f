#include "graph/ops/arith.h"
#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

/// The geometry of the blocks along one axis of the image.
struct BlockAxis {
  Expr image;
  int64_t block, stride, dilation, pad_begin, pad_end;

  Expr positions() const { return floor_div(image + pad_begin + pad_end - dilation * (block - 1) - 1, stride) + 1; }
};

/// Nothing when the shapes are not known.
template <typename Context>
Result<std::optional<std::vector<BlockAxis>>> block_axes(const Context& ctx) {
  using Axes = std::optional<std::vector<BlockAxis>>;
  const auto image = int_elements(ctx, 1);
  const auto block = known_numbers(ctx, 2);
  if (!image || !block) return Axes{};
  const size_t rank = image->size();
  const AttrMap& attrs = ctx.node.attrs;
  const std::vector<int64_t> strides = attrs.get_ints("strides", std::vector<int64_t>(rank, 1)),
                             pads = attrs.get_ints("pads", std::vector<int64_t>(2 * rank, 0)),
                             dilations = attrs.get_ints("dilations", std::vector<int64_t>(rank, 1));
  if (rank == 0 || block->size() != rank || strides.size() != rank || dilations.size() != rank ||
      pads.size() != 2 * rank)
    return refuse("shape-mismatch") << "inputs and attributes: expected equal lengths, got image_shape of " << rank
                                    << ", block_shape of " << block->size() << ", strides of " << strides.size()
                                    << ", dilations of " << dilations.size() << ", pads of " << pads.size();
  std::vector<BlockAxis> axes;
  for (size_t k = 0; k < rank; ++k) {
    axes.push_back({(*image)[k], (*block)[k], strides[k], dilations[k], pads[k], pads[k + rank]});
    const BlockAxis& axis = axes.back();
    constexpr int64_t kMax = int64_t{1} << 31;
    if (axis.block < 1 || axis.stride < 1 || axis.dilation < 1 || axis.pad_begin < 0 || axis.pad_end < 0 ||
        axis.block > kMax || axis.stride > kMax || axis.dilation > kMax || axis.pad_begin > kMax || axis.pad_end > kMax)
      return refuse("bad-attribute") << "axis " << k
                                     << ": expected block, stride and dilation of 1 or more and pads of 0 or more, got "
                                     << axis.block << ", " << axis.stride << ", " << axis.dilation << " and "
                                     << axis.pad_begin << ", " << axis.pad_end;
  }
  return Axes{std::move(axes)};
}

Result<std::vector<TensorType>> infer_col2im(const InferContext& ctx) {
  const TensorType& data = ctx.input(0);
  if (Result<void> ok = check_rank(data, 3, 3, "input"); !ok) return ok.failure();
  const auto axes = block_axes(ctx);
  if (!axes) return axes.failure();
  if (!*axes) {
    const auto rank = known(ctx.input(1).shape.empty() ? Expr(0) : ctx.input(1).shape[0]);
    if (!rank) return refuse("dynamic-rank") << "input image_shape: expected a known number of axes";
    return std::vector<TensorType>{{data.dtype, data_shape(ctx, 0, 2 + static_cast<int>(*rank)), {}}};
  }
  int64_t block = 1;
  Expr positions(1);
  for (const BlockAxis& axis : **axes) {
    if (__builtin_mul_overflow(block, axis.block, &block))
      return refuse("bad-attribute") << "input block_shape: expected a product below 2^63";
    positions = positions * axis.positions();
  }
  if (const auto channels = known(data.shape[1]); channels && *channels % block != 0)
    return refuse("shape-mismatch") << "input: expected a multiple of the " << block
                                    << " elements of a block at axis 1, got shape " << shape_text(data.shape);
  if (different_dim(data.shape[2], positions))
    return refuse("shape-mismatch") << "input: expected the " << dim_to_string(positions)
                                    << " positions of the block at axis 2, got shape " << shape_text(data.shape);
  TensorType type{data.dtype, {data.shape[0], floor_div(data.shape[1], block)}, {}};
  for (const BlockAxis& axis : **axes) type.shape.push_back(axis.image);
  return std::vector<TensorType>{std::move(type)};
}

Result<void> supports_col2im(const InferContext& ctx) {
  if (Result<void> ok = require_elements(ctx, {1, 2}); !ok) return ok;
  const std::vector<BlockAxis> axes = *block_axes(ctx).value();
  Expr positions(1);
  for (const BlockAxis& axis : axes) positions = positions * axis.positions();
  return require_same_dim(ctx.input(0).shape[2], positions, "input, axis 2");
}

std::vector<Tensor> compute_col2im(const ComputeContext& ctx) {
  const Tensor& x = ctx.input(0);
  const TensorType& type = ctx.output_type();
  if (is_empty(type.shape)) return {injective("col2im", type, {})};
  const std::vector<BlockAxis> axes = *block_axes(ctx).value();
  std::vector<Expr> extents;
  for (const BlockAxis& axis : axes) extents.emplace_back(axis.block);
  // Where the block must begin for its element r to lie on i, and at which of its positions that is, if it is one.
  const auto begin = [&](size_t k, const Indices& i, const Indices& r) {
    return i[2 + k] + axes[k].pad_begin - r[k] * axes[k].dilation;
  };
  const auto place = [&](size_t k, const Indices& i, const Indices& r) {
    return floor_div(begin(k, i, r), axes[k].stride);
  };
  const Tensor total = reduce(
      "col2im", type.shape, extents, sum_reducer(compute_type(type.dtype)),
      [&](const Indices& i, const Indices& r) {
        Expr element = i[1], position(0);
        for (size_t k = 0; k < axes.size(); ++k) {
          element = element * axes[k].block + r[k];
          position = position * axes[k].positions() + place(k, i, r);
        }
        return widen(x(i[0], element, position));
      },
      [&](const Indices& i, const Indices& r) {
        Expr covers = make_bool(true);
        for (size_t k = 0; k < axes.size(); ++k) {
          const Expr at = place(k, i, r);
          covers = covers && at >= 0 && at < axes[k].positions();
          if (axes[k].stride > 1) covers = covers && at * axes[k].stride == begin(k, i, r);
        }
        return covers;
      });
  return {narrow(total, type.dtype)};
}

Result<void> reference_col2im(ReferenceContext& ctx) {
  const RefTensor& x = ctx.input(0);
  const Dims &image = ctx.input(1).i, &block = ctx.input(2).i;
  const size_t rank = image.size();
  const Dims strides = ctx.node.attrs.get_ints("strides", Dims(rank, 1)),
             pads = ctx.node.attrs.get_ints("pads", Dims(2 * rank, 0)),
             dilations = ctx.node.attrs.get_ints("dilations", Dims(rank, 1));
  const int64_t block_size = count_of(block), channels = x.shape[1] / block_size;
  Dims shape{x.shape[0], channels}, positions;
  for (size_t k = 0; k < rank; ++k) {
    shape.push_back(image[k]);
    positions.push_back((image[k] + pads[k] + pads[k + rank] - dilations[k] * (block[k] - 1) - 1) / strides[k] + 1);
  }
  RefTensor& y = make_output(ctx, x.dtype, shape);
  if (count_of(positions) != x.shape[2])
    return Failure{"shape-mismatch", "the blocks have " + std::to_string(count_of(positions)) + " positions"};
  for (int64_t plane = 0; plane < x.shape[0] * channels; ++plane)
    for_each_index(block, [&](int64_t element, const Dims& b) {
      for_each_index(positions, [&](int64_t position, const Dims& p) {
        int64_t to = plane;
        for (size_t k = 0; k < rank; ++k) {
          const int64_t at = p[k] * strides[k] + b[k] * dilations[k] - pads[k];
          if (at < 0 || at >= image[k]) return;
          to = to * image[k] + at;
        }
        const int64_t from = (plane * block_size + element) * x.shape[2] + position;
        if (y.is_float()) y.f[to] += x.f[from];
        else y.i[to] = wrap_int(y.dtype, y.i[to] + x.i[from]);
      });
    });
  return {};
}

}  // namespace

OpDef col2im() {
  return OpDef{
      .name = "Col2Im",
      .since = 18,
      .doc = "Blocks that lie as columns summed up to the image that they were cut from.",
      .inputs = {{.name = "input", .types = TypeSet::kNumeric},
                 {.name = "image_shape", .types = TypeSet::kInt64},
                 {.name = "block_shape", .types = TypeSet::kInt64}},
      .attrs = {{.name = "dilations", .kind = AttrKind::kInts, .no_default = true},
                {.name = "pads", .kind = AttrKind::kInts, .no_default = true},
                {.name = "strides", .kind = AttrKind::kInts, .no_default = true}},
      .fusion = FusionKind::kReduction,
      .infer = infer_col2im,
      .compute = compute_col2im,
      .supports = supports_col2im,
      .reference = reference_col2im,
      .samples =
          {
              {.name = "tiles", .inputs = {f32({1, 5, 5}), known_ints({5, 5}), known_ints({1, 5})}},
              {.name = "overlap", .inputs = {f32({2, 12, 6}), known_ints({3, 4}), known_ints({2, 2})}},
              {.name = "strides",
               .inputs = {f32({1, 9, 4}), known_ints({5, 5}), known_ints({3, 3})},
               .attrs = attrs({{"strides", ints({2, 2})}})},
              {.name = "pads",
               .inputs = {f32({1, 5, 15}), known_ints({5, 5}), known_ints({1, 5})},
               .attrs = attrs({{"pads", ints({0, 1, 0, 1})}})},
              {.name = "dilations",
               .inputs = {f32({1, 4, 5}), known_ints({6, 6}), known_ints({2, 2})},
               .attrs = attrs({{"dilations", ints({1, 5})}})},
              {.name = "line",
               .inputs = {in(kFloat16, {1, 6, 5}), known_ints({7}), known_ints({3})},
               .rtol = 2e-3,
               .atol = 2e-3},
              {.name = "volume", .inputs = {f32({1, 10, 12}), known_ints({3, 4, 5}), known_ints({1, 1, 5})}},
              {.name = "wrong_positions",
               .inputs = {f32({1, 5, 4}), known_ints({5, 5}), known_ints({1, 5})},
               .error_id = "shape-mismatch"},
              {.name = "wrong_block",
               .inputs = {f32({1, 6, 5}), known_ints({5, 5}), known_ints({1, 5})},
               .error_id = "shape-mismatch"},
          },
  };
}

}  // namespace tensmith::graph::ops
