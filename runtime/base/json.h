/// JSON as the tool reads and writes it: one type, the header block of every output, safe parsing.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tensmith {

/// JSON that keeps the order in which keys were added, so that output is stable and readable.
/// Include `<nlohmann/json.hpp>` where values are built or read.
using Json = nlohmann::ordered_json;

/// Where a result comes from. Fields that do not apply stay empty and are written as null.
struct Provenance {
  std::string schema;  ///< Name and version of the form: "tensmith.bench/1".
  std::string target;  ///< to_string of the target.
  int threads = 0;     ///< 0: not applicable.
  int64_t seed = 0;
  std::string model_digest;  ///< SHA-256 of the model file.
};

/// Header block: schema, tool, version, target, CPU model, governor, cores, quota, threads, seed, model digest.
/// Add the content behind it.
Json json_header(const Provenance& from);
/// The header without anything that depends on the machine at hand: the same input gives the same bytes.
Json manifest_header(const Provenance& from);

/// Parses text from outside. Errors: bad-json with line and column; too deep (64) or larger than `limit` bytes.
Result<Json> parse_json(std::string_view text, int64_t limit = int64_t{64} << 20);
/// Text with an indentation of 1 and a final newline.
std::string json_text(const Json& json);
/// Writes the text as a whole file. Errors: cannot-write.
Result<void> write_json(const std::string& path, const Json& json);

/// This tool's version: "0.1.0".
const char* tool_version();

}  // namespace tensmith
