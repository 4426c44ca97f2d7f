#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/recurrence.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

enum Input { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kP };

bool batch_first(const AttrMap& attrs) { return attrs.get_int("layout", 0) != 0; }

/// The layer with its hidden size, which the recurrent weights tell.
Result<RecurrentLayer> layer_of(CellKind kind, const AttrMap& attrs, const Shape& recurrent) {
  Result<RecurrentLayer> layer = recurrent_layer(kind, attrs);
  if (!layer) return layer;
  const auto hidden = recurrent.size() == 3 ? known(recurrent[2]) : std::nullopt;
  if (!hidden || *hidden < 1)
    return refuse("shape-mismatch") << "input R: expected shape [directions, gates * hidden, hidden], got "
                                    << shape_text(recurrent);
  if (layer->hidden != 0 && layer->hidden != *hidden)
    return refuse("shape-mismatch") << "attribute hidden_size: expected " << *hidden << " as in R of shape "
                                    << shape_text(recurrent) << ", got " << layer->hidden;
  RecurrentLayer result = *layer;
  result.hidden = *hidden;
  return result;
}

Result<std::vector<TensorType>> infer_recurrent(CellKind kind, const InferContext& ctx) {
  const TensorType& x = ctx.input(kX);
  if (Result<void> ok = check_rank(x, 3, 3, "input X"); !ok) return ok.failure();
  const Result<RecurrentLayer> layer = layer_of(kind, ctx.node.attrs, ctx.input(kR).shape);
  if (!layer) return layer.failure();
  const bool first = batch_first(ctx.node.attrs);
  const Expr steps = x.shape[first ? 1 : 0], batch = x.shape[first ? 0 : 1], directions(layer->directions),
             hidden(layer->hidden);
  const int64_t columns = layer->gates() * layer->hidden;
  const Shape state = first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
  const std::pair<int, Shape> wanted[] = {{kW, {directions, Expr(columns), x.shape[2]}},
                                          {kR, {directions, Expr(columns), hidden}},
                                          {kB, {directions, Expr(2 * columns)}},
                                          {kLengths, {batch}},
                                          {kInitialH, state},
                                          {kInitialC, state},
                                          {kP, {directions, Expr(3 * layer->hidden)}}};
  for (const auto& [input, shape] : wanted)
    if (ctx.has(input))
      if (Result<void> ok =
              check_shape(ctx.input(input), shape, std::string("input ") + ctx.node.op->inputs[input].name);
          !ok)
        return ok.failure();
  const Shape all = first ? Shape{batch, steps, directions, hidden} : Shape{steps, directions, batch, hidden};
  std::vector<TensorType> types{{x.dtype, all, {}}, {x.dtype, state, {}}};
  if (kind == CellKind::kLstm) types.push_back({x.dtype, state, {}});
  return types;
}

/// Builds the nodes of a layer: the products with the whole input at once, then the steps.
class Builder {
 public:
  Builder(GraphEditor& edit, const Node& node, CellKind kind)
      : edit_(edit),
        name_(node.name),
        attrs_(node.attrs),
        inputs_(node.inputs),
        count_(static_cast<int>(node.types.size())),
        kind_(kind),
        layer_(layer_of(kind, node.attrs, edit.graph().type(node.inputs[kR]).shape).value()) {}

  std::vector<Value> build() {
    const int64_t directions = layer_.directions, columns = layer_.gates() * layer_.hidden;
    const Expr size = edit_.graph().type(input(kX)).shape[2];
    const Value x = batch_first(attrs_) ? transpose(input(kX), {1, 0, 2}) : input(kX);
    const Value weights = transpose(reshape(input(kW), {directions * columns, -1}), {1, 0});
    Value products = add("MatMul", {x, weights});
    Value hidden_bias;
    if (has(kB)) products = add("Add", {products, biases(columns, &hidden_bias)});
    const Value recurrent = transpose(input(kR), {0, 2, 1});
    AttrMap attrs = attrs_;
    attrs.erase("layout");
    attrs.set("hidden_size", layer_.hidden);
    attrs.set("cell", std::string(kind_ == CellKind::kRnn ? "RNN" : kind_ == CellKind::kGru ? "GRU" : "LSTM"));
    const NodeId steps =
        edit_.add(*find_op("Recurrence", "tensmith"),
                  {products, recurrent, hidden_bias, input(kLengths), state(kInitialH), state(kInitialC), input(kP)},
                  attrs, name_ + ".steps", count_);
    std::vector<Value> outputs;
    for (int k = 0; k < count_; ++k) outputs.push_back({steps, k});
    if (batch_first(attrs_)) {
      outputs[0] = transpose(outputs[0], {2, 0, 1, 3});
      for (int k = 1; k < count_; ++k)
        outputs[static_cast<size_t>(k)] = transpose(outputs[static_cast<size_t>(k)], {1, 0, 2});
    }
    return outputs;
  }

