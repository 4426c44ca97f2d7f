#include "graph/ops/injective.h"
#include "graph/ops/loop_builder.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"
#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

/// The shape whose pooling gives `pooled`, where output_shape does not say it.
template <typename Dim>
Result<std::vector<Dim>> unpooled_shape(const AttrMap& attrs, const std::vector<Dim>& pooled) {
  const size_t rank = pooled.size() < 2 ? 0 : pooled.size() - 2;
  const std::vector<int64_t> kernel = attrs.get_ints("kernel_shape"),
                             strides = attrs.get_ints("strides", std::vector<int64_t>(rank, 1)),
                             pads = attrs.get_ints("pads", std::vector<int64_t>(2 * rank, 0));
  if (rank == 0 || kernel.size() != rank || strides.size() != rank || pads.size() != 2 * rank)
    return refuse("shape-mismatch") << "attributes: expected one kernel and stride and two pads for each of the "
                                    << rank << " spatial axes, got " << kernel.size() << ", " << strides.size()
                                    << " and " << pads.size();
  std::vector<Dim> shape{pooled[0], pooled[1]};
  for (size_t k = 0; k < rank; ++k) {
    constexpr int64_t kMost = INT32_MAX;
    const int64_t front = pads[k], back = pads[k + rank];
    if (kernel[k] < 1 || kernel[k] > kMost || strides[k] < 1 || strides[k] > kMost || front < 0 || front > kMost ||
        back < 0 || back > kMost)
      return refuse("bad-attribute") << "attributes: expected kernel_shape and strides from 1 and pads from 0 to "
                                     << kMost << ", got " << kernel[k] << ", " << strides[k] << " and " << front << ", "
                                     << back;
    shape.push_back((pooled[2 + k] - 1) * strides[k] + (kernel[k] - front - back));
  }
  return shape;
}

Result<std::vector<TensorType>> infer_max_unpool(const InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  if (Result<void> ok = check_shape(ctx.input(1), x.shape, "input I"); !ok) return ok.failure();
  Result<Shape> shape = unpooled_shape(ctx.node.attrs, x.shape);
  if (!shape) return shape.failure();
  if (ctx.has(2)) {
    if (Result<void> ok = check_shape(ctx.input(2), {Expr(x.rank())}, "input output_shape"); !ok) return ok.failure();
    const auto given = int_elements(ctx, 2);
    shape = given ? *given : data_shape(ctx, 0, x.rank());
  }
  return std::vector<TensorType>{{x.dtype, *shape, {}}};
}

std::vector<Tensor> compute_max_unpool(const ComputeContext& ctx) {
  const Tensor &x = ctx.input(0), &places = ctx.input(1);
  const TensorType& type = ctx.output_type();
  if (is_empty(type.shape)) return {injective("max_unpool", type, {})};
  // A place is an index into the flat output; data that points outside of it is dropped.
  return imperative("max_unpool", {x, places}, {type.shape}, {type.dtype}, [&](const std::vector<Buffer>& outputs) {
    const Buffer& out = outputs[0];
    const Stmt write = loop_nest(x.shape(), [&](const Indices& i) {
      const Var place("place");
      Indices index(type.shape.size());
      Expr rest = place;
      for (size_t k = index.size(); k-- > 0;) {
        index[k] = k == 0 ? rest : floor_mod(rest, type.shape[k]);
        rest = floor_div(rest, type.shape[k]);
      }
      const Expr inside = place >= 0 && place < product(type.shape);
      return LetStmt::make(place, places(i), If::make(inside, Store::make(out, index, x(i))));
    });
    return Block::make({fill(out, [&](const Indices&) { return make_zero(type.dtype); }), write});
  });
}

Result<void> reference_max_unpool(ReferenceContext& ctx) {
  const RefTensor &x = ctx.input(0), &places = ctx.input(1);
  Dims shape;
  if (ctx.has(2)) {
    shape = ctx.input(2).i;
  } else {
    const Result<Dims> inferred = unpooled_shape(ctx.node.attrs, x.shape);
    if (!inferred) return inferred.failure();
    shape = *inferred;
  }
  RefTensor& y = make_output(ctx, x.dtype, shape);
  const int64_t limit = y.num_elements();
  for (size_t k = 0; k < places.i.size(); ++k) {
    if (places.i[k] < 0 || places.i[k] >= limit)
      return Failure{"index-out-of-range", "place " + std::to_string(places.i[k]) + " of " + std::to_string(limit)};
    copy_element(y, places.i[k], x, static_cast<int64_t>(k));
  }
  return {};
}

}  // namespace

OpDef max_unpool() {
  return OpDef{
      .name = "MaxUnpool",
      .since = 9,
      .doc =
          "Undoes MaxPool: each element goes to the place in the flat output that the pooling took it from, all else "
          "is zero.",
      .inputs = {{.name = "X", .types = TypeSet::kFloat},
                 {.name = "I", .types = TypeSet::kInt64},
                 {.name = "output_shape", .types = TypeSet::kInt64, .optional = true}},
      .attrs = {{.name = "kernel_shape", .kind = AttrKind::kInts, .required = true},
                {.name = "pads", .kind = AttrKind::kInts, .no_default = true},
                {.name = "strides", .kind = AttrKind::kInts, .no_default = true}},
      .fusion = FusionKind::kOpaque,
      .infer = infer_max_unpool,
      .compute = compute_max_unpool,
      .supports = [](const InferContext& ctx) { return require_elements(ctx, {2}); },
      .reference = reference_max_unpool,
      .samples =
          {
              {.name = "image",
               .inputs = {f32({1, 2, 2, 2}), given(kInt64, {1, 2, 2, 2}, {5, 7, 13, 15, 16, 18, 24, 31})},
               .attrs = attrs({{"kernel_shape", ints({2, 2})}, {"strides", ints({2, 2})}})},
              {.name = "output_shape",
               .inputs = {f32({1, 1, 2, 2}), given(kInt64, {1, 1, 2, 2}, {6, 8, 16, 18}), known_ints({1, 1, 5, 5})},
               .attrs = attrs({{"kernel_shape", ints({2, 2})}, {"strides", ints({2, 2})}})},
              {.name = "line",
               .inputs = {f32({1, 1, 3}), given(kInt64, {1, 1, 3}, {0, 3, 4})},
               .attrs = attrs({{"kernel_shape", ints({2})}, {"strides", ints({2})}, {"pads", ints({0, 1})}})},
              {.name = "no_kernel_for_axis",
               .inputs = {f32({1, 1, 2, 2}), in(kInt64, {1, 1, 2, 2}, 0, 3)},
               .attrs = attrs({{"kernel_shape", ints({2})}}),
               .error_id = "shape-mismatch"},
              {.name = "pad_out_of_range",
               .inputs = {f32({1, 1, 2}), in(kInt64, {1, 1, 2}, 0, 1)},
               .attrs = attrs({{"kernel_shape", ints({2})}, {"pads", ints({INT64_MIN, 0})}}),
               .error_id = "bad-attribute"},
          },
  };
}

}  // namespace tensmith::graph::ops
