// One step of the optimizers of ai.onnx.preview.training, as arithmetic on tensors.
#include "graph/import/node_form.h"

namespace tensmith::graph {

namespace {

constexpr int64_t kAll = 1'000'000;
constexpr const char* kDomain = "ai.onnx.preview.training";

/// Short ways to write the arithmetic; numbers take the type of what they meet.
class Step {
 public:
  /// `kinds`: tensors for each parameter (itself, its gradient, its moments).
  Step(Adapting& c, size_t kinds) : c_(c), count_((c.form.inputs.size() - 2) / kinds) {
    if (c.form.inputs.size() < 2 + kinds || (c.form.inputs.size() - 2) % kinds != 0)
      throw Refused{"bad-arity", "inputs: expected R, T and " + std::to_string(kinds) + " tensors for each parameter",
                    "correct the model"};
  }
  size_t count() const { return count_; }
  Value rate() const { return c_.input(0); }
  Value turn() const { return c_.input(1); }
  Value tensor(size_t kind, size_t k) const { return c_.input(static_cast<int>(2 + kind * count_ + k)); }
  double attr(const char* name, double fallback) const { return c_.form.attrs.get_float(name, fallback); }

  Value op(const char* name, Value a, Value b) const { return c_.node(name, {a, b}); }
  Value op(const char* name, Value a, double b) const { return op(name, a, number(b, a)); }
  Value sqrt(Value a) const { return c_.node("Sqrt", {a}); }
  Value number(double value, Value like) const { return c_.scalar(value, c_.type(like).dtype); }
  /// The number of the turn in the type of the rate.
  Value real_turn() const {
    AttrMap to;
    to.set("to", c_.type(rate()).dtype);
    return c_.node("Cast", {turn()}, to);
  }
  /// `a` after the first turn, `b` in it.
  Value later(Value a, Value b) const {
    return c_.node("Where", {c_.node("Greater", {real_turn(), number(0, rate())}), a, b});
  }
  /// The gradient with the decay of weights.
  Value gradient(size_t k) const {
    return op("Add", op("Mul", tensor(0, k), attr("norm_coefficient", 0)), tensor(1, k));
  }
  /// new[kind][k] in the order of the operator's outputs.
  void finish(const std::vector<std::vector<Value>>& outputs) const {
    for (const std::vector<Value>& kind : outputs) c_.outputs.insert(c_.outputs.end(), kind.begin(), kind.end());
  }

 private:
  Adapting& c_;
  size_t count_;
};

void adagrad(Adapting& c) {
  const Step s(c, 3);
  const Value slowed = s.op("Add", s.op("Mul", s.real_turn(), s.attr("decay_factor", 0)), 1);
  const Value rate = s.op("Div", s.rate(), slowed);
  std::vector<Value> weights, sums;
  for (size_t k = 0; k < s.count(); ++k) {
    const Value g = s.gradient(k);
    sums.push_back(s.op("Add", s.tensor(2, k), s.op("Mul", g, g)));
    const Value scale = s.op("Add", s.sqrt(sums.back()), s.attr("epsilon", 1e-6));
    weights.push_back(s.op("Sub", s.tensor(0, k), s.op("Div", s.op("Mul", rate, g), scale)));
  }
  s.finish({weights, sums});
}

void momentum(Adapting& c) {
  const Step s(c, 3);
  const bool nesterov = c.form.attrs.get_string("mode", "standard") == "nesterov";
  const double alpha = s.attr("alpha", 0);
  const Value beta = s.later(s.number(s.attr("beta", 0), s.rate()), s.number(1, s.rate()));
  std::vector<Value> weights, speeds;
  for (size_t k = 0; k < s.count(); ++k) {
    const Value g = s.gradient(k);
    speeds.push_back(s.op("Add", s.op("Mul", s.tensor(2, k), alpha), s.op("Mul", g, beta)));
    const Value way = nesterov ? s.op("Add", g, s.op("Mul", speeds.back(), alpha)) : speeds.back();
    weights.push_back(s.op("Sub", s.tensor(0, k), s.op("Mul", way, s.rate())));
  }
  s.finish({weights, speeds});
}

void adam(Adapting& c) {
  const Step s(c, 4);
  const double alpha = s.attr("alpha", 0.9), beta = s.attr("beta", 0.999), after = s.attr("norm_coefficient_post", 0);
  const auto rest = [&](double base) {  // 1 - base^T
    return s.op("Sub", s.number(1, s.rate()), s.op("Pow", s.number(base, s.rate()), s.real_turn()));
  };
  const Value rate = s.later(s.op("Div", s.op("Mul", s.rate(), s.sqrt(rest(beta))), rest(alpha)), s.rate());
  std::vector<Value> weights, first, second;
  for (size_t k = 0; k < s.count(); ++k) {
    const Value g = s.gradient(k);
    first.push_back(s.op("Add", s.op("Mul", s.tensor(2, k), alpha), s.op("Mul", g, 1 - alpha)));
    second.push_back(s.op("Add", s.op("Mul", s.tensor(3, k), beta), s.op("Mul", s.op("Mul", g, g), 1 - beta)));
    const Value scale = s.op("Add", s.sqrt(second.back()), s.attr("epsilon", 1e-6));
    const Value moved = s.op("Sub", s.tensor(0, k), s.op("Div", s.op("Mul", rate, first.back()), scale));
    weights.push_back(s.op("Mul", moved, 1 - after));
  }
  s.finish({weights, first, second});
}

}  // namespace

std::vector<Adapter> training_adapters() {
  return {
      {"Adagrad", kDomain, 1, kAll, adagrad},
      {"Adam", kDomain, 1, kAll, adam},
      {"Momentum", kDomain, 1, kAll, momentum},
  };
}

}  // namespace tensmith::graph
