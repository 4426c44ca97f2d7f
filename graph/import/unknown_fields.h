/// Fields that are younger than the proto file we build with; the parser keeps them as raw bytes.
#pragma once

#include <string>
#include <vector>

namespace tensmith::graph {

/// The length-delimited fields of number `field` in the raw bytes of a message's unknown fields.
std::vector<std::string> unknown_bytes(const std::string& unknown_fields, int field);

}  // namespace tensmith::graph
