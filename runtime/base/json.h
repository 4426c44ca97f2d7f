/// JSON as the tool writes it: one type, and the header block that every JSON output carries.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tensmith {

/// JSON that keeps the order in which keys were added, so that output is stable and readable.
/// Include `<nlohmann/json.hpp>` where values are built or read.
using Json = nlohmann::ordered_json;

}  // namespace tensmith
