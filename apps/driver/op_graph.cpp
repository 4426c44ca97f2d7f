#include "apps/driver/op_graph.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "runtime/base/rng.h"

namespace tensmith {

namespace {

using graph::Value;
using Sizes = std::vector<int64_t>;
using Attributes = std::vector<std::pair<const char*, graph::AttrValue>>;

/// A graph in the making.
class OpBuilder {
 public:
  OpBuilder(graph::Graph& graph, const Sizes& sizes) : edit_(graph), sizes_(sizes) {}

  int64_t operator[](size_t k) const { return sizes_[k]; }
  Value input(const std::string& name, const Sizes& shape) {
    graph::TensorType type;
    type.dtype = kFloat32;
    for (const int64_t extent : shape) type.shape.push_back(Expr(extent));
    return edit_.add_input(name, std::move(type));
  }
  Value weight(const std::string& name, const Sizes& shape) {
    graph::Constant value = graph::Constant::allocate(kFloat32, shape);
    Rng rng(0, name);
    auto* data = static_cast<float*>(value.mutable_data());
    // About as large as trained ones, so that results stay of the size of the inputs.
    const double bound = 1 / std::sqrt(static_cast<double>(value.num_elements()) / static_cast<double>(shape[0]));
    for (int64_t k = 0; k < value.num_elements(); ++k) data[k] = static_cast<float>(rng.uniform(-bound, bound));
    return edit_.add_constant(std::move(value), name);
  }
  Value ints(const Sizes& values) {
    return edit_.add_constant(graph::Constant::from_ints(kInt64, {static_cast<int64_t>(values.size())}, values));
  }
  Value scalar(double value) { return edit_.add_constant(graph::Constant::from_floats(kFloat32, {}, {&value, 1})); }
  Value node(const char* op, std::vector<Value> inputs, const Attributes& attributes = {}) {
    graph::AttrMap attrs;
    for (const auto& [name, value] : attributes) attrs.set(name, value);
    return {edit_.add(op, std::move(inputs), std::move(attrs)), 0};
  }
  void output(Value value) { edit_.set_outputs({value}, {"y"}); }