 private:
  bool has(int k) const { return k < static_cast<int>(inputs_.size()) && inputs_[static_cast<size_t>(k)].given(); }
  Value input(int k) const { return has(k) ? inputs_[static_cast<size_t>(k)] : Value{}; }
  Value add(const std::string& op, std::vector<Value> inputs, AttrMap attrs = {}) {
    return {edit_.add(op, std::move(inputs), std::move(attrs), name_ + "." + std::to_string(made_++)), 0};
  }
  Value numbers(const std::vector<int64_t>& values) {
    return edit_.add_constant(Constant::from_ints(kInt64, {static_cast<int64_t>(values.size())}, values),
                              name_ + "." + std::to_string(made_++));
  }
  Value transpose(Value v, std::vector<int64_t> perm) {
    return add("Transpose", {v}, ops::attrs({{"perm", ints(std::move(perm))}}));
  }
  Value reshape(Value v, const std::vector<int64_t>& shape) { return add("Reshape", {v, numbers(shape)}); }
  Value columns_of(Value v, int64_t begin, int64_t end) {
    return add("Slice", {v, numbers({begin}), numbers({end}), numbers({1})});
  }
  Value state(int k) { return has(k) && batch_first(attrs_) ? transpose(input(k), {1, 0, 2}) : input(k); }

  /// The biases of input and recurrence as one row. That of GRU's hidden gate stays apart when it is added before the
  /// reset.
  Value biases(int64_t columns, Value* hidden_bias) {
    const Value of_input = columns_of(input(kB), 0, columns), of_state = columns_of(input(kB), columns, 2 * columns);
    if (kind_ != CellKind::kGru || !layer_.linear_before_reset) return reshape(add("Add", {of_input, of_state}), {-1});
    const int64_t plain = 2 * layer_.hidden;
    *hidden_bias = columns_of(of_state, plain, columns);
    const Value both = add("Add", {columns_of(of_input, 0, plain), columns_of(of_state, 0, plain)});
    return reshape(add("Concat", {both, columns_of(of_input, plain, columns)}, ops::attrs({{"axis", 1}})), {-1});
  }

  GraphEditor& edit_;
  // Copies: adding nodes may move the node that is replaced.
  const std::string name_;
  const AttrMap attrs_;
  const std::vector<Value> inputs_;
  const int count_;
  const CellKind kind_;
  const RecurrentLayer layer_;
  int made_ = 0;
};

RefTensor swap_axes(const RefTensor& x, size_t a, size_t b) {
  Dims shape = x.shape;
  std::swap(shape[a], shape[b]);
  RefTensor y = make_ref_tensor(x.dtype, shape);
  move_elements(y, x, [&](const Dims& index) {
    Dims from = index;
    std::swap(from[a], from[b]);
    return flat_index(x.shape, from);
  });
  return y;
}

Result<void> reference_recurrent(CellKind kind, ReferenceContext& ctx) {
  const RefTensor &w = ctx.input(kW), &r = ctx.input(kR);
  const Result<RecurrentLayer> layer = layer_of(kind, ctx.node.attrs, to_shape(r.shape));
  if (!layer) return layer.failure();
  const bool first = batch_first(ctx.node.attrs);
  const RefTensor x = first ? swap_axes(ctx.input(kX), 0, 1) : ctx.input(kX);
  const int64_t steps = x.shape[0], batch = x.shape[1], size = x.shape[2], directions = layer->directions,
                hidden = layer->hidden, columns = layer->gates() * hidden;
  const bool apart = kind == CellKind::kGru && layer->linear_before_reset;
  std::vector<double> products(static_cast<size_t>(steps * batch * directions * columns));
  RefTensor hidden_bias = make_ref_tensor(x.dtype, {directions, hidden});
  for (int64_t row = 0; row < steps * batch; ++row)
    for (int64_t d = 0; d < directions; ++d)
      for (int64_t column = 0; column < columns; ++column) {
        double sum = 0;
        for (int64_t k = 0; k < size; ++k) sum += x.f[row * size + k] * w.f[(d * columns + column) * size + k];
        if (ctx.has(kB)) {
          const double *biases = ctx.input(kB).f.data() + d * 2 * columns, own = biases[column],
                       of_state = biases[columns + column];
          const bool is_hidden = apart && column >= 2 * hidden;
          sum += own + (is_hidden ? 0 : of_state);
          if (is_hidden) hidden_bias.f[d * hidden + column - 2 * hidden] = of_state;
        }
        products[(row * directions + d) * columns + column] = sum;
      }
  const auto state = [&](int k) {
    return ctx.has(k) ? (first ? swap_axes(ctx.input(k), 0, 1) : ctx.input(k)) : RefTensor{};
  };
  const RefTensor h = state(kInitialH), c = state(kInitialC);
  const size_t asked = ctx.outputs.size();
  ctx.outputs.resize(3);
  make_output(ctx, x.dtype, {steps, directions, batch, hidden}, 0);
  make_output(ctx, x.dtype, {directions, batch, hidden}, 1);
  make_output(ctx, x.dtype, {directions, batch, hidden}, 2);
  run_recurrence(
      *layer, products, steps, batch,
      {&r, false, &hidden_bias, ctx.has(kLengths) ? &ctx.input(kLengths) : nullptr, ctx.has(kInitialH) ? &h : nullptr,
       ctx.has(kInitialC) ? &c : nullptr, ctx.has(kP) ? &ctx.input(kP) : nullptr},
      ctx.outputs[0], ctx.outputs[1], &ctx.outputs[2]);
  if (first) {
    // [T, D, B, H] to [B, T, D, H]
    ctx.outputs[0] = swap_axes(swap_axes(ctx.outputs[0], 1, 2), 0, 1);
    ctx.outputs[1] = swap_axes(ctx.outputs[1], 0, 1);
    ctx.outputs[2] = swap_axes(ctx.outputs[2], 0, 1);
  }
  ctx.outputs.resize(asked);
  return {};
}

