#include "graph/ops/recurrence.h"

#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/injective.h"
#include "graph/ops/loop_builder.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

Result<RecurrentLayer> recurrent_layer(CellKind kind, const AttrMap& attrs) {
  const std::string direction = attrs.get_string("direction", "forward");
  RecurrentLayer layer{.kind = kind,
                       .hidden = attrs.get_int("hidden_size", 0),
                       .directions = direction == "bidirectional" ? 2 : 1,
                       .reverse = direction == "reverse",
                       .activations = {},
                       .clip = attrs.get_float("clip", 0),
                       .input_forget = attrs.get_int("input_forget", 0) != 0,
                       .linear_before_reset = attrs.get_int("linear_before_reset", 0) != 0};
  std::vector<std::string> defaults{"Tanh"};
  if (kind == CellKind::kGru) defaults = {"Sigmoid", "Tanh"};
  if (kind == CellKind::kLstm) defaults = {"Sigmoid", "Tanh", "Tanh"};
  Result<std::vector<RecurrentActivation>> activations = recurrent_activations(attrs, defaults, layer.directions);
  if (!activations) return activations.failure();
  layer.activations = *activations;
  if (layer.hidden < 0 || layer.hidden > (1 << 20))
    return refuse("bad-attribute") << "attribute hidden_size: expected 1 or more, got " << layer.hidden;
  if (layer.clip < 0) return refuse("bad-attribute") << "attribute clip: expected a number above 0, got " << layer.clip;
  return layer;
}

std::vector<AttrSpec> recurrent_attrs(CellKind kind) {
  std::vector<AttrSpec> attrs = {
      {.name = "activation_alpha", .kind = AttrKind::kFloats, .no_default = true},
      {.name = "activation_beta", .kind = AttrKind::kFloats, .no_default = true},
      {.name = "activations", .kind = AttrKind::kStrings, .no_default = true},
      {.name = "clip", .kind = AttrKind::kFloat, .no_default = true},
      {.name = "direction",
       .kind = AttrKind::kString,
       .default_value = std::string("forward"),
       .allowed = {"forward", "reverse", "bidirectional"}},
      {.name = "hidden_size", .kind = AttrKind::kInt, .no_default = true},
  };
  if (kind == CellKind::kLstm)
    attrs.push_back({.name = "input_forget", .kind = AttrKind::kInt, .default_value = int64_t{0}});
  if (kind == CellKind::kGru)
    attrs.push_back({.name = "linear_before_reset", .kind = AttrKind::kInt, .default_value = int64_t{0}});
  return attrs;
}

