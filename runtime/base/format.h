/// Text for people from numbers.
#pragma once

#include <string>

namespace tensmith {

/// As printf, of any length.
std::string format_text(const char* form, ...) __attribute__((format(printf, 1, 2)));
/// `81.25 us`, `1.234 ms`; `-` for what is unknown: not above 0 or not finite. Units: microseconds.
std::string time_text(double us);

}  // namespace tensmith
