#include "graph/passes/recompose.h"

#include <algorithm>
#include <cmath>

#include "graph/passes/recompose_parts.h"
#include "graph/passes/written_number.h"

namespace tensmith::graph {

namespace {

AttrMap one_attr(const char* name, AttrValue value) {
  AttrMap attrs;
  attrs.set(name, std::move(value));
  return attrs;
}

/// `Add(x, number)`: the other operand.
std::optional<Value> plus(const Rewriter& r, Value v, double number) {
  const Node* add = r.producer(v, "Add");
  return add && r.is_about(add->inputs[1], number) ? std::optional(add->inputs[0]) : std::nullopt;
}

/// Whether v is x * number, as a product or (for its inverse) a quotient.
bool is_multiple(const Rewriter& r, Value v, Value x, double number) {
  if (v == x) return number == 1;
  const Factors factors = factors_of(r, v);
  return factors.others == std::vector<Value>{x} && is_written_as(factors.number, number, r.type(x).dtype);
}

/// 0.5 x (1 + erf(x / sqrt 2)) and 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), whose factors may stand in any
/// order.
bool gelu(Rewriter& r, const Node& n) {
  const DType dtype = n.types[0].dtype;
  const Factors factors = factors_of(r, {n.id, 0});
  if (factors.others.size() != 2 || !is_written_as(factors.number, 0.5, dtype)) return false;
  for (size_t k = 0; k < 2; ++k) {
    const Value x = factors.others[k];
    const auto inner = plus(r, factors.others[1 - k], 1);
    if (!inner) continue;
    if (const Node* erf = r.producer(*inner, "Erf"); erf && is_multiple(r, erf->inputs[0], x, std::sqrt(0.5)))
      return r.replace(n, r.add(n, "Gelu", {x}));
    const Node* tanh = r.producer(*inner, "Tanh");
    if (!tanh) continue;
    const Factors argument = factors_of(r, tanh->inputs[0]);
    if (argument.others.size() != 1 || !is_written_as(argument.number, std::sqrt(2 / M_PI), dtype)) continue;
    const Node* sum = r.producer(argument.others[0], "Add");
    if (!sum) continue;
    const Value cubic = sum->inputs[0] == x ? sum->inputs[1] : sum->inputs[1] == x ? sum->inputs[0] : Value{};
    const Factors cube = factors_of(r, cubic);
    if (is_written_as(cube.number, 0.044715, dtype) && cube.others == std::vector<Value>(3, x))
      return r.replace(n, r.add(n, "Gelu", {x}, one_attr("approximate", std::string("tanh"))));
  }
  return false;
}

/// x sigmoid(k x)
bool swish(Rewriter& r, const Node& n) {
  const Factors factors = factors_of(r, {n.id, 0});
  if (factors.others.size() != 2 || factors.number != 1) return false;
  for (size_t k = 0; k < 2; ++k) {
    const Value x = factors.others[k];
    const Node* sigmoid = r.producer(factors.others[1 - k], "Sigmoid");
    if (!sigmoid || !r.single_use({sigmoid->id, 0})) continue;
    const Factors argument = factors_of(r, sigmoid->inputs[0]);
    if (argument.others != std::vector<Value>{x} || argument.number == 0) continue;
    return r.replace(n, r.add(n, "Swish", {x}, argument.number == 1 ? AttrMap() : one_attr("alpha", argument.number)));
  }
  return false;
}

/// Clip(x + 3, 0, 6): x
std::optional<Value> clipped_to_six(const Rewriter& r, Value v) {
  const Node* clip = r.producer(v, "Clip");
  if (!clip || clip->inputs.size() < 3 || !r.is_number(clip->inputs[1], 0) || !r.is_number(clip->inputs[2], 6))
    return std::nullopt;
  return plus(r, clip->inputs[0], 3);
}

/// x hard_sigmoid(x), or with Clip(x + 3, 0, 6) / 6
bool hard_swish(Rewriter& r, const Node& n) {
  const Factors factors = factors_of(r, {n.id, 0});
  if (factors.others.size() != 2) return false;
  for (size_t k = 0; k < 2; ++k) {
    const Value x = factors.others[k], gate = factors.others[1 - k];
    const Node* hard = r.producer(gate, "HardSigmoid");
    const bool by_operator = hard && hard->inputs[0] == x && factors.number == 1 &&
                             is_written_as(hard->attrs.get_float("alpha", 0.2), 1.0 / 6, kFloat32) &&
                             is_written_as(hard->attrs.get_float("beta", 0.5), 0.5, kFloat32);
    const auto clipped = clipped_to_six(r, gate);
    if (by_operator || (clipped && *clipped == x && is_written_as(factors.number, 1.0 / 6, n.types[0].dtype)))
      return r.replace(n, r.add(n, "HardSwish", {x}));
  }
  return false;
}

/// Clip(x + 3, 0, 6) / 6
bool hard_sigmoid(Rewriter& r, const Node& n) {
  const Factors factors = factors_of(r, {n.id, 0});
  if (factors.others.size() != 1 || !is_written_as(factors.number, 1.0 / 6, n.types[0].dtype)) return false;
  const auto x = clipped_to_six(r, factors.others[0]);
  if (!x) return false;
  AttrMap attrs = one_attr("alpha", 1.0 / 6);
  attrs.set("beta", 0.5);
  return r.replace(n, r.add(n, "HardSigmoid", {*x}, attrs));
}

/// x tanh(softplus(x))
bool mish(Rewriter& r, const Node& n) {
  const Factors factors = factors_of(r, {n.id, 0});
  if (factors.others.size() != 2 || factors.number != 1) return false;
  for (size_t k = 0; k < 2; ++k) {
    const Node* tanh = r.producer(factors.others[1 - k], "Tanh");
    const Node* softplus = tanh ? r.producer(tanh->inputs[0], "Softplus") : nullptr;
    if (softplus && softplus->inputs[0] == factors.others[k])
      return r.replace(n, r.add(n, "Mish", {factors.others[k]}));
  }
  return false;
}

/// log(1 + exp(x)); the operator does not overflow.
bool softplus(Rewriter& r, const Node& n) {
  const auto exponential = plus(r, n.inputs[0], 1);
  const Node* exp = exponential ? r.producer(*exponential, "Exp") : nullptr;
  return exp && r.replace(n, r.add(n, "Softplus", {exp->inputs[0]}));
}

/// 1 / (1 + exp(-x))
bool sigmoid(Rewriter& r, const Node& n) {
  const bool quotient = n.op->name == "Div";
  if (quotient && !r.is_number(n.inputs[0], 1)) return false;
  const auto exponential = plus(r, n.inputs[quotient ? 1 : 0], 1);
  const Node* exp = exponential ? r.producer(*exponential, "Exp") : nullptr;
  const Node* neg = exp ? r.producer(exp->inputs[0], "Neg") : nullptr;
  return neg && r.replace(n, r.add(n, "Sigmoid", {neg->inputs[0]}));
}

/// exp(x - max(x)) / sum(exp(x - max(x))) along one axis
bool softmax(Rewriter& r, const Node& n) {
  const Node* exp = r.producer(n.inputs[0], "Exp");
  const Node* sum = r.producer(n.inputs[1], "ReduceSum");
  const Node* difference = exp ? r.producer(exp->inputs[0], "Sub") : nullptr;
  const Node* max = difference ? r.producer(difference->inputs[1], "ReduceMax") : nullptr;
  if (!sum || !max || sum->inputs[0] != Value{exp->id, 0} || max->inputs[0] != difference->inputs[0]) return false;
  const auto axes = reduced_axes(r, *sum), other = reduced_axes(r, *max);
  if (!axes || axes != other || axes->size() != 1) return false;
  return r.replace(n, r.add(n, "Softmax", {difference->inputs[0]}, one_attr("axis", (*axes)[0])));
}

constexpr Rule kRules[] = {
    {"softplus", "Log", "log(1 + exp(x)) --> Softplus(x)", softplus},
    {"sigmoid-quotient", "Div", "1 / (1 + exp(-x)) --> Sigmoid(x)", sigmoid},
    {"sigmoid-reciprocal", "Reciprocal", "1 / (1 + exp(-x)) --> Sigmoid(x)", sigmoid},
    {"softmax", "Div", "exp(x - max(x)) / sum(exp(x - max(x))) --> Softmax(x)", softmax},
    {"gelu", "Mul", "0.5 x (1 + erf(x / sqrt 2)), or with tanh --> Gelu(x)", gelu},
    {"gelu-quotient", "Div", "the same with a division at the end", gelu},
    {"hard-swish", "Mul", "x clip(x + 3, 0, 6) / 6, x hard_sigmoid(x) --> HardSwish(x)", hard_swish},
    {"hard-swish-quotient", "Div", "the same with a division at the end", hard_swish},
    {"hard-sigmoid", "Mul", "clip(x + 3, 0, 6) / 6 --> HardSigmoid(x)", hard_sigmoid},
    {"hard-sigmoid-quotient", "Div", "the same with a division at the end", hard_sigmoid},
    {"swish", "Mul", "x sigmoid(k x) --> Swish(x, k)", swish},
    {"mish", "Mul", "x tanh(softplus(x)) --> Mish(x)", mish},
    {"layer-norm-scaled", "Mul", "(x - mean(x)) / sqrt(var(x) + e) * s [+ b] --> LayerNormalization(x, s, b)",
     layer_norm},
    {"rms-norm-scaled", "Mul", "x / sqrt(mean(x^2) + e) * s --> RMSNormalization(x, s)", rms_norm},
    {"layer-norm", "Div", "(x - mean(x)) / sqrt(var(x) + e) --> LayerNormalization(x, 1)", layer_norm_unscaled},
};

}  // namespace

std::span<const Rule> recompose_rules() { return kRules; }

int recompose(GraphEditor& edit, const PassOptions&) { return apply_rules(edit, kRules); }

}  // namespace tensmith::graph
