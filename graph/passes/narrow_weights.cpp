#include "graph/passes/narrow_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "graph/element.h"

namespace tensmith::graph {

namespace {

/// The largest magnitude of integers that are looked for: differences of two unsigned bytes.
constexpr int kMostLevels = 255;
/// Two roundings when weights are scaled back, and two of the number that is found for a column.
constexpr float kSlack = 0x1p-21F;
/// A sum is so much larger before it is scaled: by less than this it could overflow where the product does not.
constexpr float kSmallestScale = 0x1p-24F;
/// Shorter columns may be multiples of a number by chance.
constexpr int64_t kFewestSteps = 16;

// Units: bytes a cycle and core from L3 (products of 1 to 8 rows with 42 MB of weights on an AVX-512 core: 8.2 cycles a
// line).
constexpr double kFarBytes = 8;
// Of arithmetic and reading, the shorter one hides but for this share (the same weights as float32 and as int8 with 1
// to 32 rows: within 8 % of the measured times, 3.6 times as fast at one row, even at 16).
constexpr double kNotHidden = 0.25;
// Of L2, so much is left to weights from one run to the next.
constexpr double kShareOfL2 = 0.75;

/// One column of weights as integers times a number; false when there is none. All zeros: times one.
bool column_as_integers(const std::vector<float>& column, std::vector<int16_t>* integers, float* scale) {
  float largest = 0;
  for (const float w : column) {
    if (!std::isfinite(w)) return false;
    largest = std::max(largest, std::fabs(w));
  }
  if (largest == 0) {
    std::fill(integers->begin(), integers->end(), int16_t{0});
    *scale = 1;
    return true;
  }
  for (int levels = 1; levels <= kMostLevels; ++levels) {
    const float step = largest / static_cast<float>(levels);
    if (!(step >= kSmallestScale)) return false;
    bool fits = true;
    for (size_t k = 0; k < column.size() && fits; ++k) {
      const float whole = std::nearbyint(column[k] / step);
      fits = std::fabs(column[k] - whole * step) <= kSlack * std::fabs(column[k]);
      (*integers)[k] = static_cast<int16_t>(whole);
    }
    *scale = step;
    if (fits) return true;
  }
  return false;
}

Constant with_type(const std::vector<int16_t>& values, DType type, const std::vector<int64_t>& shape) {
  Constant result = Constant::allocate(type, shape);
  if (type == kInt16) std::memcpy(result.mutable_data(), values.data(), values.size() * sizeof(int16_t));
  else std::copy(values.begin(), values.end(), static_cast<int8_t*>(result.mutable_data()));
  return result;
}

std::optional<NarrowWeights> as_integers(const Constant& weights) {
  const int64_t steps = weights.shape()[0], columns = weights.shape()[1];
  std::vector<int16_t> values, integers(static_cast<size_t>(steps));
  std::vector<float> column(static_cast<size_t>(steps)), scales(static_cast<size_t>(columns));
  bool bytes = true;
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t k = 0; k < steps; ++k)
      std::memcpy(&column[static_cast<size_t>(k)],
                  static_cast<const char*>(weights.data()) + (k * columns + c) * int64_t{sizeof(float)}, sizeof(float));
    if (!column_as_integers(column, &integers, &scales[static_cast<size_t>(c)])) return std::nullopt;
    values.resize(static_cast<size_t>(steps * columns));
    for (int64_t k = 0; k < steps; ++k) {
      const int16_t value = integers[static_cast<size_t>(k)];
      bytes = bytes && value >= -128 && value <= 127;
      values[static_cast<size_t>(k * columns + c)] = value;
    }
  }
  Constant scale = Constant::allocate(kFloat32, {columns});
  std::memcpy(scale.mutable_data(), scales.data(), scales.size() * sizeof(float));
  return NarrowWeights{with_type(values, bytes ? kInt8 : kInt16, weights.shape()), std::move(scale)};
}

/// The weights in a type of 16-bit floats when that holds each of them exactly.
std::optional<NarrowWeights> as_floats(const Constant& weights, DType type) {
  const auto count = static_cast<size_t>(weights.num_elements());
  std::optional<NarrowWeights> result;
  with_element_type(type, [&]<typename E>(E) {
    if constexpr (sizeof(typename E::Stored) == 2 && E::kFloat) {
      const auto narrowed = [&](size_t k) {
        float w;
        std::memcpy(&w, static_cast<const char*>(weights.data()) + k * sizeof w, sizeof w);
        const auto stored = E::from_float(static_cast<double>(w));
        return std::pair(stored, static_cast<float>(E::to_float(stored)) == w);
      };
      // Once without memory, so that other weights cost nothing.
      for (size_t k = 0; k < count; ++k)
        if (!narrowed(k).second) return;
      Constant values = Constant::allocate(type, weights.shape());
      for (size_t k = 0; k < count; ++k) static_cast<typename E::Stored*>(values.mutable_data())[k] = narrowed(k).first;
      result = NarrowWeights{std::move(values), {}};
    }
  });
  return result;
}

