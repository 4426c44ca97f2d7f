#include "runtime/base/error.h"

#include <cstring>

namespace tensmith {

Error::Error(ErrorKind kind, std::string id, std::string message)
    : kind_(kind), id_(std::move(id)), message_(std::move(message)), text_(message_ + " [" + id_ + "]") {}

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUser: return 2;
    case ErrorKind::kUnsupported: return 3;
    case ErrorKind::kMismatch: return 4;
    case ErrorKind::kTarget: return 5;
    case ErrorKind::kSchedule: return 6;
    case ErrorKind::kDevice:
    case ErrorKind::kInternal: return 1;
  }
  return 1;
}

namespace detail {

void ThrowInternal::operator&(const CheckStream& s) const {
  // Only the file's name: messages must not carry the paths of the build machine.
  const char* name = std::strrchr(file, '/');
  std::ostringstream text;
  text << (name ? name + 1 : file) << ":" << line << ": internal check failed: " << condition;
  if (std::string extra = s.str(); !extra.empty()) text << ": " << extra;
  throw InternalError(text.str());
}

}  // namespace detail
}  // namespace tensmith
