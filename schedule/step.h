/// One step of a schedule: a primitive with named arguments. Steps are plain text-like values: they print, save and replay.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/error.h"

namespace tensmith {

using StepArg = std::variant<int64_t, std::string, std::vector<int64_t>, std::vector<std::string>>;

/// A primitive applied to stages and loops that are named by text.
struct Step {
  std::string primitive;
  std::vector<std::pair<std::string, StepArg>> args;  ///< in the order of the primitive's schema

  friend bool operator==(const Step&, const Step&) = default;

  const StepArg* find(const std::string& name) const {
    for (const auto& [key, value] : args)
      if (key == name) return &value;
    return nullptr;
  }
  /// Typed access. Errors: InternalError when absent or of another type (`check_schema` runs before any primitive).
  const std::string& text(const std::string& name) const { return get<std::string>(name); }
  int64_t number(const std::string& name) const { return get<int64_t>(name); }
  const std::vector<std::string>& texts(const std::string& name) const { return get<std::vector<std::string>>(name); }
  const std::vector<int64_t>& numbers(const std::string& name) const { return get<std::vector<int64_t>>(name); }

 private:
  template <typename T>
  const T& get(const std::string& name) const {
    const StepArg* arg = find(name);
    TS_CHECK(arg && std::holds_alternative<T>(*arg)) << primitive << " has no argument " << name << " of the wanted type";
    return std::get<T>(*arg);
  }
};

/// One line: `split stage=C loop=i factor=6 outer=io inner=ii tail=peel`.
std::string to_string(const Step& step);

}  // namespace tensmith