/// A product of many rows with weights of its own.
struct Product {
  NodeId node = -1;
  Value weights;
  int64_t rows = 1;
};

std::optional<Product> product_of(const Graph& graph, const Node& n) {
  if (n.op->name != "MatMul" || !n.op->domain.empty() || n.types[0].dtype != kFloat32 || !n.types[0].is_static())
    return std::nullopt;
  const Constant* weights = graph.constant(n.inputs[1]);
  if (!weights || weights->shape().size() != 2 || graph.constant(n.inputs[0])) return std::nullopt;
  const TensorType& x = graph.type(n.inputs[0]);
  Product product{n.id, n.inputs[1], 1};
  for (int d = 0; d + 1 < x.rank(); ++d) product.rows *= x.static_shape()[static_cast<size_t>(d)];
  return product;
}

/// Whether code for the target converts such vectors by instructions of its own.
bool widens_vectors(const Target& target, DType type) {
  return type != kFloat16 || target.arch == "aarch64" || target.has("f16c");
}

}  // namespace

std::optional<NarrowWeights> narrow(const Constant& weights) {
  if (weights.dtype() != kFloat32 || weights.shape().size() != 2 || weights.shape()[0] < kFewestSteps ||
      weights.shape()[1] == 0)
    return std::nullopt;
  if (auto integers = as_integers(weights)) return integers;
  if (auto half = as_floats(weights, kFloat16)) return half;
  return as_floats(weights, kBFloat16);
}

double cycles_of_weights(int64_t rows, DType type, const Target& target) {
  const int lanes = std::max(1, target.lanes(4)), ports = std::max(1, target.fma_ports);
  const double reading = static_cast<double>(lanes * type.bytes()) / kFarBytes;
  // Each tile of rows widens anew, in two instructions (three where bytes become words first). Tiles of two vectors
  // leave some registers to operands.
  const int64_t tile = std::max(1, (target.vector_registers - 4) / 2), tiles = (rows + tile - 1) / tile;
  const double widening = type == kFloat32 ? 0 : type.bytes() == 1 && target.arch == "aarch64" ? 3 : 2;
  const double arithmetic = (static_cast<double>(rows) + widening * static_cast<double>(tiles)) / ports;
  return std::max(arithmetic, reading) + kNotHidden * std::min(arithmetic, reading);
}

int narrow_weights(GraphEditor& edit, const PassOptions& options) {
  if (!options.target) return 0;
  const Target& target = *options.target;
  const Graph& graph = edit.graph();
  std::vector<Product> products;
  std::map<const void*, int64_t> sizes;  // what lies in memory once counts once
  for (const NodeId id : graph.topological_order()) {
    if (const auto product = product_of(graph, graph.node(id))) products.push_back(*product);
    if (graph.node(id).op->fusion != FusionKind::kContraction) continue;
    for (const Value& input : graph.node(id).inputs)
      if (const Constant* weights = input.given() ? graph.constant(input) : nullptr)
        sizes[weights->data()] = weights->num_bytes();
  }
  int64_t bytes = 0;
  for (const auto& [data, size] : sizes) bytes += size;
  if (static_cast<double>(bytes) <= kShareOfL2 * static_cast<double>(target.l2_bytes)) return 0;
  Rewriter r(edit);
  std::map<NodeId, std::optional<NarrowWeights>> known;
  int count = 0;
  for (const Product& product : products) {
    const auto is_faster = [&](DType type) {
      return cycles_of_weights(product.rows, type, target) < cycles_of_weights(product.rows, kFloat32, target);
    };
    if (!is_faster(kInt8) && !is_faster(kInt16)) continue;
    const auto [entry, fresh] = known.try_emplace(product.weights.node);
    const std::string name = graph.value_name(product.weights);
    if (fresh) entry->second = narrow(*graph.constant(product.weights));
    const std::optional<NarrowWeights>& found = entry->second;
    if (!found || !is_faster(found->values.dtype()) || !widens_vectors(target, found->values.dtype())) continue;
    const Node& n = graph.node(product.node);
    AttrMap attrs;
    attrs.set("to", kFloat32);
    Value y = r.add(n, "MatMul", {n.inputs[0], r.add(n, "Cast", {edit.add_constant(found->values, name)}, attrs)});
    if (found->scale) y = r.add(n, "Mul", {y, edit.add_constant(found->scale, name + ".scale")});
    count += r.replace(n, y) ? 1 : 0;
  }
  return count;
}

}  // namespace tensmith::graph
