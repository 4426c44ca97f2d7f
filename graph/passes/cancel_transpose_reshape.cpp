#include "graph/passes/cancel_transpose_reshape.h"

#include <algorithm>

#include "graph/constant_math.h"

namespace tensmith::graph {

namespace {

using Perm = std::vector<int64_t>;

/// Whether element i of the output needs just the elements at i of the inputs, for whatever order of axes.
bool is_elementwise(const Node& n) {
  if (is_broadcasting(n)) return true;
  return n.op->domain.empty() && n.op->fusion == FusionKind::kElementwise && n.types.size() == 1 &&
         n.op->inputs.size() == 1 && n.inputs.size() == 1;
}

Perm perm_of(const Node& n) {
  Perm perm = n.attrs.get_ints("perm");
  if (perm.empty())
    for (int64_t k = n.types[0].rank() - 1; k >= 0; --k) perm.push_back(k);
  return perm;
}

Perm inverse(const Perm& perm) {
  Perm result(perm.size());
  for (size_t k = 0; k < perm.size(); ++k) result[static_cast<size_t>(perm[k])] = static_cast<int64_t>(k);
  return result;
}

AttrMap perm_attr(const Perm& perm) {
  AttrMap attrs;
  attrs.set("perm", perm);
  return attrs;
}

/// The transpose behind a value that nothing else reads.
const Node* lone_transpose(const Rewriter& r, Value v) {
  const Node* transpose = r.producer(v, "Transpose");
  return transpose && r.single_use(v) ? transpose : nullptr;
}

/// A constant operand as it must be when the others are not transposed yet. Nothing when it cannot be (more axes than
/// they have).
Value untransposed(Rewriter& r, Value v, const Perm& perm) {
  const Constant& c = *r.constant(v);
  if (c.num_elements() == 1 && c.shape().size() <= perm.size()) return v;
  if (c.shape().size() > perm.size()) return {};
  std::vector<int64_t> shape(perm.size() - c.shape().size(), 1);
  shape.insert(shape.end(), c.shape().begin(), c.shape().end());
  return r.edit.add_constant(transpose(c.with_shape(shape), inverse(perm)), r.graph.value_name(v));
}

/// The operands without their common transpose; empty when they have none.
std::vector<Value> common_sources(Rewriter& r, const std::vector<Value>& inputs, Perm& perm) {
  perm.clear();
  for (const Value& input : inputs)
    if (const Node* transpose = lone_transpose(r, input)) {
      const Perm own = perm_of(*transpose);
      if (!perm.empty() && perm != own) return {};
      perm = own;
    } else if (input.given() && !r.constant(input)) {
      return {};
    }
  if (perm.empty()) return {};
  std::vector<Value> sources;
  for (const Value& input : inputs) {
    Value source;
    if (input.given()) {
      source = r.constant(input) ? untransposed(r, input, perm) : r.producer(input, "Transpose")->inputs[0];
      if (!source.given()) return {};
    }
    sources.push_back(source);
  }
  return sources;
}

/// Transpose(Transpose(x, p), q) --> Transpose(x, p then q), or x
bool transpose_of_transpose(Rewriter& r, const Node& n) {
  const Node* inner = r.producer(n.inputs[0], "Transpose");
  if (!inner) return false;
  const Perm p = perm_of(*inner), q = perm_of(n);
  Perm both(q.size());
  for (size_t k = 0; k < q.size(); ++k) both[k] = p[static_cast<size_t>(q[k])];
  if (std::is_sorted(both.begin(), both.end())) return r.replace(n, inner->inputs[0]);
  return r.replace(n, r.add(n, "Transpose", {inner->inputs[0]}, perm_attr(both)));
}

bool identity_transpose(Rewriter& r, const Node& n) {
  const Perm perm = perm_of(n);
  return std::is_sorted(perm.begin(), perm.end()) && r.replace(n, n.inputs[0]);
}

bool sink_through_elementwise(Rewriter& r, const Node& n) {
  if (!is_elementwise(n)) return false;
  Perm perm;
  const std::vector<Value> sources = common_sources(r, n.inputs, perm);
  if (sources.empty() || static_cast<int>(perm.size()) != n.types[0].rank()) return false;
  return r.replace(n, r.add(n, "Transpose", {r.add(n, n.op->name, sources, AttrMap(n.attrs))}, perm_attr(perm)));
}

int64_t axis_of(const Node& n, int rank, int64_t fallback) {
  const int64_t axis = n.attrs.get_int("axis", fallback);
  return axis < 0 ? axis + rank : axis;
}

bool sink_through_concat(Rewriter& r, const Node& n) {
  Perm perm;
  const std::vector<Value> sources = common_sources(r, n.inputs, perm);
  // A constant of one element is no scalar here.
  for (const Value& source : sources)
    if (r.type(source).rank() != n.types[0].rank()) return false;
  if (sources.empty()) return false;
  AttrMap attrs;
  attrs.set("axis", perm[static_cast<size_t>(axis_of(n, n.types[0].rank(), 0))]);
  return r.replace(n, r.add(n, "Transpose", {r.add(n, "Concat", sources, attrs)}, perm_attr(perm)));
}

/// One axis named by the attribute `axis` (default the last one).
bool sink_through_softmax(Rewriter& r, const Node& n) {
  const Node* transpose = lone_transpose(r, n.inputs[0]);
  if (!transpose) return false;
  const Perm perm = perm_of(*transpose);
  AttrMap attrs;
  attrs.set("axis", perm[static_cast<size_t>(axis_of(n, n.types[0].rank(), -1))]);
  return r.replace(n, r.add(n, "Transpose", {r.add(n, n.op->name, {transpose->inputs[0]}, attrs)}, perm_attr(perm)));
}

bool sink_through_reduction(Rewriter& r, const Node& n) {
  const Node* transpose = lone_transpose(r, n.inputs[0]);
  if (!transpose || n.inputs.size() < 2) return false;
  const auto axes = r.ints(n.inputs[1]);
  if (!axes || axes->empty()) return false;
  const Perm perm = perm_of(*transpose);
  std::vector<int64_t> moved, reduced;
  for (int64_t axis : *axes) {
    reduced.push_back(axis < 0 ? axis + static_cast<int64_t>(perm.size()) : axis);
    moved.push_back(perm[static_cast<size_t>(reduced.back())]);
  }
  const Value result = r.add(n, n.op->name, {transpose->inputs[0], r.add_ints(n, moved)}, AttrMap(n.attrs));
  if (n.attrs.get_int("keepdims", 1) != 0) return r.replace(n, r.add(n, "Transpose", {result}, perm_attr(perm)));
  // The axes that are left, in the order of the transpose, renumbered without the reduced ones.
  Perm left;
  for (size_t k = 0; k < perm.size(); ++k) {
    if (std::find(reduced.begin(), reduced.end(), static_cast<int64_t>(k)) != reduced.end()) continue;
    const auto before = std::count_if(moved.begin(), moved.end(), [&](int64_t axis) { return axis < perm[k]; });
    left.push_back(perm[k] - before);
  }
  return r.replace(n, left.empty() ? result : r.add(n, "Transpose", {result}, perm_attr(left)));
}

bool sink_through_pad(Rewriter& r, const Node& n) {
  const Node* transpose = lone_transpose(r, n.inputs[0]);
  const auto pads = transpose ? r.ints(n.inputs[1]) : std::nullopt;
  if (!pads || n.inputs.size() > 3) return false;
  const Perm perm = perm_of(*transpose);
  if (pads->size() != 2 * perm.size()) return false;
  std::vector<int64_t> moved(pads->size());
  for (size_t k = 0; k < perm.size(); ++k) {
    moved[static_cast<size_t>(perm[k])] = (*pads)[k];
    moved[static_cast<size_t>(perm[k]) + perm.size()] = (*pads)[k + perm.size()];
  }
  std::vector<Value> inputs = n.inputs;
  inputs[0] = transpose->inputs[0];
  inputs[1] = r.add_ints(n, moved);
  return r.replace(n, r.add(n, "Transpose", {r.add(n, "Pad", inputs, AttrMap(n.attrs))}, perm_attr(perm)));
}

/// Transpose(Reshape(x)), where the reshape only adds or removes dims of 1 --> Reshape(Transpose(x)), so that
/// transposes meet.
bool transpose_before_reshape(Rewriter& r, const Node& n) {
  const Node* reshape = r.producer(n.inputs[0], "Reshape");
  if (!reshape) return false;
  const std::vector<Expr>&from = r.type(reshape->inputs[0]).shape, &middle = reshape->types[0].shape;
  const auto real_axes = [](const std::vector<Expr>& shape) {
    Perm axes;
    for (size_t k = 0; k < shape.size(); ++k)
      if (!is_const_int(shape[k], 1)) axes.push_back(static_cast<int64_t>(k));
    return axes;
  };
  const Perm source = real_axes(from), target = real_axes(middle);
  if (source.size() != target.size()) return false;
  for (size_t k = 0; k < source.size(); ++k)
    if (!same_dim(from[static_cast<size_t>(source[k])], middle[static_cast<size_t>(target[k])])) return false;
  // Dims of 1 go to the front, the others in the order that the transpose asks for.
  Perm perm;
  for (size_t k = 0; k < from.size(); ++k)
    if (is_const_int(from[k], 1)) perm.push_back(static_cast<int64_t>(k));
  for (int64_t axis : perm_of(n)) {
    const auto found = std::find(target.begin(), target.end(), axis);
    if (found != target.end()) perm.push_back(source[static_cast<size_t>(found - target.begin())]);
  }
  return r.replace(n, r.reshape(n, r.add(n, "Transpose", {reshape->inputs[0]}, perm_attr(perm)), n.types[0].shape));
}

/// Reshape(f(Reshape(x))) --> f(Reshape(x)) for elementwise f, whose other operands are single numbers.
bool reshape_around_elementwise(Rewriter& r, const Node& n) {
  if (!r.single_use(n.inputs[0])) return false;
  const Node& middle = r.graph.node(n.inputs[0].node);
  if (!is_elementwise(middle) || n.inputs[0].output != 0) return false;
  int data = -1;
  for (size_t k = 0; k < middle.inputs.size(); ++k) {
    const Value input = middle.inputs[k];
    if (!input.given() ||
        (r.constant(input) && r.constant(input)->num_elements() == 1 && r.type(input).rank() <= n.types[0].rank()))
      continue;
    if (data >= 0) return false;
    data = static_cast<int>(k);
  }
  if (data < 0) return false;
  const Node* inner = r.producer(middle.inputs[static_cast<size_t>(data)], "Reshape");
  if (!inner || !r.single_use({inner->id, 0}) ||
      !same_type(inner->types[0], {inner->types[0].dtype, middle.types[0].shape, {}}))
    return false;
  std::vector<Value> inputs = middle.inputs;
  inputs[static_cast<size_t>(data)] = r.reshape(n, inner->inputs[0], n.types[0].shape);
  return r.replace(n, r.add(middle, middle.op->name, inputs, AttrMap(middle.attrs)));
}

/// Whether a reshape leaves the last axis as it is, so that rows stay rows, and the rows in as few axes: a product goes
/// faster over one long axis than over two short ones.
bool keeps_rows(const Rewriter& r, const Node& reshape) {
  const TensorType &from = r.type(reshape.inputs[0]), &to = reshape.types[0];
  const auto row_axes = [](const TensorType& type) {
    return std::count_if(type.shape.begin(), type.shape.end() - 1,
                         [](const Expr& dim) { return !is_const_int(dim, 1); });
  };
  return from.rank() > 1 && to.rank() > 1 && same_dim(from.shape.back(), to.shape.back()) &&
         row_axes(to) <= std::max<std::ptrdiff_t>(1, row_axes(from));
}

/// The value in the shape of `like`, but for its own last dim.
Value reshape_rows(Rewriter& r, const Node& like, Value v) {
  std::vector<Expr> shape = like.types[0].shape;
  shape.back() = r.type(v).shape.back();
  return r.reshape(like, v, shape);
}

/// Reshape(MatMul(x, w)) where rows stay rows --> MatMul(Reshape(x), w): exporters flatten x for the product and give
/// the result its shape back, which comes between the product and what could be computed with it.
bool reshape_before_product(Rewriter& r, const Node& n) {
  const Node* product = r.producer(n.inputs[0], "MatMul");
  if (!product || !r.single_use(n.inputs[0]) || !keeps_rows(r, n)) return false;
  if (r.type(product->inputs[1]).rank() != 2 || r.type(product->inputs[0]).rank() < 2) return false;
  return r.replace(n, r.add(*product, "MatMul", {reshape_rows(r, n, product->inputs[0]), product->inputs[1]}));
}

/// The same for an elementwise operator behind a product: its other operands are numbers or rows.
bool reshape_before_row_elementwise(Rewriter& r, const Node& n) {
  if (!r.single_use(n.inputs[0]) || !keeps_rows(r, n)) return false;
  const Node& f = r.graph.node(n.inputs[0].node);
  if (!is_elementwise(f) || n.inputs[0].output != 0) return false;
  int data = -1;
  for (size_t k = 0; k < f.inputs.size(); ++k) {
    const Value input = f.inputs[k];
    if (!input.given() || (r.constant(input) && r.type(input).rank() <= 1)) continue;
    if (data >= 0) return false;
    data = static_cast<int>(k);
  }
  if (data < 0 || !r.single_use(f.inputs[static_cast<size_t>(data)]) ||
      !same_type(r.type(f.inputs[static_cast<size_t>(data)]),
                 {r.type(f.inputs[static_cast<size_t>(data)]).dtype, f.types[0].shape, {}}))
    return false;
  // Only on the way to a product, where it is of use: such rules must not chase reshapes through a whole graph.
  Value v = f.inputs[static_cast<size_t>(data)];
  for (int depth = 0; depth < 3 && !r.producer(v, "MatMul"); ++depth) {
    const Node& node = r.graph.node(v.node);
    if (!is_elementwise(node) || node.inputs.empty() || !r.single_use(v)) return false;
    v = node.inputs[0];
  }
  if (!r.producer(v, "MatMul")) return false;
  std::vector<Value> inputs = f.inputs;
  inputs[static_cast<size_t>(data)] = reshape_rows(r, n, inputs[static_cast<size_t>(data)]);
  return r.replace(n, r.add(f, f.op->name, inputs, AttrMap(f.attrs)));
}

constexpr Rule kRules[] = {
    {"transpose-identity", "Transpose", "Transpose(x, 0, 1, ...) --> x", identity_transpose},
    {"transpose-of-transpose", "Transpose", "Transpose(Transpose(x, p), q) --> Transpose(x, p then q), or x",
     transpose_of_transpose},
    {"sink-elementwise", "", "f(Transpose(x), Transpose(y), c) --> Transpose(f(x, y, c'))", sink_through_elementwise},
    {"sink-concat", "Concat", "Concat(Transpose(x), Transpose(y)) --> Transpose(Concat(x, y))", sink_through_concat},
    {"sink-softmax", "Softmax", "Softmax(Transpose(x), axis) --> Transpose(Softmax(x, axis'))", sink_through_softmax},
    {"sink-log-softmax", "LogSoftmax", "LogSoftmax(Transpose(x), axis) --> Transpose(LogSoftmax(x, axis'))",
     sink_through_softmax},
    {"sink-reduce-mean", "ReduceMean", "ReduceMean(Transpose(x), axes) --> Transpose(ReduceMean(x, axes'))",
     sink_through_reduction},
    {"sink-reduce-sum", "ReduceSum", "ReduceSum(Transpose(x), axes) --> Transpose(ReduceSum(x, axes'))",
     sink_through_reduction},
    {"sink-reduce-max", "ReduceMax", "ReduceMax(Transpose(x), axes) --> Transpose(ReduceMax(x, axes'))",
     sink_through_reduction},
    {"sink-reduce-min", "ReduceMin", "ReduceMin(Transpose(x), axes) --> Transpose(ReduceMin(x, axes'))",
     sink_through_reduction},
    {"sink-pad", "Pad", "Pad(Transpose(x), pads) --> Transpose(Pad(x, pads'))", sink_through_pad},
    {"transpose-before-reshape", "Transpose",
     "Transpose(Reshape(x) that adds or removes dims of 1) --> Reshape(Transpose(x))", transpose_before_reshape},
    {"reshape-around-elementwise", "Reshape", "Reshape(f(Reshape(x))) --> f(Reshape(x))", reshape_around_elementwise},
    {"reshape-before-product", "Reshape", "Reshape(MatMul(x, w)) --> MatMul(Reshape(x), w) where rows stay rows",
     reshape_before_product},
    {"reshape-before-row-elementwise", "Reshape",
     "Reshape(f(MatMul(x, w), row)) --> f(Reshape(MatMul(x, w)), row) where rows stay rows",
     reshape_before_row_elementwise},
};

}  // namespace

std::span<const Rule> cancel_transpose_reshape_rules() { return kRules; }

int cancel_transpose_reshape(GraphEditor& edit, const PassOptions&) { return apply_rules(edit, kRules); }

}  // namespace tensmith::graph
