/// How type rules say no.
#pragma once

#include <sstream>

#include "runtime/base/result.h"

namespace tensmith::graph::ops {

/// Collects the text of a Failure; converts to any Result: `return refuse("shape-mismatch") << "input B: expected " <<
/// n;`
class Refusal {
 public:
  explicit Refusal(std::string id) : id_(std::move(id)) {}
  template <typename T>
  Refusal&& operator<<(const T& value) && {
    text_ << value;
    return std::move(*this);
  }
  template <typename T>
  operator Result<T>() && {  // NOLINT: implicit by design
    return Failure{std::move(id_), text_.str()};
  }

 private:
  std::string id_;
  std::ostringstream text_;
};

/// Starts a refusal. The text has the form `<what>: expected X, got Y; <way out>`; the caller of the rule names node
/// and operator.
inline Refusal refuse(std::string id) { return Refusal(std::move(id)); }

}  // namespace tensmith::graph::ops
