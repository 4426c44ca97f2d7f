#include "graph/passes/algebra.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tensmith::graph {

namespace {

bool to_first(Rewriter& r, const Node& n) { return r.replace(n, n.inputs[0]); }

bool add_zero(Rewriter& r, const Node& n) { return r.is_number(n.inputs[1], 0) && to_first(r, n); }
bool times_one(Rewriter& r, const Node& n) { return r.is_number(n.inputs[1], 1) && to_first(r, n); }

/// x * 0 is 0 for integers; a float x might be infinite or NaN.
bool int_times_zero(Rewriter& r, const Node& n) {
  const TensorType& type = n.types[0];
  if (type.dtype.is_float() || !type.is_static() || !r.is_number(n.inputs[1], 0)) return false;
  return r.replace(n, r.edit.add_constant(Constant::allocate(type.dtype, type.static_shape()), n.name + ".zero"));
}

bool and_known(Rewriter& r, const Node& n) {
  const auto known = r.number(n.inputs[1]);
  return known && r.replace(n, *known != 0 ? n.inputs[0] : n.inputs[1]);
}
bool or_known(Rewriter& r, const Node& n) {
  const auto known = r.number(n.inputs[1]);
  return known && r.replace(n, *known != 0 ? n.inputs[1] : n.inputs[0]);
}

/// f(f(x)) --> x
bool involution(Rewriter& r, const Node& n) {
  const Node* inner = r.producer(n.inputs[0], n.op->name);
  return inner && r.replace(n, inner->inputs[0]);
}
/// f(f(x)) --> f(x)
bool idempotent(Rewriter& r, const Node& n) { return r.producer(n.inputs[0], n.op->name) && to_first(r, n); }

bool where_same(Rewriter& r, const Node& n) { return n.inputs[1] == n.inputs[2] && r.replace(n, n.inputs[1]); }

/// Whether no element is below 0, whatever the inputs; NaN is possible.
bool never_negative(const Rewriter& r, Value v, int depth = 4) {
  static constexpr std::array<std::string_view, 9> kNames = {"Abs",     "Exp",     "HardSigmoid", "ReduceL2", "Relu",
                                                             "Sigmoid", "Softmax", "Softplus",    "Sqrt"};
  if (!v.given()) return false;
  const Node& node = r.graph.node(v.node);
  if (!node.op->domain.empty()) return false;
  if (std::find(kNames.begin(), kNames.end(), node.op->name) != kNames.end()) return true;
  // What moves elements or brings non-negative ones together.
  const bool through = node.op->renames || node.op->name == "Transpose" || node.op->name == "Slice";
  const bool both = node.op->name == "Add" || node.op->name == "Mul";
  if (depth == 0 || !(through || both)) return false;
  return never_negative(r, node.inputs[0], depth - 1) && (through || never_negative(r, node.inputs[1], depth - 1));
}

/// Exporters of attention guard the softmax of rows that are masked whole, which is NaN. (-0 becomes 0.)
bool where_nan(Rewriter& r, const Node& n) {
  const Node* test = r.producer(n.inputs[0], "IsNaN");
  if (!test || test->inputs[0] != n.inputs[2] || !r.is_number(n.inputs[1], 0) || !never_negative(r, n.inputs[2]))
    return false;
  auto made = r.edit.try_add(*find_op("GreaterElse", "tensmith"), {n.inputs[2], n.inputs[1]}, {}, n.name);
  return made && r.replace(n, {*made, 0});
}

/// Whether every value of `from` is exactly one of `to`.
bool widens(DType from, DType to) {
  if (from == to || from.is_bool()) return true;
  const auto mantissa = [](DType t) { return t.bits == 64 ? 53 : t.bits == 32 ? 24 : t.is_bfloat() ? 8 : 11; };
  if (from.is_float()) return to.is_float() && mantissa(to) >= mantissa(from) && (to.bits > from.bits);
  const int digits = from.bits - (from.is_int() ? 1 : 0);
  if (to.is_float()) return mantissa(to) >= digits && to.bits > 16;
  return to.bits - (to.is_int() ? 1 : 0) >= digits && (to.is_int() || from.is_uint());
}

/// Cast(Cast(x to a wider type) to T) --> Cast(x to T)
bool cast_of_cast(Rewriter& r, const Node& n) {
  const Node* inner = r.producer(n.inputs[0], "Cast");
  if (!inner) return false;
  const DType source = r.type(inner->inputs[0]).dtype, middle = inner->types[0].dtype;
  if (!widens(source, middle)) return false;
  if (source == n.types[0].dtype) return r.replace(n, inner->inputs[0]);
  AttrMap attrs;
  attrs.set("to", n.types[0].dtype);
  return r.replace(n, r.add(n, "Cast", {inner->inputs[0]}, attrs));
}

/// A smaller value that broadcasts to `v`: what was stretched, or a constant whose elements are all the same, also as
/// operands of elementwise operators in front. `v` itself when there is none.
Value narrowed(Rewriter& r, Value v, int depth = 4) {
  if (!v.given()) return v;
  if (r.constant(v)) {
    const auto number = r.constant(v)->num_elements() > 1 ? r.number(v) : std::nullopt;
    return number ? r.add_number(r.graph.node(v.node), *number, r.type(v).dtype) : v;
  }
  if (const Node* expand = r.producer(v, "Expand")) return expand->inputs[0];
  const Node& node = r.graph.node(v.node);
  if (depth == 0 || !is_broadcasting(node)) return v;
  std::vector<Value> inputs;
  for (const Value& input : node.inputs) inputs.push_back(narrowed(r, input, depth - 1));
  if (inputs == node.inputs) return v;
  const Value narrow = r.add(node, node.op->name, inputs, AttrMap(node.attrs));
  return narrow.given() && !same_type(r.type(narrow), r.type(v)) ? narrow : v;
}

/// An operand that is stretched only to meet the other ones: they do that by themselves.
bool narrow_operand(Rewriter& r, const Node& n) {
  if (!is_broadcasting(n) || n.inputs.size() < 2) return false;
  for (size_t k = 0; k < n.inputs.size(); ++k) {
    std::vector<Value> inputs = n.inputs;
    inputs[k] = narrowed(r, n.inputs[k]);
    if (inputs[k] != n.inputs[k] && r.replace(n, r.add(n, n.op->name, inputs, AttrMap(n.attrs)))) return true;
  }
  return false;
}

/// Whether a value depends on no input, through at most `depth` nodes.
bool is_of_constants(const Rewriter& r, Value v, int depth) {
  if (!v.given() || r.constant(v)) return true;
  const Node& node = r.graph.node(v.node);
  if (depth == 0 || node.inputs.empty()) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](Value input) { return is_of_constants(r, input, depth - 1); });
}

