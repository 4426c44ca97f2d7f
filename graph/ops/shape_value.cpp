#include "graph/ops/shape_value.h"

namespace tensmith::graph::ops {

namespace {

/// Tensors that steer shapes have one or two elements a dim.
constexpr int64_t kMaxSteeringElements = 1024;

std::optional<std::vector<int64_t>> numbers(const std::optional<Elements>& elements) {
  if (!elements) return {};
  std::vector<int64_t> result;
  for (const Expr& element : *elements) {
    const auto number = known(element);
    if (!number) return {};
    result.push_back(*number);
  }
  return result;
}

}  // namespace

std::optional<Elements> int_elements(const TensorType* type, const Constant* constant) {
  if (!type || !(type->dtype.is_integral() || type->dtype.is_bool())) return {};
  if (constant && *constant && constant->num_elements() <= kMaxSteeringElements) {
    Elements elements;
    for (int64_t value : constant->ints()) elements.push_back(value);
    return elements;
  }
  if (!type->value.empty()) return type->value;
  for (const Expr& dim : type->shape)
    if (is_const_int(dim, 0)) return Elements{};
  return {};
}

std::optional<Elements> int_elements(const InferContext& ctx, int input) {
  return ctx.has(input) ? int_elements(ctx.inputs[input], constant_at(ctx, input)) : std::nullopt;
}

std::optional<Elements> int_elements(const ComputeContext& ctx, int input) {
  if (input >= static_cast<int>(ctx.input_types.size())) return {};
  return int_elements(ctx.input_types[input], constant_at(ctx, input));
}

std::optional<std::vector<int64_t>> known_numbers(const InferContext& ctx, int input) {
  return numbers(int_elements(ctx, input));
}
std::optional<std::vector<int64_t>> known_numbers(const ComputeContext& ctx, int input) {
  return numbers(int_elements(ctx, input));
}

std::optional<std::vector<double>> known_floats(const TensorType* type, const Constant* constant) {
  std::vector<double> numbers;
  if (constant && *constant) {
    for (int64_t k = 0; k < constant->num_elements(); ++k) numbers.push_back(constant->float_at(k));
    return numbers;
  }
  if (!type || type->value.empty()) return {};
  for (const Expr& element : type->value) {
    const auto number = known_number(element);
    if (!number) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<double> known_float(const Constant* constant) {
  if (!constant || !*constant || constant->num_elements() != 1) return {};
  return constant->dtype().is_float() ? constant->float_at(0) : static_cast<double>(constant->int_at(0));
}

std::optional<Elements> any_elements(const InferContext& ctx, int input) {
  if (!ctx.has(input)) return {};
  if (!ctx.input(input).dtype.is_float()) return int_elements(ctx, input);
  const Constant* constant = constant_at(ctx, input);
  if (!constant || !*constant)
    return ctx.input(input).value.empty() ? std::nullopt : std::optional(ctx.input(input).value);
  if (constant->num_elements() > kMaxKnownElements) return {};
  Elements elements;
  for (int64_t k = 0; k < constant->num_elements(); ++k)
    elements.push_back(float_element(constant->float_at(k), constant->dtype()));
  return elements;
}

bool follows_elements(const TensorType& type) {
  int64_t count = 1;
  for (const Expr& dim : type.shape) {
    const auto number = known(dim);
    if (!number || *number > kMaxKnownElements) return false;
    count *= *number;
    if (count > kMaxKnownElements) return false;
  }
  return count > 0;
}

void set_elements(TensorType& out, Elements elements) {
  if (!follows_elements(out)) return;
  int64_t count = 1;
  for (const Expr& dim : out.shape) count *= *known(dim);
  if (count == static_cast<int64_t>(elements.size())) out.value = std::move(elements);
}

void pass_elements(const InferContext& ctx, int input, TensorType& out, const std::function<int64_t(int64_t)>& source) {
  if (!follows_elements(out)) return;
  const auto elements = any_elements(ctx, input);
  if (!elements) return;
  int64_t count = 1;
  for (const Expr& dim : out.shape) count *= *known(dim);
  Elements result;
  for (int64_t k = 0; k < count; ++k) result.push_back(elements->at(static_cast<size_t>(source(k))));
  out.value = std::move(result);
}

void pass_elements(const InferContext& ctx, int input, TensorType& out) {
  if (auto elements = any_elements(ctx, input)) set_elements(out, std::move(*elements));
}

Result<void> require_elements(const InferContext& ctx, std::initializer_list<int> inputs) {
  for (int input : inputs)
    if (ctx.has(input) && !int_elements(ctx, input))
      return refuse("dynamic-shape")
             << "input " << ctx.node.op->inputs[input].name
             << ": expected values known at compile time or made of dims, got values that only the data gives; "
                "make it a constant, or give the dims a size with --dim";
  return {};
}

Result<void> require_same_dim(const Expr& a, const Expr& b, const std::string& what) {
  if (same_dim(a, b)) return {};
  return refuse("dynamic-shape") << what << ": expected equal dims, got " << dim_to_string(a) << " and "
                                 << dim_to_string(b)
                                 << ", which may differ at run time; give the dims a size with --dim";
}

Shape data_shape(const InferContext& ctx, int output, int rank) {
  Shape shape;
  for (int axis = 0; axis < rank; ++axis) shape.push_back(ctx.data_dim(output, axis));
  return shape;
}

}  // namespace tensmith::graph::ops
