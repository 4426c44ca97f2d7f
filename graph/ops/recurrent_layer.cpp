#include <cmath>

#include "graph/ops/recurrence.h"
#include "graph/ops/refusal.h"

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

}  // namespace tensmith::graph::ops