/// Gather(f(table), i) --> f(Gather(table, i)) for rows of a table of weights and elementwise f: the table stays as
/// small as it is stored, and only the rows that are read are converted and scaled.
bool gather_first(Rewriter& r, const Node& n) {
  const Node& f = r.graph.node(n.inputs[0].node);
  if (!works_by_row(f) || n.attrs.get_int("axis", 0) != 0 || !is_of_constants(r, n.inputs[0], 4)) return false;
  const TensorType& table = f.types[0];
  std::vector<Value> inputs;
  for (const Value& input : f.inputs) {
    if (!input.given() || r.type(input).rank() < table.rank()) {
      inputs.push_back(input);
    } else if (same_dim(r.type(input).shape[0], table.shape[0])) {
      inputs.push_back(r.add(n, "Gather", {input, n.inputs[1]}));
    } else {
      return false;
    }
  }
  return r.replace(n, r.add(f, f.op->name, inputs, AttrMap(f.attrs)));
}

int64_t axis_of(const Node& n, int rank, int64_t fallback) {
  const int64_t axis = n.attrs.get_int("axis", fallback);
  return axis < 0 ? axis + rank : axis;
}

/// Concat(all pieces of Split(x), in order) --> x
bool concat_of_split(Rewriter& r, const Node& n) {
  const Node* split = r.producer(n.inputs[0], "Split");
  if (!split || split->types.size() != n.inputs.size()) return false;
  for (size_t k = 0; k < n.inputs.size(); ++k)
    if (n.inputs[k] != Value{split->id, static_cast<int>(k)}) return false;
  const int rank = n.types[0].rank();
  return axis_of(n, rank, 0) == axis_of(*split, rank, 0) && r.replace(n, split->inputs[0]);
}