void run_recurrence(const RecurrentLayer& layer, const std::vector<double>& inputs, int64_t steps, int64_t batch,
                    const RecurrentWeights& weights, RefTensor& y, RefTensor& y_h, RefTensor* y_c) {
  const int64_t hidden = layer.hidden, gates = layer.gates(), columns = gates * hidden;
  for (int d = 0; d < layer.directions; ++d)
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t state = (d * batch + b) * hidden;
      const auto optional = [&](const RefTensor* tensor, int64_t at) { return tensor ? tensor->f[at] : 0.0; };
      const auto recurrent = [&](int64_t column, int64_t k) {
        return weights.recurrent
            ->f[weights.transposed ? (d * hidden + k) * columns + column : (d * columns + column) * hidden + k];
      };
      const auto clipped = [&](double x) {
        return layer.clip > 0 ? std::max(-layer.clip, std::min(layer.clip, x)) : x;
      };
      std::vector<double> h(static_cast<size_t>(hidden)), c(h);
      for (int64_t j = 0; j < hidden; ++j)
        h[j] = optional(weights.initial_h, state + j), c[j] = optional(weights.initial_c, state + j);
      const int64_t length = weights.lengths ? std::max<int64_t>(0, std::min(weights.lengths->i[b], steps)) : steps;
      for (int64_t s = 0; s < length; ++s) {
        const int64_t t = layer.is_backward(d) ? length - 1 - s : s;
        const double* x = inputs.data() + (t * batch + b) * layer.directions * columns + d * columns;
        const auto product = [&](int64_t column, const std::vector<double>& by) {
          double sum = 0;
          for (int64_t k = 0; k < hidden; ++k) sum += recurrent(column, k) * by[k];
          return sum;
        };
        const auto f = [&](int n, double value) { return apply(layer.activation(d, n), clipped(value)); };
        const auto peephole = [&](int64_t n, int64_t j) {
          return optional(weights.peepholes, (d * 3 + n) * hidden + j);
        };
        std::vector<double> next(h), reset_h(h);
        if (layer.kind == CellKind::kGru)
          for (int64_t j = 0; j < hidden; ++j) reset_h[j] = h[j] * f(0, x[hidden + j] + product(hidden + j, h));
        for (int64_t j = 0; j < hidden; ++j) {
          if (layer.kind == CellKind::kRnn) {
            next[j] = f(0, x[j] + product(j, h));
          } else if (layer.kind == CellKind::kGru) {
            const double z = f(0, x[j] + product(j, h)), r = f(0, x[hidden + j] + product(hidden + j, h));
            const double bias = optional(weights.hidden_bias, d * hidden + j);
            const double from_h =
                layer.linear_before_reset ? r * (product(2 * hidden + j, h) + bias) : product(2 * hidden + j, reset_h);
            next[j] = (1 - z) * f(1, x[2 * hidden + j] + from_h) + z * h[j];
          } else {
            const auto gate = [&](int64_t n) { return x[n * hidden + j] + product(n * hidden + j, h); };
            const double in = f(0, gate(0) + peephole(0, j) * c[j]);
            const double forget = layer.input_forget ? 1 - in : f(0, gate(2) + peephole(2, j) * c[j]);
            const double cell = forget * c[j] + in * f(1, gate(3));
            const double out = f(0, gate(1) + peephole(1, j) * cell);
            next[j] = out * apply(layer.activation(d, 2), cell);
            c[j] = cell;  // read only for this j
          }
        }
        h = next;
        for (int64_t j = 0; j < hidden; ++j) y.f[((t * layer.directions + d) * batch + b) * hidden + j] = h[j];
      }
      for (int64_t j = 0; j < hidden; ++j) {
        y_h.f[state + j] = h[j];
        if (y_c) y_c->f[state + j] = c[j];
      }
    }
}

namespace {

enum Input { kInputs, kRecurrent, kHiddenBias, kLengths, kInitialH, kInitialC, kPeepholes };

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

/// The statements of all steps. Sequences of the batch are independent, so (direction, sequence) pairs run in parallel.
class Steps {
 public:
  Steps(const ComputeContext& ctx, RecurrentLayer layer, const std::vector<Buffer>& outputs)
      : ctx_(ctx),
        layer_(std::move(layer)),
        outputs_(outputs),
        dtype_(ctx.input(kInputs).dtype()),
        wide_(compute_type(dtype_)),
        steps_(ctx.input(kInputs).shape()[0]),
        batch_(ctx.input(kInputs).shape()[1]),
        hidden_(layer_.hidden) {
    const auto state = [&](const char* name, int64_t columns) {
      return make_buffer(name, wide_, {Expr(layer_.directions), batch_, Expr(columns)});
    };
    h_ = state("h", hidden_);
    c_ = state("c", hidden_);
    sums_ = state("sums", layer_.gates() * hidden_);
    reset_ = state("reset_h", hidden_);
  }

  Stmt all() const {
    std::vector<Stmt> directions;
    for (int d = 0; d < layer_.directions; ++d)
      directions.push_back(loop(
          "b", batch_, [&](const Expr& b) { return sequence(d, b); }, ForKind::kParallel));
    std::vector<Buffer> buffers{h_, sums_};
    if (layer_.kind == CellKind::kLstm) buffers.push_back(c_);
    if (layer_.kind == CellKind::kGru && !layer_.linear_before_reset) buffers.push_back(reset_);
    return with_buffers(buffers, Block::make(directions));
  }

 private:
  Expr zero() const { return make_zero(wide_); }
  Expr clipped(const Expr& x) const {
    return layer_.clip > 0 ? max(min(x, constant_like(x, layer_.clip)), constant_like(x, -layer_.clip)) : x;
  }
  Expr f(int d, int n, const Expr& x) const { return apply(layer_.activation(d, n), clipped(x)); }
  Expr initial(int input, const Expr& d, const Expr& b, const Expr& j) const {
    return ctx_.has(input) ? widen(ctx_.input(input)(d, b, j)) : zero();
  }

