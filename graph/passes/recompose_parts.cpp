#include "graph/passes/recompose_parts.h"

#include <algorithm>
#include <numeric>

namespace tensmith::graph {

namespace {

constexpr size_t kMaxFactors = 8;

void collect(const Rewriter& r, Value v, bool root, Factors& out) {
  const Node* mul = r.producer(v, "Mul");
  const Node* div = mul ? nullptr : r.producer(v, "Div");
  // A square or cube is taken apart even when others read it too; anything else belongs to its other readers.
  const bool square = mul && mul->inputs[0] == mul->inputs[1];
  const bool power = square || (mul && r.producer(mul->inputs[0], "Mul") &&
                                r.producer(mul->inputs[0], "Mul")->inputs == std::vector<Value>(2, mul->inputs[1]));
  const bool open = root || power || r.single_use(v);
  if (mul && open && out.others.size() < kMaxFactors) {
    if (const auto number = r.number(mul->inputs[1]);
        number && r.type(mul->inputs[1]).rank() <= r.type(mul->inputs[0]).rank()) {
      out.number *= *number;
      return collect(r, mul->inputs[0], false, out);
    }
    collect(r, mul->inputs[0], false, out);
    collect(r, mul->inputs[1], false, out);
    return;
  }
  if (div && open) {
    if (const auto number = r.number(div->inputs[1]); number && *number != 0) {
      out.number /= *number;
      return collect(r, div->inputs[0], false, out);
    }
  }
  out.others.push_back(v);
}

}  // namespace

Factors factors_of(const Rewriter& r, Value v) {
  Factors factors;
  if (v.given()) collect(r, v, true, factors);
  std::sort(factors.others.begin(), factors.others.end());
  return factors;
}

std::optional<std::vector<int64_t>> reduced_axes(const Rewriter& r, const Node& n) {
  if (n.attrs.get_int("keepdims", 1) == 0 || n.inputs.size() < 2) return std::nullopt;
  auto axes = r.ints(n.inputs[1]);
  if (!axes || axes->empty()) return std::nullopt;
  for (int64_t& axis : *axes)
    if (axis < 0) axis += r.type(n.inputs[0]).rank();
  std::sort(axes->begin(), axes->end());
  return axes;
}

namespace {

/// Whether the axes are the last ones.
bool are_last(const std::vector<int64_t>& axes, int rank) {
  for (size_t k = 0; k < axes.size(); ++k)
    if (axes[k] != rank - static_cast<int64_t>(axes.size() - k)) return false;
  return !axes.empty();
}

/// mean(square of v) over the last axes, plus epsilon, under a root: what it is of.
struct Spread {
  Value of;
  std::vector<int64_t> axes;
  double epsilon = 0;
};

std::optional<Spread> spread_of_root(const Rewriter& r, Value v) {
  const Node* root = r.producer(v, "Sqrt");
  const Node* sum = root ? r.producer(root->inputs[0], "Add") : nullptr;
  const auto epsilon = sum ? r.number(sum->inputs[1]) : std::nullopt;
  const Node* mean = epsilon ? r.producer(sum->inputs[0], "ReduceMean") : nullptr;
  const auto axes = mean ? reduced_axes(r, *mean) : std::nullopt;
  if (!axes || !are_last(*axes, r.type(mean->inputs[0]).rank())) return std::nullopt;
  const Node* square = r.producer(mean->inputs[0], "Mul");
  if (!square || square->inputs[0] != square->inputs[1]) return std::nullopt;
  return Spread{square->inputs[0], *axes, *epsilon};
}

/// v / sqrt(mean(v^2) + e), as a quotient or a product with a reciprocal.
std::optional<Spread> normalised(const Rewriter& r, Value v) {
  std::optional<Spread> spread;
  Value numerator;
  if (const Node* div = r.producer(v, "Div")) {
    spread = spread_of_root(r, div->inputs[1]);
    numerator = div->inputs[0];
  } else if (const Node* mul = r.producer(v, "Mul")) {
    for (int k = 0; k < 2 && !spread; ++k) {
      const Value factor = mul->inputs[static_cast<size_t>(k)];
      numerator = mul->inputs[static_cast<size_t>(1 - k)];
      if (const Node* reciprocal = r.producer(factor, "Reciprocal")) spread = spread_of_root(r, reciprocal->inputs[0]);
      else if (const Node* quotient = r.producer(factor, "Div"); quotient && r.is_number(quotient->inputs[0], 1))
        spread = spread_of_root(r, quotient->inputs[1]);
    }
  }
  return spread && spread->of == numerator ? spread : std::nullopt;
}

/// x, when v is x - mean(x) over the same axes.
std::optional<Value> centred(const Rewriter& r, Value v, const std::vector<int64_t>& axes) {
  const Node* sub = r.producer(v, "Sub");
  const Node* mean = sub ? r.producer(sub->inputs[1], "ReduceMean") : nullptr;
  if (!mean || mean->inputs[0] != sub->inputs[0] || reduced_axes(r, *mean) != axes) return std::nullopt;
  return sub->inputs[0];
}

AttrMap norm_attrs(const Spread& spread) {
  AttrMap attrs;
  attrs.set("axis", spread.axes[0]);
  attrs.set("epsilon", spread.epsilon);
  return attrs;
}

/// The shape of the axes that are normalised, when it is fixed.
std::optional<std::vector<int64_t>> norm_shape(const TensorType& type, const std::vector<int64_t>& axes) {
  std::vector<int64_t> shape;
  for (int64_t axis : axes) {
    const auto* imm = type.shape[static_cast<size_t>(axis)].as<IntImm>();
    if (!imm) return std::nullopt;
    shape.push_back(imm->value);
  }
  return shape;
}

/// Whether a factor or term can be an operand of the operator: it broadcasts over the normalised axes alone.
bool fits(const Rewriter& r, Value v, const TensorType& x, const std::vector<int64_t>& axes) {
  const TensorType& type = r.type(v);
  if (type.dtype != x.dtype || type.rank() > static_cast<int>(axes.size())) return false;
  for (int k = 0; k < type.rank(); ++k) {
    const Expr& dim = type.shape[static_cast<size_t>(k)];
    if (!same_dim(dim, x.shape[static_cast<size_t>(x.rank() - type.rank() + k)])) return false;
  }
  return type.rank() == static_cast<int>(axes.size());
}

}  // namespace

bool layer_norm(Rewriter& r, const Node& n) {
  for (int k = 0; k < 2; ++k) {
    const Value scaled = n.inputs[static_cast<size_t>(1 - k)], scale = n.inputs[static_cast<size_t>(k)];
    const auto spread = normalised(r, scaled);
    const auto x = spread ? centred(r, spread->of, spread->axes) : std::nullopt;
    if (!x || !fits(r, scale, r.type(*x), spread->axes)) continue;
    // A term behind it joins when it fits.
    if (const Node* add = r.only_user({n.id, 0}, "Add")) {
      const Value term = add->inputs[0] == Value{n.id, 0} ? add->inputs[1] : add->inputs[0];
      if (fits(r, term, r.type(*x), spread->axes))
        return r.replace(*add, r.add(*add, "LayerNormalization", {*x, scale, term}, norm_attrs(*spread)));
    }
    return r.replace(n, r.add(n, "LayerNormalization", {*x, scale}, norm_attrs(*spread)));
  }
  return false;
}

bool layer_norm_unscaled(Rewriter& r, const Node& n) {
  const auto spread = normalised(r, {n.id, 0});
  const auto x = spread ? centred(r, spread->of, spread->axes) : std::nullopt;
  const auto shape = x ? norm_shape(r.type(*x), spread->axes) : std::nullopt;
  // With a factor behind it, the rule for the scaled form is better.
  if (!shape || r.only_user({n.id, 0}, "Mul")) return false;
  return r.replace(
      n, r.add(n, "LayerNormalization", {*x, r.add_number(n, 1, n.types[0].dtype, *shape)}, norm_attrs(*spread)));
}

bool rms_norm(Rewriter& r, const Node& n) {
  for (int k = 0; k < 2; ++k) {
    const auto spread = normalised(r, n.inputs[static_cast<size_t>(1 - k)]);
    const Value scale = n.inputs[static_cast<size_t>(k)];
    if (!spread || centred(r, spread->of, spread->axes) || !fits(r, scale, r.type(spread->of), spread->axes)) continue;
    return r.replace(n, r.add(n, "RMSNormalization", {spread->of, scale}, norm_attrs(*spread)));
  }
  return false;
}

}  // namespace tensmith::graph
