#include "graph/passes/merge_products.h"

#include <algorithm>
#include <cmath>

#include "graph/constant_math.h"

namespace tensmith::graph {

namespace {

/// A product of `x` with weights of its own, and the term behind it, which may be shared: it is small.
struct Product {
  const Node* node = nullptr;
  Value weights, bias;  ///< bias: of the convolution, or the operand of the Add behind a MatMul; may be null
  const Node* add = nullptr;
  int64_t channels = 0;
  Value result() const { return {add ? add->id : node->id, 0}; }
};

bool owns(const Rewriter& r, Value v) { return r.constant(v) && r.single_use(v); }

/// A constant that is one number for each of `channels` along the last axis.
bool is_row(const Constant& c, int64_t channels) {
  return c.num_elements() == channels && !c.shape().empty() && c.shape().back() == channels;
}

std::optional<Product> matmul_of(const Rewriter& r, Value x, const Node& n) {
  Product p{&n, n.inputs[1], {}, nullptr, 0};
  if (n.inputs[0] != x || n.inputs[1] == x || !owns(r, p.weights) || n.types[0].rank() < 2) return std::nullopt;
  const Constant& weights = *r.constant(p.weights);
  if (weights.shape().size() != 2 || !weights.dtype().is_float()) return std::nullopt;
  p.channels = weights.shape()[1];
  if (const Node* add = r.only_user({n.id, 0}, "Add")) {
    const Value other = add->inputs[add->inputs[0] == Value{n.id, 0} ? 1 : 0];
    if (r.constant(other) && is_row(*r.constant(other), p.channels) && r.constant(other)->dtype() == weights.dtype() &&
        same_type(add->types[0], n.types[0])) {
      p.add = add;
      p.bias = other;
    }
  }
  return p;
}

std::optional<Product> conv_of(const Rewriter& r, Value x, const Node& n) {
  Product p{&n, n.inputs[1], n.inputs.size() > 2 ? n.inputs[2] : Value{}, nullptr, 0};
  if (n.inputs[0] != x || !owns(r, p.weights) || n.attrs.get_int("group", 1) != 1) return std::nullopt;
  const Constant& weights = *r.constant(p.weights);
  p.channels = weights.shape()[0];
  for (size_t d = 2; d < weights.shape().size(); ++d)
    if (weights.shape()[d] != 1) return std::nullopt;
  if (p.bias.given() && !r.constant(p.bias)) return std::nullopt;
  return p;
}

/// Whether parts of a larger result serve as well as the result by itself: its readers do not join it with others, and
/// it is not the caller's.
bool can_be_part(const Rewriter& r, const Product& p) {
  for (const Graph::Use& use : r.graph.uses(p.result())) {
    if (use.node < 0) return false;
    const Node& reader = r.graph.node(use.node);
    if (reader.op->name == "Concat") return false;
    // A convolution's activation goes into its kernel; behind a part it would be a pass of its own.
    if (p.node->op->name == "Conv" && reader.op->fusion == FusionKind::kElementwise) return false;
  }
  return !r.graph.uses(p.result()).empty();
}

bool same_kind(const Product& a, const Product& b) {
  if (a.node->op != b.node->op || a.bias.given() != b.bias.given()) return false;
  const auto &x = a.node->attrs.all(), &y = b.node->attrs.all();
  return a.node->types[0].dtype == b.node->types[0].dtype && a.node->types[0].rank() == b.node->types[0].rank() &&
         (a.node->op->name != "Conv" ||
          (x.size() == y.size() && a.node->attrs.get_ints("strides") == b.node->attrs.get_ints("strides") &&
           a.node->attrs.get_ints("pads") == b.node->attrs.get_ints("pads") &&
           a.node->attrs.get_string("auto_pad", "NOTSET") == b.node->attrs.get_string("auto_pad", "NOTSET")));
}

ChoiceSite site_of(const Rewriter& r, Value x, const std::vector<Product>& parts) {
  std::string name = "products of " + to_string(r.type(x)) + " with";
  for (const Product& part : parts) name += " " + std::to_string(part.channels);
  return {name + " columns", {"merged", "apart"}, 0};
}

Constant flat(const Constant& c) { return c.with_shape({c.num_elements()}); }

bool merge(Rewriter& r, Value x, const std::vector<Product>& parts) {
  const bool conv = parts[0].node->op->name == "Conv";
  const NodeId before = r.graph.end_id();
  // What was added for nothing goes away again, readers first.
  const auto give_up = [&] {
    for (NodeId made = r.graph.end_id() - 1; made >= before; --made) r.erase_unused(made);
    return false;
  };
  const Node& first = *parts[0].node;
  std::vector<const Constant*> weights, biases;
  std::vector<Constant> rows;
  std::vector<int64_t> sizes;
  rows.reserve(parts.size());
  for (const Product& p : parts) {
    weights.push_back(r.constant(p.weights));
    sizes.push_back(p.channels);
    if (p.bias.given()) {
      rows.push_back(flat(*r.constant(p.bias)));
      biases.push_back(&rows.back());
    }
  }
  const Value w = r.edit.add_constant(concatenate(weights, conv ? 0 : 1), first.name + ".weights");
  const Value b = biases.empty() ? Value{} : r.edit.add_constant(concatenate(biases, 0), first.name + ".bias");
  Value y = conv ? r.add(first, "Conv", b.given() ? std::vector<Value>{x, w, b} : std::vector<Value>{x, w},
                         AttrMap(first.attrs))
                 : r.add(first, "MatMul", {x, w});
  if (!conv && b.given() && y.given()) y = r.add(first, "Add", {y, b});
  if (!y.given()) return give_up();
  AttrMap attrs;
  attrs.set("axis", int64_t{conv ? 1 : r.type(y).rank() - 1});
  const auto split = r.edit.try_add(*find_op("Split"), {y, r.add_ints(first, sizes)}, attrs, first.name + ".parts",
                                    static_cast<int>(parts.size()));
  if (!split) return give_up();
  for (size_t k = 0; k < parts.size(); ++k)
    if (!same_type(r.type({*split, static_cast<int>(k)}), r.type(parts[k].result()))) return give_up();
  for (size_t k = 0; k < parts.size(); ++k) {
    const NodeId old = parts[k].result().node;
    r.edit.replace_uses({old, 0}, {*split, static_cast<int>(k)});
    r.erase_unused(old);
  }
  return true;
}

}  // namespace

int merge_products(GraphEditor& edit, const PassOptions& options) {
  Rewriter r(edit);
  int merged = 0;
  for (NodeId id : edit.graph().topological_order()) {
    if (!edit.graph().alive(id)) continue;
    for (size_t o = 0; o < edit.graph().node(id).types.size(); ++o) {
      const Value x{id, static_cast<int>(o)};
      std::vector<std::vector<Product>> kinds;
      for (const Graph::Use& use : edit.graph().uses(x)) {
        if (use.node < 0) continue;
        const Node& n = edit.graph().node(use.node);
        std::optional<Product> p;
        if (n.op->domain.empty() && n.op->name == "MatMul") p = matmul_of(r, x, n);
        if (n.op->domain.empty() && n.op->name == "Conv") p = conv_of(r, x, n);
        if (!p || !can_be_part(r, *p)) continue;
        const auto kind = std::find_if(kinds.begin(), kinds.end(),
                                       [&](const std::vector<Product>& k) { return same_kind(k[0], *p); });
        if (kind == kinds.end()) kinds.push_back({*p});
        else kind->push_back(*p);
      }
      for (const std::vector<Product>& parts : kinds)
        if (parts.size() > 1 && choose(options.choose, site_of(r, x, parts)) == 0 && merge(r, x, parts))
          merged += static_cast<int>(parts.size()) - 1;
    }
  }
  return merged;
}

namespace {

/// The channels [begin, end) of the last axis times a factor.
Constant scaled(const Constant& c, int64_t begin, int64_t end, double factor) {
  const int64_t columns = c.shape().back();
  return map_elements(c, c.dtype(), [&](double x, int64_t k) {
    const int64_t channel = k % columns;
    return channel >= begin && channel < end ? x * factor : x;
  });
}

/// Transposes and reshapes (Split(MatMul(x, w) + b)) * number: the number goes into w and b.
bool scale_into_product(Rewriter& r, const Node& n) {
  const auto factor = r.number(n.inputs[1]);
  if (!factor || !n.types[0].dtype.is_float() || !std::isfinite(*factor) || *factor == 0 || r.constant(n.inputs[0]) ||
      !same_type(r.type(n.inputs[0]), n.types[0]))
    return false;
  Value v = n.inputs[0];
  int64_t begin = 0, end = -1;
  for (;;) {
    if (!r.single_use(v)) return false;
    const Node& node = r.graph.node(v.node);
    if (!node.op->domain.empty()) return false;
    if (node.op->renames || node.op->name == "Transpose") {
      // Behind the split only what leaves the channels where they are.
      const TensorType &from = r.type(node.inputs[0]), &to = node.types[0];
      if (end >= 0 &&
          !(node.op->renames && from.rank() > 0 && to.rank() > 0 && same_dim(from.shape.back(), to.shape.back())))
        return false;
      v = node.inputs[0];
    } else if (node.op->name == "Split") {
      const int rank = node.types[0].rank();
      int64_t axis = node.attrs.get_int("axis", 0);
      if (axis < 0) axis += rank;
      if (end >= 0 || axis != rank - 1) return false;
      for (int o = 0; o <= v.output; ++o) {
        const auto* size = node.types[static_cast<size_t>(o)].shape.back().as<IntImm>();
        if (!size) return false;
        begin = o == 0 ? 0 : end;
        end = begin + size->value;
      }
      v = node.inputs[0];
    } else {
      break;
    }
  }
  const Node* add = r.producer(v, "Add");
  if (add && !r.constant(add->inputs[1])) return false;
  const Node* product = r.producer(add ? add->inputs[0] : v, "MatMul");
  if (!product || !r.single_use({product->id, 0})) return false;
  const Constant* weights = r.constant(product->inputs[1]);
  if (!weights || !weights->dtype().is_float() || weights->shape().size() != 2 || !r.single_use(product->inputs[1]))
    return false;
  const int64_t channels = weights->shape()[1];
  if (end < 0) end = channels;
  if (add && !is_row(*r.constant(add->inputs[1]), channels)) return false;
  const Value w = r.edit.add_constant(scaled(*weights, begin, end, *factor), r.graph.value_name(product->inputs[1]));
  const Value old_w = product->inputs[1];
  r.edit.set_input(product->id, 1, w);
  r.erase_unused(old_w.node);
  if (add) {
    const Value old_b = add->inputs[1];
    const Value b = r.edit.add_constant(scaled(*r.constant(old_b), begin, end, *factor), r.graph.value_name(old_b));
    r.edit.set_input(add->id, 1, b);
    r.erase_unused(old_b.node);
  }
  return r.replace(n, n.inputs[0]);
}

/// MatMul(a * number, b * number): scaled operands would be copies, a scaled result costs one multiplication in
/// registers.
bool scale_behind_product(Rewriter& r, const Node& n) {
  // Half precision scales operands to keep the product in range; so may scales that are far from 1.
  const DType type = n.types[0].dtype;
  if (!type.is_float() || type.bytes() < 4) return false;
  const auto is_near_one = [](double scale) { return std::fabs(scale) >= 0x1p-16 && std::fabs(scale) <= 0x1p16; };
  double factor = 1;
  std::vector<Value> operands;
  for (const Value& input : n.inputs) {
    const Node* mul = r.single_use(input) ? r.producer(input, "Mul") : nullptr;
    const auto number = mul ? r.number(mul->inputs[1]) : std::nullopt;
    const bool moves = number && is_near_one(*number) && same_type(r.type(mul->inputs[0]), mul->types[0]);
    if (moves) factor *= *number;
    operands.push_back(moves ? mul->inputs[0] : input);
  }
  if (operands == n.inputs) return false;
  const Value product = r.add(n, "MatMul", operands);
  return r.replace(n, r.add(n, "Mul", {product, r.add_number(n, factor, n.types[0].dtype)}));
}

constexpr Rule kScaleRules[] = {
    {"scale-behind-product", "MatMul", "MatMul(a * c, b * d) --> MatMul(a, b) * (c * d)", scale_behind_product},
    {"scale-into-product", "Mul",
     "Transpose(Reshape(MatMul(x, w) + b)) * c --> Transpose(Reshape(MatMul(x, w c) + b c))", scale_into_product},
};

}  // namespace

std::span<const Rule> fold_scale_rules() { return kScaleRules; }

int fold_scale(GraphEditor& edit, const PassOptions&) { return apply_rules(edit, kScaleRules); }

}  // namespace tensmith::graph
