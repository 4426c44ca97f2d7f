/// Errors that leave a function as exceptions: who is at fault decides the class, a kebab-case id names the cause.
#pragma once

#include <exception>
#include <sstream>
#include <string>
#include <string_view>

namespace tensmith {

/// Who is at fault, and with it the exit code of the command line (see `exit_code`).
enum class ErrorKind { kUser, kUnsupported, kSchedule, kDevice, kTarget, kMismatch, kInternal };

/// An error with a stable id (`tensmith explain ID`) and a text of the form
/// `<where>: <what>: expected X, got Y; <way out>` in lower case without a final period.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string id, std::string message);

  const char* what() const noexcept override { return text_.c_str(); }
  ErrorKind kind() const { return kind_; }
  const std::string& id() const { return id_; }
  /// The text without the id.
  const std::string& message() const { return message_; }

 private:
  ErrorKind kind_;
  std::string id_;
  std::string message_;
  std::string text_;  // message [id]
};

/// A bad model, option, input or file.
class UserError : public Error {
 public:
  UserError(std::string id, std::string message) : Error(ErrorKind::kUser, std::move(id), std::move(message)) {}
};
/// A correct model that needs something we do not have (exit code 3).
class UnsupportedError : public Error {
 public:
  UnsupportedError(std::string id, std::string message)
      : Error(ErrorKind::kUnsupported, std::move(id), std::move(message)) {}
};
/// An illegal schedule; the text also shows the loop nest with the loop marked.
class ScheduleError : public Error {
 public:
  ScheduleError(std::string id, std::string message) : Error(ErrorKind::kSchedule, std::move(id), std::move(message)) {}
};
/// A device or the operating system refused.
class DeviceError : public Error {
 public:
  DeviceError(std::string id, std::string message) : Error(ErrorKind::kDevice, std::move(id), std::move(message)) {}
};
/// The target description does not fit the machine or the artefact (exit code 5).
class TargetError : public Error {
 public:
  TargetError(std::string id, std::string message) : Error(ErrorKind::kTarget, std::move(id), std::move(message)) {}
};
/// Our own fault: an invariant does not hold.
class InternalError : public Error {
 public:
  explicit InternalError(std::string message) : Error(ErrorKind::kInternal, "internal-error", std::move(message)) {}
};

/// The command line's exit code for an error: 1 internal, 2 usage, 3 unsupported model, 4 mismatch, 5 target, 6
/// schedule.
int exit_code(ErrorKind kind);

namespace detail {

/// Collects the message of a failed check and throws at the end of the full expression (never from a destructor).
class CheckStream {
 public:
  template <typename T>
  CheckStream& operator<<(const T& value) {
    stream_ << value;
    return *this;
  }
  std::string str() const { return stream_.str(); }

 private:
  std::ostringstream stream_;
};

struct ThrowUser {
  const char* id;
  [[noreturn]] void operator&(const CheckStream& s) const { throw UserError(id, s.str()); }
};
struct ThrowInternal {
  const char* file;
  int line;
  const char* condition;
  [[noreturn]] void operator&(const CheckStream& s) const;
};

}  // namespace detail
}  // namespace tensmith

/// Throws UserError(id, message) unless `cond`; the message is only built on failure: `TS_USER_CHECK(n > 0, "bad-n") <<
/// "n is " << n;`
#define TS_USER_CHECK(cond, id) (cond) ? (void)0 : ::tensmith::detail::ThrowUser{id} & ::tensmith::detail::CheckStream()
/// Throws InternalError with file, line and condition unless `cond`. Always on.
#define TS_CHECK(cond) \
  (cond) ? (void)0 : ::tensmith::detail::ThrowInternal{__FILE__, __LINE__, #cond} & ::tensmith::detail::CheckStream()
/// Marks a place that cannot be reached.
#define TS_UNREACHABLE() \
  ::tensmith::detail::ThrowInternal{__FILE__, __LINE__, "unreachable"} & ::tensmith::detail::CheckStream()
