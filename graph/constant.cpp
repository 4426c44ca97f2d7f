#include "graph/constant.h"

#include <cstdlib>
#include <limits>
#include <type_traits>

#include "graph/element.h"
#include "runtime/base/shape.h"

namespace tensmith::graph {

namespace {

int64_t product(const std::vector<int64_t>& shape) {
  const auto count = element_count(shape);
  TS_CHECK(count) << count.failure().message;
  return *count;
}

}  // namespace

Constant::Constant(DType dtype, std::vector<int64_t> shape, std::shared_ptr<const void> owner, const void* data)
    : dtype_(dtype), shape_(std::move(shape)), owner_(std::move(owner)), data_(data) {
  TS_CHECK(data_ != nullptr);
}

Constant Constant::allocate(DType dtype, std::vector<int64_t> shape) {
  const int64_t bytes = product(shape) * dtype.bytes();
  const size_t rounded = static_cast<size_t>(bytes + 63) / 64 * 64;
  void* data = std::aligned_alloc(64, rounded ? rounded : 64);
  if (!data) throw std::bad_alloc();
  std::memset(data, 0, static_cast<size_t>(bytes));
  return Constant(dtype, std::move(shape),
                  std::shared_ptr<const void>(data, [](const void* p) { std::free(const_cast<void*>(p)); }), data);
}

Constant Constant::from_ints(DType dtype, std::vector<int64_t> shape, std::span<const int64_t> values) {
  Constant result = allocate(dtype, std::move(shape));
  TS_CHECK(static_cast<int64_t>(values.size()) == result.num_elements())
      << values.size() << " values for " << result.num_elements() << " elements";
  with_element_type(dtype, [&]<typename E>(E) {
    auto* out = static_cast<typename E::Stored*>(result.mutable_data());
    for (size_t k = 0; k < values.size(); ++k) out[k] = E::from_int(values[k]);
  });
  return result;
}

Constant Constant::from_floats(DType dtype, std::vector<int64_t> shape, std::span<const double> values) {
  Constant result = allocate(dtype, std::move(shape));
  TS_CHECK(static_cast<int64_t>(values.size()) == result.num_elements())
      << values.size() << " values for " << result.num_elements() << " elements";
  with_element_type(dtype, [&]<typename E>(E) {
    auto* out = static_cast<typename E::Stored*>(result.mutable_data());
    for (size_t k = 0; k < values.size(); ++k) out[k] = E::from_float(values[k]);
  });
  return result;
}

Constant Constant::with_shape(std::vector<int64_t> shape) const {
  TS_CHECK(product(shape) == num_elements()) << shape_to_string(shape_) << " as " << shape_to_string(shape);
  Constant other = *this;
  other.shape_ = std::move(shape);
  return other;
}

int64_t Constant::num_elements() const { return product(shape_); }

double Constant::float_at(int64_t index) const {
  return with_element_type(dtype_, [&]<typename E>(E) { return E::to_float(load_element<E>(data_, index)); });
}

int64_t Constant::int_at(int64_t index) const {
  return with_element_type(dtype_, [&]<typename E>(E) { return E::to_int(load_element<E>(data_, index)); });
}

std::vector<int64_t> Constant::ints() const {
  std::vector<int64_t> values(static_cast<size_t>(num_elements()));
  with_element_type(dtype_, [&]<typename E>(E) {
    for (size_t k = 0; k < values.size(); ++k) values[k] = E::to_int(load_element<E>(data_, static_cast<int64_t>(k)));
  });
  return values;
}

}  // namespace tensmith::graph
