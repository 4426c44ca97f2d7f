#include "graph/ops/recurrence.h"

#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

using enum Recurrence::Input;

CellKind kind_of(const AttrMap& attrs) {
  const std::string cell = attrs.get_string("cell", "LSTM");
  return cell == "RNN" ? CellKind::kRnn : cell == "GRU" ? CellKind::kGru : CellKind::kLstm;
}

Result<std::vector<TensorType>> infer_recurrence(const InferContext& ctx) {
  const Result<RecurrentLayer> layer = recurrent_layer(kind_of(ctx.node.attrs), ctx.node.attrs);
  if (!layer) return layer.failure();
  const TensorType& inputs = ctx.input(kInputs);
  const int64_t directions = layer->directions, hidden = layer->hidden, columns = layer->gates() * hidden;
  if (hidden < 1) return refuse("bad-attribute") << "attribute hidden_size: expected 1 or more, got " << hidden;
  if (Result<void> ok = check_rank(inputs, 3, 3, "input inputs"); !ok) return ok.failure();
  const Expr steps = inputs.shape[0], batch = inputs.shape[1];
  const Shape state{Expr(directions), batch, Expr(hidden)};
  const std::pair<int, Shape> wanted[] = {{kInputs, {steps, batch, Expr(directions * columns)}},
                                          {kRecurrent, {Expr(directions), Expr(hidden), Expr(columns)}},
                                          {kHiddenBias, {Expr(directions), Expr(hidden)}},
                                          {kLengths, {batch}},
                                          {kInitialH, state},
                                          {kInitialC, state},
                                          {kPeepholes, {Expr(directions), Expr(3 * hidden)}}};
  for (const auto& [input, shape] : wanted)
    if (ctx.has(input))
      if (Result<void> ok =
              check_shape(ctx.input(input), shape, std::string("input ") + ctx.node.op->inputs[input].name);
          !ok)
        return ok.failure();
  std::vector<TensorType> types{{inputs.dtype, {steps, Expr(directions), batch, Expr(hidden)}, {}},
                                {inputs.dtype, state, {}},
                                {inputs.dtype, state, {}}};
  if (layer->kind != CellKind::kLstm) types.pop_back();
  return types;
}

std::vector<Tensor> compute_recurrence(const ComputeContext& ctx) {
  const RecurrentLayer layer = recurrent_layer(kind_of(ctx.node.attrs), ctx.node.attrs).value();
  const Tensor& inputs = ctx.input(kInputs);
  const Shape state{Expr(layer.directions), inputs.shape()[1], Expr(layer.hidden)};
  std::vector<std::vector<Expr>> shapes{
      {inputs.shape()[0], Expr(layer.directions), inputs.shape()[1], Expr(layer.hidden)}, state};
  if (layer.kind == CellKind::kLstm) shapes.push_back(state);
  const std::vector<DType> dtypes(shapes.size(), inputs.dtype());
  std::vector<Tensor> given;
  for (const Tensor& input : ctx.inputs)
    if (input) given.push_back(input);
  std::vector<Tensor> outputs =
      imperative("recurrence", given, shapes, dtypes,
                 [&](const std::vector<Buffer>& buffers) { return recurrence_steps(ctx, layer, buffers); });
  outputs.resize(ctx.node.types.size());
  return outputs;
}

Result<void> reference_recurrence(ReferenceContext& ctx) {
  const Result<RecurrentLayer> layer = recurrent_layer(kind_of(ctx.node.attrs), ctx.node.attrs);
  if (!layer) return layer.failure();
  const RefTensor& inputs = ctx.input(kInputs);
  const int64_t steps = inputs.shape[0], batch = inputs.shape[1];
  const auto given = [&](int k) { return ctx.has(k) ? &ctx.input(k) : nullptr; };
  const size_t asked = ctx.outputs.size();
  ctx.outputs.resize(3);
  make_output(ctx, inputs.dtype, {steps, layer->directions, batch, layer->hidden}, 0);
  make_output(ctx, inputs.dtype, {layer->directions, batch, layer->hidden}, 1);
  make_output(ctx, inputs.dtype, {layer->directions, batch, layer->hidden}, 2);
  run_recurrence(*layer, inputs.f, steps, batch,
                 {&ctx.input(kRecurrent), true, given(kHiddenBias), given(kLengths), given(kInitialH), given(kInitialC),
                  given(kPeepholes)},
                 ctx.outputs[0], ctx.outputs[1], &ctx.outputs[2]);
  ctx.outputs.resize(asked);
  return {};
}

