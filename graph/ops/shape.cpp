#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

/// The dims from `start` to before `end`; both count from the end when negative and are clamped.
template <typename Dim>
std::vector<Dim> dims_asked_for(const AttrMap& attrs, const std::vector<Dim>& shape) {
  const auto rank = static_cast<int64_t>(shape.size());
  const auto place = [&](int64_t at) { return std::max<int64_t>(0, std::min(at < 0 ? at + rank : at, rank)); };
  const int64_t start = place(attrs.get_int("start", 0)), end = place(attrs.get_int("end", rank));
  if (start >= end) return {};
  return {shape.begin() + start, shape.begin() + end};
}

}  // namespace

OpDef shape() {
  return OpDef{
      .name = "Shape",
      .doc = "The dims of a tensor as a vector, or those from start to before end.",
      .inputs = {{.name = "data"}},
      .attrs = {{.name = "start", .kind = AttrKind::kInt, .default_value = int64_t{0}, .since = 15},
                {.name = "end", .kind = AttrKind::kInt, .no_default = true, .since = 15}},
      .fusion = FusionKind::kInjective,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        const Shape dims = dims_asked_for(ctx.node.attrs, ctx.input(0).shape);
        TensorType type{kInt64, {Expr(static_cast<int64_t>(dims.size()))}, {}};
        set_elements(type, dims);
        return std::vector<TensorType>{std::move(type)};
      },
      .compute = [](const ComputeContext& ctx) -> std::vector<Tensor> {
        const Shape dims = dims_asked_for(ctx.node.attrs, ctx.input(0).shape());
        return {injective("shape", ctx.output_type(), [&](const Indices& i) {
          Expr value = dims.back();
          for (size_t k = dims.size() - 1; k-- > 0;) value = select(i[0] == static_cast<int64_t>(k), dims[k], value);
          return value;
        })};
      },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const Dims dims = dims_asked_for(ctx.node.attrs, ctx.input(0).shape);
        make_output(ctx, kInt64, {static_cast<int64_t>(dims.size())}).i = dims;
        return {};
      },
      .samples =
          {
              {.name = "all", .inputs = {f32({2, 3, 17})}},
              {.name = "scalar", .inputs = {f32({})}},
              {.name = "part", .inputs = {f32({2, 3, 4, 5})}, .attrs = attrs({{"start", 1}, {"end", -1}})},
              {.name = "clamped", .inputs = {f32({2, 0})}, .attrs = attrs({{"start", -9}, {"end", 9}})},
              {.name = "nothing", .inputs = {f32({2, 3})}, .attrs = attrs({{"start", 2}, {"end", 1}})},
              {.name = "wrong_attribute",
               .inputs = {f32({2, 3})},
               .attrs = attrs({{"axis", 1}}),
               .error_id = "bad-attribute"},
          },
  };
}

OpDef size() {
  return OpDef{
      .name = "Size",
      .doc = "The number of elements of a tensor.",
      .inputs = {{.name = "data"}},
      .fusion = FusionKind::kInjective,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        return std::vector<TensorType>{{kInt64, {}, {product(ctx.input(0).shape)}}};
      },
      .compute = [](const ComputeContext& ctx) -> std::vector<Tensor> {
        return {compute("size", {}, [&](const Indices&) { return product(ctx.input(0).shape()); })};
      },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        make_output(ctx, kInt64, {}).i = {count_of(ctx.input(0).shape)};
        return {};
      },
      .samples =
          {
              {.name = "matrix", .inputs = {f32({3, 17})}},
              {.name = "scalar", .inputs = {f32({})}},
              {.name = "empty", .inputs = {f32({3, 0})}},
              {.name = "no_input", .inputs = {}, .error_id = "bad-arity"},
          },
  };
}

}  // namespace tensmith::graph::ops
