#include "graph/ops/recurrent_activation.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/refusal.h"

namespace tensmith::graph::ops {

namespace {

struct Row {
  const char* name;
  bool has_alpha, has_beta;
  double alpha, beta;  // defaults
};
constexpr Row kRows[] = {
    {"affine", true, true, 1, 0},           {"elu", true, false, 1, 0},
    {"hardsigmoid", true, true, 0.2, 0.5},  {"leakyrelu", true, false, 0.01, 0},
    {"relu", false, false, 0, 0},           {"scaledtanh", true, true, 1, 1},
    {"sigmoid", false, false, 0, 0},        {"softplus", false, false, 0, 0},
    {"softsign", false, false, 0, 0},       {"tanh", false, false, 0, 0},
    {"thresholdedrelu", true, false, 1, 0},
};

}  // namespace

Result<std::vector<RecurrentActivation>> recurrent_activations(const AttrMap& attrs,
                                                               const std::vector<std::string>& defaults,
                                                               int directions) {
  std::vector<std::string> names = attrs.get_strings("activations");
  if (names.empty())
    for (int k = 0; k < directions; ++k) names.insert(names.end(), defaults.begin(), defaults.end());
  if (names.size() != defaults.size() * static_cast<size_t>(directions))
    return refuse("bad-attribute") << "attribute activations: expected "
                                   << defaults.size() * static_cast<size_t>(directions) << " names, got "
                                   << names.size();
  const std::vector<double> alphas = attrs.get_floats("activation_alpha"), betas = attrs.get_floats("activation_beta");
  size_t next_alpha = 0, next_beta = 0;
  std::vector<RecurrentActivation> result;
  for (std::string name : names) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char ch) { return static_cast<char>(std::tolower(ch)); });
    const auto row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return name == r.name; });
    if (row == std::end(kRows))
      return refuse("bad-attribute") << "attribute activations: expected a known function, got '" << name << "'";
    RecurrentActivation activation{name, row->alpha, row->beta};
    if (row->has_alpha && next_alpha < alphas.size()) activation.alpha = alphas[next_alpha++];
    if (row->has_beta && next_beta < betas.size()) activation.beta = betas[next_beta++];
    result.push_back(std::move(activation));
  }
  return result;
}

Expr apply(const RecurrentActivation& f, const Expr& value) {
  const auto c = [&](double number) { return constant_like(value, number); };
  if (f.name == "sigmoid") return call(Intrinsic::kSigmoid, {value});
  if (f.name == "tanh") return call(Intrinsic::kTanh, {value});
  if (f.name == "relu") return max(value, c(0));
  if (f.name == "affine") return value * c(f.alpha) + c(f.beta);
  if (f.name == "scaledtanh") return call(Intrinsic::kTanh, {value * c(f.beta)}) * c(f.alpha);
  if (f.name == "hardsigmoid") return max(min(value * c(f.alpha) + c(f.beta), c(1)), c(0));
  if (f.name == "softplus") return softplus(value);
  return with_value("x", value, [&](const Expr& x) {
    if (f.name == "leakyrelu") return select(x >= c(0), x, x * c(f.alpha));
    if (f.name == "thresholdedrelu") return select(x >= c(f.alpha), x, c(0));
    if (f.name == "elu") return select(x >= c(0), x, expm1(x) * c(f.alpha));
    return x / (c(1) + call(Intrinsic::kAbs, {x}));  // softsign
  });
}

double apply(const RecurrentActivation& f, double x) {
  if (f.name == "sigmoid") return 1 / (1 + std::exp(-x));
  if (f.name == "tanh") return std::tanh(x);
  if (f.name == "relu") return std::max(x, 0.0);
  if (f.name == "affine") return f.alpha * x + f.beta;
  if (f.name == "scaledtanh") return f.alpha * std::tanh(f.beta * x);
  if (f.name == "hardsigmoid") return std::max(0.0, std::min(1.0, f.alpha * x + f.beta));
  if (f.name == "softplus") return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
  if (f.name == "leakyrelu") return x >= 0 ? x : f.alpha * x;
  if (f.name == "thresholdedrelu") return x >= f.alpha ? x : 0;
  if (f.name == "elu") return x >= 0 ? x : f.alpha * std::expm1(x);
  return x / (1 + std::fabs(x));
}

}  // namespace tensmith::graph::ops