  Stmt sequence(int d, const Expr& b) const {
    const bool lstm = layer_.kind == CellKind::kLstm;
    const Stmt start = for_each_unit([&](const Expr& j) {
      Stmt set_state = Store::make(h_, {d, b, j}, initial(kInitialH, d, b, j));
      if (lstm) set_state = Block::make({set_state, Store::make(c_, {d, b, j}, initial(kInitialC, d, b, j))});
      return set_state;
    });
    const Expr length = ctx_.has(kLengths) ? max(min(cast(kInt64, ctx_.input(kLengths)(b)), steps_), 0) : steps_;
    const Var count("count");
    const Stmt run =
        loop("s", count, [&](const Expr& s) { return step(d, b, layer_.is_backward(d) ? Expr(count) - 1 - s : s); });
    const Stmt rest = loop("s", steps_ - count, [&](const Expr& s) {
      return for_each_unit([&](const Expr& j) {
        return Store::make(outputs_[0], {Expr(count) + s, d, b, j}, make_zero(dtype_));
      });
    });
    const Stmt finish = for_each_unit([&](const Expr& j) {
      Stmt store = Store::make(outputs_[1], {d, b, j}, cast(dtype_, load(h_, {d, b, j})));
      if (lstm) store = Block::make({store, Store::make(outputs_[2], {d, b, j}, cast(dtype_, load(c_, {d, b, j})))});
      return store;
    });
    return LetStmt::make(count, length, Block::make({start, run, ctx_.has(kLengths) ? rest : Stmt(), finish}));
  }

  Stmt for_each_unit(const std::function<Stmt(const Expr&)>& body) const {
    return vector_nest({Expr(hidden_)}, [&](const Indices& i) { return body(i[0]); });
  }

  /// sums[first ... last) = base(column) + vector . recurrent weights, several vectors of columns at a time in
  /// registers.
  Stmt products(int d, const Expr& b, int64_t first, int64_t last, const Buffer& vector,
                const std::function<Expr(const Expr&)>& base) const {
    std::vector<Stmt> tiles;
    for (const int64_t width : {64, 16, 1}) {
      const int64_t count = (last - first) / width;
      if (count == 0) continue;
      const int64_t lanes = std::min<int64_t>(width, 16), vectors = width / lanes, start = first;
      tiles.push_back(loop("tile", count, [&](const Expr& tile) {
        const Buffer acc = make_buffer("acc", wide_, {Expr(width)}, Scope::kRegister);
        const auto each = [&](const std::function<Stmt(const Expr& lane)>& body) {
          return loop(
              "v", vectors,
              [&](const Expr& v) {
                return loop(
                    "lane", lanes, [&](const Expr& lane) { return body(v * lanes + lane); },
                    lanes > 1 ? ForKind::kVectorized : ForKind::kSerial);
              },
              ForKind::kUnrolled);
        };
        const auto column = [&](const Expr& lane) { return tile * width + lane + start; };
        const Stmt init = each([&](const Expr& lane) { return Store::make(acc, {lane}, base(column(lane))); });
        const Stmt add = loop("k", hidden_, [&](const Expr& k) {
          const Var by("by", wide_);
          const Stmt row = each([&](const Expr& lane) {
            return Store::make(acc, {lane},
                               load(acc, {lane}) + Expr(by) * widen(ctx_.input(kRecurrent)(d, k, column(lane))));
          });
          return LetStmt::make(by, load(vector, {d, b, k}), row);
        });
        const Stmt store = each([&](const Expr& lane) {
          return Store::make(sums_, {d, b, column(lane)}, load(acc, {lane}));
        });
        return Allocate::make(acc, Block::make({init, add, store}));
      }));
      first += count * width;
    }
    return Block::make(tiles);
  }

