#include "graph/element.h"
#include "graph/op_def.h"
#include "runtime/base/shape.h"

namespace tensmith::graph {

int64_t RefTensor::num_elements() const {
  const auto count = element_count(shape);
  TS_CHECK(count) << count.failure().message;
  return *count;
}

void RefTensor::set(int64_t index, double value) {
  if (is_float()) f[static_cast<size_t>(index)] = value;
  else
    i[static_cast<size_t>(index)] =
        with_element_type(dtype, [&]<typename E>(E) { return E::to_int(E::from_float(value)); });
}

RefTensor make_ref_tensor(DType dtype, std::vector<int64_t> shape) {
  RefTensor tensor{dtype, std::move(shape), {}, {}};
  const auto count = static_cast<size_t>(tensor.num_elements());
  if (tensor.is_float()) tensor.f.resize(count);
  else tensor.i.resize(count);
  return tensor;
}

RefTensor to_ref_tensor(const Constant& value) {
  RefTensor tensor{value.dtype(), value.shape(), {}, {}};
  const int64_t count = value.num_elements();
  with_element_type(value.dtype(), [&]<typename E>(E) {
    if constexpr (E::kFloat) {
      tensor.f.resize(static_cast<size_t>(count));
      for (int64_t k = 0; k < count; ++k) tensor.f[k] = E::to_float(load_element<E>(value.data(), k));
    } else {
      tensor.i.resize(static_cast<size_t>(count));
      for (int64_t k = 0; k < count; ++k) tensor.i[k] = E::to_int(load_element<E>(value.data(), k));
    }
  });
  return tensor;
}

Constant to_constant(const RefTensor& value) {
  return value.is_float() ? Constant::from_floats(value.dtype, value.shape, value.f)
                          : Constant::from_ints(value.dtype, value.shape, value.i);
}

void round_to_dtype(RefTensor& tensor) {
  if (tensor.dtype == kFloat64 || tensor.dtype == kInt64 || tensor.dtype == kUInt64) return;
  with_element_type(tensor.dtype, [&]<typename E>(E) {
    if constexpr (E::kFloat)
      for (double& x : tensor.f) x = E::to_float(E::from_float(x));
    else
      for (int64_t& x : tensor.i) x = E::to_int(E::from_int(x));
  });
}

}  // namespace tensmith::graph
