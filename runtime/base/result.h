/// A value or the reason why there is none, for places where failure is normal: legality, parsing, measuring.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "runtime/base/error.h"

namespace tensmith {

/// Why something was refused: a kebab-case id and a text.
struct Failure {
  std::string id;
  std::string message;
};

/// Holds a `T` or a `Failure`. `Result<void>` holds success or a `Failure`.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}            // NOLINT: implicit by design
  Result(Failure failure) : value_(std::move(failure)) {}  // NOLINT

  bool ok() const { return value_.index() == 0; }
  explicit operator bool() const { return ok(); }
  const T& value() const& {
    TS_CHECK(ok()) << failure().message;
    return std::get<0>(value_);
  }
  T&& value() && {
    TS_CHECK(ok()) << failure().message;
    return std::get<0>(std::move(value_));
  }
  const T& operator*() const& { return value(); }
  const T* operator->() const { return &value(); }
  const Failure& failure() const { return std::get<1>(value_); }

 private:
  std::variant<T, Failure> value_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Failure failure) : failure_(std::move(failure)) {}  // NOLINT

  bool ok() const { return !failure_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Failure& failure() const { return *failure_; }

 private:
  std::optional<Failure> failure_;
};

}  // namespace tensmith