 private:
  graph::GraphEditor edit_;
  const Sizes& sizes_;
};

Attributes window(int64_t kernel, int64_t stride, int64_t pad) {
  return {
      {"kernel_shape", Sizes{kernel, kernel}}, {"strides", Sizes{stride, stride}}, {"pads", Sizes{pad, pad, pad, pad}}};
}

Value convolution(OpBuilder& b, int64_t groups) {
  Attributes attrs = window(b[5], b[6], b[7]);
  attrs.emplace_back("group", groups);
  return b.node("Conv", {b.input("x", {b[0], b[1], b[2], b[3]}), b.weight("w", {b[4], b[1] / groups, b[5], b[5]})},
                attrs);
}

Value attention(OpBuilder& b) {
  const Sizes shape{b[0], b[1], b[2]};
  const Value q = b.input("q", shape), k = b.input("k", shape), v = b.input("v", shape);
  const Value turned = b.node("Transpose", {k}, {{"perm", Sizes{0, 2, 1}}});
  const Value scores =
      b.node("Mul", {b.node("MatMul", {q, turned}), b.scalar(1 / std::sqrt(static_cast<double>(b[2])))});
  return b.node("MatMul", {b.node("Softmax", {scores}, {{"axis", int64_t{-1}}}), v});
}

Value chain(OpBuilder& b) {
  const Value x = b.input("x", {b[0], b[1]}), other = b.input("z", {b[0], b[1]});
  const Value gate = b.node("Sigmoid", {b.node("Add", {x, b.weight("bias", {b[1]})})});
  return b.node("Mul", {gate, b.node("Tanh", {other})});
}

struct Kind {
  const char* name;
  const char* sizes;
  size_t count;
  const char* doc;
  Value (*make)(OpBuilder&);
};
const Kind kKinds[] = {
    {"matmul", "MxNxK", 3, "rows by a constant matrix",
     [](OpBuilder& b) {
       return b.node("MatMul", {b.input("x", {b[0], b[2]}), b.weight("w", {b[2], b[1]})});
     }},
    {"batch_matmul", "BxMxNxK", 4, "two inputs, a product for each of the batch",
     [](OpBuilder& b) {
       return b.node("MatMul", {b.input("x", {b[0], b[1], b[3]}), b.input("z", {b[0], b[3], b[2]})});
     }},
    {"conv2d", "NxCxHxWxOxKxSxP", 8, "O filters of KxK with stride S and padding P",
     [](OpBuilder& b) { return convolution(b, 1); }},
    {"grouped_conv2d", "NxCxHxWxOxKxSxPxG", 9, "the same in G groups",
     [](OpBuilder& b) { return convolution(b, b[8]); }},
    {"depthwise_conv2d", "NxCxHxWxKxSxP", 7, "one filter for each channel",
     [](OpBuilder& b) {
       Attributes attrs = window(b[4], b[5], b[6]);
       attrs.emplace_back("group", b[1]);
       return b.node("Conv", {b.input("x", {b[0], b[1], b[2], b[3]}), b.weight("w", {b[1], 1, b[4], b[4]})}, attrs);
     }},
    {"max_pool2d", "NxCxHxWxKxSxP", 7, "maximum of windows",
     [](OpBuilder& b) {
       return b.node("MaxPool", {b.input("x", {b[0], b[1], b[2], b[3]})}, window(b[4], b[5], b[6]));
     }},
    {"average_pool2d", "NxCxHxWxKxSxP", 7, "mean of windows",
     [](OpBuilder& b) {
       return b.node("AveragePool", {b.input("x", {b[0], b[1], b[2], b[3]})}, window(b[4], b[5], b[6]));
     }},
    {"softmax", "RxC", 2, "over C",
     [](OpBuilder& b) {
       return b.node("Softmax", {b.input("x", {b[0], b[1]})}, {{"axis", int64_t{-1}}});
     }},
    {"layer_norm", "RxC", 2, "over C, with scale and shift",
     [](OpBuilder& b) {
       return b.node("LayerNormalization",
                     {b.input("x", {b[0], b[1]}), b.weight("scale", {b[1]}), b.weight("shift", {b[1]})});
     }},
    {"reduce_sum", "RxC", 2, "over C",
     [](OpBuilder& b) {
       return b.node("ReduceSum", {b.input("x", {b[0], b[1]}), b.ints({1})});
     }},
    {"reduce_rows", "RxC", 2, "sum over R",
     [](OpBuilder& b) {
       return b.node("ReduceSum", {b.input("x", {b[0], b[1]}), b.ints({0})});
     }},
    {"attention", "HxSxD", 3, "H heads, S positions of size D, without mask", attention},
    {"gated_chain", "RxC", 2, "sigmoid(x + bias) * tanh(z)", chain},
    {"transpose", "RxC", 2, "columns to rows",
     [](OpBuilder& b) {
       return b.node("Transpose", {b.input("x", {b[0], b[1]})}, {{"perm", Sizes{1, 0}}});
     }},
};

Result<Sizes> parse_sizes(std::string_view text) {
  Sizes sizes;
  size_t at = 0;
  while (at <= text.size()) {
    const size_t end = std::min(text.find('x', at), text.size());
    int64_t value = 0;
    bool right = end > at && end - at <= 9;
    for (size_t k = at; k < end; ++k) {
      right = right && text[k] >= '0' && text[k] <= '9';
      value = value * 10 + (text[k] - '0');
    }
    if (!right) return Failure{"bad-op", "sizes such as 512x768, got '" + std::string(text) + "'"};
    sizes.push_back(value);
    at = end + 1;
  }
  return sizes;
}

}  // namespace

std::string op_kinds() {
  std::string text;
  for (const Kind& kind : kKinds) text += std::string("  ") + kind.name + ":" + kind.sizes + "  " + kind.doc + "\n";
  return text;
}

Result<graph::Graph> graph_of_op(std::string_view text) {
  const auto refuse = [&](const std::string& what) {
    return Failure{"bad-op", "operator '" + std::string(text) + "': expected " + what};
  };
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  for (const Kind& kind : kKinds) {
    if (name != kind.name) continue;
    std::string_view rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
    const size_t type_at = rest.find(':');
    const std::string_view type = type_at == std::string_view::npos ? "f32" : rest.substr(type_at + 1);
    if (type != "f32") return refuse("the type f32, got '" + std::string(type) + "'");
    const Result<Sizes> sizes = parse_sizes(rest.substr(0, type_at));
    if (!sizes) return refuse(sizes.failure().message);
    if (sizes->size() != kind.count)
      return refuse(std::to_string(kind.count) + " sizes, " + kind.sizes + ", got " + std::to_string(sizes->size()));
    // Only padding (P) may be nothing; no single tensor of an operator has more elements than the sizes' product.
    const std::string_view letters = kind.sizes;
    double product = 1;
    for (size_t k = 0; k < kind.count; ++k) {
      const int64_t size = (*sizes)[k];
      if (size < 1 && letters[2 * k] != 'P') return refuse("sizes from 1 on, got " + std::to_string(size));
      product *= static_cast<double>(std::max<int64_t>(1, size));
    }
    constexpr double kMostElements = 1e13;
    if (product > kMostElements) return refuse("sizes whose product is at most 1e13");
    graph::Graph graph;
    graph.name = std::string(name);
    try {
      OpBuilder builder(graph, *sizes);
      builder.output(kind.make(builder));
    } catch (const UserError& e) {
      return refuse(std::string("sizes that fit together: ") + e.message());
    }
    return graph;
  }
  return refuse("KIND:SIZES with one of these kinds:\n" + op_kinds());
}

}  // namespace tensmith
