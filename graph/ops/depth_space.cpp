#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

int64_t block_size(const AttrMap& attrs) { return attrs.get_int("blocksize", 1); }

Result<void> check_block(const InferContext& ctx) {
  if (Result<void> ok = check_rank(ctx.input(0), 4, 4, "input"); !ok) return ok;
  const int64_t block = block_size(ctx.node.attrs);
  if (block < 1 || block > 65536)
    return refuse("bad-attribute") << "attribute blocksize: expected 1 to 65536, got " << block;
  return {};
}

/// dim / by. Errors: `shape-mismatch` when it does not divide.
Result<Expr> divided(const Shape& shape, int axis, int64_t by) {
  const auto number = known(shape[axis]);
  if (number && *number % by != 0)
    return refuse("shape-mismatch") << "input, axis " << axis << ": expected a multiple of " << by << ", got shape "
                                    << shape_text(shape);
  return floor_div(shape[axis], by);
}

/// Where output position (channel, row, column) of DepthToSpace comes from: the channel of the input.
template <typename T>
T depth_channel(bool depth_first, const T& channel, const T& row, const T& column, int64_t block, const T& channels) {
  return depth_first ? (row * T(block) + column) * channels + channel : (channel * T(block) + row) * T(block) + column;
}

bool is_depth_first(const AttrMap& attrs) { return attrs.get_string("mode", "DCR") == "DCR"; }

}  // namespace

/// DepthToSpace and SpaceToDepth.
std::vector<OpDef> depth_space() {
  const AttrSpec block{.name = "blocksize", .kind = AttrKind::kInt, .required = true};
  std::vector<OpDef> list;
  list.push_back(OpDef{
      .name = "DepthToSpace",
      .doc = "Channels moved into blocks of the image: with DCR the block position is the outer part of the channel, "
             "with CRD the inner one.",
      .inputs = {{.name = "input"}},
      .attrs = {block,
                {.name = "mode",
                 .kind = AttrKind::kString,
                 .default_value = std::string("DCR"),
                 .since = 11,
                 .allowed = {"DCR", "CRD"}}},
      .fusion = FusionKind::kInjective,
      .layout = LayoutRole::kChannels,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        if (Result<void> ok = check_block(ctx); !ok) return ok.failure();
        const int64_t size = block_size(ctx.node.attrs);
        const Shape& from = ctx.input(0).shape;
        const Result<Expr> channels = divided(from, 1, size * size);
        if (!channels) return channels.failure();
        return std::vector<TensorType>{{ctx.input(0).dtype, {from[0], *channels, from[2] * size, from[3] * size}, {}}};
      },
      .compute = [](const ComputeContext& ctx) -> std::vector<Tensor> {
        const Tensor& x = ctx.input(0);
        const int64_t size = block_size(ctx.node.attrs);
        return {injective("depth_to_space", ctx.output_type(), [&](const Indices& i) {
          const Expr channel = depth_channel<Expr>(is_depth_first(ctx.node.attrs), i[1], floor_mod(i[2], size),
                                                   floor_mod(i[3], size), size, ctx.output_type().shape[1]);
          return x(i[0], channel, floor_div(i[2], size), floor_div(i[3], size));
        })};
      },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const RefTensor& x = ctx.input(0);
        const int64_t size = block_size(ctx.node.attrs), channels = x.shape[1] / (size * size);
        RefTensor& y = make_output(ctx, x.dtype, {x.shape[0], channels, x.shape[2] * size, x.shape[3] * size});
        move_elements(y, x, [&](const Dims& i) {
          const int64_t channel =
              depth_channel<int64_t>(is_depth_first(ctx.node.attrs), i[1], i[2] % size, i[3] % size, size, channels);
          return flat_index(x.shape, {i[0], channel, i[2] / size, i[3] / size});
        });
        return {};
      },
      .samples =
          {
              {.name = "depth_first", .inputs = {f32({2, 8, 3, 5})}, .attrs = attrs({{"blocksize", 2}})},
              {.name = "column_first",
               .inputs = {f32({1, 18, 1, 3})},
               .attrs = attrs({{"blocksize", 3}, {"mode", "CRD"}})},
              {.name = "block_of_one", .inputs = {f32({1, 3, 2, 2})}, .attrs = attrs({{"blocksize", 1}})},
              {.name = "not_divisible",
               .inputs = {f32({1, 6, 2, 2})},
               .attrs = attrs({{"blocksize", 2}}),
               .error_id = "shape-mismatch"},
              {.name = "no_block", .inputs = {f32({1, 4, 2, 2})}, .error_id = "missing-attribute"},
          },
  });
  list.push_back(OpDef{
      .name = "SpaceToDepth",
      .doc = "Blocks of the image moved into channels; the block position is the outer part of the channel.",
      .inputs = {{.name = "input"}},
      .attrs = {block},
      .fusion = FusionKind::kInjective,
      .layout = LayoutRole::kChannels,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        if (Result<void> ok = check_block(ctx); !ok) return ok.failure();
        const int64_t size = block_size(ctx.node.attrs);
        const Shape& from = ctx.input(0).shape;
        const Result<Expr> rows = divided(from, 2, size), columns = divided(from, 3, size);
        if (!rows) return rows.failure();
        if (!columns) return columns.failure();
        return std::vector<TensorType>{{ctx.input(0).dtype, {from[0], from[1] * (size * size), *rows, *columns}, {}}};
      },
      .compute = [](const ComputeContext& ctx) -> std::vector<Tensor> {
        const Tensor& x = ctx.input(0);
        const int64_t size = block_size(ctx.node.attrs);
        return {injective("space_to_depth", ctx.output_type(), [&](const Indices& i) {
          const Expr position = floor_div(i[1], x.shape()[1]);
          return x(i[0], floor_mod(i[1], x.shape()[1]), i[2] * size + floor_div(position, size),
                   i[3] * size + floor_mod(position, size));
        })};
      },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const RefTensor& x = ctx.input(0);
        const int64_t size = block_size(ctx.node.attrs), channels = x.shape[1];
        RefTensor& y =
            make_output(ctx, x.dtype, {x.shape[0], channels * size * size, x.shape[2] / size, x.shape[3] / size});
        move_elements(y, x, [&](const Dims& i) {
          const int64_t position = i[1] / channels;
          return flat_index(x.shape,
                            {i[0], i[1] % channels, i[2] * size + position / size, i[3] * size + position % size});
        });
        return {};
      },
      .samples =
          {
              {.name = "block_of_two", .inputs = {f32({2, 3, 4, 6})}, .attrs = attrs({{"blocksize", 2}})},
              {.name = "block_of_three", .inputs = {in(kInt8, {1, 1, 3, 9})}, .attrs = attrs({{"blocksize", 3}})},
              {.name = "not_divisible",
               .inputs = {f32({1, 1, 3, 4})},
               .attrs = attrs({{"blocksize", 2}}),
               .error_id = "shape-mismatch"},
          },
  });
  return list;
}

}  // namespace tensmith::graph::ops
