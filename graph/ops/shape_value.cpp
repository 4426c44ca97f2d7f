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

const Constant* constant_of(const std::vector<const Constant*>& constants, int input) {
  return input < static_cast<int>(constants.size()) ? constants[input] : nullptr;
}

}  // namespace

std::optional<Elements> known_elements(const TensorType* type, const Constant* constant) {
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

std::optional<Elements> known_elements(const InferContext& ctx, int input) {
  return ctx.has(input) ? known_elements(ctx.inputs[input], constant_of(ctx.constants, input)) : std::nullopt;
}

std::optional<Elements> known_elements(const ComputeContext& ctx, int input) {
  if (input >= static_cast<int>(ctx.input_types.size())) return {};
  return known_elements(ctx.input_types[input], constant_of(ctx.constants, input));
}

std::optional<std::vector<int64_t>> known_numbers(const InferContext& ctx, int input) {
  return numbers(known_elements(ctx, input));
}
std::optional<std::vector<int64_t>> known_numbers(const ComputeContext& ctx, int input) {
  return numbers(known_elements(ctx, input));
}

std::optional<double> known_float(const Constant* constant) {
  if (!constant || !*constant || constant->num_elements() != 1) return {};
  return constant->dtype().is_float() ? constant->float_at(0) : static_cast<double>(constant->int_at(0));
}

bool follows_elements(const TensorType& type) {
  if (!type.dtype.is_integral() && !type.dtype.is_bool()) return false;
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
  const auto elements = known_elements(ctx, input);
  if (!elements) return;
  int64_t count = 1;
  for (const Expr& dim : out.shape) count *= *known(dim);
  Elements result;
  for (int64_t k = 0; k < count; ++k) result.push_back(elements->at(static_cast<size_t>(source(k))));
  out.value = std::move(result);
}

void pass_elements(const InferContext& ctx, int input, TensorType& out) {
  if (auto elements = known_elements(ctx, input)) set_elements(out, std::move(*elements));
}

Result<void> require_elements(const InferContext& ctx, std::initializer_list<int> inputs) {
  for (int input : inputs)
    if (ctx.has(input) && !known_elements(ctx, input))
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
