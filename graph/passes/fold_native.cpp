#include "graph/passes/fold_native.h"

#include <algorithm>
#include <array>

#include "graph/element.h"
#include "runtime/base/shape.h"

namespace tensmith::graph {

namespace {

template <typename T>
void transpose_elements(const Constant& value, const std::vector<int64_t>& perm, void* to) {
  const std::vector<int64_t> strides = dense_strides(value.shape());
  std::vector<int64_t> shape, step;
  for (int64_t axis : perm) {
    // Axes that stay together are walked as one.
    if (!shape.empty() && step.back() == value.shape()[axis] * strides[axis]) {
      shape.back() *= value.shape()[axis];
      step.back() = strides[axis];
    } else {
      shape.push_back(value.shape()[axis]);
      step.push_back(strides[axis]);
    }
  }
  const int rank = static_cast<int>(shape.size());
  const T* in = static_cast<const T*>(value.data());
  T* out = static_cast<T*>(to);
  if (rank <= 1) {
    std::copy_n(in, value.num_elements(), out);
    return;
  }
  // The two innermost axes go in squares, so that both sides use whole cache lines.
  constexpr int64_t kBlock = 32;
  const int64_t rows = shape[rank - 2], columns = shape[rank - 1], row_step = step[rank - 2],
                column_step = step[rank - 1];
  std::vector<int64_t> index(static_cast<size_t>(rank) - 2, 0);
  for (;;) {
    int64_t base = 0;
    for (int k = 0; k < rank - 2; ++k) base += index[k] * step[k];
    for (int64_t r0 = 0; r0 < rows; r0 += kBlock)
      for (int64_t c0 = 0; c0 < columns; c0 += kBlock)
        for (int64_t r = r0; r < std::min(rows, r0 + kBlock); ++r)
          for (int64_t c = c0; c < std::min(columns, c0 + kBlock); ++c)
            out[r * columns + c] = in[base + r * row_step + c * column_step];
    out += rows * columns;
    int k = rank - 3;
    for (; k >= 0 && ++index[k] == shape[k]; --k) index[k] = 0;
    if (k < 0) return;
  }
}

/// Elements go through doubles a few at a time: one loop for each type on either side, not one for each pair.
constexpr int64_t kChunk = 1024;

/// `out[k] = fn(in[k], k)` with the elements as doubles.
template <typename Fn>
Constant mapped(const Constant& in, DType dtype, const Fn& fn) {
  Constant result = Constant::allocate(dtype, in.shape());
  const int64_t count = in.num_elements();
  std::array<double, kChunk> buffer;
  for (int64_t start = 0; start < count; start += kChunk) {
    const int64_t length = std::min(kChunk, count - start);
    with_element_type(in.dtype(), [&]<typename E>(E) {
      for (int64_t k = 0; k < length; ++k) buffer[k] = E::to_float(load_element<E>(in.data(), start + k));
    });
    for (int64_t k = 0; k < length; ++k) buffer[k] = fn(buffer[k], start + k);
    with_element_type(dtype, [&]<typename E>(E) {
      auto* out = static_cast<typename E::Stored*>(result.mutable_data()) + start;
      for (int64_t k = 0; k < length; ++k) out[k] = E::from_float(buffer[k]);
    });
  }
  return result;
}

std::optional<Constant> fold_cast(const Node& node, const Constant& in) {
  // Integers to integers wrap, and 64-bit integers are no doubles; special rounding is the interpreter's work.
  const DType to = node.types[0].dtype;
  if (!to.is_float() || (in.dtype().bits == 64 && !in.dtype().is_float()) || node.attrs.has("round_mode"))
    return std::nullopt;
  return mapped(in, to, [](double x, int64_t) { return x; });
}

/// (x - zero) * scale; the difference is an integer and the product of two floats, so one rounding is all there is.
std::optional<Constant> fold_dequantize(const Node& node, const std::vector<const Constant*>& inputs) {
  if (inputs.size() < 2 || !inputs[1] || inputs[0]->dtype().bits > 8 || inputs[1]->dtype() != kFloat32 ||
      node.types[0].dtype != kFloat32)
    return std::nullopt;
  if (node.attrs.get_int("block_size", 0) != 0 || inputs[1]->shape().size() > 1) return std::nullopt;
  const Constant& x = *inputs[0];
  const int64_t channels = inputs[1]->num_elements();
  std::vector<double> scale, zero(static_cast<size_t>(channels), 0.0);
  for (int64_t c = 0; c < channels; ++c) scale.push_back(inputs[1]->float_at(c));
  const Constant* zero_point = inputs.size() > 2 ? inputs[2] : nullptr;
  if (zero_point && zero_point->num_elements() != channels) return std::nullopt;
  for (int64_t c = 0; zero_point && c < channels; ++c) zero[static_cast<size_t>(c)] = zero_point->float_at(c);
  int64_t inner = x.num_elements();
  if (channels > 1) {
    const auto rank = static_cast<int64_t>(x.shape().size());
    int64_t axis = node.attrs.get_int("axis", 1);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || x.shape()[static_cast<size_t>(axis)] != channels) return std::nullopt;
    inner = 1;
    for (int64_t k = axis + 1; k < rank; ++k) inner *= x.shape()[static_cast<size_t>(k)];
  }
  return mapped(x, kFloat32, [&](double value, int64_t k) {
    const auto c = static_cast<size_t>(channels == 1 ? 0 : k / inner % channels);
    return (value - zero[c]) * scale[c];
  });
}

/// The offset of each row of `shape` (all but the last axis) in an operand that broadcasts to it.
std::vector<int64_t> row_offsets(const std::vector<int64_t>& shape, const std::vector<int64_t>& operand) {
  const size_t rank = shape.size(), missing = rank - operand.size();
  const std::vector<int64_t> strides = dense_strides(operand);
  std::vector<int64_t> offsets = {0};
  for (size_t axis = 0; axis + 1 < rank; ++axis) {
    const int64_t step = axis < missing || operand[axis - missing] == 1 ? 0 : strides[axis - missing];
    std::vector<int64_t> next;
    next.reserve(offsets.size() * static_cast<size_t>(shape[axis]));
    for (int64_t offset : offsets)
      for (int64_t k = 0; k < shape[axis]; ++k) next.push_back(offset + k * step);
    offsets = std::move(next);
  }
  return offsets;
}

/// Arithmetic on two float32 tensors: in double with one rounding, which for these operations is what float32 gives.
template <typename Fn>
Constant combined(const Constant& a, const Constant& b, const std::vector<int64_t>& shape, const Fn& fn) {
  Constant result = Constant::allocate(kFloat32, shape);
  const int64_t columns = shape.empty() ? 1 : shape.back();
  const std::vector<int64_t> a_rows = row_offsets(shape, a.shape()), b_rows = row_offsets(shape, b.shape());
  const int64_t a_step = a.shape().empty() || a.shape().back() == 1 ? 0 : 1,
                b_step = b.shape().empty() || b.shape().back() == 1 ? 0 : 1;
  using E = FloatElement<float>;
  auto* out = static_cast<float*>(result.mutable_data());
  for (size_t row = 0; row < a_rows.size(); ++row)
    for (int64_t c = 0; c < columns; ++c)
      *out++ = static_cast<float>(fn(E::to_float(load_element<E>(a.data(), a_rows[row] + c * a_step)),
                                     E::to_float(load_element<E>(b.data(), b_rows[row] + c * b_step))));
  return result;
}

std::optional<Constant> fold_arithmetic(const std::string& op, const std::vector<const Constant*>& inputs,
                                        const TensorType& type) {
  if (inputs.size() != 2 || !inputs[1] || inputs[0]->dtype() != kFloat32 || inputs[1]->dtype() != kFloat32)
    return std::nullopt;
  const Constant &a = *inputs[0], &b = *inputs[1];
  const std::vector<int64_t> shape = type.static_shape();
  if (op == "Add") return combined(a, b, shape, [](double x, double y) { return x + y; });
  if (op == "Sub") return combined(a, b, shape, [](double x, double y) { return x - y; });
  if (op == "Mul") return combined(a, b, shape, [](double x, double y) { return x * y; });
  if (op == "Div") return combined(a, b, shape, [](double x, double y) { return x / y; });
  return std::nullopt;
}

}  // namespace

