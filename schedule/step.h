/// One step of a schedule: a primitive with named arguments. Steps are plain text-like values: they print, save and
/// replay.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/result.h"

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
    TS_CHECK(arg && std::holds_alternative<T>(*arg))
        << primitive << " has no argument " << name << " of the wanted type";
    return std::get<T>(*arg);
  }
};

/// One line: `split stage=C loop=i factor=6 outer=io inner=ii tail=peel`. Texts with blanks, quotes, backslashes or
/// control characters (within lists also commas) stand in double quotes.
std::string to_string(const Step& step);
/// The step that such a line says; the primitive's schema tells numbers from texts. Arguments with defaults may be left
/// out. Errors: unknown-primitive, unknown-step-argument, bad-step-argument, bad-step-text.
Result<Step> parse_step(std::string_view text);
/// One step a line; empty lines and lines that begin with `#` are skipped. Errors: those of parse_step, with the line's
/// number.
Result<std::vector<Step>> parse_steps(std::string_view text);

}  // namespace tensmith