/// Concat(.., Concat(a, b), ..) along one axis --> Concat(.., a, b, ..)
bool concat_of_concat(Rewriter& r, const Node& n) {
  const int rank = n.types[0].rank();
  std::vector<Value> flat;
  for (const Value& input : n.inputs) {
    const Node* inner = r.producer(input, "Concat");
    if (inner && r.single_use(input) && axis_of(*inner, rank, 0) == axis_of(n, rank, 0))
      flat.insert(flat.end(), inner->inputs.begin(), inner->inputs.end());
    else flat.push_back(input);
  }
  return flat.size() > n.inputs.size() && r.replace(n, r.add(n, "Concat", flat, AttrMap(n.attrs)));
}

/// Split(Concat(a, b)) back into a and b.
bool split_of_concat(Rewriter& r, const Node& n) {
  const Node* concat = r.producer(n.inputs[0], "Concat");
  if (!concat || concat->inputs.size() != n.types.size()) return false;
  const int rank = r.type(n.inputs[0]).rank();
  if (axis_of(n, rank, 0) != axis_of(*concat, rank, 0)) return false;
  for (size_t k = 0; k < n.types.size(); ++k)
    if (!same_type(n.types[k], r.type(concat->inputs[k]))) return false;
  const std::vector<Value> pieces = concat->inputs;
  const NodeId id = n.id;
  for (size_t k = 0; k < pieces.size(); ++k) r.edit.replace_uses({id, static_cast<int>(k)}, pieces[k]);
  r.erase_unused(id);
  return true;
}

/// (x + a) + b --> x + (a + b) for integers, where it is exact.
bool add_constants(Rewriter& r, const Node& n) {
  const Node* inner = r.producer(n.inputs[0], "Add");
  if (!inner || !n.types[0].dtype.is_integral() || !r.constant(n.inputs[1]) || !r.constant(inner->inputs[1]))
    return false;
  return r.replace(n, r.add(n, "Add", {inner->inputs[0], r.add(n, "Add", {inner->inputs[1], n.inputs[1]})}));
}

constexpr Rule kRules[] = {
    {"add-zero", "Add", "x + 0 --> x", add_zero},
    {"sub-zero", "Sub", "x - 0 --> x", add_zero},
    {"mul-one", "Mul", "x * 1 --> x", times_one},
    {"div-one", "Div", "x / 1 --> x", times_one},
    {"mul-zero", "Mul", "x * 0 --> 0 for integers", int_times_zero},
    {"and-known", "And", "x and true --> x; x and false --> false", and_known},
    {"or-known", "Or", "x or false --> x; x or true --> true", or_known},
    {"not-not", "Not", "Not(Not(x)) --> x", involution},
    {"neg-neg", "Neg", "Neg(Neg(x)) --> x", involution},
    {"relu-relu", "Relu", "Relu(Relu(x)) --> Relu(x)", idempotent},
    {"abs-abs", "Abs", "Abs(Abs(x)) --> Abs(x)", idempotent},
    {"floor-floor", "Floor", "Floor(Floor(x)) --> Floor(x)", idempotent},
    {"ceil-ceil", "Ceil", "Ceil(Ceil(x)) --> Ceil(x)", idempotent},
    {"where-same", "Where", "Where(c, x, x) --> x", where_same},
    {"where-nan", "Where", "Where(IsNaN(x), 0, x) --> GreaterElse(x, 0) for x that is never negative", where_nan},
    {"cast-of-cast", "Cast", "Cast(Cast(x to a wider type)) --> Cast(x)", cast_of_cast},
    {"narrow-operand", "", "Expand(x) + y --> x + y where y has the shape; a constant of equal elements is one number",
     narrow_operand},
    {"gather-first", "Gather", "Gather(f(table), i) --> f(Gather(table, i)) for elementwise f of weights",
     gather_first},
    {"concat-of-split", "Concat", "Concat(Split(x)) --> x", concat_of_split},
    {"concat-of-concat", "Concat", "Concat(Concat(a, b), c) --> Concat(a, b, c)", concat_of_concat},
    {"split-of-concat", "Split", "Split(Concat(a, b)) --> a, b", split_of_concat},
    {"add-constants", "Add", "(x + a) + b --> x + (a + b) for integers", add_constants},
};

}  // namespace

std::span<const Rule> algebra_rules() { return kRules; }

int simplify_algebra(GraphEditor& edit, const PassOptions&) { return apply_rules(edit, kRules); }

}  // namespace tensmith::graph
