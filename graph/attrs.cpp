#include "graph/graph.h"

namespace tensmith::graph {

namespace {

const char* kind_name(const AttrValue& value) {
  static constexpr const char* kNames[] = {"an int",         "a float",          "a string",
                                           "a list of ints", "a list of floats", "a list of strings",
                                           "a tensor",       "an element type",  "a graph"};
  return kNames[value.index()];
}

template <typename T>
const T* typed(const std::map<std::string, AttrValue>& values, const std::string& name, const char* expected) {
  const auto found = values.find(name);
  if (found == values.end()) return nullptr;
  const T* value = std::get_if<T>(&found->second);
  TS_USER_CHECK(value, "bad-attribute") << "attribute " << name << ": expected " << expected << ", got "
                                        << kind_name(found->second);
  return value;
}

template <typename T>
T value_or(const T* value, const T& fallback) {
  return value ? *value : fallback;
}

}  // namespace

int64_t AttrMap::get_int(const std::string& name, int64_t fallback) const {
  return value_or(typed<int64_t>(values_, name, "an int"), fallback);
}
double AttrMap::get_float(const std::string& name, double fallback) const {
  return value_or(typed<double>(values_, name, "a float"), fallback);
}
std::string AttrMap::get_string(const std::string& name, const std::string& fallback) const {
  return value_or(typed<std::string>(values_, name, "a string"), fallback);
}
std::vector<int64_t> AttrMap::get_ints(const std::string& name, const std::vector<int64_t>& fallback) const {
  return value_or(typed<std::vector<int64_t>>(values_, name, "a list of ints"), fallback);
}
std::vector<double> AttrMap::get_floats(const std::string& name, const std::vector<double>& fallback) const {
  return value_or(typed<std::vector<double>>(values_, name, "a list of floats"), fallback);
}
std::vector<std::string> AttrMap::get_strings(const std::string& name) const {
  return value_or(typed<std::vector<std::string>>(values_, name, "a list of strings"), {});
}
DType AttrMap::get_dtype(const std::string& name, DType fallback) const {
  return value_or(typed<DType>(values_, name, "an element type"), fallback);
}
const Constant* AttrMap::get_tensor(const std::string& name) const {
  return typed<Constant>(values_, name, "a tensor");
}
std::shared_ptr<Graph> AttrMap::get_graph(const std::string& name) const {
  const auto* value = typed<std::shared_ptr<Graph>>(values_, name, "a graph");
  return value ? *value : nullptr;
}

}  // namespace tensmith::graph
