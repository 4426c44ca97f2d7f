#include "runtime/base/format.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace tensmith {

std::string format_text(const char* form, ...) {
  va_list arguments, again;
  va_start(arguments, form);
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, form, arguments);
  va_end(arguments);
  std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
  if (length > 0) std::vsnprintf(text.data(), text.size() + 1, form, again);
  va_end(again);
  return text;
}

std::string time_text(double us) {
  if (!(us > 0) || !std::isfinite(us)) return "-";
  return us < 1000 ? format_text("%.4g us", us) : format_text("%.4g ms", us / 1000);
}

}  // namespace tensmith
