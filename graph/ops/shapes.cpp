#include "graph/ops/shapes.h"

#include <algorithm>
#include <cmath>

#include "graph/dim_facts.h"

namespace tensmith::graph::ops {

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (size_t k = 0; k < shape.size(); ++k) text += (k ? ", " : "") + dim_to_string(shape[k]);
  return text + "]";
}

std::optional<int64_t> known(const Expr& dim) {
  int64_t value;
  if (as_const_int(dim, &value)) return value;
  return {};
}

bool different_dim(const Expr& a, const Expr& b) {
  const auto x = known(a), y = known(b);
  return x && y && *x != *y;
}

Expr product(const Shape& shape, size_t begin, size_t end) {
  Expr total(1);
  for (size_t k = begin; k < std::min(end, shape.size()); ++k) total = total * shape[k];
  return total;
}

Shape to_shape(std::span<const int64_t> dims) { return Shape(dims.begin(), dims.end()); }

Result<Shape> broadcast_shapes(const std::vector<const Shape*>& shapes) {
  size_t rank = 0;
  for (const Shape* shape : shapes) rank = std::max(rank, shape->size());
  Shape result(rank, Expr(1));
  for (size_t from_back = 0; from_back < rank; ++from_back) {
    Expr& dim = result[rank - 1 - from_back];
    for (const Shape* shape : shapes) {
      if (from_back >= shape->size()) continue;
      const Expr& other = (*shape)[shape->size() - 1 - from_back];
      if (is_const_int(other, 1) || same_dim(dim, other)) continue;
      if (is_const_int(dim, 1)) {
        dim = other;
        continue;
      }
      std::string all;
      for (const Shape* s : shapes) all += (all.empty() ? "" : " and ") + shape_text(*s);
      if (different_dim(dim, other))
        return refuse("shape-mismatch") << "shapes " << all << ": expected equal dims or 1 to broadcast, got "
                                        << dim_to_string(dim) << " and " << dim_to_string(other);
      return refuse("dynamic-broadcast")
             << "shapes " << all << ": expected dims that are the same symbol or 1, got " << dim_to_string(dim)
             << " and " << dim_to_string(other)
             << ", which may differ at run time; give both a size or the same name with --dim";
    }
  }
  return result;
}

Result<void> check_broadcast_to(const Shape& shape, const Shape& target, const std::string& what) {
  if (shape.size() > target.size())
    return refuse("shape-mismatch") << what << ": expected a shape that broadcasts to " << shape_text(target)
                                    << ", got " << shape_text(shape);
  for (size_t k = 0; k < shape.size(); ++k) {
    const Expr& goal = target[target.size() - shape.size() + k];
    if (is_const_int(shape[k], 1) || same_dim(shape[k], goal)) continue;
    return refuse(different_dim(shape[k], goal) || known(goal) == 1 ? "shape-mismatch" : "dynamic-broadcast")
           << what << ": expected a shape that broadcasts to " << shape_text(target) << ", got " << shape_text(shape);
  }
  return {};
}

Indices broadcast_index(const Shape& shape, const Indices& i) {
  Indices index;
  for (size_t k = 0; k < shape.size(); ++k)
    index.push_back(is_const_int(shape[k], 1) ? Expr(0) : i.at(i.size() - shape.size() + k));
  return index;
}

Expr broadcast_load(const Tensor& tensor, const Indices& i) { return tensor(broadcast_index(tensor.shape(), i)); }