OpDef recurrent_op(const char* name, const char* doc, CellKind kind, std::vector<OpSample> samples) {
  const auto like_x = [](const char* input, bool optional) {
    return InputSpec{.name = input, .types = TypeSet::kFloat, .optional = optional, .same_type_as = "X"};
  };
  OpDef op{
      .name = name,
      .since = 7,
      .doc = doc,
      .inputs = {{.name = "X", .types = TypeSet::kFloat},
                 like_x("W", false),
                 like_x("R", false),
                 like_x("B", true),
                 {.name = "sequence_lens", .types = TypeSet::kIndex, .optional = true},
                 like_x("initial_h", true)},
      .attrs = recurrent_attrs(kind),
      .min_outputs = 1,
      .max_outputs = kind == CellKind::kLstm ? 3 : 2,
      .fusion = FusionKind::kOpaque,
      .infer = [kind](const InferContext& ctx) { return infer_recurrent(kind, ctx); },
      .decompose = [kind](GraphEditor& edit, const Node& node) { return Builder(edit, node, kind).build(); },
      .reference = [kind](ReferenceContext& ctx) { return reference_recurrent(kind, ctx); },
      .samples = std::move(samples),
  };
  op.attrs.push_back({.name = "layout", .kind = AttrKind::kInt, .default_value = int64_t{0}, .since = 14});
  if (kind == CellKind::kLstm) {
    op.inputs.push_back(like_x("initial_c", true));
    op.inputs.push_back(like_x("P", true));
  }
  return op;
}

OpSample bad(OpSample sample, std::string id) {
  sample.name += "_bad";
  sample.inputs[kW].shape.back() += 1;
  sample.error_id = std::move(id);
  return sample;
}

}  // namespace

std::vector<OpDef> recurrent() {
  const OpSample rnn{
      .name = "plain", .inputs = {f32({3, 2, 4}), f32({1, 5, 4}), f32({1, 5, 5}), f32({1, 10})}, .num_outputs = 2};
  const OpSample gru{
      .name = "plain", .inputs = {f32({3, 2, 4}), f32({1, 15, 4}), f32({1, 15, 5}), f32({1, 30})}, .num_outputs = 2};
  const OpSample lstm{
      .name = "plain", .inputs = {f32({3, 2, 4}), f32({1, 20, 4}), f32({1, 20, 5}), f32({1, 40})}, .num_outputs = 3};
  const OpSample gru_batch_first{
      .name = "batch_first",
      .inputs = {f32({2, 3, 4}), f32({2, 15, 4}), f32({2, 15, 5}), f32({2, 30}), absent(), f32({2, 2, 5})},
      .attrs = attrs({{"layout", 1}, {"direction", "bidirectional"}, {"linear_before_reset", 1}, {"hidden_size", 5}}),
      .num_outputs = 2};
  return {
      recurrent_op("GRU", "A layer of gated recurrent units.", CellKind::kGru,
                   {gru, gru_batch_first, bad(gru, "shape-mismatch")}),
      recurrent_op("LSTM", "A layer of long short-term memory cells.", CellKind::kLstm,
                   {lstm, bad(lstm, "shape-mismatch")}),
      recurrent_op("RNN", "A layer of simple recurrent units.", CellKind::kRnn, {rnn, bad(rnn, "shape-mismatch")}),
  };
}

}  // namespace tensmith::graph::ops
