/// What error ids mean, and the way out: one table.
#pragma once

#include <span>

namespace tensmith::cli {

struct Explanation {
  const char* id;
  const char* meaning;
  const char* way_out;
};
std::span<const Explanation> explanations();

}  // namespace tensmith::cli
