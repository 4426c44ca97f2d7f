#include "graph/passes/canonicalize.h"

#include <algorithm>
#include <cmath>

#include "graph/constant_math.h"

namespace tensmith::graph {

namespace {

/// The first input in the node's place, which holds only where the types are the same.
bool to_input(Rewriter& r, const Node& n) { return r.replace(n, n.inputs.at(0)); }

bool drop_dropout(Rewriter& r, const Node& n) {
  if (n.types.size() > 1 && !r.graph.uses({n.id, 1}).empty()) return false;
  if (n.inputs.size() > 2 && !r.is_number(n.inputs[2], 0)) return false;  // training_mode
  return to_input(r, n);
}

bool drop_single(Rewriter& r, const Node& n) { return n.inputs.size() == 1 && to_input(r, n); }

bool drop_split(Rewriter& r, const Node& n) { return n.types.size() == 1 && to_input(r, n); }

bool drop_pad(Rewriter& r, const Node& n) { return r.is_number(n.inputs.at(1), 0) && to_input(r, n); }

bool drop_slice(Rewriter& r, const Node& n) {
  // With steps of one, a slice as long as its source is the source.
  if (n.inputs.size() > 4 && n.inputs[4].given() && !r.is_number(n.inputs[4], 1)) return false;
  return to_input(r, n);
}

bool to_reshape(Rewriter& r, const Node& n) { return r.replace(n, r.reshape(n, n.inputs[0], n.types[0].shape)); }

/// The shape as numbers, so that what computed it can go.
bool reshape_by_numbers(Rewriter& r, const Node& n) {
  if (same_type(r.type(n.inputs[0]), n.types[0])) return to_input(r, n);
  const auto spec = reshape_spec(r.type(n.inputs[0]).shape, n.types[0].shape);
  if (!spec) return false;
  const auto present = r.ints(n.inputs[1]);
  if (present && *present == *spec && !n.attrs.has("allowzero")) return false;
  return r.replace(n, r.add(n, "Reshape", {n.inputs[0], r.add_ints(n, *spec)}));
}

bool reshape_of_reshape(Rewriter& r, const Node& n) {
  const Node* inner = r.producer(n.inputs[0], "Reshape");
  return inner && r.replace(n, r.reshape(n, inner->inputs[0], n.types[0].shape));
}

std::vector<int64_t> perm_of(const Node& n, int rank) {
  std::vector<int64_t> perm = n.attrs.get_ints("perm");
  if (perm.empty())
    for (int64_t k = rank - 1; k >= 0; --k) perm.push_back(k);
  return perm;
}

/// Only dims of one element change places: the data stay where they are.
bool transpose_of_ones(Rewriter& r, const Node& n) {
  const TensorType& from = r.type(n.inputs[0]);
  int64_t last = -1;
  for (int64_t axis : perm_of(n, from.rank())) {
    if (is_const_int(from.shape[static_cast<size_t>(axis)], 1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  return r.replace(n, r.reshape(n, n.inputs[0], n.types[0].shape));
}

/// Gemm(A, B, C) --> Add(MatMul(A', B'), C), where the transposes are of constants or given by MatMul's operands as
/// nodes.
bool gemm_to_matmul(Rewriter& r, const Node& n) {
  if (!n.types[0].dtype.is_float()) return false;
  const bool bias = n.inputs.size() > 2;
  const double alpha = n.attrs.get_float("alpha", 1), beta = bias ? n.attrs.get_float("beta", 1) : 1;
  if (alpha != 1 || beta != 1 || n.attrs.get_int("transA", 0) != 0) return false;
  const Value a = n.inputs[0], c = bias ? n.inputs[2] : Value{};
  Value b = n.inputs[1];
  if (n.attrs.get_int("transB", 0) != 0) {
    if (!r.constant(b)) return false;
    b = r.edit.add_constant(transpose(*r.constant(b), {1, 0}), r.graph.value_name(b));
  }
  Value y = r.add(n, "MatMul", {a, b});
  if (bias && y.given()) y = r.add(n, "Add", {y, c});
  return r.replace(n, y);
}

bool pow_to_product(Rewriter& r, const Node& n) {
  const Value x = n.inputs[0];
  const auto exponent = r.number(n.inputs[1]);
  if (!exponent || !same_type(r.type(x), n.types[0])) return false;
  if (*exponent == 1) return to_input(r, n);
  if (*exponent == 2) return r.replace(n, r.add(n, "Mul", {x, x}));
  if (!r.type(x).dtype.is_float()) return false;
  if (*exponent == 0.5) return r.replace(n, r.add(n, "Sqrt", {x}));
  if (*exponent == -1) return r.replace(n, r.add(n, "Reciprocal", {x}));
  if (*exponent == 3) return r.replace(n, r.add(n, "Mul", {r.add(n, "Mul", {x, x}), x}));
  if (*exponent == -0.5) return r.replace(n, r.add(n, "Reciprocal", {r.add(n, "Sqrt", {x})}));
  return false;
}

/// A division by a power of two is exact as a product.
bool div_to_mul(Rewriter& r, const Node& n) {
  const Constant* c = r.constant(n.inputs[1]);
  if (!c || !c->dtype().is_float() || c->num_elements() > 64) return false;
  std::vector<double> inverse;
  for (int64_t k = 0; k < c->num_elements(); ++k) {
    int exponent;
    const double value = c->float_at(k);
    if (std::fabs(std::frexp(value, &exponent)) != 0.5 || std::abs(exponent) > 12) return false;
    inverse.push_back(1 / value);
  }
  const Value factor = r.edit.add_constant(Constant::from_floats(c->dtype(), c->shape(), inverse), n.name + ".factor");
  return r.replace(n, r.add(n, "Mul", {n.inputs[0], factor}));
}

bool constant_to_the_right(Rewriter& r, const Node& n) {
  if (n.inputs.size() != 2 || !r.constant(n.inputs[0]) || r.constant(n.inputs[1])) return false;
  return r.replace(n, r.add(n, n.op->name, {n.inputs[1], n.inputs[0]}, AttrMap(n.attrs)));
}

/// Clip without an upper bound and with 0 as the lower one.
bool clip_to_relu(Rewriter& r, const Node& n) {
  const bool lower = n.inputs.size() > 1 && n.inputs[1].given(), upper = n.inputs.size() > 2 && n.inputs[2].given();
  const auto high = upper ? r.number(n.inputs[2]) : INFINITY;
  if (!high || *high < 3.4028234e38 || !r.type(n.inputs[0]).dtype.is_float()) return false;
  if (!lower || r.is_number(n.inputs[1], -INFINITY)) return to_input(r, n);
  return r.is_number(n.inputs[1], 0) && r.replace(n, r.add(n, "Relu", {n.inputs[0]}));
}

bool max_to_relu(Rewriter& r, const Node& n) {
  return n.inputs.size() == 2 && n.types[0].dtype.is_float() && r.is_number(n.inputs[1], 0) &&
         r.replace(n, r.add(n, "Relu", {n.inputs[0]}));
}

bool where_not(Rewriter& r, const Node& n) {
  const Node* negation = r.producer(n.inputs[0], "Not");
  return negation && r.replace(n, r.add(n, "Where", {negation->inputs[0], n.inputs[2], n.inputs[1]}));
}

/// Where(all true, x, y) --> x
bool where_known(Rewriter& r, const Node& n) {
  const auto condition = r.number(n.inputs[0]);
  return condition && r.replace(n, *condition != 0 ? n.inputs[1] : n.inputs[2]);
}

/// Gather(x, i, i + 1, ...) along an axis --> Slice(x), or x, in the output's shape
bool gather_to_slice(Rewriter& r, const Node& n) {
  const auto indices = r.ints(n.inputs[1]);
  const TensorType& from = r.type(n.inputs[0]);
  int64_t axis = n.attrs.get_int("axis", 0);
  if (axis < 0) axis += from.rank();
  const auto* dim = from.shape[static_cast<size_t>(axis)].as<IntImm>();
  if (!indices || indices->empty() || !dim || r.constant(n.inputs[0])) return false;
  const auto index = [&](size_t k) { return (*indices)[k] < 0 ? (*indices)[k] + dim->value : (*indices)[k]; };
  for (size_t k = 0; k < indices->size(); ++k)
    if (index(k) != index(0) + static_cast<int64_t>(k)) return false;
  const int64_t first = index(0), end = first + static_cast<int64_t>(indices->size());
  if (first < 0 || end > dim->value) return false;
  Value piece = n.inputs[0];
  if (end - first < dim->value)
    piece = r.add(n, "Slice", {piece, r.add_ints(n, {first}), r.add_ints(n, {end}), r.add_ints(n, {axis})});
  return r.replace(n, r.reshape(n, piece, n.types[0].shape));
}

/// GatherND with the indices of all elements in order --> x in the output's shape
bool gather_nd_of_all(Rewriter& r, const Node& n) {
  const TensorType& from = r.type(n.inputs[0]);
  const Constant* indices = r.constant(n.inputs[1]);
  if (!indices || indices->shape().empty() || !from.is_static() || n.attrs.get_int("batch_dims", 0) != 0) return false;
  const std::vector<int64_t> shape = from.static_shape();
  const auto width = static_cast<size_t>(indices->shape().back());
  int64_t blocks = 1;
  for (size_t k = 0; k < width && k < shape.size(); ++k) blocks *= shape[k];
  if (width == 0 || width > shape.size() || indices->num_elements() != blocks * static_cast<int64_t>(width))
    return false;
  for (int64_t block = 0; block < blocks; ++block) {
    int64_t flat = 0;
    for (size_t k = 0; k < width; ++k) {
      const int64_t index = indices->int_at(block * static_cast<int64_t>(width) + static_cast<int64_t>(k));
      flat = flat * shape[k] + (index < 0 ? index + shape[k] : index);
    }
    if (flat != block) return false;
  }
  return r.replace(n, r.reshape(n, n.inputs[0], n.types[0].shape));
}

/// Exact, since subtraction is addition of the negative.
bool sub_to_add(Rewriter& r, const Node& n) {
  const Constant* c = r.constant(n.inputs[1]);
  if (!c || !c->dtype().is_float() || c->num_elements() > 4096) return false;
  std::vector<double> negated;
  for (int64_t k = 0; k < c->num_elements(); ++k) negated.push_back(-c->float_at(k));
  const Value term = r.edit.add_constant(Constant::from_floats(c->dtype(), c->shape(), negated), n.name + ".term");
  return r.replace(n, r.add(n, "Add", {n.inputs[0], term}));
}

/// One tap, one channel a result: a factor by channel. In strides the places are picked first.
bool conv_to_scale(Rewriter& r, const Node& n) {
  const TensorType &x = r.type(n.inputs[0]), &y = n.types[0];
  const Constant* w = r.constant(n.inputs[1]);
  if (!w || !w->dtype().is_float() || x.rank() < 3 || n.attrs.get_string("auto_pad", "NOTSET") != "NOTSET")
    return false;
  const int64_t channels = w->shape()[0];
  if (w->num_elements() != channels || n.attrs.get_int("group", 1) != channels) return false;
  if (!all_are(n.attrs.get_ints("pads"), 0)) return false;
  const Constant* bias = n.inputs.size() > 2 && n.inputs[2].given() ? r.constant(n.inputs[2]) : nullptr;
  if (n.inputs.size() > 2 && n.inputs[2].given() && !bias) return false;
  Value picked = n.inputs[0];
  const std::vector<int64_t> strides = n.attrs.get_ints("strides");
  if (!all_are(strides, 1)) {
    if (!x.is_static()) return false;
    picked = r.add_places(n, picked, strides);
  }
  std::vector<int64_t> by_channel(static_cast<size_t>(y.rank()) - 1, 1);
  by_channel[0] = channels;
  const auto of_channels = [&](const Constant& c, const char* what) {
    std::vector<double> numbers;
    for (int64_t k = 0; k < channels; ++k) numbers.push_back(c.float_at(k));
    return r.edit.add_constant(Constant::from_floats(c.dtype(), by_channel, numbers), n.name + what);
  };
  Value made = r.add(n, "Mul", {picked, of_channels(*w, ".scale")});
  if (bias) made = r.add(n, "Add", {made, of_channels(*bias, ".term")});
  return r.replace(n, made);
}

constexpr Rule kRules[] = {
    {"identity", "Identity", "Identity(x) --> x", to_input},
    {"dropout", "Dropout", "Dropout(x) outside of training --> x", drop_dropout},
    {"cast-same", "Cast", "Cast(x) to x's own type --> x", to_input},
    {"expand-same", "Expand", "Expand(x) to x's own shape --> x", to_input},
    {"tile-once", "Tile", "Tile(x, 1) --> x", to_input},
    {"concat-one", "Concat", "Concat(x) --> x", drop_single},
    {"sum-one", "Sum", "Sum(x) --> x", drop_single},
    {"mean-one", "Mean", "Mean(x) --> x", drop_single},
    {"max-one", "Max", "Max(x) --> x", drop_single},
    {"min-one", "Min", "Min(x) --> x", drop_single},
    {"split-one", "Split", "Split(x) into one piece --> x", drop_split},
    {"pad-none", "Pad", "Pad(x, 0) --> x", drop_pad},
    {"slice-all", "Slice", "Slice(x) of everything --> x", drop_slice},
    {"gather-to-slice", "Gather", "Gather(x, i, i + 1, ...) --> Reshape(Slice(x))", gather_to_slice},
    {"gather-nd-of-all", "GatherND", "GatherND(x, all indices in order) --> Reshape(x)", gather_nd_of_all},
    {"flatten-as-reshape", "Flatten", "Flatten(x) --> Reshape(x, numbers)", to_reshape},
    {"squeeze-as-reshape", "Squeeze", "Squeeze(x, axes) --> Reshape(x, numbers)", to_reshape},
    {"unsqueeze-as-reshape", "Unsqueeze", "Unsqueeze(x, axes) --> Reshape(x, numbers)", to_reshape},
    {"reshape-by-numbers", "Reshape", "Reshape(x, computed) --> Reshape(x, numbers), or x", reshape_by_numbers},
    {"reshape-of-reshape", "Reshape", "Reshape(Reshape(x)) --> Reshape(x)", reshape_of_reshape},
    {"transpose-of-ones", "Transpose", "Transpose that moves only dims of 1 --> Reshape", transpose_of_ones},
    {"gemm-to-matmul", "Gemm", "Gemm(a, b, c) --> Add(MatMul(a, b), c)", gemm_to_matmul},
    {"conv-to-scale", "Conv", "Conv(x, one tap of one channel, b) --> Add(Mul(Slice(x), w), b)", conv_to_scale},
    {"pow-to-product", "Pow", "Pow(x, 2) --> Mul(x, x); 3, 1, 0.5, -0.5, -1 likewise", pow_to_product},
    {"div-to-mul", "Div", "Div(x, 2^k) --> Mul(x, 2^-k)", div_to_mul},
    {"sub-to-add", "Sub", "Sub(x, c) --> Add(x, -c)", sub_to_add},
    {"add-constant-right", "Add", "Add(c, x) --> Add(x, c)", constant_to_the_right},
    {"mul-constant-right", "Mul", "Mul(c, x) --> Mul(x, c)", constant_to_the_right},
    {"max-constant-right", "Max", "Max(c, x) --> Max(x, c)", constant_to_the_right},
    {"min-constant-right", "Min", "Min(c, x) --> Min(x, c)", constant_to_the_right},
    {"equal-constant-right", "Equal", "Equal(c, x) --> Equal(x, c)", constant_to_the_right},
    {"and-constant-right", "And", "And(c, x) --> And(x, c)", constant_to_the_right},
    {"or-constant-right", "Or", "Or(c, x) --> Or(x, c)", constant_to_the_right},
    {"clip-to-relu", "Clip", "Clip(x, 0, none) --> Relu(x); Clip(x) --> x", clip_to_relu},
    {"max-to-relu", "Max", "Max(x, 0) --> Relu(x)", max_to_relu},
    {"where-not", "Where", "Where(Not(c), x, y) --> Where(c, y, x)", where_not},
    {"where-known", "Where", "Where(true, x, y) --> x", where_known},
};

}  // namespace

std::span<const Rule> canonicalize_rules() { return kRules; }

int canonicalize(GraphEditor& edit, const PassOptions&) { return apply_rules(edit, kRules); }

}  // namespace tensmith::graph