std::vector<OpSample> recurrence_samples() {
  const auto with = [](const char* cell, int hidden, std::vector<NamedAttr> more = {}) {
    AttrMap map = attrs({{"cell", cell}, {"hidden_size", hidden}});
    for (const NamedAttr& attr : more) map.set(attr.name, attr.value);
    return map;
  };
  const auto lengths = given(kInt32, {3}, {4, 0, 2});
  return {
      {.name = "rnn",
       .inputs = {f32({3, 5, 5}), f32({1, 5, 5}, -0.5, 0.5)},
       .attrs = with("RNN", 5),
       .num_outputs = 2,
       .rtol = 1e-4,
       .atol = 1e-5},
      {.name = "rnn_backward",
       .inputs = {f32({4, 3, 17}), f32({1, 17, 17}, -0.3, 0.3), absent(), lengths, f32({1, 3, 17})},
       .attrs = with(
           "RNN", 17,
           {{"direction", "reverse"}, {"activations", AttrValue(std::vector<std::string>{"Relu"})}, {"clip", 1.5}}),
       .num_outputs = 2,
       .rtol = 1e-4,
       .atol = 1e-4},
      {.name = "gru",
       .inputs = {f32({4, 4, 3 * 18}), f32({1, 18, 3 * 18}, -0.3, 0.3)},
       .attrs = with("GRU", 18),
       .num_outputs = 2,
       .rtol = 1e-4,
       .atol = 1e-5},
      {.name = "gru_linear_first",
       .inputs = {f32({4, 3, 2 * 3 * 5}), f32({2, 5, 3 * 5}, -0.5, 0.5), f32({2, 5}), lengths, f32({2, 3, 5})},
       .attrs = with("GRU", 5, {{"direction", "bidirectional"}, {"linear_before_reset", 1}}),
       .num_outputs = 2,
       .rtol = 1e-4,
       .atol = 1e-5},
      {.name = "lstm",
       .inputs = {f32({3, 6, 4 * 20}), f32({1, 20, 4 * 20}, -0.3, 0.3)},
       .attrs = with("LSTM", 20),
       .num_outputs = 3,
       .rtol = 1e-4,
       .atol = 1e-5},
      {.name = "lstm_all",
       .inputs = {f32({4, 3, 2 * 4 * 3}), f32({2, 3, 4 * 3}, -0.5, 0.5), absent(), lengths, f32({2, 3, 3}),
                  f32({2, 3, 3}), f32({2, 9})},
       .attrs = with("LSTM", 3, {{"direction", "bidirectional"}, {"clip", 2.0}}),
       .num_outputs = 3,
       .rtol = 1e-4,
       .atol = 1e-5},
      {.name = "lstm_coupled",
       .inputs = {f32({2, 1, 4 * 2}), f32({1, 2, 4 * 2})},
       .attrs = with("LSTM", 2,
                     {{"input_forget", 1},
                      {"activations", AttrValue(std::vector<std::string>{"HardSigmoid", "Softsign", "Affine"})}}),
       .num_outputs = 1,
       .rtol = 1e-4,
       .atol = 1e-5},
      {.name = "lstm_half",
       .inputs = {in(kFloat16, {2, 2, 4 * 3}), in(kFloat16, {1, 3, 4 * 3}, -0.5, 0.5)},
       .attrs = with("LSTM", 3),
       .num_outputs = 3,
       .rtol = 4e-3,
       .atol = 2e-3},
      {.name = "wrong_columns",
       .inputs = {f32({3, 2, 6}), f32({1, 5, 5})},
       .attrs = with("RNN", 5),
       .num_outputs = 2,
       .error_id = "shape-mismatch"},
      {.name = "unknown_function",
       .inputs = {f32({3, 2, 5}), f32({1, 5, 5})},
       .attrs = with("RNN", 5, {{"activations", AttrValue(std::vector<std::string>{"Cube"})}}),
       .num_outputs = 2,
       .error_id = "bad-attribute"},
  };
}

}  // namespace

OpDef recurrence() {
  std::vector<AttrSpec> attrs = recurrent_attrs(CellKind::kLstm);
  attrs.push_back({.name = "linear_before_reset", .kind = AttrKind::kInt, .default_value = int64_t{0}});
  attrs.push_back({.name = "cell", .kind = AttrKind::kString, .required = true, .allowed = {"RNN", "GRU", "LSTM"}});
  return OpDef{
      .name = "Recurrence",
      .domain = "tensmith",
      .doc =
          "The steps of an RNN, GRU or LSTM layer whose products with the input are computed already: inputs [T, B, D "
          "G H] with "
          "biases, recurrent weights transposed to [D, H, G H].",
      .inputs = {{.name = "inputs", .types = TypeSet::kFloat},
                 {.name = "recurrent", .types = TypeSet::kFloat, .same_type_as = "inputs"},
                 {.name = "hidden_bias", .types = TypeSet::kFloat, .optional = true, .same_type_as = "inputs"},
                 {.name = "sequence_lens", .types = TypeSet::kIndex, .optional = true},
                 {.name = "initial_h", .types = TypeSet::kFloat, .optional = true, .same_type_as = "inputs"},
                 {.name = "initial_c", .types = TypeSet::kFloat, .optional = true, .same_type_as = "inputs"},
                 {.name = "peepholes", .types = TypeSet::kFloat, .optional = true, .same_type_as = "inputs"}},
      .attrs = std::move(attrs),
      .min_outputs = 1,
      .max_outputs = 3,
      .fusion = FusionKind::kOpaque,
      .infer = infer_recurrence,
      .compute = compute_recurrence,
      .reference = reference_recurrence,
      .samples = recurrence_samples(),
  };
}

}  // namespace tensmith::graph::ops
