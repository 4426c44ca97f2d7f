/// Short ways to write the samples of an operator.
#pragma once

#include <initializer_list>

#include "graph/op_def.h"

namespace tensmith::graph::ops {

/// A random input.
inline OpSample::Input in(DType dtype, std::vector<int64_t> shape, double low = -2, double high = 2) {
  return {.dtype = dtype, .shape = std::move(shape), .low = low, .high = high};
}
/// A random float32 input.
inline OpSample::Input f32(std::vector<int64_t> shape, double low = -2, double high = 2) {
  return in(kFloat32, std::move(shape), low, high);
}
/// An input with given values.
inline OpSample::Input given(DType dtype, std::vector<int64_t> shape, std::vector<double> values) {
  return {.dtype = dtype, .shape = std::move(shape), .values = std::move(values)};
}
/// A vector known at compile time, such as axes.
inline OpSample::Input known_ints(std::vector<double> values) {
  const auto count = static_cast<int64_t>(values.size());
  return {.dtype = kInt64, .shape = {count}, .values = std::move(values), .constant = true};
}
/// A number known at compile time.
inline OpSample::Input known_scalar(DType dtype, double value) {
  return {.dtype = dtype, .shape = {}, .values = {value}, .constant = true};
}
/// An optional input that is not given.
inline OpSample::Input absent() { return {.dtype = kFloat32, .shape = {}, .absent = true}; }

/// Attributes; integers and lists of integers are written as such: `attrs({{"axis", 1}, {"pads", ints({1, 1})}})`.
struct NamedAttr {
  NamedAttr(const char* name, int value) : name(name), value(int64_t{value}) {}
  NamedAttr(const char* name, double value) : name(name), value(value) {}
  NamedAttr(const char* name, const char* value) : name(name), value(std::string(value)) {}
  NamedAttr(const char* name, AttrValue value) : name(name), value(std::move(value)) {}
  const char* name;
  AttrValue value;
};
inline AttrValue ints(std::vector<int64_t> values) { return AttrValue(std::move(values)); }
inline AttrMap attrs(std::initializer_list<NamedAttr> list) {
  AttrMap map;
  for (const NamedAttr& one : list) map.set(one.name, one.value);
  return map;
}

}  // namespace tensmith::graph::ops