Constant transpose(const Constant& value, const std::vector<int64_t>& perm) {
  std::vector<int64_t> shape;
  for (int64_t axis : perm) shape.push_back(value.shape().at(static_cast<size_t>(axis)));
  Constant result = Constant::allocate(value.dtype(), shape);
  if (result.num_elements() == 0) return result;
  switch (value.dtype().bytes()) {
    case 1: transpose_elements<uint8_t>(value, perm, result.mutable_data()); break;
    case 2: transpose_elements<uint16_t>(value, perm, result.mutable_data()); break;
    case 4: transpose_elements<uint32_t>(value, perm, result.mutable_data()); break;
    default: transpose_elements<uint64_t>(value, perm, result.mutable_data()); break;
  }
  return result;
}

std::optional<Constant> fold_natively(const Node& node, const std::vector<const Constant*>& inputs) {
  if (!node.op->domain.empty() || node.types.size() != 1 || inputs.empty() || !inputs[0] ||
      inputs[0]->num_elements() == 0)
    return std::nullopt;
  const std::string& op = node.op->name;
  const Constant& data = *inputs[0];
  if (op == "Reshape" || op == "Squeeze" || op == "Unsqueeze" || op == "Flatten" || op == "Identity")
    return data.with_shape(node.types[0].static_shape());
  if (op == "Cast") return fold_cast(node, data);
  if (op == "DequantizeLinear") return fold_dequantize(node, inputs);
  if (op != "Transpose")
    return inputs.size() == 2 && inputs[1] && inputs[1]->num_elements() > 0 ? fold_arithmetic(op, inputs, node.types[0])
                                                                            : std::nullopt;
  std::vector<int64_t> perm = node.attrs.get_ints("perm");
  if (perm.empty())
    for (int64_t k = static_cast<int64_t>(data.shape().size()) - 1; k >= 0; --k) perm.push_back(k);
  return transpose(data, perm);
}

}  // namespace tensmith::graph
