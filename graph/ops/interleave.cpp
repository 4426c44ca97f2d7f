#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

struct Spread {
  std::vector<int64_t> strides, sizes;
  int64_t phases = 1;
};

Result<Spread> resolve(const AttrMap& attrs, const TensorType& x) {
  if (Result<void> ok = check_rank(x, 3, 5, "input"); !ok) return ok.failure();
  const auto rank = static_cast<size_t>(x.rank()) - 2;
  Spread spread{attrs.get_ints("strides"), attrs.get_ints("sizes")};
  if (spread.strides.size() != rank || spread.sizes.size() != rank)
    return refuse("bad-attribute") << "attributes strides and sizes: expected " << rank << " numbers each, got "
                                   << spread.strides.size() << " and " << spread.sizes.size();
  for (size_t d = 0; d < rank; ++d) {
    const int64_t stride = spread.strides[d], size = spread.sizes[d];
    if (stride < 1 || stride > 65536 || size < 0 || size > INT32_MAX)
      return refuse("bad-attribute") << "attributes strides and sizes: expected strides from 1 to 65536 and sizes from "
                                        "0, got "
                                     << stride << " and " << size;
    spread.phases *= stride;
    if (spread.phases > INT32_MAX)
      return refuse("bad-attribute") << "attribute strides: expected up to " << INT32_MAX << " phases, got more";
    if (const auto in = known(x.shape[2 + d]); in && (size + stride - 1) / stride > *in)
      return refuse("shape-mismatch") << "input, axis " << 2 + d << ": expected at least "
                                      << (size + stride - 1) / stride << ", got shape " << shape_text(x.shape);
  }
  if (const auto channels = known(x.shape[1]); channels && *channels % spread.phases != 0)
    return refuse("shape-mismatch") << "input, axis 1: expected a multiple of " << spread.phases << ", got shape "
                                    << shape_text(x.shape);
  return spread;
}

}  // namespace

/// What passes put behind convolutions that each make one phase of the result.
OpDef interleave() {
  return OpDef{
      .name = "Interleave",
      .domain = "tensmith",
      .doc =
          "Channels moved between the places of the image: y[n, o, p] = x[n, f O + o, p / stride], where f counts the "
          "phases p mod stride, the last dim fastest; places beyond `sizes` are left out.",
      .inputs = {{.name = "input"}},
      .attrs = {{.name = "strides", .kind = AttrKind::kInts, .required = true},
                {.name = "sizes", .kind = AttrKind::kInts, .required = true}},
      .fusion = FusionKind::kInjective,
      .layout = LayoutRole::kChannels,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        const TensorType& x = ctx.input(0);
        const Result<Spread> spread = resolve(ctx.node.attrs, x);
        if (!spread) return spread.failure();
        TensorType type{x.dtype, {x.shape[0], floor_div(x.shape[1], Expr(spread->phases))}, {}};
        for (const int64_t size : spread->sizes) type.shape.push_back(Expr(size));
        return std::vector<TensorType>{std::move(type)};
      },
      .compute = [](const ComputeContext& ctx) -> std::vector<Tensor> {
        const Tensor& x = ctx.input(0);
        const Spread spread = resolve(ctx.node.attrs, *ctx.input_types[0]).value();
        return {injective("interleave", ctx.output_type(), [&](const Indices& i) {
          Expr phase(0);
          Indices from{i[0], Expr(0)};
          for (size_t d = 0; d < spread.strides.size(); ++d) {
            const Expr stride(spread.strides[d]);
            phase = phase * stride + floor_mod(i[2 + d], stride);
            from.push_back(floor_div(i[2 + d], stride));
          }
          from[1] = phase * ctx.output_type().shape[1] + i[1];
          return x(from);
        })};
      },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const RefTensor& x = ctx.input(0);
        const Result<Spread> spread = resolve(ctx.node.attrs, {x.dtype, to_shape(x.shape), {}});
        if (!spread) return spread.failure();
        Dims shape{x.shape[0], x.shape[1] / spread->phases};
        shape.insert(shape.end(), spread->sizes.begin(), spread->sizes.end());
        const int64_t channels = shape[1];
        RefTensor& y = make_output(ctx, x.dtype, std::move(shape));
        move_elements(y, x, [&](const Dims& i) {
          int64_t phase = 0;
          Dims from{i[0], 0};
          for (size_t d = 0; d < spread->strides.size(); ++d) {
            phase = phase * spread->strides[d] + i[2 + d] % spread->strides[d];
            from.push_back(i[2 + d] / spread->strides[d]);
          }
          from[1] = phase * channels + i[1];
          return flat_index(x.shape, from);
        });
        return {};
      },
      .samples =
          {
              {.name = "image",
               .inputs = {f32({2, 12, 3, 4})},
               .attrs = attrs({{"strides", ints({2, 3})}, {"sizes", ints({6, 12})}})},
              {.name = "line_cut_short",
               .inputs = {f32({1, 6, 5})},
               .attrs = attrs({{"strides", ints({3})}, {"sizes", ints({11})}})},
              {.name = "volume",
               .inputs = {f32({1, 8, 2, 1, 2})},
               .attrs = attrs({{"strides", ints({1, 2, 2})}, {"sizes", ints({2, 2, 4})}})},
              {.name = "channels_not_divisible",
               .inputs = {f32({1, 5, 3})},
               .attrs = attrs({{"strides", ints({2})}, {"sizes", ints({6})}}),
               .error_id = "shape-mismatch"},
              {.name = "too_long",
               .inputs = {f32({1, 4, 3})},
               .attrs = attrs({{"strides", ints({2})}, {"sizes", ints({7})}}),
               .error_id = "shape-mismatch"},
              {.name = "too_few_strides",
               .inputs = {f32({1, 4, 3, 3})},
               .attrs = attrs({{"strides", ints({2})}, {"sizes", ints({6, 6})}}),
               .error_id = "bad-attribute"},
          },
  };
}

}  // namespace tensmith::graph::ops