  Stmt step(int d, const Expr& b, const Expr& t) const {
    const int64_t columns = layer_.gates() * hidden_;
    const auto input = [&](const Expr& column) { return widen(ctx_.input(kInputs)(t, b, column + d * columns)); };
    const auto sum = [&](int64_t gate, const Expr& j) { return load(sums_, {d, b, j + gate * hidden_}); };
    const auto emit = [&](const Expr& j, const Expr& value) {
      const Var next("next", wide_);
      return LetStmt::make(
          next, value,
          Block::make({Store::make(h_, {d, b, j}, next), Store::make(outputs_[0], {t, d, b, j}, cast(dtype_, next))}));
    };
    if (layer_.kind == CellKind::kRnn)
      return Block::make({products(d, b, 0, columns, h_, input),
                          for_each_unit([&](const Expr& j) { return emit(j, f(d, 0, sum(0, j))); })});
    if (layer_.kind == CellKind::kLstm)
      return Block::make({products(d, b, 0, columns, h_, input),
                          for_each_unit([&](const Expr& j) { return lstm(d, b, j, sum, emit); })});
    const auto update = [&](const Expr& j, const Expr& from_h) {
      const Var z("z", wide_);
      const Expr old = load(h_, {d, b, j});
      return LetStmt::make(z, f(d, 0, sum(0, j)),
                           emit(j, (make_const(wide_, 1) - z) * f(d, 1, from_h) + Expr(z) * old));
    };
    if (layer_.linear_before_reset) {
      const auto hidden_bias = [&](const Expr& j) {
        return ctx_.has(kHiddenBias) ? widen(ctx_.input(kHiddenBias)(d, j)) : zero();
      };
      return Block::make({products(d, b, 0, 2 * hidden_, h_, input),
                          products(d, b, 2 * hidden_, columns, h_,
                                   [&](const Expr& column) { return hidden_bias(column - 2 * hidden_); }),
                          for_each_unit([&](const Expr& j) {
                            return update(j, input(j + 2 * hidden_) + f(d, 0, sum(1, j)) * sum(2, j));
                          })});
    }
    return Block::make({products(d, b, 0, 2 * hidden_, h_, input), for_each_unit([&](const Expr& j) {
                          return Store::make(reset_, {d, b, j}, load(h_, {d, b, j}) * f(d, 0, sum(1, j)));
                        }),
                        products(d, b, 2 * hidden_, columns, reset_, input),
                        for_each_unit([&](const Expr& j) { return update(j, sum(2, j)); })});
  }

  Stmt lstm(int d, const Expr& b, const Expr& j, const std::function<Expr(int64_t, const Expr&)>& sum,
            const std::function<Stmt(const Expr&, const Expr&)>& emit) const {
    const Expr old = load(c_, {d, b, j});
    const auto gate = [&](int64_t n, const Expr& state) {
      return ctx_.has(kPeepholes) ? sum(n, j) + widen(ctx_.input(kPeepholes)(d, j + n * hidden_)) * state : sum(n, j);
    };
    const Var in("in", wide_), forget("forget", wide_), cell("cell", wide_);
    const Expr out = f(d, 0, gate(1, cell));
    Stmt body = Block::make({Store::make(c_, {d, b, j}, cell), emit(j, out * apply(layer_.activation(d, 2), cell))});
    body = LetStmt::make(cell, Expr(forget) * old + Expr(in) * f(d, 1, sum(3, j)), body);
    body = LetStmt::make(forget, layer_.input_forget ? make_const(wide_, 1) - in : f(d, 0, gate(2, old)), body);
    return LetStmt::make(in, f(d, 0, gate(0, old)), body);
  }

  const ComputeContext& ctx_;
  const RecurrentLayer layer_;
  const std::vector<Buffer>& outputs_;
  const DType dtype_, wide_;
  const Expr steps_, batch_;
  const int64_t hidden_;
  Buffer h_, c_, sums_, reset_;
};

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
                 [&](const std::vector<Buffer>& buffers) { return Steps(ctx, layer, buffers).all(); });
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
       .inputs = {f32({3, 2, 5}), f32({1, 5, 5}, -0.5, 0.5)},
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
       .inputs = {f32({4, 2, 3 * 18}), f32({1, 18, 3 * 18}, -0.3, 0.3)},
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
       .inputs = {f32({3, 2, 4 * 20}), f32({1, 20, 4 * 20}, -0.3, 0.3)},
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