Result<int> normalize_axis(int64_t axis, int rank, const std::string& what) {
  if (axis < -rank || axis >= rank)
    return refuse("axis-out-of-range") << what << ": expected " << -rank << " to " << rank - 1 << ", got " << axis;
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Result<std::vector<int>> normalize_axes(const std::vector<int64_t>& axes, int rank) {
  std::vector<int> result;
  for (int64_t axis : axes) {
    const Result<int> one = normalize_axis(axis, rank, "axes");
    if (!one) return one.failure();
    if (std::count(result.begin(), result.end(), *one))
      return refuse("duplicate-axis") << "axes: expected each axis once, got axis " << *one << " twice";
    result.push_back(*one);
  }
  std::sort(result.begin(), result.end());
  return result;
}

Result<void> check_rank(const TensorType& type, int low, int high, const std::string& what) {
  if (type.rank() >= low && type.rank() <= high) return {};
  Refusal refusal = refuse("rank-mismatch") << what << ": expected rank " << low;
  if (high >= 64) return std::move(refusal) << " or more, got shape " << shape_text(type.shape);
  if (high > low) return std::move(refusal) << " to " << high << ", got shape " << shape_text(type.shape);
  return std::move(refusal) << ", got shape " << shape_text(type.shape);
}

Result<void> check_shape(const TensorType& type, const Shape& expected, const std::string& what) {
  bool differs = type.shape.size() != expected.size(), unknown = false;
  for (size_t k = 0; !differs && k < expected.size(); ++k) {
    if (same_dim(type.shape[k], expected[k])) continue;
    (different_dim(type.shape[k], expected[k]) ? differs : unknown) = true;
  }
  if (differs)
    return refuse("shape-mismatch") << what << ": expected shape " << shape_text(expected) << ", got "
                                    << shape_text(type.shape);
  if (unknown)
    return refuse("dynamic-shape")
           << what << ": expected shape " << shape_text(expected) << ", got " << shape_text(type.shape)
           << ", which may differ at run time; give the dims a size or the same name with --dim";
  return {};
}

bool non_negative(const Expr& e) {
  if (const auto* imm = e.as<IntImm>()) return imm->value >= 0;
  if (e.kind() == NodeKind::kVar) return true;
  const VarFacts facts = constant_bounds(e, dim_facts(e));
  return facts.lo && *facts.lo >= 0;
}

std::optional<double> known_number(const Expr& element) {
  if (const auto* imm = element.as<FloatImm>()) return imm->value;
  if (const auto* imm = element.as<IntImm>()) return static_cast<double>(imm->value);
  return {};
}

Expr float_element(double value, DType dtype) {
  const double rounded = make_const(dtype, value).as<FloatImm>()->value;
  constexpr double kLargestWhole = 9007199254740992.0;  // 2^53: doubles below hold every whole number
  if (rounded == std::trunc(rounded) && std::fabs(rounded) < kLargestWhole) return static_cast<int64_t>(rounded);
  return FloatImm::make(kFloat64, rounded);
}

std::optional<std::vector<Expr>> known_elements(const InferContext& ctx, int i) {
  if (!ctx.has(i)) return {};
  const TensorType& type = ctx.input(i);
  if (!type.dtype.is_float()) return ctx.int_values(i);
  const Constant* constant =
      static_cast<size_t>(i) < ctx.constants.size() ? ctx.constants[static_cast<size_t>(i)] : nullptr;
  if (constant && constant->shape().size() <= 1 && constant->num_elements() <= kMaxKnownElements) {
    std::vector<Expr> elements;
    for (int64_t k = 0; k < constant->num_elements(); ++k)
      elements.push_back(float_element(constant->float_at(k), type.dtype));
    return elements;
  }
  if (type.value.empty()) return {};
  return type.value;
}

namespace {

/// One element of the result; null: unknown.
Expr follow(const std::vector<Expr>& args, DType dtype, bool from_floats, const ValueRule& rule) {
  if (from_floats && rule.numbers) {
    std::vector<double> numbers;
    for (const Expr& arg : args)
      if (const auto number = known_number(arg)) numbers.push_back(*number);
    if (numbers.size() == args.size()) {
      const double value = rule.numbers(numbers);
      return dtype.is_float() ? float_element(value, dtype) : Expr(static_cast<int64_t>(value));
    }
  }
  if (!rule.whole || (from_floats && !rule.whole_of_floats)) return {};
  for (const Expr& arg : args)
    if (arg.dtype() != kInt64) return {};
  return rule.whole(args);
}

}  // namespace

void propagate_values(const InferContext& ctx, TensorType& type, const ValueRule& rule) {
  if (type.rank() > 1) return;
  const std::optional<int64_t> count = type.rank() == 0 ? 1 : known(type.shape[0]);
  if (!count || *count > kMaxKnownElements) return;
  std::vector<std::vector<Expr>> inputs;
  bool from_floats = false;
  for (int k = 0; k < static_cast<int>(ctx.inputs.size()); ++k) {
    if (!ctx.has(k) || ctx.input(k).rank() > 1) return;
    std::optional<std::vector<Expr>> values = known_elements(ctx, k);
    if (!values || (values->size() != 1 && values->size() != static_cast<size_t>(*count))) return;
    inputs.push_back(std::move(*values));
    from_floats = from_floats || ctx.input(k).dtype.is_float();
  }
  std::vector<Expr> result;
  for (int64_t element = 0; element < *count; ++element) {
    std::vector<Expr> args;
    for (const auto& values : inputs)
      args.push_back(values.size() == 1 ? values[0] : values[static_cast<size_t>(element)]);
    Expr value = follow(args, type.dtype, from_floats, rule);
    if (value.get() == nullptr) return;
    result.push_back(std::move(value));
  }
  type.value = std::move(result);
}

}  // namespace tensmith::graph::ops
