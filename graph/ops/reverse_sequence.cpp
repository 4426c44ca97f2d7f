#include "graph/ops/arith.h"
#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

Result<std::vector<TensorType>> infer_reverse_sequence(const InferContext& ctx) {
  const TensorType& data = ctx.input(0);
  if (Result<void> ok = check_rank(data, 2, 64, "input"); !ok) return ok.failure();
  const int64_t batch = ctx.node.attrs.get_int("batch_axis", 1), time = ctx.node.attrs.get_int("time_axis", 0);
  if (batch < 0 || batch > 1 || time < 0 || time > 1 || batch == time)
    return refuse("bad-attribute") << "attributes batch_axis, time_axis: expected 0 and 1 in either order, got "
                                   << batch << " and " << time;
  if (Result<void> ok = check_shape(ctx.input(1), {data.shape[batch]}, "input sequence_lens"); !ok) return ok.failure();
  return std::vector<TensorType>{{data.dtype, data.shape, {}}};
}

}  // namespace

OpDef reverse_sequence() {
  return OpDef{
      .name = "ReverseSequence",
      .since = 10,
      .doc = "Each sequence of the batch with its first sequence_lens elements in reverse order.",
      .inputs = {{.name = "input"}, {.name = "sequence_lens", .types = TypeSet::kInt64}},
      .attrs = {{.name = "batch_axis", .kind = AttrKind::kInt, .default_value = int64_t{1}},
                {.name = "time_axis", .kind = AttrKind::kInt, .default_value = int64_t{0}}},
      .fusion = FusionKind::kInjective,
      .infer = infer_reverse_sequence,
      .compute = [](const ComputeContext& ctx) -> std::vector<Tensor> {
        const Tensor& x = ctx.input(0);
        const int64_t batch = ctx.node.attrs.get_int("batch_axis", 1), time = ctx.node.attrs.get_int("time_axis", 0);
        return {injective("reverse_sequence", ctx.output_type(), [&](const Indices& i) {
          return with_value("length", min(ctx.input(1)(i[batch]), x.shape()[time]), [&](const Expr& length) {
            Indices index = i;
            index[time] = length - 1 - i[time];
            return select(i[time] < length, x(index), x(i));
          });
        })};
      },
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const RefTensor& x = ctx.input(0);
        const int64_t batch = ctx.node.attrs.get_int("batch_axis", 1), time = ctx.node.attrs.get_int("time_axis", 0);
        for (int64_t length : ctx.input(1).i)
          if (length < 0 || length > x.shape[time])
            return Failure{"index-out-of-range", "a sequence of length " + std::to_string(length)};
        move_elements(make_output(ctx, x.dtype, x.shape), x, [&](const Dims& index) {
          Dims at = index;
          const int64_t length = ctx.input(1).i[index[batch]];
          if (index[time] < length) at[time] = length - 1 - index[time];
          return flat_index(x.shape, at);
        });
        return {};
      },
      .samples =
          {
              {.name = "time_first", .inputs = {f32({5, 3, 2}), given(kInt64, {3}, {5, 1, 3})}},
              {.name = "batch_first",
               .inputs = {f32({3, 17}), given(kInt64, {3}, {0, 17, 4})},
               .attrs = attrs({{"batch_axis", 0}, {"time_axis", 1}})},
              {.name = "same_axes",
               .inputs = {f32({3, 3}), in(kInt64, {3}, 1, 3)},
               .attrs = attrs({{"batch_axis", 0}}),
               .error_id = "bad-attribute"},
              {.name = "wrong_count", .inputs = {f32({5, 3}), in(kInt64, {5}, 1, 3)}, .error_id = "shape-mismatch"},
          },
  };
}

}  // namespace tensmith::graph::ops
