#include "graph/passes/fold_batch_norm.h"

#include <algorithm>
#include <cmath>

#include "graph/element.h"

namespace tensmith::graph {

namespace {

using Numbers = std::vector<double>;

std::optional<Numbers> numbers(const Rewriter& r, Value v) {
  const Constant* c = r.constant(v);
  if (!c) return std::nullopt;
  Numbers values(static_cast<size_t>(c->num_elements()));
  for (size_t k = 0; k < values.size(); ++k) values[k] = c->float_at(static_cast<int64_t>(k));
  return values;
}

/// One number for each of `channels`, from a constant that broadcasts over all axes of a tensor of that rank but
/// axis 1.
std::optional<Numbers> by_channel(const Rewriter& r, Value v, int rank, int64_t channels) {
  const Constant* c = r.constant(v);
  if (!c) return std::nullopt;
  const auto own = static_cast<int>(c->shape().size());
  if (own > rank) return std::nullopt;
  for (int k = 0; k < own; ++k) {
    const int axis = rank - own + k;
    if (c->shape()[static_cast<size_t>(k)] != 1 && !(axis == 1 && c->shape()[static_cast<size_t>(k)] == channels))
      return std::nullopt;
  }
  auto values = numbers(r, v);
  if (values->size() == 1) values->assign(static_cast<size_t>(channels), (*values)[0]);
  return values->size() == static_cast<size_t>(channels) ? values : std::nullopt;
}

/// Weights times a factor for each output channel: element k belongs to channel `k / inner % factors.size()`.
Constant scaled(const Constant& weights, const Numbers& factors, int64_t inner) {
  Constant result = Constant::allocate(weights.dtype(), weights.shape());
  const int64_t count = weights.num_elements(), channels = static_cast<int64_t>(factors.size());
  with_element_type(weights.dtype(), [&]<typename E>(E) {
    auto* out = static_cast<typename E::Stored*>(result.mutable_data());
    for (int64_t first = 0, channel = 0; first < count;
         first += inner, channel = channel + 1 == channels ? 0 : channel + 1)
      for (int64_t k = first; k < first + inner; ++k)
        out[k] = E::from_float(E::to_float(load_element<E>(weights.data(), k)) * factors[channel]);
  });
  return result;
}

/// A convolution or product that scales its output channels when its weights are scaled.
struct Anchor {
  const Node* node = nullptr;
  int64_t channels = 0;
  int64_t inner = 1;  ///< see `scaled`
  Numbers bias;       ///< zeros when it has none
};

/// The anchor in front of a value that nothing else reads.
std::optional<Anchor> anchor_of(const Rewriter& r, Value v) {
  if (!r.single_use(v)) return std::nullopt;
  Anchor anchor;
  const Node* conv = r.producer(v, "Conv");
  const Node* transposed = conv ? nullptr : r.producer(v, "ConvTranspose");
  anchor.node = conv ? conv : transposed;
  if (!anchor.node) return std::nullopt;
  const Constant* weights = r.constant(anchor.node->inputs[1]);
  if (!weights || !weights->dtype().is_float() || weights->num_elements() == 0) return std::nullopt;
  const std::vector<int64_t>& shape = weights->shape();
  int64_t kernel = 1;
  for (size_t k = 2; k < shape.size(); ++k) kernel *= shape[k];
  // Conv: [out, in / group, ...]; ConvTranspose: [in, out / group, ...], which has a factor for each channel only
  // without groups.
  if (transposed && transposed->attrs.get_int("group", 1) != 1) return std::nullopt;
  anchor.channels = conv ? shape[0] : shape[1];
  anchor.inner = conv ? kernel * shape[1] : kernel;
  anchor.bias.assign(static_cast<size_t>(anchor.channels), 0.0);
  if (anchor.node->inputs.size() > 2) {
    const auto bias = numbers(r, anchor.node->inputs[2]);
    if (!bias) return std::nullopt;
    anchor.bias = *bias;
  }
  return anchor;
}

/// The anchor with weights * factor and bias * factor + term, in the place of `n`.
bool absorb(Rewriter& r, const Node& n, const Anchor& anchor, const Numbers& factor, const Numbers& term) {
  const Node& node = *anchor.node;
  const Constant& weights = *r.constant(node.inputs[1]);
  Numbers bias(factor.size());
  for (size_t c = 0; c < bias.size(); ++c) bias[c] = anchor.bias[c] * factor[c] + term[c];
  const bool unchanged = std::all_of(factor.begin(), factor.end(), [](double f) { return f == 1; });
  const Value w = unchanged
                      ? node.inputs[1]
                      : r.edit.add_constant(scaled(weights, factor, anchor.inner), r.graph.value_name(node.inputs[1]));
  const Value b =
      r.edit.add_constant(Constant::from_floats(weights.dtype(), {anchor.channels}, bias), node.name + ".bias");
  return r.replace(n, r.add(node, node.op->name, {node.inputs[0], w, b}, AttrMap(node.attrs)));
}

/// What BatchNormalization multiplies with and adds, for each channel.
std::optional<std::pair<Numbers, Numbers>> scale_and_shift(const Rewriter& r, const Node& n) {
  if (n.types.size() != 1 || n.attrs.get_int("training_mode", 0) != 0) return std::nullopt;
  const auto scale = numbers(r, n.inputs[1]), shift = numbers(r, n.inputs[2]), mean = numbers(r, n.inputs[3]),
             variance = numbers(r, n.inputs[4]);
  if (!scale || !shift || !mean || !variance) return std::nullopt;
  Numbers factor(scale->size()), term(scale->size());
  for (size_t c = 0; c < factor.size(); ++c) {
    factor[c] = (*scale)[c] / std::sqrt((*variance)[c] + n.attrs.get_float("epsilon", 1e-5));
    term[c] = (*shift)[c] - (*mean)[c] * factor[c];
  }
  return std::pair{factor, term};
}

bool batch_norm_into_anchor(Rewriter& r, const Node& n) {
  const auto norm = scale_and_shift(r, n);
  const auto anchor = norm ? anchor_of(r, n.inputs[0]) : std::nullopt;
  return anchor && absorb(r, n, *anchor, norm->first, norm->second);
}

bool batch_norm_to_product(Rewriter& r, const Node& n) {
  const auto norm = scale_and_shift(r, n);
  if (!norm) return false;
  std::vector<int64_t> shape(static_cast<size_t>(std::max(n.types[0].rank() - 1, 1)), 1);
  shape[0] = static_cast<int64_t>(norm->first.size());
  const auto constant = [&](const Numbers& values, const char* suffix) {
    return r.edit.add_constant(Constant::from_floats(n.types[0].dtype, shape, values), n.name + suffix);
  };
  return r.replace(
      n, r.add(n, "Add",
               {r.add(n, "Mul", {n.inputs[0], constant(norm->first, ".scale")}), constant(norm->second, ".shift")}));
}

/// Conv(x) * c or Conv(x) + c with one number for each channel.
template <bool kFactor>
bool constant_into_anchor(Rewriter& r, const Node& n) {
  if (!n.types[0].dtype.is_float()) return false;
  const auto anchor = anchor_of(r, n.inputs[0]);
  const auto values = anchor ? by_channel(r, n.inputs[1], n.types[0].rank(), anchor->channels) : std::nullopt;
  if (!values) return false;
  const Numbers neutral(values->size(), kFactor ? 0.0 : 1.0);
  return kFactor ? absorb(r, n, *anchor, *values, neutral) : absorb(r, n, *anchor, neutral, *values);
}

constexpr Rule kRules[] = {
    {"batch-norm-into-conv", "BatchNormalization", "BatchNormalization(Conv(x, w, b)) --> Conv(x, w', b')",
     batch_norm_into_anchor},
    {"batch-norm-to-product", "BatchNormalization", "BatchNormalization(x) --> x * scale + shift",
     batch_norm_to_product},
    {"mul-into-conv", "Mul", "Conv(x, w, b) * c --> Conv(x, w', b')", constant_into_anchor<true>},
    {"add-into-conv", "Add", "Conv(x, w, b) + c --> Conv(x, w, b')", constant_into_anchor<false>},
};

}  // namespace

std::span<const Rule> fold_batch_norm_rules() { return kRules; }

int fold_batch_norm(GraphEditor& edit, const PassOptions&) { return apply_rules(edit, kRules); }

}  // namespace tensmith::graph
